//! Why runs, nodes and steps are as they are.

use std::time::Duration;

use portolan_fleet::{
    NodePart, Place, RunReport, StepError, StepReport, StepState, WhyError, explain,
};

fn step(name: &str, state: StepState) -> StepReport {
    StepReport {
        name: name.to_owned(),
        item: None,
        state,
        diff: None,
        error: None,
        notes: Vec::new(),
        reasons: Vec::new(),
        changes: Vec::new(),
        took: Duration::ZERO,
        place: Place {
            file: "book.yaml".into(),
            line: 7,
            column: 3,
        },
    }
}

fn part(name: &str, state: &str, steps: Vec<StepReport>) -> NodePart {
    NodePart {
        name: name.to_owned(),
        state: state.to_owned(),
        steps,
        owed: Vec::new(),
        stopped: None,
    }
}

fn because(report: &RunReport, node: &str) -> String {
    let explained = explain(report, Some(node), None).expect("explained");
    explained.first().expect("the node").because.join("; ")
}

/// Every state of a node has its reason, and none is empty.
#[test]
fn every_state_of_a_node_has_a_reason() {
    let mut failed = step("web/package", StepState::Failed);
    failed.error = Some(StepError {
        message: "there is no such package".to_owned(),
        hint: Some("look".to_owned()),
        output: None,
    });
    let mut stopped = part("g", "skipped", Vec::new());
    stopped.stopped = Some("cancelled".to_owned());
    let report = RunReport {
        run: "web-1".to_owned(),
        state: "running".to_owned(),
        reason: Some("1 node failed".to_owned()),
        nodes: vec![
            part("a", "failed", vec![failed]),
            part("b", "waiting", vec![step("x", StepState::Ok)]),
            part("c", "running", vec![step("x", StepState::Ok)]),
            part("d", "queued", Vec::new()),
            part("e", "unreachable", Vec::new()),
            part("f", "unknown", vec![step("x", StepState::Ok)]),
            stopped,
            part("h", "changed", vec![step("x", StepState::Changed)]),
            part("i", "ok", vec![step("x", StepState::Ok)]),
            part("j", "skipped", vec![step("x", StepState::Skipped)]),
        ],
    };
    for (node, expected) in [
        (
            "a",
            "`web/package` failed (book.yaml:7:3): there is no such package",
        ),
        ("b", "it has come to a barrier, and waits there for c"),
        ("c", "it is behind `x`, and at its next step"),
        ("d", "its batch has not begun; 1 node failed"),
        ("e", "its agent was not connected when its batch began"),
        (
            "f",
            "nothing was heard of its agent while a step could still run",
        ),
        ("g", "it was not begun; cancelled"),
        ("h", "changed something: x"),
        ("i", "every step found what it should be"),
        ("j", "no step had to be taken here"),
    ] {
        assert_eq!(because(&report, node), expected, "{node}");
    }
    let all = explain(&report, None, None).expect("explained");
    assert_eq!(all.len(), 1 + report.nodes.len());
    let run = all.first().expect("the run").because.join("; ");
    assert_eq!(
        run,
        "1 node failed; not as they should be: a, e, f; at work: c"
    );
    let found = explain(&report, Some("a"), Some("package")).expect("by its last name");
    assert_eq!(
        found.first().expect("a step").because,
        [
            "there is no such package",
            "look",
            "written at book.yaml:7:3"
        ]
    );
    let error = explain(&report, Some("a"), Some("other"));
    assert!(matches!(error, Err(WhyError::NoStep { known, .. }) if known == ["web/package"]));
    assert!(matches!(
        explain(&report, Some("z"), None),
        Err(WhyError::NoNode { .. })
    ));
}
