//! The edges of the modules `file`, `directory` and `link`.

mod bed;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use bed::{Bed, diffs, faults, shown};
use portolan_modules::{Ahead, ChangeKind, ModuleError, PlannedOutcome, Prediction, View};
use serde_json::json;

fn is_administrator() -> bool {
    rustix::process::geteuid().is_root()
}

// === file ===

#[test]
fn a_file_is_written_whole_with_its_mode_and_leaves_nothing_beside_it() {
    let bed = Bed::new();
    let (plan, _) = bed
        .converge(
            "file",
            &json!({"path": "/etc/web.conf", "content": "a\r\nb", "mode": "0640"}),
        )
        .unwrap();
    // Bytes are exact, and line endings are kept.
    assert_eq!(bed.read("/etc/web.conf"), "a\r\nb");
    assert_eq!(bed.mode("/etc/web.conf"), 0o640);
    assert!(
        diffs(&plan).ends_with("+b\n\\ No newline at end of file\nmode: 0640\n"),
        "{}",
        diffs(&plan)
    );
    let names: Vec<_> = fs::read_dir(bed.path("/etc")).unwrap().collect();
    assert_eq!(names.len(), 3);
}

#[test]
fn a_replaced_file_is_a_new_one_and_keeps_what_the_step_does_not_name() {
    let bed = Bed::new();
    bed.write("/etc/web.conf", "old\n");
    fs::set_permissions(bed.path("/etc/web.conf"), fs::Permissions::from_mode(0o604)).unwrap();
    let inode = fs::metadata(bed.path("/etc/web.conf")).unwrap().ino();
    let (plan, _) = bed
        .converge(
            "file",
            &json!({"path": "/etc/web.conf", "content": "new\n"}),
        )
        .unwrap();
    assert_eq!(
        diffs(&plan),
        "--- a/etc/web.conf\n+++ b/etc/web.conf\n@@ -1 +1 @@\n-old\n+new\n"
    );
    assert_eq!(plan.changes()[0].kind, ChangeKind::Update);
    assert_eq!(bed.mode("/etc/web.conf"), 0o604);
    assert_ne!(
        fs::metadata(bed.path("/etc/web.conf")).unwrap().ino(),
        inode
    );
}

/// As the administrator only: others cannot give files away.
#[test]
fn the_owner_is_set_before_the_mode_so_that_setuid_stays() {
    if !is_administrator() {
        return;
    }
    let bed = Bed::new();
    bed.write("/tool", "x");
    let parameters =
        json!({"path": "/tool", "content": "y", "owner": "web", "group": "web", "mode": "4755"});
    let (plan, _) = bed.converge("file", &parameters).unwrap();
    assert!(
        diffs(&plan).ends_with("mode: 0644 → 4755\nowner: root → web\ngroup: root → web\n"),
        "{}",
        diffs(&plan)
    );
    let found = fs::metadata(bed.path("/tool")).unwrap();
    assert_eq!(
        (found.uid(), found.gid(), bed.mode("/tool")),
        (12345, 12346, 0o4755)
    );
    // Also without a new content.
    let parameters = json!({"path": "/tool", "owner": "0", "mode": "4711"});
    bed.converge("file", &parameters).unwrap();
    assert_eq!(
        (
            fs::metadata(bed.path("/tool")).unwrap().uid(),
            bed.mode("/tool")
        ),
        (0, 0o4711)
    );
}

#[test]
fn an_unknown_owner_is_an_error_unless_an_earlier_step_makes_it() {
    let bed = Bed::new();
    let parameters = json!({"path": "/x", "content": "", "owner": "shop"});
    let error = bed.plan("file", &parameters).unwrap_err();
    assert_eq!(
        shown(&error),
        "cannot find the `user shop`: it is not there; hint: add a step with the module `user` before this one"
    );
    let mut ahead = Ahead::default();
    ahead.add(&[Prediction::User("shop".into(), true)]);
    let view = View {
        host: &bed.host,
        ahead,
    };
    let plan = bed::action("file", &parameters).plan(&view).unwrap();
    assert!(diffs(&plan).ends_with("owner: shop\n"), "{}", diffs(&plan));
}

#[test]
fn a_mode_must_be_quoted_octal() {
    let found = faults("file", &json!({"path": "/x", "mode": 420}));
    assert_eq!(found, "`mode` must be a quoted octal number");
    assert_eq!(faults("file", &json!({"path": "/x", "mode": "u+x"})), found);
}

#[test]
fn parents_are_made_only_when_asked_for() {
    let bed = Bed::new();
    let error = bed
        .plan("file", &json!({"path": "/srv/web/x", "content": "a"}))
        .unwrap_err();
    assert!(
        shown(&error)
            .starts_with("cannot write `/srv/web/x`: the directory `/srv/web` is missing; hint:"),
        "{}",
        shown(&error)
    );
    let parameters = json!({"path": "/srv/web/x", "content": "a", "parents": {"mode": "0750"}});
    let (plan, _) = bed.converge("file", &parameters).unwrap();
    assert_eq!(plan.changes().len(), 3);
    assert_eq!((bed.mode("/srv"), bed.mode("/srv/web")), (0o750, 0o750));
    assert!(
        faults("file", &json!({"path": "/x", "parents": {"mod": "1"}}))
            .contains("`parents.mod` is not known")
    );
}

#[test]
fn a_link_is_followed_and_its_target_replaced() {
    let bed = Bed::new();
    bed.write("/real", "old");
    symlink("../real", bed.path("/etc/link")).unwrap();
    bed.converge("file", &json!({"path": "/etc/link", "content": "new"}))
        .unwrap();
    assert_eq!(bed.read("/real"), "new");
    assert!(bed.path("/etc/link").is_symlink());
    // An absolute target is kept as text and means a path below the root.
    symlink("/real", bed.path("/absolute")).unwrap();
    bed.converge("file", &json!({"path": "/absolute", "content": "again"}))
        .unwrap();
    assert_eq!(bed.read("/real"), "again");
    // One that leads nowhere gets its target.
    symlink("nowhere", bed.path("/dangling")).unwrap();
    bed.converge("file", &json!({"path": "/dangling", "content": "made"}))
        .unwrap();
    assert_eq!(bed.read("/nowhere"), "made");
    // Not followed, it becomes a file.
    let (plan, _) = bed
        .converge(
            "file",
            &json!({"path": "/absolute", "content": "own", "follow": false}),
        )
        .unwrap();
    assert!(diffs(&plan).starts_with("the link to /real becomes a file\n"));
    assert!(!bed.path("/absolute").is_symlink());
    assert_eq!(bed.read("/real"), "again");
}

/// A link on the way leads on, also when what it leads to is missing.
#[test]
fn parents_are_made_where_a_link_leads() {
    let bed = Bed::new();
    symlink("/srv/real", bed.path("/link")).unwrap();
    let parameters = json!({"path": "/link/x", "content": "a", "parents": {"mode": "0700"}});
    bed.converge("file", &parameters).unwrap();
    assert_eq!(bed.read("/srv/real/x"), "a");
    symlink("../../../deep/er/x", bed.path("/up")).unwrap();
    let parameters = json!({"path": "/up", "content": "b", "parents": {}});
    let (plan, _) = bed.converge("file", &parameters).unwrap();
    assert_eq!(plan.changes()[0].subject.to_string(), "/deep");
    assert_eq!(bed.read("/deep/er/x"), "b");
}

#[test]
fn links_in_a_circle_are_told() {
    let bed = Bed::new();
    symlink("b", bed.path("/a")).unwrap();
    symlink("a", bed.path("/b")).unwrap();
    let error = bed
        .plan("file", &json!({"path": "/a", "content": ""}))
        .unwrap_err();
    assert!(error.to_string().contains("too many links"), "{error}");
}

/// As the administrator only: others cannot make files of somebody else.
#[test]
fn a_link_of_another_user_where_everybody_can_write_is_refused() {
    if !is_administrator() {
        return;
    }
    let bed = Bed::new();
    fs::create_dir(bed.path("/tmp")).unwrap();
    fs::set_permissions(bed.path("/tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    symlink("/etc/passwd", bed.path("/tmp/trap")).unwrap();
    std::os::unix::fs::lchown(bed.path("/tmp/trap"), Some(12345), None).unwrap();
    for module in ["file", "line", "block"] {
        let parameters = match module {
            "file" => json!({"path": "/tmp/trap", "content": "x"}),
            "line" => json!({"path": "/tmp/trap", "line": "x"}),
            _ => json!({"path": "/tmp/trap", "block": "x"}),
        };
        let error = bed.plan(module, &parameters).unwrap_err();
        assert!(
            shown(&error).contains("user 12345 put this link into `/tmp`"),
            "{}",
            shown(&error)
        );
    }
    let error = bed
        .plan("directory", &json!({"path": "/tmp/trap"}))
        .unwrap_err();
    assert!(shown(&error).contains("user 12345"), "{}", shown(&error));
    // Its own link is followed.
    std::os::unix::fs::lchown(bed.path("/tmp/trap"), Some(0), None).unwrap();
    bed.plan("file", &json!({"path": "/tmp/trap", "content": "x"}))
        .unwrap();
}

#[test]
fn extended_attributes_are_kept() {
    let bed = Bed::new();
    bed.write("/etc/x", "old");
    let path = bed.path("/etc/x");
    if rustix::fs::setxattr(
        path.as_std_path(),
        "user.note",
        b"kept",
        rustix::fs::XattrFlags::empty(),
    )
    .is_err()
    {
        return;
    }
    bed.converge("file", &json!({"path": "/etc/x", "content": "new"}))
        .unwrap();
    let mut value = Vec::with_capacity(16);
    rustix::fs::getxattr(
        path.as_std_path(),
        "user.note",
        rustix::buffer::spare_capacity(&mut value),
    )
    .unwrap();
    assert_eq!(value, b"kept");
}

#[test]
fn other_names_of_a_file_are_told_and_in_place_changes_them_all() {
    let bed = Bed::new();
    bed.write("/a", "old");
    fs::hard_link(bed.path("/a"), bed.path("/b")).unwrap();
    let (plan, _) = bed
        .converge(
            "file",
            &json!({"path": "/a", "content": "through", "inPlace": true}),
        )
        .unwrap();
    assert!(plan.notes.is_empty());
    assert_eq!(bed.read("/b"), "through");
    let (plan, applied) = bed
        .converge("file", &json!({"path": "/a", "content": "new"}))
        .unwrap();
    let note = "`/a` has 2 names: the others keep the old content (`inPlace: true` changes all)";
    assert_eq!(
        (plan.notes, applied.notes),
        (vec![note.to_owned()], vec![note.to_owned()])
    );
    assert_eq!(bed.read("/b"), "through");
}

/// As the administrator only: others cannot set the flag; some file systems have none.
#[test]
fn the_immutable_flag_is_named() {
    let bed = Bed::new();
    bed.write("/etc/x", "old");
    let file = fs::File::open(bed.path("/etc/x")).unwrap();
    let flags = rustix::fs::IFlags::IMMUTABLE;
    if !is_administrator() || rustix::fs::ioctl_setflags(&file, flags).is_err() {
        return;
    }
    let result = bed.converge("file", &json!({"path": "/etc/x", "content": "new"}));
    rustix::fs::ioctl_setflags(&file, rustix::fs::IFlags::empty()).unwrap();
    assert!(shown(&result.unwrap_err()).contains("take it away with `chattr -ia`"));
}

#[test]
fn a_file_is_validated_before_it_is_put_in_place() {
    let bed = Bed::new();
    bed.write("/etc/x", "good");
    let with = |content: &str| json!({"path": "/etc/x", "content": content, "mode": "0600", "validate": ["grep", "-q", "good", "%s"]});
    let error = bed
        .plan("file", &with("bad"))
        .map(|plan| bed::action("file", &with("bad")).apply(&bed.host, &plan))
        .unwrap()
        .unwrap_err();
    assert!(
        shown(&error).contains("`grep -q good %s` found it wrong (exit code 1)"),
        "{}",
        shown(&error)
    );
    assert_eq!(bed.read("/etc/x"), "good");
    assert_eq!(
        fs::read_dir(bed.path("/etc")).unwrap().count(),
        3,
        "the staged file is gone"
    );
    let (_, applied) = bed.converge("file", &with("good too")).unwrap();
    assert_eq!(applied.result["unconfined"], true);
    for wrong in [
        json!(["true"]),
        json!("visudo -cf %s"),
        json!(["true", "x"]),
    ] {
        let found = faults("file", &json!({"path": "/x", "validate": wrong}));
        assert!(found.contains("one of them with `%s`"), "{found}");
    }
}

#[test]
fn backups_are_bounded() {
    let bed = Bed::new();
    for number in 0..5 {
        let parameters = json!({"path": "/etc/x", "content": format!("{number}"), "backup": 2});
        bed.converge("file", &parameters).unwrap();
    }
    assert_eq!(
        (bed.read("/etc/x.~1~"), bed.read("/etc/x.~2~")),
        ("3".to_owned(), "2".to_owned())
    );
    assert_eq!(fs::read_dir(bed.path("/etc")).unwrap().count(), 5);
    assert!(faults("file", &json!({"path": "/x", "backup": 101})).contains("from 0 to 100"));
}

/// As the administrator only: a mount needs it.
#[test]
fn a_bind_mount_fails_with_a_hint_and_in_place_writes_through() {
    if !is_administrator() {
        return;
    }
    let bed = Bed::new();
    bed.write("/etc/x", "old");
    bed.write("/mounted", "below");
    let mount = |arguments: &[&str]| {
        let status = std::process::Command::new(arguments[0])
            .args(&arguments[1..])
            .status();
        status.is_ok_and(|status| status.success())
    };
    let (from, to) = (bed.path("/mounted"), bed.path("/etc/x"));
    if !mount(&["mount", "--bind", from.as_str(), to.as_str()]) {
        return;
    }
    let parameters = json!({"path": "/etc/x", "content": "new"});
    let plan = bed.plan("file", &parameters).unwrap();
    let error = bed::action("file", &parameters)
        .apply(&bed.host, &plan)
        .unwrap_err();
    let through = bed.converge(
        "file",
        &json!({"path": "/etc/x", "content": "new", "inPlace": true}),
    );
    assert!(mount(&["umount", to.as_str()]));
    assert!(
        shown(&error).contains("`inPlace: true` writes into the mounted file"),
        "{}",
        shown(&error)
    );
    through.unwrap();
    assert_eq!(
        (bed.read("/mounted"), bed.read("/etc/x")),
        ("new".to_owned(), "old".to_owned())
    );
}

#[test]
fn what_changed_since_the_plan_is_not_overwritten() {
    let bed = Bed::new();
    bed.write("/etc/x", "old");
    let parameters = json!({"path": "/etc/x", "content": "new"});
    let plan = bed.plan("file", &parameters).unwrap();
    bed.write("/etc/x", "by hand");
    let error = bed::action("file", &parameters)
        .apply(&bed.host, &plan)
        .unwrap_err();
    assert!(matches!(error, ModuleError::Drifted { .. }), "{error}");
    assert_eq!(bed.read("/etc/x"), "by hand");
}

#[test]
fn a_file_is_removed_but_no_directory() {
    let bed = Bed::new();
    bed.write("/etc/x", "old\n");
    let (plan, _) = bed
        .converge("file", &json!({"path": "/etc/x", "state": "absent"}))
        .unwrap();
    assert_eq!(
        diffs(&plan),
        "--- a/etc/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
    );
    let error = bed
        .plan("file", &json!({"path": "/etc", "state": "absent"}))
        .unwrap_err();
    assert!(shown(&error).contains("it is a directory; hint: use the module `directory`"));
    // A link is removed itself.
    symlink("passwd", bed.path("/etc/link")).unwrap();
    bed.converge("file", &json!({"path": "/etc/link", "state": "absent"}))
        .unwrap();
    assert!(bed.path("/etc/passwd").exists());
}

#[test]
fn a_source_is_a_file_of_the_book() {
    let bed = Bed::with_files(&[("files/x", b"\0binary")]);
    let (plan, _) = bed
        .converge("file", &json!({"path": "/x", "source": "files/x"}))
        .unwrap();
    assert!(diffs(&plan).contains("the contents are not text"));
    let error = bed
        .plan("file", &json!({"path": "/x", "source": "missing"}))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read `missing`: there is no file `missing` beside the book"
    );
    assert!(
        faults(
            "file",
            &json!({"path": "/x", "source": "a", "content": "b"})
        )
        .contains("cannot stand beside")
    );
}

#[test]
fn a_check_looks_ahead() {
    let bed = Bed::new();
    let steps = [
        ("directory", json!({"path": "/srv", "mode": "0750"})),
        ("link", json!({"path": "/current", "to": "srv"})),
        (
            "file",
            json!({"path": "/current/x", "content": "a\n", "mode": "0600"}),
        ),
        ("line", json!({"path": "/srv/x", "line": "b"})),
        ("file", json!({"path": "/srv/x", "mode": "0640"})),
        (
            "file",
            json!({"path": "/current/x", "content": "a\nb\n", "mode": "0640"}),
        ),
        ("directory", json!({"path": "/srv", "state": "absent"})),
        ("directory", json!({"path": "/srv", "mode": "0700"})),
        ("file", json!({"path": "/srv/x", "state": "absent"})),
    ];
    let mut ahead = Ahead::default();
    let mut predicted = Vec::new();
    for (module, parameters) in &steps {
        let view = View {
            host: &bed.host,
            ahead,
        };
        let plan = bed::action(module, parameters).plan(&view).unwrap();
        ahead = view.ahead;
        ahead.add(&plan.predictions);
        predicted.push(plan);
    }
    let kinds = predicted.iter().map(|plan| plan.changes().len());
    assert_eq!(kinds.collect::<Vec<_>>(), [1, 1, 1, 1, 1, 0, 1, 1, 0]);
    assert!(matches!(predicted[5].outcome, PlannedOutcome::Unchanged));
    for ((module, parameters), plan) in steps.iter().zip(predicted) {
        let (real, _) = bed.converge(module, parameters).unwrap();
        assert_eq!(diffs(&real), diffs(&plan), "{parameters}");
        let digests = |plan: &portolan_modules::Plan| {
            plan.changes()
                .iter()
                .map(|change| (change.before, change.after))
                .collect::<Vec<_>>()
        };
        assert_eq!(digests(&real), digests(&plan), "{parameters}");
    }
}

// === directory ===

#[test]
fn a_directory_gets_files_of_the_book_and_loses_others_when_asked() {
    let bed = Bed::with_files(&[("conf/a", b"1"), ("conf/sub/b", b"2")]);
    fs::create_dir_all(bed.path("/srv/old/deep")).unwrap();
    bed.write("/srv/stray", "x");
    symlink(bed.outside(), bed.path("/srv/sub")).unwrap();
    let parameters = json!({"path": "/srv", "source": "conf"});
    let error = bed.converge("directory", &parameters).unwrap_err();
    assert!(
        shown(&error).contains("a link is there"),
        "{}",
        shown(&error)
    );
    bed.assert_outside_untouched();
    fs::remove_file(bed.path("/srv/sub")).unwrap();
    bed.converge("directory", &parameters).unwrap();
    assert_eq!(
        (bed.read("/srv/a"), bed.read("/srv/sub/b")),
        ("1".to_owned(), "2".to_owned())
    );
    assert!(bed.path("/srv/stray").exists());
    let purge = json!({"path": "/srv", "source": "conf", "purge": true});
    let (plan, _) = bed.converge("directory", &purge).unwrap();
    assert_eq!(plan.changes().len(), 2);
    assert!(!bed.path("/srv/old").exists() && !bed.path("/srv/stray").exists());
    assert!(
        faults("directory", &json!({"path": "/srv", "purge": true})).contains("needs `source`")
    );
}

#[test]
fn recursion_gives_the_mode_to_directories_and_follows_no_link() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("/srv/a")).unwrap();
    bed.write("/srv/a/file", "x");
    symlink(bed.outside(), bed.path("/srv/link")).unwrap();
    let mode = bed.mode("/srv/a/file");
    bed.converge(
        "directory",
        &json!({"path": "/srv", "mode": "0711", "recurse": true}),
    )
    .unwrap();
    assert_eq!(
        (
            bed.mode("/srv"),
            bed.mode("/srv/a"),
            bed.mode("/srv/a/file")
        ),
        (0o711, 0o711, mode)
    );
    if is_administrator() {
        bed.converge(
            "directory",
            &json!({"path": "/srv", "owner": "web", "recurse": true}),
        )
        .unwrap();
        assert_eq!(fs::metadata(bed.path("/srv/a/file")).unwrap().uid(), 12345);
    }
}

#[test]
fn a_directory_is_removed_with_everything_in_it_but_nothing_outside() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("/srv/a/b")).unwrap();
    symlink(bed.outside(), bed.path("/srv/a/link")).unwrap();
    bed.converge("directory", &json!({"path": "/srv", "state": "absent"}))
        .unwrap();
    assert!(!bed.path("/srv").exists());
    assert_eq!(
        faults("directory", &json!({"path": "/", "state": "absent"})),
        "`path` must not be the root directory"
    );
    let error = bed
        .plan(
            "directory",
            &json!({"path": "/etc/passwd", "state": "absent"}),
        )
        .unwrap_err();
    assert!(shown(&error).contains("it is not a directory"));
}

#[test]
fn a_file_in_the_place_of_a_directory_is_told() {
    let bed = Bed::new();
    let error = bed
        .plan("directory", &json!({"path": "/etc/passwd"}))
        .unwrap_err();
    assert!(shown(&error).contains("something that is not a directory is there"));
    let error = bed
        .plan("file", &json!({"path": "/etc/passwd/x", "content": ""}))
        .unwrap_err();
    assert!(
        shown(&error).contains("`/etc/passwd` is not a directory"),
        "{}",
        shown(&error)
    );
}

// === link ===

#[test]
fn a_link_keeps_its_text_and_replaces_what_it_may() {
    let bed = Bed::new();
    bed.converge("link", &json!({"path": "/l", "to": "/etc/passwd"}))
        .unwrap();
    assert_eq!(
        fs::read_link(bed.path("/l")).unwrap().to_str(),
        Some("/etc/passwd")
    );
    let (plan, _) = bed
        .converge("link", &json!({"path": "/l", "to": "../nowhere"}))
        .unwrap();
    assert_eq!(diffs(&plan), "link: /etc/passwd → ../nowhere\n");
    bed.write("/file", "x");
    let error = bed
        .plan("link", &json!({"path": "/file", "to": "x"}))
        .unwrap_err();
    assert_eq!(
        shown(&error),
        "cannot make the link `/file`: a file is there; hint: `force: true` replaces it"
    );
    bed.converge("link", &json!({"path": "/file", "to": "x", "force": true}))
        .unwrap();
    fs::create_dir(bed.path("/empty")).unwrap();
    bed.converge("link", &json!({"path": "/empty", "to": "x", "force": true}))
        .unwrap();
    let error = bed
        .plan("link", &json!({"path": "/etc", "to": "x", "force": true}))
        .unwrap_err();
    assert!(shown(&error).contains("not empty"));
    let error = bed
        .plan("link", &json!({"path": "/no/l", "to": "x"}))
        .unwrap_err();
    assert!(shown(&error).contains("the directory `/no` is missing"));
}

#[test]
fn a_hard_link_is_a_second_name() {
    let bed = Bed::new();
    bed.write("/a", "x");
    bed.converge("link", &json!({"path": "/b", "to": "/a", "hard": true}))
        .unwrap();
    assert_eq!(fs::metadata(bed.path("/b")).unwrap().nlink(), 2);
    let error = bed
        .plan("link", &json!({"path": "/c", "to": "/no", "hard": true}))
        .unwrap_err();
    assert!(error.to_string().contains("there is no such file"));
    assert!(
        faults("link", &json!({"path": "/c", "to": "a", "hard": true})).contains("begins with `/`")
    );
    let _ = chown(bed.path("/a"), None, None);
}
