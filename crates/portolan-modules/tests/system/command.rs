//! `command`: guards, exit codes, and what a check can say.

use portolan_modules::{Ahead, ModuleError, PlannedOutcome, PredictedPath, Prediction, View};
use serde_json::json;

use crate::bed::{Bed, action, faults, tree};

#[test]
fn without_a_guard_a_check_knows_nothing_and_an_apply_runs_it_once() {
    let bed = Bed::new();
    let step = json!({"shell": "echo line >> $PORTOLAN_ROOT/srv/log; echo told; echo wrong >&2"});
    let (plan, applied) = bed.apply("command", &step).unwrap();
    assert!(
        matches!(plan.outcome, PlannedOutcome::Unknown { .. }),
        "{plan:?}"
    );
    assert!(applied.is_changed);
    assert_eq!(bed.read("srv/log"), "line\n");
    assert_eq!(applied.result["code"], 0);
    assert_eq!(applied.result["stdout"], "told\n");
    assert_eq!(applied.result["stderr"], "wrong\n");
    assert_eq!(applied.result["unconfined"], true);
}

#[test]
fn creates_and_removes_decide_by_a_path_below_the_root() {
    let bed = Bed::new();
    let step = json!({"shell": "touch srv/made", "creates": "/srv/made"});
    let (plan, _) = bed.converge("command", &step);
    assert_eq!(plan.changes()[0].diff, "run: touch srv/made");
    bed.converge(
        "command",
        &json!({"run": ["rm", "srv/made"], "removes": "/srv/made"}),
    );
    assert!(!bed.root.join("srv/made").exists());
}

#[test]
fn commands_decide_as_guards() {
    let bed = Bed::new();
    bed.converge(
        "command",
        &json!({"shell": "echo x > srv/a", "unless": "test -e srv/a"}),
    );
    bed.converge(
        "command",
        &json!({"shell": "rm srv/a", "onlyIf": ["test", "-e", "srv/a"]}),
    );
    let check = "test -e srv/b || { echo +b; exit 1; }";
    let (plan, _) = bed.converge("command", &json!({"shell": "touch srv/b", "check": check}));
    assert_eq!(plan.changes()[0].diff, "+b\n");
    let told = bed.fails(
        "command",
        &json!({"shell": "true", "check": "echo broken >&2; exit 7"}),
    );
    assert!(told.contains("exit code 7: broken"), "{told}");
}

/// A command that ran and failed still has a result, which a step's `success` may judge.
#[test]
fn a_failure_keeps_its_result() {
    let bed = Bed::new();
    let error = bed
        .apply(
            "command",
            &json!({"shell": "echo out; echo why >&2; exit 3"}),
        )
        .unwrap_err();
    let ModuleError::Unsuccessful { message, applied } = error else {
        panic!("{error}");
    };
    assert_eq!(
        message,
        "`echo out; echo why >&2; exit 3` ended with exit code 3: why"
    );
    assert_eq!(applied.result["code"], 3);
    assert_eq!(applied.result["stdout"], "out\n");
    bed.apply("command", &json!({"shell": "exit 3", "okCodes": [0, 3]}))
        .unwrap();
}

#[test]
fn input_directory_and_script_reach_the_program() {
    let bed = Bed::new();
    let step = json!({"run": ["sh", "-c", "pwd; cat"], "cwd": "/srv", "stdin": "given"});
    let (_, applied) = bed.apply("command", &step).unwrap();
    assert_eq!(applied.result["stdout"], format!("{}/srv\ngiven", bed.root));
    let missing = bed
        .apply("command", &json!({"script": "a.sh"}))
        .unwrap_err();
    assert!(missing.to_string().contains("a.sh"), "{missing}");
}

#[test]
fn a_directory_that_is_a_link_is_refused_below_a_root() {
    let bed = Bed::new();
    std::os::unix::fs::symlink(&bed.outside, bed.root.join("srv/out")).unwrap();
    let step = json!({"shell": "rm -f file", "cwd": "/srv/out"});
    let error = bed.apply("command", &step).unwrap_err();
    assert!(error.to_string().contains("it is a link"), "{error}");
}

#[test]
fn a_check_looks_at_what_earlier_steps_will_have_changed() {
    let bed = Bed::new();
    let mut view = View::of(&bed.host);
    let mut ahead = Ahead::default();
    ahead.add(&[Prediction::Path(
        "/srv/made".into(),
        PredictedPath::File(None),
    )]);
    view.ahead = ahead;
    let before = tree(&bed.root);
    let made = action(
        "command",
        &json!({"shell": "false", "creates": "/srv/made"}),
    );
    assert!(matches!(
        made.plan(&view).unwrap().outcome,
        PlannedOutcome::Unchanged
    ));
    // The guard would look at the host as it is, not as it will be.
    let asked = action(
        "command",
        &json!({"shell": "false", "unless": "test -e srv/made"}),
    );
    assert!(matches!(
        asked.plan(&view).unwrap().outcome,
        PlannedOutcome::Unknown { .. }
    ));
    assert_eq!(tree(&bed.root), before);
}

#[test]
fn parameters_that_do_not_fit_are_told() {
    assert!(faults("command", &json!({})).contains("needs one of `run`, `shell`, `script`"));
    assert!(faults("command", &json!({"run": []})).contains("must name a program"));
    assert!(
        faults("command", &json!({"shell": "a", "script": "b"})).contains("cannot stand beside")
    );
    assert!(faults("command", &json!({"shell": "a", "okCodes": [256]})).contains("0 to 255"));
    assert!(
        faults("command", &json!({"shell": "a", "creates": "a/b"})).contains("begins with `/`")
    );
}
