//! The nodes of a run as they are when it is made: what books see of them, and their variables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portolan_fleet::Book;
use portolan_kinds::KindObject;

use super::record::{Delegation, StoredNode};
use super::request::about;
use super::sealed::SecretVariables;
use super::target::FleetView;
use super::variables::Variables;
use crate::error::ApiError;
use crate::live::moment;
use crate::server::{ApiServer, Caller};

/// The nodes of a run with their variables.
pub(super) struct FrozenNodes {
    pub(super) nodes: Vec<StoredNode>,
    /// Nodes that take steps for others, without those of the run.
    pub(super) delegates: Vec<StoredNode>,
    /// The versions of values that steps made, by the names of their Variables.
    pub(super) versions: BTreeMap<String, u32>,
    /// Secret values by the uuids of their nodes.
    pub(super) secret: SecretVariables,
    /// Names of variables that are secret on one of the nodes.
    pub(super) secret_names: BTreeSet<String>,
}

impl ApiServer {
    /// Freezes nodes for a run of a book. Its Secrets are opened only if it uses one.
    pub(super) async fn freeze(
        &self,
        caller: &Caller,
        namespace: &str,
        book: &Book,
        view: &FleetView,
        nodes: &[Arc<KindObject>],
        delegated: &BTreeMap<String, Delegation>,
    ) -> Result<FrozenNodes, ApiError> {
        let mut asked: Vec<Arc<KindObject>> = Vec::new();
        let mut granted = view.granted(namespace);
        granted.retain(|node| {
            !nodes
                .iter()
                .any(|one| one.metadata.uuid == node.metadata.uuid)
        });
        for node in granted {
            let uuid = node.metadata.uuid();
            let mut asks = delegated.values().flat_map(|one| &one.nodes);
            if asks.any(|known| known == uuid) {
                asked.push(node);
            }
        }
        let now = moment(self.objects.time.now());
        let mut variables = Variables::new(&self.cache, namespace, now);
        variables.ask_for(&book.vars);
        let all: Vec<Arc<KindObject>> = nodes.iter().chain(&asked).cloned().collect();
        self.read_variable_files(&mut variables, view, &all).await?;
        self.open_secrets(caller, namespace, &mut variables).await?;
        let mut frozen = FrozenNodes {
            nodes: Vec::with_capacity(nodes.len()),
            delegates: Vec::new(),
            versions: BTreeMap::new(),
            secret: SecretVariables::new(),
            secret_names: BTreeSet::new(),
        };
        for (position, node) in all.iter().enumerate() {
            let seen = variables.of(view, node, &book.vars)?;
            frozen.versions.extend(seen.versions);
            frozen.secret_names.extend(seen.secret.keys().cloned());
            let uuid = node.metadata.uuid().to_owned();
            if !seen.secret.is_empty() {
                frozen.secret.insert(uuid.clone(), seen.secret);
            }
            let stored = StoredNode {
                name: node.name().to_owned(),
                uuid,
                about: about(node),
                variables: seen.values,
                pins: seen.pins,
                plan: None,
            };
            if position < nodes.len() {
                frozen.nodes.push(stored);
            } else {
                frozen.delegates.push(stored);
            }
        }
        frozen.hide();
        Ok(frozen)
    }
}

impl FrozenNodes {
    /// What is secret on one node is treated as secret on all of them: they have the same book.
    fn hide(&mut self) {
        for node in self.nodes.iter_mut().chain(&mut self.delegates) {
            for name in &self.secret_names {
                if let Some(value) = node.variables.remove(name) {
                    let secret = self.secret.entry(node.uuid.clone()).or_default();
                    secret.insert(name.clone(), value);
                }
            }
        }
    }
}
