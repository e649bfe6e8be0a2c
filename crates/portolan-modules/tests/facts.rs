//! Facts of this machine, and of a directory that stands for one.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_modules::{FactCache, FactSource, Host, Root};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);

fn source(host: &Host) -> FactSource<'_> {
    FactSource {
        host,
        custom: "/etc/portolan/facts".into(),
    }
}

/// A directory that stands for a machine.
fn machine() -> (tempfile::TempDir, Utf8PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = Utf8PathBuf::try_from(directory.path().to_owned()).expect("UTF-8");
    for inside in ["etc/portolan/facts", "usr/lib", "var/lib/dpkg"] {
        std::fs::create_dir_all(path.join(inside)).expect("made");
    }
    let write = |name: &str, text: &str| std::fs::write(path.join(name), text).expect("written");
    write(
        "usr/lib/os-release",
        "ID=debian\nVERSION_ID=\"12\"\nNAME=\"Debian GNU/Linux\"\n",
    );
    // An absolute link leads to a path below the directory.
    symlink("/usr/lib/os-release", path.join("etc/os-release")).expect("linked");
    write("etc/hostname", "inside\n");
    write("etc/passwd", "web:x:990:991::/srv/web:/bin/false\n");
    write("etc/group", "web:x:991:\n");
    write(
        "var/lib/dpkg/status",
        "Package: web\nStatus: install ok installed\nVersion: 1.4.2-1\n",
    );
    (directory, path)
}

fn program(root: &Utf8Path, name: &str, text: &str) {
    let path = root.join("etc/portolan/facts").join(name);
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
}

#[test]
fn this_machine_is_known() {
    let host = Host::local(Arc::new(Root::machine().expect("a root directory")));
    let mut facts = FactCache::default();
    let wanted = [
        "os", "kernel", "hostname", "cpus", "memory", "network", "disks", "users",
    ];
    let wanted: BTreeSet<String> = wanted.map(str::to_owned).into();
    facts.refresh(&source(&host), Some(&wanted), SECOND, SECOND);
    assert_eq!(facts.problems().len(), 0, "{:?}", facts.problems());
    let values = facts.values();
    assert_eq!(values["kernel"]["name"], "Linux");
    assert_eq!(values["network"]["fromHost"], false);
    assert!(values["memory"]["totalBytes"].as_u64() > Some(1 << 20));
    assert_eq!(values["users"]["root"]["uid"], 0);
    assert_eq!(values.get("packages"), None, "nobody wanted them");
}

#[test]
fn a_directory_is_a_machine_of_its_own() {
    let (_directory, path) = machine();
    let host = Host::local(Arc::new(Root::other(&path).expect("a root directory")));
    let source = source(&host);
    assert_eq!(source.gather("os").expect("known")["family"], "debian");
    assert_eq!(source.gather("hostname"), Ok(json!("inside")));
    assert_eq!(
        source.gather("packages"),
        Ok(json!({"web": {"version": "1.4.2-1"}}))
    );
    let users = source.gather("users").expect("known");
    assert_eq!(users.as_object().map(serde_json::Map::len), Some(1));
    assert_eq!(source.gather("network").expect("known")["fromHost"], true);
    assert!(source.gather("colour").is_err());
}

#[test]
fn programs_of_the_owner_add_facts_and_one_that_fails_hides_no_other() {
    let (_directory, path) = machine();
    program(&path, "rack.sh", "#!/bin/sh\necho '{\"row\": 4}'\n");
    program(&path, "broken", "#!/bin/sh\nexit 1\n");
    program(&path, "chatty", "#!/bin/sh\necho hello\n");
    std::fs::write(path.join("etc/portolan/facts/readme"), "no program").expect("written");
    let host = Host::local(Arc::new(Root::other(&path).expect("a root directory")));
    let custom = source(&host).gather("custom");
    assert_eq!(custom, Ok(json!({"rack": {"row": 4}})));
}

#[test]
fn facts_have_an_age_and_are_found_out_again_when_they_are_old() {
    let (_directory, path) = machine();
    let host = Host::local(Arc::new(Root::other(&path).expect("a root directory")));
    let source = source(&host);
    let wanted: BTreeSet<String> = ["hostname".to_owned()].into();
    let mut facts = FactCache::default();
    let mut look = |now: u32| {
        facts.refresh(&source, Some(&wanted), now * SECOND, 10 * SECOND);
        (facts.values()["hostname"].clone(), facts.ages(now * SECOND))
    };
    let age = |seconds: u64| json!({"hostname": seconds});
    assert_eq!(
        look(100),
        (
            json!("inside"),
            age(0).as_object().cloned().unwrap_or_default()
        )
    );
    std::fs::write(path.join("etc/hostname"), "renamed").expect("written");
    let (name, ages) = look(109);
    assert_eq!((name, Value::Object(ages)), (json!("inside"), age(9)));
    assert_eq!(look(110).0, "renamed");
    // What cannot be found out is missing, and says why.
    std::fs::remove_file(path.join("etc/hostname")).expect("removed");
    assert_eq!(look(120).0, Value::Null);
    assert!(facts.problems().contains_key("hostname"));
}
