//! Runs the steps that make the values of Variables, on the server that owns the shard, and stores what they gave.
//!
//! A run is named after its Variable and a number, and the status of the Variable has the number of the last run whose
//! result was taken. So a server that takes over finds the run that the one before began, and takes its result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portolan_digest::Digest;
use portolan_kinds::{KindObject, find_kind, read_span};
use portolan_store::{Ownership, Transaction};
use portolan_trigger::result_values;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::{is_passing, moment};
use crate::error::ApiError;
use crate::events::NewEvent;
use crate::objects::{Author, key_of};
use crate::runs::{FiredRun, MadeBy, is_over};
use crate::server::ApiServer;

/// The name that these runs are made under.
const USER: &str = "system:variables";

/// How often variables are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long nothing is tried after a failure, unless the variable is refreshed more often.
const RETRY_AFTER: Duration = Duration::from_mins(1);

/// Keeps the values that steps make.
pub(crate) struct VariableController {
    pub(crate) server: Arc<ApiServer>,
    /// Whether this server owns the shard.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
}

impl VariableController {
    /// Works until the future is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let ownership = self.owned.borrow_and_update().clone();
            if let Some(ownership) = ownership {
                self.round(&ownership).await;
                tokio::select! {
                    _ = self.owned.changed() => {}
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                }
            } else if self.owned.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn round(&self, ownership: &Ownership) {
        let mut variables = self.server.cache.produced();
        variables.retain(|variable| variable.metadata.deletion_timestamp.is_none());
        if variables.is_empty() {
            return;
        }
        let mut runs: BTreeMap<String, Vec<Arc<KindObject>>> = BTreeMap::new();
        for run in self.objects("Run") {
            let origin = &run.spec["origin"];
            if let ("Variable", Some(uuid)) = (
                origin["kind"].as_str().unwrap_or_default(),
                origin["uuid"].as_str(),
            ) {
                let uuid = uuid.to_owned();
                runs.entry(uuid).or_default().push(run);
            }
        }
        for variable in variables {
            let runs = runs.get(variable.metadata.uuid()).map(Vec::as_slice);
            let looked = self.look_at(ownership, &variable, runs.unwrap_or_default());
            if let Err(error) = looked.await {
                tracing::warn!(%error, variable = variable.name(), "a variable cannot be kept now");
            }
        }
    }

    async fn look_at(
        &self,
        ownership: &Ownership,
        variable: &KindObject,
        runs: &[Arc<KindObject>],
    ) -> Result<(), ApiError> {
        let attempts = variable.status["attempts"].as_u64().unwrap_or_default();
        let number = |run: &KindObject| run.spec["origin"]["number"].as_u64().unwrap_or_default();
        if let Some(run) = runs.iter().find(|run| number(run) > attempts) {
            if is_over(run) {
                let status = self.after_run(variable, run, number(run)).await?;
                self.put(ownership, variable, status).await?;
            }
            return Ok(());
        }
        let now = moment(self.server.objects.time.now());
        let wanted = match self.server.wanted_run(variable, now).await {
            Ok(wanted) => wanted,
            // As long as no new values are due, the ones that are there stay as good as they were.
            Err(_) if variable.status.get("version").is_some() && !is_time(variable, now) => {
                return Ok(());
            }
            Err(why) => {
                let status = failed(variable.status.clone(), &why);
                return self.put(ownership, variable, status).await;
            }
        };
        if !is_due(variable, &wanted.digest, now) {
            return Ok(());
        }
        let id = Digest::of(variable.metadata.uuid().as_bytes()).hex();
        let fired = FiredRun {
            user: USER,
            namespace: variable.namespace().unwrap_or_default().to_owned(),
            book: wanted.book,
            text: None,
            key: format!("{}-var-{}", id.get(..12).unwrap_or_default(), attempts + 1),
            is_check: false,
            inputs: Map::new(),
            nodes: vec![wanted.node],
            selector: None,
            made_by: MadeBy {
                origin: json!({
                    "kind": "Variable", "name": variable.name(), "uuid": variable.metadata.uuid(),
                    "number": attempts + 1, "inputsDigest": wanted.digest,
                }),
                causes: Value::Null,
                fence: ownership.fence(),
                with: Transaction::new(),
            },
        };
        match self.server.start_fired_run(fired).await {
            Ok(_) => Ok(()),
            Err(error) if is_passing(&error) => Err(error),
            Err(error) => {
                let mut status = failed(variable.status.clone(), &error.to_string());
                status["triedAt"] = now.to_string().into();
                status["triedDigest"] = wanted.digest.into();
                self.put(ownership, variable, status).await
            }
        }
    }

    /// The status of a variable after a run for it has ended.
    async fn after_run(
        &self,
        variable: &KindObject,
        run: &KindObject,
        number: u64,
    ) -> Result<Value, ApiError> {
        let now = moment(self.server.objects.time.now()).to_string();
        let (dynamic, digest) = (
            &variable.spec["dynamic"],
            &run.spec["origin"]["inputsDigest"],
        );
        let step = dynamic["step"].as_str().unwrap_or_default();
        let result = self.server.shared_result(run, step).await?;
        let made = match (run.status["phase"].as_str(), result) {
            (Some("succeeded"), Some(result)) => {
                let results = dynamic["results"].as_object().cloned();
                result_values(&results.unwrap_or_default(), &result)
            }
            (Some("succeeded"), None) => Err(format!(
                "step `{step}` gave no result in run {}: it must exist, have `runOn: first`, and be neither skipped nor sensitive",
                run.name()
            )),
            (phase, _) => Err(format!("run {} {}", run.name(), phase.unwrap_or_default())),
        };
        let before = &variable.status;
        let mut status = match made {
            Err(why) => failed(before.clone(), &why),
            Ok(values) => {
                let values = Value::Object(values);
                let version = before["version"].as_u64().unwrap_or_default();
                let is_same = before["values"] == values;
                json!({
                    "values": values, "version": if is_same { version } else { version + 1 },
                    "inputsDigest": digest, "computedAt": now,
                    "producer": {
                        "taskBook": run.spec["book"], "step": step, "node": run.spec["nodes"][0]["name"],
                        "run": run.name(),
                    },
                })
            }
        };
        status["attempts"] = number.into();
        status["triedAt"] = now.into();
        status["triedDigest"] = digest.clone();
        self.report(variable, &status, number);
        Ok(status)
    }

    /// Tells that the values are others now, or could not be made.
    fn report(&self, variable: &KindObject, status: &Value, number: u64) {
        let name = variable.name();
        let id = format!("{}-{number}", variable.metadata.uuid());
        let event = match status["error"].as_str() {
            Some(why) => {
                let summary = format!("the values of Variable {name} could not be made: {why}");
                NewEvent::new("variable.failed", summary).warning()
            }
            None if status["version"] == variable.status["version"] => return,
            None => {
                let summary = format!("Variable {name} has version {}", status["version"]);
                NewEvent::new("variable.changed", summary)
            }
        };
        let data = json!({"version": status["version"], "producer": status["producer"]});
        let event = event.about(variable).named("variable", &id).data(data);
        self.server.event_sink.tell(event);
    }

    async fn put(
        &self,
        ownership: &Ownership,
        variable: &KindObject,
        status: Value,
    ) -> Result<(), ApiError> {
        if status == variable.status {
            return Ok(());
        }
        let author = Author {
            name: USER.to_owned(),
            fence: Some(ownership.fence()),
            ..Author::default()
        };
        let objects = &self.server.objects;
        let key = key_of(variable);
        objects.set_status(&key, status, &author).await.map(|_| ())
    }

    fn objects(&self, kind: &str) -> Vec<Arc<KindObject>> {
        let kind = find_kind(kind);
        kind.map_or_else(Vec::new, |kind| self.server.cache.objects(kind, None))
    }
}

/// Whether values have to be made: for the first time, of something else, or because it is time.
fn is_due(variable: &KindObject, digest: &str, now: Timestamp) -> bool {
    variable.status["triedDigest"] != digest || is_time(variable, now)
}

/// Whether the time has come to make values again, or for the first time.
fn is_time(variable: &KindObject, now: Timestamp) -> bool {
    let status = &variable.status;
    let tried = status["triedAt"].as_str();
    let Some(tried) = tried.and_then(|text| text.parse::<Timestamp>().ok()) else {
        return true;
    };
    let refresh = variable.spec["dynamic"]["refresh"].as_str();
    let refresh = refresh.and_then(|text| read_span(text).ok());
    let wait = match status.get("error") {
        None => refresh,
        Some(_) => Some(refresh.map_or(RETRY_AFTER, |refresh| refresh.min(RETRY_AFTER))),
    };
    wait.is_some_and(|wait| now.duration_since(tried.min(now)).unsigned_abs() >= wait)
}

/// A status that keeps the last values and says why there are no newer ones.
fn failed(mut status: Value, why: &str) -> Value {
    if !status.is_object() {
        status = json!({});
    }
    status["error"] = why.into();
    status
}
