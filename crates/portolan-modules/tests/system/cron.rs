//! `cron`: files that cron reads.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bed::{Bed, faults};

fn job(command: &str) -> Value {
    json!({"name": "clean", "schedule": "*/5  3 * * mon", "command": command})
}

fn bed() -> Bed {
    let bed = Bed::with_accounts();
    fs::create_dir(bed.root.join("etc/cron.d")).unwrap();
    bed
}

#[test]
fn a_job_is_a_file_that_cron_accepts() {
    let bed = bed();
    bed.converge("cron", &job("date +%F > /tmp/day"));
    let expected = "# Written by a TaskBook. Changes are overwritten.\n*/5 3 * * mon root date +\\%F > /tmp/day\n";
    assert_eq!(bed.read("etc/cron.d/clean"), expected);
    let path = bed.root.join("etc/cron.d/clean");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o644
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    bed.converge("cron", &job("date +%F > /tmp/day"));
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o644
    );
    bed.converge("cron", &json!({"name": "clean", "state": "absent"}));
    assert!(!path.exists());
}

#[test]
fn what_cron_would_ignore_or_misread_is_refused() {
    let with = |key: &str, value: &str| {
        let mut step = job("true");
        step[key] = json!(value);
        faults("cron", &step)
    };
    assert!(with("name", "clean.sh").contains("cron ignores other files"));
    assert!(with("name", "../x").contains("cron ignores other files"));
    assert!(with("schedule", "* * * *").contains("five fields"));
    assert!(with("command", "a\nb").contains("one line"));
    assert!(with("command", "date +\\%F").contains("cannot contain `\\%`"));
    assert!(with("user", "a b").contains("must begin with a letter"));
    assert!(faults("cron", &json!({"name": "x"})).contains("`command` is missing"));
    let told = bed().fails(
        "cron",
        &json!({"name": "x", "schedule": "@daily", "command": "true", "user": "far"}),
    );
    assert!(told.contains("the user `far` does not exist"), "{told}");
}

#[test]
fn a_link_out_of_the_root_is_not_followed() {
    let bed = bed();
    symlink(bed.outside.join("file"), bed.root.join("etc/cron.d/clean")).unwrap();
    bed.converge("cron", &job("true"));
    fs::remove_dir_all(bed.root.join("etc/cron.d")).unwrap();
    symlink(&bed.outside, bed.root.join("etc/cron.d")).unwrap();
    // The absolute target is a path below the root, and nothing is there.
    assert!(bed.apply("cron", &job("true")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any command of one line is one line of the file, with every `%` escaped.
    #[test]
    fn any_command_converges(command in "[ -~äß]{1,40}", minute in 0..60_u8) {
        prop_assume!(!command.contains("\\%") && !command.trim().is_empty());
        let bed = bed();
        let step = json!({"name": "any", "schedule": format!("{minute} * * * *"), "command": command});
        bed.converge("cron", &step);
        let text = bed.read("etc/cron.d/any");
        prop_assert_eq!(text.lines().count(), 2);
        let escaped = text.lines().nth(1).unwrap().matches("\\%").count();
        prop_assert_eq!(escaped, command.matches('%').count());
    }
}
