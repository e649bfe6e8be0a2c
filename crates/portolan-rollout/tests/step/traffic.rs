//! Ways to send requests: all at once, matching ones, copies, sticky ones.

use portolan_rollout::{Comparison, Outcome, Phase, Slot};

use crate::outcomes;
use crate::world::World;

#[test]
fn blue_green_moves_everything_at_once_and_says_that_nothing_is_proven() {
    let mut world = World::stable();
    world.spec.strategy.strategy_type = portolan_rollout::StrategyType::BlueGreen;
    world.spec.strategy.weights.clear();
    world.release("2");
    let mut shares = Vec::new();
    while world.phase() != Phase::Soaking {
        world.run(10);
        shares.push(world.shares().b);
    }
    shares.dedup();
    assert_eq!(shares, [0, 100]);
    assert_eq!(outcomes(&world), [Outcome::PromotedUnproven]);
    assert_eq!(world.status().comparison, Some(Comparison::None));
    world.run_to(Phase::Stable);
}

#[test]
fn an_ab_test_sends_matching_requests_only() {
    let mut world = World::stable();
    let strategy = serde_json::json!({"type": "abTest", "match": [{"headers": {"x-canary": {"exact": "yes"}}}], "stepInterval": "10m"});
    world.spec.strategy = serde_json::from_value(strategy).expect("a strategy");
    world.release("2");
    world.run_to(Phase::Shifting);
    let traffic = world.seen.traffic.expect("routes");
    assert_eq!(
        (traffic.matched, traffic.share(Slot::B)),
        (Some(Slot::B), 0)
    );
    world.run_to(Phase::Stable);
    assert_eq!(
        outcomes(&world),
        [Outcome::Promoted],
        "its own requests prove it"
    );
}

#[test]
fn a_mirror_comes_before_the_first_weight_and_is_judged() {
    let mut world = World::stable();
    world.spec.strategy.mirror = 20;
    world.bad.insert("2".to_owned(), 100);
    world.release("2");
    world.run_to(Phase::Shifting);
    let traffic = world.seen.traffic.expect("routes");
    assert_eq!(
        (
            traffic.mirror.map(|mirror| mirror.percent),
            traffic.share(Slot::B)
        ),
        (Some(20), 0)
    );
    world.run_to(Phase::RolledBack);
    assert!(
        world.told.iter().all(|record| record.weight == 0),
        "no client saw it"
    );
}

#[test]
fn sticky_sessions_follow_the_canary_and_end_with_it() {
    let mut world = World::stable();
    let sticky = serde_json::json!({"cookieName": "web"});
    world.spec.strategy.sticky_sessions = serde_json::from_value(sticky).expect("sticky sessions");
    world.release("2");
    world.run_to(Phase::Shifting);
    assert_eq!(
        world.seen.traffic.and_then(|traffic| traffic.sticky),
        Some(Slot::B)
    );
    world.run_to(Phase::Stable);
    assert_eq!(world.seen.traffic.and_then(|traffic| traffic.sticky), None);
}

/// Nobody else gets requests like those of an A/B test. What was promised of its own requests judges it.
#[test]
fn an_ab_test_is_rolled_back_by_its_promise() {
    let mut world = World::stable();
    let strategy =
        serde_json::json!({"type": "abTest", "match": [{"headers": {"x": {"exact": "y"}}}]});
    world.spec.strategy = serde_json::from_value(strategy).expect("a strategy");
    let metrics = serde_json::json!([{"name": "errors", "builtin": "istio-requests", "slo": 0.01}]);
    world.spec.analysis.metrics = serde_json::from_value(metrics).expect("metrics");
    world.bad.insert("2".to_owned(), 100);
    world.release("2");
    world.run_to(Phase::RolledBack);
    assert_eq!(outcomes(&world), [Outcome::RolledBack]);
}
