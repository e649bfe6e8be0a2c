//! `user` and `group`, below a root with files of its own.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use portolan_modules::{Ahead, PlannedOutcome, View};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::bed::{Bed, action, faults, in_namespace, is_root, tree};

const HASH: &str = "$6$salt$0123456789abcdef";
const OTHER_HASH: &str = "$y$j9T$salt$fedcba9876543210";
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIanna anna@desk";

#[test]
fn a_user_is_made_changed_and_removed() {
    if !is_root() {
        return;
    }
    let bed = Bed::with_accounts();
    let (plan, applied) = bed.converge("user", &json!({"name": "web", "addGroups": ["adm"]}));
    assert_eq!(
        plan.changes()[0].diff,
        "+uid: next free\n+group: web\n+home: /home/web\n+groups: adm\n"
    );
    assert_eq!(applied.result["uid"], 1000);
    assert_eq!(bed.read("home/web/.profile"), "# new\n");
    assert_eq!(fs::metadata(bed.root.join("home/web")).unwrap().uid(), 1000);
    bed.converge(
        "user",
        &json!({"name": "web", "addGroups": ["sudo"], "shell": "/bin/bash"}),
    );
    assert!(
        bed.read("etc/group")
            .contains("adm:x:4:web\nsudo:x:27:web\n")
    );
    let (plan, _) = bed.converge(
        "user",
        &json!({"name": "web", "groups": ["users"], "comment": "Web"}),
    );
    assert_eq!(
        plan.changes()[0].diff,
        "-groups: adm, sudo\n+groups: users\n-comment: \n+comment: Web\n"
    );
    assert!(
        bed.read("etc/passwd")
            .contains("web:x:1000:1000:Web:/home/web:/bin/bash\n")
    );
    let (plan, _) = bed.converge("user", &json!({"name": "web", "state": "absent"}));
    assert_eq!(plan.notes, ["`/home/web` stays"]);
    assert!(bed.root.join("home/web").exists());
}

#[test]
fn a_system_user_gets_a_number_of_its_range_and_no_home() {
    if !is_root() {
        return;
    }
    let bed = Bed::with_accounts();
    let (_, applied) = bed.converge(
        "user",
        &json!({"name": "web", "system": true, "home": "/srv/web"}),
    );
    assert!(applied.result["uid"].as_u64().unwrap() < 1000);
    assert!(!bed.root.join("srv/web").exists());
    let told = bed.fails(
        "user",
        &json!({"name": "db", "system": true, "authorizedKeys": [KEY]}),
    );
    assert!(
        told.contains("a system user gets no home directory"),
        "{told}"
    );
}

#[test]
fn a_password_hash_is_set_on_create_or_always() {
    if !is_root() {
        return;
    }
    let bed = Bed::with_accounts();
    let (plan, _) = bed.converge("user", &json!({"name": "web", "passwordHash": HASH}));
    assert!(
        !plan.changes()[0].diff.contains("0123456789abcdef"),
        "a hash is not shown"
    );
    assert!(bed.read("etc/shadow").contains(&format!("web:{HASH}:")));
    bed.converge("user", &json!({"name": "web", "passwordHash": OTHER_HASH}));
    assert!(
        bed.read("etc/shadow").contains(HASH),
        "only a new user gets it"
    );
    bed.converge(
        "user",
        &json!({"name": "web", "passwordHash": OTHER_HASH, "setPassword": "always"}),
    );
    assert!(
        bed.read("etc/shadow")
            .contains(&format!("web:{OTHER_HASH}:"))
    );
    bed.converge("user", &json!({"name": "web", "locked": true}));
    assert!(
        bed.read("etc/shadow")
            .contains(&format!("web:!{OTHER_HASH}:"))
    );
    bed.converge("user", &json!({"name": "web", "locked": false}));
    assert!(
        bed.read("etc/shadow")
            .contains(&format!("web:{OTHER_HASH}:"))
    );
    assert!(
        bed.read("etc/shadow")
            .starts_with("root:*:19000:0:99999:7:::\n")
    );
    bed.converge("user", &json!({"name": "db"}));
    let told = bed.fails("user", &json!({"name": "db", "locked": false}));
    assert!(
        told.contains("no password that could be unlocked"),
        "{told}"
    );
}

/// `chpasswd` and `passwd` take the same lock; one of a process that is gone does not stop us.
#[test]
fn a_lock_that_its_owner_left_is_taken_over() {
    if !is_root() {
        return;
    }
    let bed = Bed::with_accounts();
    bed.converge("user", &json!({"name": "web"}));
    // No process can have this number: it is the kernel's limit.
    bed.write("etc/shadow.lock", "4194305");
    bed.converge(
        "user",
        &json!({"name": "web", "passwordHash": HASH, "setPassword": "always"}),
    );
    assert!(!bed.root.join("etc/shadow.lock").exists());
    assert!(
        !bed.root
            .join(format!("etc/shadow.{}", std::process::id()))
            .exists()
    );
}

#[test]
fn keys_get_the_owners_that_sshd_asks_for() {
    if !is_root() {
        return;
    }
    let bed = Bed::with_accounts();
    let step = json!({"name": "web", "authorizedKeys": [KEY]});
    bed.converge("user", &step);
    assert_eq!(
        bed.read("home/web/.ssh/authorized_keys"),
        format!("{KEY}\n")
    );
    let check = |path: &str, mode: u32| {
        let found = fs::metadata(bed.root.join(path)).unwrap();
        assert_eq!(
            (found.uid(), found.permissions().mode() & 0o7777),
            (1000, mode),
            "{path}"
        );
    };
    check("home/web/.ssh", 0o700);
    check("home/web/.ssh/authorized_keys", 0o600);
    fs::set_permissions(
        bed.root.join("home/web/.ssh"),
        fs::Permissions::from_mode(0o777),
    )
    .unwrap();
    bed.converge("user", &step);
    check("home/web/.ssh", 0o700);
    let limited = format!("no-pty {KEY}");
    bed.write("home/web/.ssh/authorized_keys", &format!("# mine\n{KEY}\n"));
    let (plan, _) = bed.converge("user", &json!({"name": "web", "authorizedKeys": [limited]}));
    assert!(
        plan.changes()[0].diff.contains("+no-pty"),
        "{:?}",
        plan.changes()
    );
    assert_eq!(
        bed.read("home/web/.ssh/authorized_keys"),
        format!("# mine\n{limited}\n")
    );
    bed.converge(
        "user",
        &json!({"name": "web", "authorizedKeys": [], "exclusiveKeys": true}),
    );
    assert_eq!(bed.read("home/web/.ssh/authorized_keys"), "# mine\n");
    fs::set_permissions(bed.root.join("home/web"), fs::Permissions::from_mode(0o775)).unwrap();
    let plan = bed.plan("user", &step).unwrap();
    assert!(
        plan.notes[0].contains("sshd ignores the keys"),
        "{:?}",
        plan.notes
    );
}

/// A user owns its home and may put any link there; nothing outside the home is written through it.
#[test]
fn a_link_in_the_home_leads_nowhere() {
    if !is_root() {
        return;
    }
    let bed = Bed::with_accounts();
    bed.converge("user", &json!({"name": "web"}));
    symlink(&bed.outside, bed.root.join("home/web/.ssh")).unwrap();
    let error = bed.apply("user", &json!({"name": "web", "authorizedKeys": [KEY]}));
    assert!(error.is_err(), "{error:?}");
    fs::remove_file(bed.root.join("home/web/.ssh")).unwrap();
    fs::create_dir(bed.root.join("home/web/.ssh")).unwrap();
    symlink(
        bed.outside.join("file"),
        bed.root.join("home/web/.ssh/authorized_keys"),
    )
    .unwrap();
    bed.apply("user", &json!({"name": "web", "authorizedKeys": [KEY]}))
        .unwrap();
    assert_eq!(
        fs::read_to_string(bed.outside.join("file")).unwrap(),
        "untouched"
    );
}

/// `useradd --prefix` would follow links of the files that it writes.
#[test]
fn links_in_place_of_account_files_are_refused() {
    if !is_root() {
        return;
    }
    for hostile in ["etc/passwd", "etc/shadow", "etc/group", "etc/skel", "home"] {
        let bed = Bed::with_accounts();
        let path = bed.root.join(hostile);
        let elsewhere = bed.outside.join("moved");
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        for step in [
            json!({"name": "web"}),
            json!({"name": "daemon", "shell": "/bin/sh", "locked": true}),
        ] {
            if hostile == "home" && step["name"] == "daemon" {
                continue;
            }
            let error = bed.apply("user", &step).unwrap_err();
            assert!(
                error.to_string().contains("it is a link"),
                "{hostile}: {error}"
            );
        }
    }
}

#[test]
fn a_home_is_never_moved_and_only_its_owners_is_removed() {
    if !is_root() {
        return;
    }
    let bed = Bed::with_accounts();
    bed.converge("user", &json!({"name": "web"}));
    let (plan, _) = bed.converge("user", &json!({"name": "web", "home": "/srv/web"}));
    assert_eq!(plan.notes, ["the content of `/home/web` stays there"]);
    assert!(bed.root.join("home/web/.profile").exists());
    assert!(!bed.root.join("srv/web").exists());
    bed.converge("user", &json!({"name": "web", "home": "/home"}));
    let absent = json!({"name": "web", "state": "absent", "removeHome": true});
    let told = bed.fails("user", &absent);
    assert!(
        told.contains("not a directory that the user owns"),
        "{told}"
    );
    bed.converge("user", &json!({"name": "web", "home": "/home/web"}));
    bed.converge("user", &json!({"name": "db", "home": "/home/web/db"}));
    let told = bed.fails("user", &absent);
    assert!(
        told.contains("the home of the user `db` is in it"),
        "{told}"
    );
    bed.converge("user", &json!({"name": "db", "state": "absent"}));
    bed.converge("user", &absent);
    assert!(!bed.root.join("home/web").exists());
}

#[test]
fn what_cannot_work_fails_before_anything_is_done() {
    if !is_root() {
        return;
    }
    let bed = Bed::with_accounts();
    let told = bed.fails(
        "user",
        &json!({"name": "web", "addGroups": ["nobody-has-it"]}),
    );
    assert!(
        told.contains("the group `nobody-has-it` does not exist"),
        "{told}"
    );
    let told = bed.fails("user", &json!({"name": "web", "uid": 1}));
    assert!(
        told.contains("the user `daemon` has the number 1"),
        "{told}"
    );
    let told = bed.fails("group", &json!({"name": "web", "gid": 4}));
    assert!(told.contains("the group `adm` has the number 4"), "{told}");
    let told = bed.fails("group", &json!({"name": "daemon", "state": "absent"}));
    assert!(
        told.contains("the primary group of the user `daemon`"),
        "{told}"
    );
}

#[test]
fn a_group_is_made_changed_and_removed() {
    if !is_root() {
        return;
    }
    let bed = Bed::with_accounts();
    let (_, applied) = bed.converge("group", &json!({"name": "ops", "system": true}));
    assert!(applied.result["gid"].as_u64().unwrap() < 1000);
    let (plan, _) = bed.converge("group", &json!({"name": "ops", "gid": 2000}));
    assert!(plan.changes()[0].diff.ends_with("+gid: 2000\n"));
    assert!(bed.read("etc/group").contains("ops:x:2000:\n"));
    bed.converge("group", &json!({"name": "ops", "state": "absent"}));
    assert!(!bed.read("etc/group").contains("ops"));
}

#[test]
fn a_check_knows_groups_of_earlier_steps() {
    let bed = Bed::with_accounts();
    let mut ahead = Ahead::default();
    let group = bed.plan("group", &json!({"name": "ops"})).unwrap();
    ahead.add(&group.predictions);
    let view = View {
        host: &bed.host,
        ahead,
    };
    let step = json!({"name": "web", "addGroups": ["ops"]});
    let plan = action("user", &step).plan(&view).unwrap();
    assert!(matches!(plan.outcome, PlannedOutcome::Change(_)));
    let again = action("group", &json!({"name": "ops"}))
        .plan(&view)
        .unwrap();
    assert!(
        matches!(again.outcome, PlannedOutcome::Unchanged),
        "{again:?}"
    );
}

/// A plan is refused when the user is another one at the time of the apply.
#[test]
fn a_user_that_changed_since_the_plan_is_left_alone() {
    if !is_root() {
        return;
    }
    let bed = Bed::with_accounts();
    bed.converge("user", &json!({"name": "web"}));
    let shell = action("user", &json!({"name": "web", "shell": "/bin/zsh"}));
    let plan = shell.plan(&View::of(&bed.host)).unwrap();
    bed.converge("user", &json!({"name": "web", "shell": "/bin/dash"}));
    let before = tree(&bed.root);
    let error = shell.apply(&bed.host, &plan).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`user web` has changed since the plan was made"
    );
    assert_eq!(tree(&bed.root), before);
}

#[test]
fn parameters_that_do_not_fit_are_told() {
    let name = |name: &str| faults("user", &json!({"name": name}));
    assert!(name("-r").contains("must begin with a letter"));
    assert!(name("a:b").contains("must begin with a letter"));
    assert!(
        faults("user", &json!({"name": "a", "passwordHash": "secret"})).contains("begins with `$`")
    );
    let both = json!({"name": "a", "groups": ["x"], "addGroups": ["y"]});
    assert!(faults("user", &both).contains("cannot stand beside"));
    assert!(faults("user", &json!({"name": "a", "shell": "/a:b"})).contains("without `:`"));
    assert!(faults("user", &json!({"name": "a", "authorizedKeys": ["x"]})).contains("item 1"));
    assert!(faults("user", &json!({"name": "a", "removeHome": true})).contains("state: absent"));
    assert!(
        faults("user", &json!({"name": "a", "exclusiveKeys": true})).contains("authorizedKeys")
    );
}

/// Users of LDAP and the like are not in `/etc/passwd`; a local one with the same name would hide them.
#[test]
fn a_user_of_a_directory_service_is_refused() {
    if !in_namespace(
        "accounts::a_user_of_a_directory_service_is_refused",
        &["--mount"],
    ) {
        return;
    }
    let bed = Bed::new();
    // The directory service of the test: a `getent` that knows one more user.
    let program = "#!/bin/sh\n[ \"$2\" = far ] && echo far:x:5000:5000::/home/far:/bin/sh && exit 0\nexit 2\n";
    bed.write("getent", program);
    fs::set_permissions(bed.root.join("getent"), fs::Permissions::from_mode(0o755)).unwrap();
    let mounted = std::process::Command::new("mount")
        .args([
            "--bind",
            bed.root.join("getent").as_str(),
            "/usr/bin/getent",
        ])
        .status()
        .unwrap();
    assert!(mounted.success());
    let host = portolan_modules::Host::local(std::sync::Arc::new(
        portolan_modules::Root::machine().unwrap(),
    ));
    let error = action("user", &json!({"name": "far"}))
        .plan(&View::of(&host))
        .unwrap_err();
    assert!(
        error.to_string().contains("comes from a directory service"),
        "{error}"
    );
    let error = action("group", &json!({"name": "far"}))
        .plan(&View::of(&host))
        .unwrap_err();
    assert!(
        error.to_string().contains("comes from a directory service"),
        "{error}"
    );
}

fn any_user() -> impl Strategy<Value = Value> {
    let name = select(vec!["web", "db", "ops"]);
    let groups = proptest::option::of((
        select(vec!["addGroups", "groups"]),
        subsequence(vec!["adm", "sudo", "users"], 0..=3),
    ));
    let text = (
        proptest::option::of(select(vec!["/bin/sh", "/bin/bash"])),
        proptest::option::of(select(vec!["", "A B", "Ä, 1"])),
        proptest::option::of(select(vec!["/home/web", "/srv/x"])),
        proptest::option::of(select(vec![HASH, OTHER_HASH])),
    );
    let flags = (
        any::<bool>(),
        any::<bool>(),
        proptest::option::of(0_u32..3),
        0..5,
    );
    (name, groups, text, flags).prop_map(|(name, groups, text, flags)| {
        let (shell, comment, home, hash) = text;
        let (is_system, always, uid, rare) = flags;
        let mut step = json!({"name": name});
        if rare == 0 {
            step["state"] = json!("absent");
            return step;
        }
        if let Some((key, names)) = groups {
            step[key] = json!(names);
        }
        for (key, value) in [
            ("shell", shell),
            ("comment", comment),
            ("home", home),
            ("passwordHash", hash),
        ] {
            if let Some(value) = value {
                step[key] = json!(value);
            }
        }
        if is_system {
            step["system"] = json!(true);
        }
        if always {
            step["setPassword"] = json!("always");
        }
        if let Some(uid) = uid {
            step["uid"] = json!(3000 + uid);
        }
        if rare == 1 && hash.is_some() && always {
            step["locked"] = json!(true);
        }
        step
    })
}

/// Any sequence of steps: each one keeps the rules, or fails before it does anything.
#[test]
fn random_users_converge() {
    if !is_root() {
        return;
    }
    let cases = if std::env::var_os("PORTOLAN_LONG").is_some() {
        100
    } else {
        6
    };
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let steps = proptest::collection::vec(any_user(), 1..6);
    let outcome = runner.run(&steps, |steps| {
        let bed = Bed::with_accounts();
        for step in &steps {
            let plan = bed.plan("user", step);
            match plan {
                Ok(_) => {
                    bed.converge("user", step);
                }
                Err(_) => {
                    bed.fails("user", step);
                }
            }
        }
        Ok(())
    });
    outcome.unwrap();
}
