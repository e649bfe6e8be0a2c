//! `package` and `repository` with dnf and rpm, on a root with a database of its own and a repository in a directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use portolan_modules::{Ahead, PlannedOutcome, View};
use serde_json::json;

use crate::bed::{Bed, action, is_root};

/// A root with an empty database of rpm, and a repository beside it.
struct System {
    bed: Bed,
}

impl System {
    /// `None` where dnf is missing or the tests do not run as root.
    fn new() -> Option<Self> {
        let programs = ["dnf", "createrepo_c", "rpmbuild"];
        if !is_root()
            || !programs
                .iter()
                .all(|program| portolan_testbed::has_program(program, "--version"))
        {
            return None;
        }
        let bed = Bed::new();
        for directory in ["etc/yum.repos.d", "etc/pki/rpm-gpg", "var/lib/rpm"] {
            fs::create_dir_all(bed.root.join(directory)).unwrap();
        }
        // Debian's rpm has its database elsewhere.
        let database = ["--define", "_dbpath /var/lib/rpm", "--initdb"];
        run(Command::new("rpm")
            .args(["--root", bed.root.as_str()])
            .args(database));
        let system = Self { bed };
        system.build("tiny", "1.0", "");
        system.build("tiny", "2.0", "");
        system.build("base", "1", "Conflicts: other\n");
        system.build("other", "1", "");
        system.build("server", "1", "Provides: virtual-server\n");
        system.index();
        Some(system)
    }

    fn with_repository() -> Option<Self> {
        let system = Self::new()?;
        let uri = format!("file://{}/repo", system.bed.root);
        let step = json!({"name": "shop", "uris": [uri], "trusted": true});
        system.bed.converge("repository", &step);
        Some(system)
    }

    /// Puts a package into the repository.
    fn build(&self, name: &str, version: &str, fields: &str) {
        let work = tempfile::tempdir().unwrap();
        let spec = work.path().join("x.spec");
        let text = format!(
            "Name: {name}\nVersion: {version}\nRelease: 1\nSummary: {name}\nLicense: MIT\nBuildArch: noarch\n{fields}\
             %description\n{name}\n%install\nmkdir -p %{{buildroot}}/etc/{name}\n\
             echo {version} > %{{buildroot}}/etc/{name}/settings\n%files\n%config(noreplace) /etc/{name}/settings\n"
        );
        fs::write(&spec, text).unwrap();
        let top = format!("_topdir {}", work.path().display());
        let packages = format!("_rpmdir {}/repo", self.bed.root);
        run(Command::new("rpmbuild")
            .args(["--quiet", "--define", &top, "--define", &packages, "-bb"])
            .arg(&spec));
    }

    fn index(&self) {
        run(Command::new("createrepo_c")
            .arg("--quiet")
            .arg(self.bed.root.join("repo")));
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_package_is_installed_updated_and_removed() {
    let Some(system) = System::with_repository() else {
        return;
    };
    let bed = &system.bed;
    let (plan, applied) = bed.converge("package", &json!({"name": "tiny", "version": "1.0"}));
    assert_eq!(plan.changes()[0].diff, "+version: 1.0-1\n");
    assert_eq!(applied.result["version"], "1.0-1");
    assert_eq!(bed.read("etc/tiny/settings"), "1.0\n");
    bed.converge("package", &json!({"names": ["tiny", "other"]}));
    bed.write("etc/tiny/settings", "mine");
    let (plan, _) = bed.converge("package", &json!({"name": "tiny", "state": "latest"}));
    assert_eq!(plan.changes()[0].diff, "-version: 1.0-1\n+version: 2.0-1\n");
    assert_eq!(plan.before["version"], "1.0-1");
    assert_eq!(
        bed.read("etc/tiny/settings"),
        "mine",
        "changed settings are kept"
    );
    bed.converge("package", &json!({"name": "tiny", "state": "absent"}));
    assert!(!bed.root.join("etc/tiny/settings").exists());
}

#[test]
fn an_older_version_needs_permission() {
    let Some(system) = System::with_repository() else {
        return;
    };
    let bed = &system.bed;
    bed.converge("package", &json!({"name": "tiny"}));
    let told = bed.fails("package", &json!({"name": "tiny", "version": "1.0-1"}));
    assert!(told.contains("1.0-1 is older"), "{told}");
    let step = json!({"name": "tiny", "version": "1.0-1", "allowDowngrade": true});
    bed.converge("package", &step);
}

#[test]
fn what_cannot_be_installed_fails_before_anything_is_done() {
    let Some(system) = System::with_repository() else {
        return;
    };
    let bed = &system.bed;
    bed.converge("package", &json!({"name": "other"}));
    let told = bed.fails("package", &json!({"name": "base"}));
    assert!(told.contains("conflicts with other"), "{told}");
    let told = bed.fails("package", &json!({"name": "late"}));
    assert!(told.contains("use `refresh: true`"), "{told}");
    system.build("late", "1", "");
    system.index();
    bed.converge("package", &json!({"name": "late", "refresh": true}));
    system.build("needs-late", "1", "Requires: late\n");
    system.index();
    bed.converge("package", &json!({"name": "needs-late", "refresh": true}));
    let told = bed.fails("package", &json!({"name": "late", "state": "absent"}));
    assert!(told.contains("this would remove needs-late"), "{told}");
    let told = bed.fails("package", &json!({"name": "late", "hold": true}));
    assert!(told.contains("`hold` is for apt"), "{told}");
}

#[test]
fn a_virtual_package_is_its_provider() {
    let Some(system) = System::with_repository() else {
        return;
    };
    let (plan, _) = system
        .bed
        .converge("package", &json!({"name": "virtual-server"}));
    assert_eq!(plan.changes()[0].subject.to_string(), "package server");
}

/// A signed package is taken with the key of its repository, and none with another key.
#[test]
fn the_key_of_a_repository_decides() {
    if !portolan_testbed::has_program("gpg", "--version") {
        return;
    }
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let home = tempfile::tempdir_in("/tmp").unwrap();
    let gpg = |arguments: &[&str]| {
        let output = Command::new("gpg")
            .args(["--batch", "--quiet", "--passphrase", "", "--homedir"])
            .arg(home.path())
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    gpg(&[
        "--quick-gen-key",
        "T <t@example.org>",
        "rsa2048",
        "sign",
        "never",
    ]);
    let listed = gpg(&["--with-colons", "--fingerprint"]);
    let line = listed
        .lines()
        .find(|line| line.starts_with("fpr:"))
        .unwrap();
    let step = json!({
        "name": "shop",
        "uris": [format!("file://{}/repo", bed.root)],
        "key": gpg(&["--armor", "--export"]),
        "fingerprint": line.split(':').nth(9).unwrap(),
    });
    let (plan, _) = bed.converge("repository", &step);
    assert_eq!(plan.changes().len(), 2, "the key and the repository");
    let text = bed.read("etc/yum.repos.d/shop.repo");
    assert!(
        text.contains("gpgcheck=1\ngpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-shop\n"),
        "{text}"
    );
    let error = bed.apply("package", &json!({"name": "tiny"})).unwrap_err();
    assert!(error.to_string().contains("not signed"), "{error}");
    let package = bed.root.join("repo/noarch/tiny-2.0-1.noarch.rpm");
    run(Command::new("rpmsign")
        .env("GNUPGHOME", home.path())
        .args(["--define", "__gpg /usr/bin/gpg"])
        .args(["--define", "_gpg_name t@example.org", "--addsign"])
        .arg(&package));
    system.index();
    bed.converge("package", &json!({"name": "tiny", "refresh": true}));
    bed.converge("repository", &json!({"name": "shop", "state": "absent"}));
    assert!(!bed.root.join("etc/pki/rpm-gpg/RPM-GPG-KEY-shop").exists());
}

#[test]
fn links_are_refused_and_a_check_does_not_guess() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let uri = format!("file://{}/repo", bed.root);
    let step = json!({"name": "shop", "uris": [uri], "trusted": true});
    let mut ahead = Ahead::default();
    ahead.add(&bed.plan("repository", &step).unwrap().predictions);
    let view = View {
        host: &bed.host,
        ahead,
    };
    let plan = action("package", &json!({"name": "tiny"}))
        .plan(&view)
        .unwrap();
    assert!(
        matches!(plan.outcome, PlannedOutcome::Unknown { .. }),
        "{plan:?}"
    );
    let suites = json!({"name": "shop", "uris": ["file:/x"], "suites": ["./"]});
    assert!(
        bed.fails("repository", &suites)
            .contains("dnf has no suites")
    );
    symlink(&bed.outside, bed.root.join("var/cache")).unwrap();
    let error = bed.apply("repository", &step).unwrap_err();
    assert!(error.to_string().contains("it is a link"), "{error}");
    let told = bed.fails("package", &json!({"name": "tiny", "provider": "apt"}));
    assert!(told.contains("no packages of apt"), "{told}");
}
