//! Runs that nobody asks for: a CronJob, a Trigger or the `reconcile` of a TaskBook makes them.
//!
//! What its controller remembers is written in the transaction that creates the Run. So a firing whose Run exists is
//! remembered, and one that is not remembered has no Run, also when the server is killed in between.

use std::sync::Arc;

use portolan_kinds::{KindObject, find_kind};
use portolan_object::Selector;
use portolan_store::{Compare, Transaction};
use serde_json::{Map, Value};

use super::record::StoredBook;
use super::request::RunRequest;
use super::target::{FleetView, Narrowing};
use crate::cache::Cache;
use crate::error::{ApiError, RefusalReason};
use crate::keys::ObjectKey;
use crate::server::{ApiServer, Caller, Target};
use crate::token::Identity;

/// A run that nobody asks for.
pub(crate) struct FiredRun {
    /// The name that it is made under.
    pub(crate) user: &'static str,
    pub(crate) namespace: String,
    pub(crate) book: String,
    /// The text of a TaskBook that is not on the server.
    pub(crate) text: Option<String>,
    /// What tells the run from others of the book: the same firing has the same.
    pub(crate) key: String,
    pub(crate) is_check: bool,
    pub(crate) inputs: Map<String, Value>,
    pub(crate) nodes: Vec<String>,
    pub(crate) selector: Option<Selector>,
    pub(crate) made_by: MadeBy,
}

/// What made a run, and what is written with it.
#[derive(Debug, Clone)]
pub(crate) struct MadeBy {
    /// What made it, as in the spec of the Run.
    pub(crate) origin: Value,
    /// The triggers that led to it.
    pub(crate) causes: Value,
    /// What must hold for the controller to write.
    pub(crate) fence: Compare,
    /// What the controller remembers from now on.
    pub(crate) with: Transaction,
}

/// What became of a firing.
pub(crate) enum FiredRunOutcome {
    /// The run was made, and what the controller remembers was written.
    Made(Box<KindObject>),
    /// The run exists already; nothing was written.
    Known(String),
}

impl FiredRun {
    /// The name of the run.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.book, self.key)
    }
}

/// The nodes that runs of books work on, as the fleet is now.
pub(crate) struct BookNodes(FleetView);

impl BookNodes {
    pub(crate) fn new(cache: &Cache) -> Self {
        Self(FleetView::new(cache))
    }

    /// The nodes of a book; none if its target cannot be read.
    pub(crate) fn of(&self, book: &KindObject) -> Vec<Arc<KindObject>> {
        let namespace = book.namespace().unwrap_or_default();
        let target = &book.spec["target"];
        let nodes = self.0.targets(namespace, target, &Narrowing::default(), "");
        nodes.unwrap_or_default()
    }
}

impl ApiServer {
    /// Makes a run for a firing, once.
    pub(crate) async fn start_fired_run(&self, run: FiredRun) -> Result<FiredRunOutcome, ApiError> {
        let kind = find_kind("Run").ok_or_else(|| ApiError::internal("no kind Run"))?;
        let name = run.name();
        let key = ObjectKey::new(kind, Some(&run.namespace), &name);
        if self.objects.get(&key).await?.is_some() {
            return Ok(FiredRunOutcome::Known(name));
        }
        let caller = Caller {
            identity: Identity {
                user: run.user.to_owned(),
                ..Identity::default()
            },
            address: String::new(),
        };
        let target = Target {
            kind: find_kind("TaskBook").ok_or_else(|| ApiError::internal("no kind TaskBook"))?,
            namespace: Some(run.namespace),
            name: Some(run.book.clone()),
        };
        let request = RunRequest {
            is_check: run.is_check,
            inputs: run.inputs,
            narrowing: Narrowing {
                selector: run.selector,
                nodes: run.nodes,
            },
            dedupe_key: Some(run.key),
            book: run.text.map(|text| StoredBook::of_text(&run.book, text)),
            made_by: Some(run.made_by),
            ..RunRequest::default()
        };
        let made = self.make_run(&caller, &target, request).await;
        let version = made
            .as_ref()
            .map(|run| run.metadata.resource_version.as_deref());
        self.record(&caller, "run", &target, version).await?;
        match made {
            Ok(run) => Ok(FiredRunOutcome::Made(Box::new(run))),
            Err(error) if error.reason == RefusalReason::AlreadyExists => {
                Ok(FiredRunOutcome::Known(name))
            }
            Err(error) => Err(error),
        }
    }
}
