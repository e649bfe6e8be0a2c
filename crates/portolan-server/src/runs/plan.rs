//! How a book goes over the nodes of a run: batches, barriers, gates, and who takes steps for others.

use std::collections::BTreeMap;
use std::time::Duration;

use portolan_fleet::{
    Barriers, Book, GatePlan, RunOn, RunPlan, Step, Unreachable, UnreachablePolicy, batch_sizes,
};
use portolan_object::Selector;

use super::record::{Delegation, StoredNode};
use super::target::FleetView;
use crate::error::ApiError;
use crate::node_access::is_in_group;

/// How long a run waits for nodes that another run holds.
const QUEUE_LIMIT: Duration = Duration::from_mins(10);

/// How long an agent may start steps after it was last heard of; many agents have longer leases.
const LEASE_LIMIT: Duration = Duration::from_mins(1);

/// The step of a gate.
pub(super) const GATE_STEP: &str = "continue";

fn visit<'b>(book: &'b Book, seen: &mut dyn FnMut(&'b Step)) {
    for step in book.steps.iter().chain(&book.handlers) {
        step.visit(seen);
    }
}

fn throttles(book: &Book) -> BTreeMap<String, u32> {
    let mut throttles = BTreeMap::new();
    visit(book, &mut |step| {
        if step.options.throttle > 0 {
            throttles.insert(step.id.clone(), step.options.throttle);
        }
    });
    throttles
}

fn gate_plan(book: &Book) -> Option<GatePlan> {
    let gate = book.run.gate.as_ref()?;
    Some(GatePlan {
        is_asked: gate.probe.is_some(),
        retries: gate.retries.limit,
        interval: gate.retries.interval,
        needs_approval: gate.needs_approval,
    })
}

/// Whether nodes have to know what others did.
pub(super) fn has_news(book: &Book) -> bool {
    let mut has_first = false;
    visit(book, &mut |step| {
        has_first |= step.options.run_on == RunOn::First;
    });
    has_first || !throttles(book).is_empty() || !book.gathered.is_empty()
}

/// Who takes steps for others. Only nodes that the namespace may target do.
pub(super) fn delegations(
    view: &FleetView,
    namespace: &str,
    book: &Book,
) -> Result<BTreeMap<String, Delegation>, ApiError> {
    let mut all: Vec<&Step> = Vec::new();
    visit(book, &mut |step| all.push(step));
    all.extend(
        book.run
            .gate
            .iter()
            .filter_map(|gate| gate.probe.as_deref()),
    );
    let mut delegated = BTreeMap::new();
    for step in all {
        if let Some(delegation) = delegation(view, namespace, step)? {
            delegated.insert(step.id.clone(), delegation);
        }
    }
    Ok(delegated)
}

fn delegation(
    view: &FleetView,
    namespace: &str,
    step: &Step,
) -> Result<Option<Delegation>, ApiError> {
    let RunOn::Others {
        group,
        selector,
        nodes,
        limit,
        once_per_run,
    } = &step.options.run_on
    else {
        return Ok(None);
    };
    let fault = |message: String| {
        let message = format!("{}: step `{}`: {message}", step.place, step.id);
        ApiError::bad_request(message)
    };
    let group = match group {
        None => None,
        Some(name) => Some(
            view.group(name)
                .ok_or_else(|| fault(format!("there is no NodeGroup {name}")))?,
        ),
    };
    let selector = selector.as_deref().map(str::parse::<Selector>);
    let selector = selector
        .transpose()
        .map_err(|error| fault(error.to_string()))?;
    let mut found = view.granted(namespace);
    for name in nodes {
        if !found.iter().any(|node| node.name() == name) {
            let error = fault(format!(
                "namespace {namespace} may not target a node {name}"
            ));
            return Err(error.hint("a NodeGrant gives a namespace the nodes of a NodeGroup"));
        }
    }
    found.retain(|node| {
        group.is_none_or(|group| is_in_group(node, group))
            && selector
                .as_ref()
                .is_none_or(|selector| selector.matches(|key| node.label(key)))
            && (nodes.is_empty() || nodes.iter().any(|name| name == node.name()))
    });
    found.sort_by(|one, other| one.name().cmp(other.name()));
    found.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
    if found.is_empty() {
        let error = fault("`runOn` matches no node that the namespace may target".to_owned());
        return Err(error.hint("a NodeGrant gives a namespace the nodes of a NodeGroup"));
    }
    Ok(Some(Delegation {
        nodes: found
            .iter()
            .map(|node| node.metadata.uuid().to_owned())
            .collect(),
        once_per_run: *once_per_run,
    }))
}

/// How a book goes over its nodes.
pub(super) fn run_plan(book: &Book, nodes: &[StoredNode], is_check: bool) -> RunPlan {
    let mut longest = Duration::ZERO;
    for step in book.steps.iter().chain(&book.handlers) {
        step.visit(&mut |step| longest = longest.max(step.options.timeout));
    }
    let count = nodes.len();
    let run = &book.run;
    RunPlan {
        nodes: nodes.iter().map(|node| node.uuid.clone()).collect(),
        // A check changes nothing, so nobody has to wait for anybody.
        batches: if is_check {
            vec![count; usize::from(count > 0)]
        } else {
            batch_sizes(&run.batches, count)
        },
        barriers: if is_check {
            Vec::new()
        } else {
            Barriers::of(book).scopes().to_vec()
        },
        max_failures: if is_check {
            count
        } else {
            run.max_failures.of(count)
        },
        stops_on_failure: run.stops_on_failure,
        unreachable: match run.unreachable {
            Unreachable::Fail => UnreachablePolicy::Fail,
            Unreachable::Skip => UnreachablePolicy::Skip,
            Unreachable::Wait(time) => UnreachablePolicy::Wait(time),
        },
        gate: gate_plan(book).filter(|_| !is_check),
        throttles: throttles(book),
        delegates: Vec::new(),
        queue_limit: QUEUE_LIMIT,
        silence_limit: LEASE_LIMIT + longest,
    }
}
