//! Variables whose values a step of a TaskBook makes: what is known of the last values, and what the next run is made from.

use std::collections::BTreeSet;

use jiff::Timestamp;
use portolan_digest::FieldHasher;
use portolan_kinds::{KindObject, find_kind, read_span};
use portolan_object::Selector;
use serde_json::{Map, Value, json};

use super::keys;
use super::record::{RunRecords, StoredState};
use super::target::{FleetView, Narrowing};
use super::variables::Variables;
use crate::error::ApiError;
use crate::keys::ObjectKey;
use crate::server::ApiServer;

/// What is known of values that a step made.
#[derive(Clone)]
pub(super) struct ProducedValues {
    pub(super) version: Option<u32>,
    /// Why a run cannot use them.
    pub(super) unusable: Option<String>,
    /// The variables that the TaskBook reads.
    pub(super) reads: BTreeSet<String>,
    /// For people: the version, the run and its node, and why they are old.
    pub(super) shown: Value,
}

impl ProducedValues {
    /// The values of a variable and what is known of them; `None` if no step makes them.
    pub(super) fn of(variable: &KindObject, now: Timestamp) -> Option<(Self, Map<String, Value>)> {
        let dynamic = variable.spec.get("dynamic")?;
        let names = dynamic.get("results")?.as_object()?;
        let status = &variable.status;
        let known = |name: &String| status["values"].get(name).cloned();
        let values = names
            .keys()
            .map(|name| (name.clone(), known(name).unwrap_or_default()));
        let is_complete = names.keys().all(|name| known(name).is_some());
        let error = status["error"].as_str();
        let fault = match (is_complete, error) {
            (false, None) => Some("has no value yet".to_owned()),
            (false, Some(why)) => Some(format!("has no value yet: {why}")),
            (true, Some(why)) => Some(format!("could not be computed again: {why}")),
            (true, None) => too_old(dynamic, status, now),
        };
        let uses_last = is_complete && dynamic["whenStale"] == "use-last";
        let version = status["version"].as_u64();
        let version = version.and_then(|version| u32::try_from(version).ok());
        let produced = Self {
            version,
            shown: json!({
                "version": version, "computedAt": status["computedAt"], "producer": status["producer"],
                "inputsDigest": status["inputsDigest"], "stale": fault,
            }),
            unusable: fault.filter(|_| !uses_last),
            reads: BTreeSet::new(),
        };
        Some((produced, values.collect()))
    }
}

fn too_old(dynamic: &Value, status: &Value, now: Timestamp) -> Option<String> {
    let written = dynamic["ttl"].as_str()?;
    let ttl = read_span(written).ok()?;
    let computed: Timestamp = status["computedAt"].as_str()?.parse().ok()?;
    let age = u64::try_from(now.duration_since(computed).as_secs()).unwrap_or_default();
    (age > ttl.as_secs()).then(|| format!("is {age}s old, and may be used for {written}"))
}

/// The run that makes the values of a variable.
pub(crate) struct WantedRun {
    pub(crate) book: String,
    pub(crate) node: String,
    /// Stands for what the values are made from.
    pub(crate) digest: String,
}

impl ApiServer {
    /// What the next run for a variable is made from, or why it cannot be made.
    pub(crate) async fn wanted_run(
        &self,
        variable: &KindObject,
        now: Timestamp,
    ) -> Result<WantedRun, String> {
        let cache = &self.cache;
        let dynamic = &variable.spec["dynamic"];
        let namespace = variable.namespace().unwrap_or_default();
        let name = dynamic["taskBook"].as_str().unwrap_or_default();
        let kind = find_kind("TaskBook").ok_or("no kind TaskBook")?;
        let book = cache.object(&ObjectKey::new(kind, Some(namespace), name));
        let book = book.ok_or_else(|| format!("there is no TaskBook {name}"))?;
        let selector = dynamic.get("selector").and_then(Value::as_str);
        let selector: Option<Selector> = selector
            .map(str::parse)
            .transpose()
            .map_err(|error| format!("`selector`: {error}"))?;
        let view = FleetView::new(cache);
        let narrowing = Narrowing {
            selector,
            nodes: Vec::new(),
        };
        let nodes = view.targets(namespace, &book.spec["target"], &narrowing, "");
        let mut nodes = nodes.map_err(|error| error.message)?;
        nodes.retain(|node| node.status["state"] == "ready");
        // The node that made the last values makes the next ones, as long as it is there.
        let before = variable.status["producer"]["node"].as_str();
        nodes.sort_by_key(|node| (Some(node.name()) != before, node.name().to_owned()));
        let node = nodes.first().ok_or("none of its nodes is ready")?;
        let used = book.spec["vars"].as_object().cloned().unwrap_or_default();
        let mut variables = Variables::new(cache, namespace, now);
        variables.ask_for(&used);
        let one = std::slice::from_ref(node);
        let read = self.read_variable_files(&mut variables, &view, one).await;
        read.map_err(|error| error.message)?;
        // Secrets are not opened for this: their versions stand for them.
        let seen = variables.of(&view, node, &used);
        let seen = seen.map_err(|error| error.message)?;
        let mut values = seen.values;
        values.retain(|name, _| used.contains_key(name));
        let mut hasher = FieldHasher::of("variable of a step");
        hasher
            .add(book.metadata.uuid())
            .add(&book.metadata.generation().to_string())
            .add(dynamic["step"].as_str().unwrap_or_default())
            .add(&dynamic["results"].to_string())
            .add(node.metadata.uuid())
            .add(&Value::Object(values).to_string());
        for (name, version) in seen
            .pins
            .iter()
            .filter(|(name, _)| name.starts_with("Secret "))
        {
            hasher.add(name).add(version);
        }
        Ok(WantedRun {
            book: name.to_owned(),
            node: node.name().to_owned(),
            digest: hasher.finish().hex(),
        })
    }

    /// What a step with `runOn: first` gave in a run; `None` if it gave nothing.
    pub(crate) async fn shared_result(
        &self,
        run: &KindObject,
        step: &str,
    ) -> Result<Option<Value>, ApiError> {
        let mut records = RunRecords::default();
        let key = keys::state(run.metadata.uuid());
        let state: Option<StoredState> = records.read(&self.objects.store, key).await?;
        let result = state.and_then(|state| state.shared.get(step).cloned());
        Ok(result.filter(|result| !result.is_null()))
    }
}
