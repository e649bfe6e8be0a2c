//! What people are told about the evidence.

use portolan_canary::metric_line;
use portolan_rollout::{Analysis, MetricSummary};
use serde_json::json;

#[test]
fn a_proof_needs_more_at_each_attempt() {
    let summary = json!({
        "name": "errors", "canary": {"total": 100, "bad": 1}, "stable": {"total": 900, "bad": 9}, "lnRollback": 0.0,
        "lnPromote": 1.0, "excess": 0.0,
    });
    let summary: MetricSummary = serde_json::from_value(summary).expect("a summary");
    let analysis = Analysis::default();
    let line = |attempt| metric_line(&summary, &analysis, attempt);
    assert!(
        line(Some(1)).contains("for a promotion 2.72 of 40"),
        "{}",
        line(Some(1))
    );
    assert!(
        line(Some(2)).contains("for a promotion 2.72 of 120"),
        "{}",
        line(Some(2))
    );
    assert!(
        line(None).ends_with("for a promotion 2.72"),
        "{}",
        line(None)
    );
}
