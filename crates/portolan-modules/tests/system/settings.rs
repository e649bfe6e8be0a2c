//! `hostname`, `sysctl` and `mount`: files below a root, and the running system in namespaces of its own.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use portolan_modules::{Host, PlannedOutcome, Root, View};
use serde_json::{Value, json};

use crate::bed::{Bed, action, faults, in_namespace};

fn machine() -> Host {
    Host::local(Arc::new(Root::machine().unwrap()))
}

/// Applies a step to the machine of a namespace, twice; returns whether the first one changed something.
#[track_caller]
fn converge(host: &Host, module: &str, parameters: &Value) -> bool {
    let step = action(module, parameters);
    let plan = step.plan(&View::of(host)).unwrap();
    let applied = step.apply(host, &plan).unwrap();
    assert_eq!(
        applied.is_changed,
        matches!(plan.outcome, PlannedOutcome::Change(_))
    );
    step.verify(host).unwrap();
    let plan = step.plan(&View::of(host)).unwrap();
    assert!(
        matches!(plan.outcome, PlannedOutcome::Unchanged),
        "{plan:?}"
    );
    assert!(!step.apply(host, &plan).unwrap().is_changed);
    applied.is_changed
}

fn mount(arguments: &[&str]) {
    assert!(
        Command::new("mount")
            .args(arguments)
            .status()
            .unwrap()
            .success(),
        "{arguments:?}"
    );
}

#[test]
fn a_hostname_below_a_root_is_a_file() {
    let bed = Bed::new();
    bed.converge("hostname", &json!({"name": "web-1"}));
    assert_eq!(bed.read("etc/hostname"), "web-1\n");
    assert!(faults("hostname", &json!({"name": "web_1"})).contains("labels"));
}

#[test]
fn a_hostname_is_set_now() {
    if !in_namespace("settings::a_hostname_is_set_now", &["--uts", "--mount"]) {
        return;
    }
    let bed = Bed::new();
    // The directory, because a file that something is mounted on cannot be replaced.
    cover_etc(&bed);
    assert!(converge(
        &machine(),
        "hostname",
        &json!({"name": "renamed"})
    ));
    assert_eq!(
        fs::read_to_string("/proc/sys/kernel/hostname").unwrap(),
        "renamed\n"
    );
    assert_eq!(fs::read_to_string("/etc/hostname").unwrap(), "renamed\n");
}

/// An overlay over `/etc`: what the test writes goes with its namespace.
fn cover_etc(bed: &Bed) {
    mount(&["-t", "tmpfs", "none", bed.root.join("tmp").as_str()]);
    for name in ["tmp/upper", "tmp/work"] {
        fs::create_dir(bed.root.join(name)).unwrap();
    }
    let options = format!(
        "lowerdir=/etc,upperdir={0}/tmp/upper,workdir={0}/tmp/work",
        bed.root
    );
    mount(&["-t", "overlay", "overlay", "-o", &options, "/etc"]);
}

#[test]
fn settings_are_edited_by_key_and_a_later_file_is_named() {
    let bed = Bed::new();
    bed.write(
        "etc/sysctl.d/90-portolan.conf",
        "# ours\nvm.swappiness = 60\n",
    );
    bed.write("etc/sysctl.d/95-other.conf", "net/ipv4/ip_forward=0\n");
    bed.write(
        "usr/lib/sysctl.d/95-other.conf",
        "net.ipv4.ip_forward = 7\n",
    );
    bed.write("etc/sysctl.d/10-early.conf", "net.ipv4.ip_forward = 3\n");
    let step = json!({"values": {"net.ipv4.ip_forward": 1, "vm.swappiness": "10"}});
    let (plan, applied) = bed.converge("sysctl", &step);
    assert_eq!(
        bed.read("etc/sysctl.d/90-portolan.conf"),
        "# ours\nvm.swappiness = 10\nnet.ipv4.ip_forward = 1\n"
    );
    let note = "`/etc/sysctl.d/95-other.conf` is read after `/etc/sysctl.d/90-portolan.conf` and sets \
                net.ipv4.ip_forward = 0 at the next start";
    assert_eq!(plan.notes, [note]);
    assert_eq!(applied.notes, [note]);
    assert!(
        faults("sysctl", &json!({"values": {"../etc/x": "1"}})).contains("not a kernel setting")
    );
    assert!(faults("sysctl", &json!({"values": {"a.b": "1\nc.d = 2"}})).contains("one line"));
}

#[test]
fn settings_reach_the_running_kernel() {
    if !in_namespace(
        "settings::settings_reach_the_running_kernel",
        &["--net", "--mount"],
    ) {
        return;
    }
    let bed = Bed::new();
    cover_etc(&bed);
    // The values of a new network namespace belong to it alone.
    let key = "/proc/sys/net/ipv4/ip_default_ttl";
    let host = machine();
    let step = json!({"values": {"net.ipv4.ip_default_ttl": "61"}});
    assert!(converge(&host, "sysctl", &step));
    assert_eq!(fs::read_to_string(key).unwrap(), "61\n");
    fs::write(key, "62").unwrap();
    assert!(!converge(
        &host,
        "sysctl",
        &json!({"values": {"net.ipv4.ip_default_ttl": "61"}, "live": false})
    ));
    assert!(converge(&host, "sysctl", &step));
    let missing = action("sysctl", &json!({"values": {"net.nothing.here": "1"}}));
    let error = missing.plan(&View::of(&host)).unwrap_err();
    assert!(error.hint().unwrap().contains("live: false"), "{error}");
}

#[test]
fn a_mount_below_a_root_is_a_line() {
    let bed = Bed::new();
    bed.write("etc/fstab", "# disks\nUUID=1 / ext4 defaults 0 1\n");
    let step =
        json!({"path": "/srv/my data", "source": "UUID=2", "type": "ext4", "options": ["noatime"]});
    let (plan, _) = bed.converge("mount", &step);
    let expected =
        "# disks\nUUID=1 / ext4 defaults 0 1\nUUID=2 /srv/my\\040data ext4 noatime,nofail 0 0\n";
    assert_eq!(bed.read("etc/fstab"), expected);
    assert!(plan.notes[0].contains("not mounted"), "{:?}", plan.notes);
    let strict =
        json!({"path": "/srv/my data", "source": "UUID=2", "type": "ext4", "nofail": false});
    bed.converge("mount", &strict);
    assert!(
        bed.read("etc/fstab")
            .ends_with("UUID=2 /srv/my\\040data ext4 defaults 0 0\n")
    );
    bed.converge("mount", &json!({"path": "/srv/my data", "state": "absent"}));
    assert_eq!(
        bed.read("etc/fstab"),
        "# disks\nUUID=1 / ext4 defaults 0 1\n"
    );
    assert!(faults("mount", &json!({"path": "/srv"})).contains("`source` is missing"));
    assert!(
        faults(
            "mount",
            &json!({"path": "/srv", "source": "a", "type": "b", "options": ["a b"]})
        )
        .contains("blanks")
    );
}

#[test]
fn a_file_system_is_mounted_remounted_and_unmounted() {
    let name = "settings::a_file_system_is_mounted_remounted_and_unmounted";
    if !in_namespace(name, &["--mount"]) {
        return;
    }
    let bed = Bed::new();
    cover_etc(&bed);
    let host = machine();
    let path = bed.root.join("srv/data");
    let with = |options: &[&str]| json!({"path": path.as_str(), "source": "none", "type": "tmpfs", "options": options});
    assert!(converge(&host, "mount", &with(&["size=1m"])));
    fs::write(path.join("kept"), "x").unwrap();
    assert!(converge(&host, "mount", &with(&["size=2m"])));
    assert!(path.join("kept").exists(), "mounted again, not anew");
    let absent = json!({"path": path.as_str(), "state": "absent"});
    let step = action("mount", &absent);
    let plan = step.plan(&View::of(&host)).unwrap();
    let open = fs::File::open(path.join("kept")).unwrap();
    let error = step.apply(&host, &plan).unwrap_err();
    let hint = error.hint().unwrap();
    assert!(
        hint.contains(&format!("({})", std::process::id())),
        "{error}: {hint}"
    );
    assert!(
        fs::read_to_string("/etc/fstab").unwrap().contains("tmpfs"),
        "a busy one stays listed"
    );
    drop(open);
    assert!(converge(&host, "mount", &absent));
    assert!(!path.join("kept").exists());
}
