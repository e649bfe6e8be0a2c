//! What a replay says when there is nothing to judge by.

use portolan_prometheus::{Arms, Prometheus, ReplayError, ServerSettings, replay};
use portolan_rollout::{Analysis, Time};

/// A server that is not there, and the usual analysis.
fn unreachable() -> (Prometheus, Analysis) {
    let server = Prometheus::new(ServerSettings::new("http://127.0.0.1:1")).expect("an address");
    let analysis =
        serde_json::from_value(serde_json::json!({})).expect("every field has a default");
    (server, analysis)
}

#[tokio::test]
async fn intervals_that_cannot_be_read_are_counted_and_not_judged() {
    let (server, analysis) = unreachable();
    let between = (Time::from_unix(0), Time::from_unix(30));
    let replayed = replay(&server, &analysis, &Arms::default(), between).await;
    let replayed = replayed.expect("settings that can be judged by");
    assert!(!replayed.is_empty());
    for metric in replayed {
        assert_eq!((metric.unread, metric.judgement.rows.len()), (3, 0));
    }
}

#[tokio::test]
async fn a_time_that_is_none_or_too_long_is_refused_before_anything_is_asked() {
    let (server, analysis) = unreachable();
    let refused = async |from, to| {
        let between = (Time::from_unix(from), Time::from_unix(to));
        let replayed = replay(&server, &analysis, &Arms::default(), between).await;
        replayed.expect_err("nothing to replay")
    };
    assert!(matches!(refused(30, 30).await, ReplayError::NoTime));
    assert!(matches!(refused(30, 0).await, ReplayError::NoTime));
    assert!(matches!(
        refused(0, 1_000_000).await,
        ReplayError::TooLong { intervals: 100_000 }
    ));
}
