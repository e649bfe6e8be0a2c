//! Runs that do what an approved plan says: the plan of a check whose records are still here, named by its digest.
//!
//! The digest says that the caller means this plan. What the plan was made from is taken from the records of the check, and
//! a run is made only if nothing of it has changed: the nodes, their variables, and what the namespace may target. Each agent
//! looks at its node once more and begins nothing if it finds something else than the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use portolan_fleet::{PlannedBook, RunReport, plan_digest, plan_of, planned_steps};
use portolan_kinds::{KindObject, find_kind};
use serde_json::{Map, Value, json};

use super::controller::is_over;
use super::keys;
use super::record::{RunRecords, StoredBook, StoredNode, StoredPlan, read_nodes};
use crate::clock::rfc3339;
use crate::error::{ApiError, RefusalReason};
use crate::server::{ApiServer, Target};

/// How long a plan can be applied.
const PLAN_LIFE: Duration = Duration::from_hours(1);

/// The most differences of a node that are told.
const MAX_DIFFERENCES: usize = 10;

/// Which plan a caller wants to have applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlanReference {
    /// The check.
    pub(super) run: String,
    /// The digest of its plan.
    pub(super) digest: String,
}

impl PlanReference {
    /// Reads `{"run", "digest"}`; `None` for anything else.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let value = value.as_object().filter(|map| map.len() == 2)?;
        let text = |key: &str| value.get(key)?.as_str().map(str::to_owned);
        Some(Self {
            run: text("run")?,
            digest: text("digest")?,
        })
    }
}

/// A plan, and what it was made from.
pub(super) struct ApprovedPlan {
    pub(super) book: StoredBook,
    pub(super) stored: StoredPlan,
    pub(super) commit: Option<String>,
    nodes: Vec<StoredNode>,
    /// What the check found, by the name of the node.
    steps: BTreeMap<String, Value>,
}

impl ApprovedPlan {
    pub(super) fn node_names(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// The nodes of the new run in the order of the plan, each with what was found on it.
    pub(super) fn pin(
        &self,
        nodes: Vec<StoredNode>,
        secret_inputs: &BTreeMap<String, String>,
    ) -> Result<Vec<StoredNode>, ApiError> {
        for (name, digest) in &self.stored.secret_inputs {
            if secret_inputs.get(name) != Some(digest) {
                return Err(changed(format!(
                    "the secret input `{name}` is not the one that the plan was made with"
                )));
            }
        }
        let mut nodes: BTreeMap<String, StoredNode> = nodes
            .into_iter()
            .map(|node| (node.uuid.clone(), node))
            .collect();
        let mut pinned = Vec::with_capacity(self.nodes.len());
        for planned in &self.nodes {
            let Some(mut node) = nodes.remove(&planned.uuid) else {
                let name = &planned.name;
                return Err(changed(format!(
                    "node {name} is not the one that the plan is about"
                )));
            };
            let mut differences = pin_differences(&planned.pins, &node.pins);
            if differences.is_empty() {
                differences = value_differences(&planned.variables, &node.variables);
            }
            if !differences.is_empty() {
                let message = format!(
                    "variables of node {} are not those of the plan: {}",
                    node.name,
                    differences.join("; ")
                );
                return Err(changed(message));
            }
            node.plan = self.steps.get(&node.name).cloned();
            pinned.push(node);
        }
        Ok(pinned)
    }
}

impl ApiServer {
    /// The plan of a check: `{"run", "digest", "expiresAt", "plan"}`.
    pub(crate) async fn plan_of_run(&self, target: &Target) -> Result<Value, ApiError> {
        let found = self.objects.get(&target.key()?).await?;
        let found = found.ok_or_else(|| ApiError::not_found(&target.shown()))?;
        let (plan, _, _) = self.read_plan(target, &found.object).await?;
        let ended = found.object.status["endedAt"].as_str().unwrap_or_default();
        Ok(json!({
            "run": target.name, "digest": plan_digest(&plan), "plan": plan, "endedAt": ended,
            "lifeSeconds": PLAN_LIFE.as_secs(),
        }))
    }

    async fn read_plan(
        &self,
        target: &Target,
        run: &KindObject,
    ) -> Result<(Value, StoredPlan, RunReport), ApiError> {
        if run.spec["mode"] != "check" || !is_over(run) {
            let message = format!("{} is no check that has ended", target.shown());
            return Err(ApiError::conflict(RefusalReason::Conflict, message)
                .hint("`portolan fleet run --check --plan-out FILE` makes a plan"));
        }
        let store = &self.objects.store;
        let stored: Option<StoredPlan> = RunRecords::default()
            .read(store, keys::plan(run.metadata.uuid()))
            .await?;
        let stored = stored.ok_or_else(|| ApiError::not_found(&target.shown()))?;
        let report = self.run_report(target, None).await?;
        let report = RunReport::read(&report)
            .ok_or_else(|| ApiError::internal("the records of a run cannot be read"))?;
        let mut versions = BTreeMap::new();
        for node in read_nodes(store, run.metadata.uuid()).await? {
            versions.extend(node.pins);
        }
        let book = PlannedBook {
            name: run.spec["book"].as_str().unwrap_or_default(),
            digest: &stored.digest,
            inputs: &stored.inputs,
            versions: &versions,
        };
        let plan = plan_of(book, &report);
        Ok((plan, stored, report))
    }

    /// The plan that a caller means, if it is still good.
    pub(super) async fn approved_plan(
        &self,
        book: &Target,
        wanted: &PlanReference,
    ) -> Result<ApprovedPlan, ApiError> {
        let kind = find_kind("Run").ok_or_else(|| ApiError::internal("no kind Run"))?;
        let target = Target {
            kind,
            namespace: book.namespace.clone(),
            name: Some(wanted.run.clone()),
        };
        let found = self.objects.get(&target.key()?).await?;
        let found = found.ok_or_else(|| changed(format!("{} is gone", target.shown())))?;
        let run = &found.object;
        if run.spec["book"].as_str() != book.name.as_deref() {
            return Err(changed(format!(
                "{} is a check of another book",
                target.shown()
            )));
        }
        let oldest = rfc3339(self.objects.time.now().saturating_sub(PLAN_LIFE));
        let ended = run.status["endedAt"].as_str().unwrap_or_default();
        let (plan, stored, report) = self.read_plan(&target, run).await?;
        if ended < oldest.as_str() {
            return Err(changed("the plan is older than an hour".to_owned()));
        }
        if plan_digest(&plan) != wanted.digest {
            return Err(changed("the digest is that of another plan".to_owned()));
        }
        let uuid = run.metadata.uuid();
        let store = &self.objects.store;
        let stored_book: Option<StoredBook> =
            RunRecords::default().read(store, keys::book(uuid)).await?;
        let steps = report.nodes.iter();
        Ok(ApprovedPlan {
            book: stored_book.ok_or_else(|| ApiError::not_found(&target.shown()))?,
            stored,
            commit: run.spec["commit"].as_str().map(str::to_owned),
            nodes: read_nodes(store, uuid).await?,
            steps: steps
                .map(|node| (node.name.clone(), planned_steps(&node.steps)))
                .collect(),
        })
    }
}

/// The inputs of the plan; the caller gives secret ones again, and nothing else.
pub(super) fn planned_inputs(
    plan: &StoredPlan,
    given: Map<String, Value>,
) -> Result<Map<String, Value>, ApiError> {
    let mut inputs = plan.inputs.clone();
    for (name, value) in given {
        if inputs.contains_key(&name) {
            let message = format!("the plan has the value of the input `{name}`");
            return Err(ApiError::bad_request(message).hint("only secret inputs are given again"));
        }
        inputs.insert(name, value);
    }
    Ok(inputs)
}

/// How the versions of what variables are made from differ from those of a plan.
fn pin_differences(
    planned: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Vec<String> {
    let all: BTreeSet<&String> = planned.keys().chain(now.keys()).collect();
    let differences = all
        .into_iter()
        .filter_map(|name| match (planned.get(name), now.get(name)) {
            (Some(before), Some(after)) if before == after => None,
            (Some(before), Some(after)) => {
                Some(format!("{name} was at {before} and is at {after}"))
            }
            (Some(_), None) => Some(format!("{name} is not used any more")),
            (None, _) => Some(format!("{name} was not used")),
        });
    short(differences)
}

/// Which variables have other values than in a plan.
fn value_differences(planned: &Map<String, Value>, now: &Map<String, Value>) -> Vec<String> {
    let all: BTreeSet<&String> = planned.keys().chain(now.keys()).collect();
    let differs = |name: &&String| planned.get(*name) != now.get(*name);
    short(
        all.into_iter()
            .filter(differs)
            .map(|name| format!("`{name}` has another value")),
    )
}

fn short(differences: impl Iterator<Item = String>) -> Vec<String> {
    let mut differences: Vec<String> = differences.collect();
    let more = differences.len().saturating_sub(MAX_DIFFERENCES);
    differences.truncate(MAX_DIFFERENCES);
    if more > 0 {
        differences.push(format!("and {more} more"));
    }
    differences
}

fn changed(message: String) -> ApiError {
    ApiError::conflict(RefusalReason::Conflict, message)
        .hint("make a new plan: `portolan fleet run --check --plan-out FILE`")
}
