//! Why a rollout is in its current state, in words and numbers.

use portolan_judge::Counts;
use portolan_rollout::{Analysis, MetricSummary, Status};

use crate::rollout::Rollout;

/// Odds that are told as excluded, the largest first.
const TOLD_ODDS: [f64; 5] = [30.0, 10.0, 5.0, 3.0, 2.0];

/// Returns lines that say why a rollout stands where it stands.
pub fn explain(rollout: &Rollout) -> Vec<String> {
    let Some(status) = &rollout.status else {
        return vec!["no operator has seen it yet".to_owned()];
    };
    let mut lines = Vec::new();
    if status.observed_generation < rollout.generation {
        lines.push("the operator has not looked at the newest change yet".to_owned());
    }
    lines.push(standing(status));
    if let Some(hold) = &status.hold {
        lines.push(format!("it waits ({}): {}", hold.reason, hold.message));
    }
    lines.extend(canary(status));
    if let Some(last) = status.history.last() {
        lines.push(format!(
            "last: {} {} → {}, {}: {}",
            last.at, last.from, last.to, last.reason, last.message
        ));
    }
    let bad = status.conditions.iter().filter(|condition| {
        let is_good = matches!(
            condition.kind.as_str(),
            "Ready" | "TrafficVerified" | "AnalysisConclusive"
        );
        is_good == (condition.status == "False") && !condition.message.is_empty()
    });
    lines.extend(bad.map(|condition| {
        format!(
            "{}={} ({}): {}",
            condition.kind, condition.status, condition.reason, condition.message
        )
    }));
    lines
}

fn standing(status: &Status) -> String {
    let stable = status.stable.as_ref();
    let stable = stable.map_or_else(
        || "none".to_owned(),
        |stable| format!("{} in slot {}", stable.revision, stable.slot),
    );
    format!(
        "{}: stable is {stable}; the new revision gets {} % of the traffic",
        status.phase, status.weight
    )
}

fn canary(status: &Status) -> Vec<String> {
    let Some(canary) = status.canary.as_deref() else {
        return Vec::new();
    };
    let steps = canary.plan.steps().len();
    let mut lines = vec![format!(
        "revision {} in slot {}, attempt {}, step {} of {steps}, {} s in it with {} requests",
        canary.revision,
        canary.slot,
        canary.attempt,
        canary.step + 1,
        canary.step_seconds,
        canary.step_requests
    )];
    let analysis = &canary.plan.analysis;
    let evidence = status.evidence();
    lines.extend(
        evidence
            .iter()
            .map(|summary| metric_line(summary, analysis, Some(canary.attempt))),
    );
    let needed = proof(analysis, canary.attempt).ln();
    let slowest = evidence
        .iter()
        .map(|summary| summary.ln_promote / needed)
        .reduce(f64::min);
    match slowest {
        Some(part) if part >= 1.0 => lines.push("every metric is proven".to_owned()),
        Some(part) if part > 0.05 && canary.run_seconds > 0 => {
            let seconds = canary.run_seconds as f64 * (1.0 - part) / part;
            lines.push(format!(
                "about {} min to proof at this pace",
                (seconds / 60.0).ceil()
            ));
        }
        _ => {}
    }
    lines
}

/// Returns the evidence that a promotion needs: more at each attempt of the same revision, so that all of them together keep
/// the stated rate.
fn proof(analysis: &Analysis, attempt: u32) -> f64 {
    let attempt = f64::from(attempt.max(1));
    attempt * (attempt + 1.0) / analysis.false_promote_rate
}

/// Returns a line about what a metric has shown. What a proof needs is told if it is known which attempt it was.
pub fn metric_line(summary: &MetricSummary, analysis: &Analysis, attempt: Option<u32>) -> String {
    let metrics = analysis.metrics_or_default().len().max(1) as f64;
    let excluded = summary.excluded_odds;
    let excluded = excluded.and_then(|least| TOLD_ODDS.into_iter().rfind(|odds| *odds >= least));
    let excluded = excluded.map_or_else(String::new, |odds| format!("; {odds}× worse is excluded"));
    let counted = summary.counted_by.as_deref().map(who_counted);
    let counted = counted.map_or_else(String::new, |who| format!("; counted by {who}"));
    let needed = attempt.map(|attempt| proof(analysis, attempt).round());
    let needed = needed.map_or_else(String::new, |needed| format!(" of {needed}"));
    format!(
        "{}: {} new, {} old; evidence for a rollback {} of {}, for a promotion {}{needed}{excluded}{counted}",
        summary.name,
        share(summary.canary),
        share(summary.stable),
        evidence(summary.ln_rollback),
        (metrics / analysis.false_rollback_rate).round(),
        evidence(summary.ln_promote),
    )
}

/// What a `reporter` of Istio is.
fn who_counted(reporter: &str) -> String {
    let who = match reporter {
        "source" => "callers and gateways",
        "waypoint" => "waypoints",
        "destination" => "the called pods, because callers see less than 90 % of their requests",
        _ => "others",
    };
    format!("{who} (reporter \"{reporter}\")")
}

fn share(counts: Counts) -> String {
    match counts.bad_share() {
        None => "no requests".to_owned(),
        Some(share) => format!(
            "{} bad of {} ({:.3} %)",
            counts.bad,
            counts.total,
            share * 100.0
        ),
    }
}

/// Evidence as people read it: a number, not its logarithm.
fn evidence(ln: f64) -> String {
    match ln.exp() {
        large if large >= 10_000.0 => "over 10000".to_owned(),
        number if number >= 10.0 => format!("{number:.0}"),
        number => format!("{number:.2}"),
    }
}
