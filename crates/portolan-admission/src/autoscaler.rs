//! How many pods there should be, and how many may be missing: autoscalers and disruption budgets.

use crate::placement;
use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};
use crate::workload::count_or_percentage;

pub(crate) fn check(root: &Spot<'_>, out: &mut Refusals) {
    let Some(spec) = root.field("spec") else {
        return;
    };
    out.within(&spec, "maxReplicas", 1..=i64::from(i32::MAX));
    let least = spec.number("minReplicas").unwrap_or(1);
    if least < 0 {
        out.within(&spec, "minReplicas", 0..=i64::from(i32::MAX));
    }
    if let Some(most) = spec.field("maxReplicas")
        && most
            .node
            .as_i64()
            .is_some_and(|most| most >= 1 && most < least)
    {
        let message = "must not be less than `minReplicas`";
        out.add(Fault::Value, &most, message);
    }
}

pub(crate) fn check_budget(root: &Spot<'_>, out: &mut Refusals) {
    let Some(spec) = root.field("spec") else {
        return;
    };
    out.at_most_one(&spec, &["minAvailable", "maxUnavailable"]);
    for field in ["minAvailable", "maxUnavailable"] {
        if let Some(amount) = spec.field(field) {
            count_or_percentage(&amount, out);
        }
    }
    out.one_of(
        &spec,
        "unhealthyPodEvictionPolicy",
        &["AlwaysAllow", "IfHealthyBudget"],
    );
    placement::selector(&spec, "selector", out);
}
