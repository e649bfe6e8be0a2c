//! Where a rollout stands for a script.

use portolan_canary::{Rollout, Standing};
use portolan_rollout::Outcome;
use serde_json::{Value, json};

/// A rollout that was rolled back, whose operator has seen the command `force` of the text `1`.
fn standing(annotations: &Value) -> Standing {
    let object = json!({
        "metadata": {"namespace": "shop", "name": "web", "generation": 1, "annotations": annotations},
        "spec": {"template": {}, "service": {"port": 80}},
        "status": {
            "schema": 1,
            "phase": "RolledBack",
            "observedGeneration": 1,
            "tokens": {"annotations": {"force": "1"}},
        },
    });
    Standing::of(&Rollout::read(&object).expect("a rollout"))
}

/// A command does not change the generation: what the status says may be older than it.
#[test]
fn a_command_that_no_operator_has_seen_leaves_the_standing_open() {
    for seen in [json!({}), json!({"portolan.dev/force": "1"})] {
        assert_eq!(standing(&seen), Standing::Refused(Outcome::RolledBack));
    }
    for new in [
        json!({"portolan.dev/force": "2"}),
        json!({"portolan.dev/retry": "1"}),
    ] {
        assert_eq!(standing(&new), Standing::NotSeen);
    }
}
