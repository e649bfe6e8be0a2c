//! A release brought to what a chart and its values say: installed if it is not there, else upgraded.

use std::sync::Arc;

use portolan_engine::with_causes;
use portolan_helm::storage::{stored_chart, stored_values};
use portolan_helm::values::Tree;
use portolan_helm::{Chart, HookEvent, Release};
use serde_json::{Value, json};

use crate::error::HelmReleaseError;
use crate::hooks::run_hooks;
use crate::live::{EditObject, LiveInput, LiveRender, parse_objects, render, seed};
use crate::lock::{Held, unlocked};
use crate::news::ReleaseNews;
use crate::objects::Objects;
use crate::record::{Record, RecordHead, Records, now, packed};
use crate::target::{OnFailure, ReleaseTarget, Tell};

/// A chart to install or upgrade to.
#[derive(Clone)]
pub struct ChartInstall {
    /// The chart.
    pub chart: Arc<Chart>,
    /// The values of the user, which are all values: those of the last revision do not count.
    pub values: Tree,
    /// What changes objects after the chart gave them.
    pub edit: EditObject,
}

/// A release that was deployed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseDone {
    /// The revision.
    pub revision: i64,
    /// How many objects it has.
    pub objects: usize,
    /// How many that it had before were deleted.
    pub deleted: usize,
}

/// The events before and after an operation, and what its records say.
pub(crate) struct Operation {
    pub(crate) before: HookEvent,
    pub(crate) after: HookEvent,
    pub(crate) done: &'static str,
}

const INSTALL: Operation = Operation {
    before: HookEvent::PreInstall,
    after: HookEvent::PostInstall,
    done: "Install complete",
};

const UPGRADE: Operation = Operation {
    before: HookEvent::PreUpgrade,
    after: HookEvent::PostUpgrade,
    done: "Upgrade complete",
};

impl ReleaseTarget {
    /// Installs or upgrades the release, and waits until its objects are ready. `tell` hears what happens.
    ///
    /// # Errors
    /// When it failed; what `on_failure` asks for was done then, or the error says that it was not.
    pub async fn deploy(
        &self,
        request: ChartInstall,
        tell: &(dyn Fn(ReleaseNews<'_>) + Sync),
    ) -> Result<ReleaseDone, HelmReleaseError> {
        let records = self.records();
        let planning = async {
            self.make_namespace().await?;
            let history = unlocked(&records).await?;
            let plan = self.plan(request, &history, tell).await?;
            Ok((plan, history))
        };
        let (plan, history) = self.unless_cancelled(planning).await?;
        records.make_room(&history, self.history_max).await?;
        let holder = seed()?;
        let labels = history
            .last()
            .map(RecordHead::user_labels)
            .unwrap_or_default();
        let record = records
            .create(plan.revision, plan.json.clone(), labels, &holder)
            .await?;
        let held = Held::new(records, record, holder);
        let operation = if plan.is_install { &INSTALL } else { &UPGRADE };
        let work = held.during(self.carry_out(&plan, operation, &held, tell));
        match self.unless_cancelled(work).await {
            Ok(done) => {
                self.finish(&held, operation.done, &history).await?;
                Ok(done)
            }
            Err(error) => Err(self.failed(error, &held, &plan, &history, tell).await),
        }
    }

    pub(crate) fn records(&self) -> Records<'_> {
        Records {
            cluster: &self.cluster,
            namespace: &self.namespace,
            release: &self.name,
        }
    }

    /// Everything that can be found out before something is changed.
    pub(crate) async fn plan(
        &self,
        request: ChartInstall,
        history: &[RecordHead],
        tell: Tell<'_>,
    ) -> Result<Plan, HelmReleaseError> {
        let records = self.records();
        let last = history.last();
        let is_install = last.is_none_or(|last| last.status == "uninstalled");
        let revision = last.map_or(1, |last| last.revision + 1);
        let release = Release {
            revision,
            is_upgrade: !is_install,
            ..Release::new(&self.name, &self.namespace)
        };
        let input = LiveInput {
            chart: Arc::clone(&request.chart),
            values: request.values.clone(),
            release,
            edit: request.edit,
        };
        let rendered = render(&self.cluster, input).await?;
        for warning in &rendered.warnings {
            tell(ReleaseNews::Line(warning.clone()));
        }
        // What an interrupted or failed attempt made is of the release as much as what is deployed.
        let mut previous: Vec<Record> = Vec::new();
        let deployed = history.iter().rev().find(|head| head.is_deployed());
        for head in [deployed, last.filter(|_| !is_install)]
            .into_iter()
            .flatten()
        {
            if previous.iter().all(|known| known.revision != head.revision) {
                previous.extend(records.read(head.revision).await?);
            }
        }
        let first = previous
            .first()
            .map(|record| record.json["info"]["first_deployed"].clone());
        let json = self.record_json(
            &request.chart,
            &request.values,
            &rendered,
            revision,
            is_install,
            first,
        );
        packed(revision, &json)?;
        let mut before = Vec::new();
        for record in &previous {
            let objects = parse_objects(record.manifest());
            before.extend(objects.map_err(|message| {
                HelmReleaseError::Manifest(format!("revision {}", record.revision), message)
            })?);
        }
        Objects::new(self, tell)
            .check_owners(&rendered.objects, &before)
            .await?;
        Ok(Plan {
            revision,
            is_install,
            json,
            definitions: if is_install {
                rendered.definitions
            } else {
                Vec::new()
            },
            objects: rendered.objects,
            before,
        })
    }

    fn record_json(
        &self,
        chart: &Chart,
        values: &Tree,
        rendered: &LiveRender,
        revision: i64,
        is_install: bool,
        first_deployed: Option<Value>,
    ) -> Value {
        let now = now();
        let (status, description) = if is_install {
            ("pending-install", "Initial install underway")
        } else {
            ("pending-upgrade", "Preparing upgrade")
        };
        let mut json = json!({
            "name": self.name,
            "info": {
                "first_deployed": first_deployed.filter(Value::is_string).unwrap_or_else(|| now.clone().into()),
                "last_deployed": now,
                "deleted": "",
                "description": description,
                "status": status,
            },
            "chart": stored_chart(chart.package()),
            "config": stored_values(values),
            "manifest": rendered.manifest,
            "hooks": rendered.hooks,
            "version": revision,
            "namespace": self.namespace,
            "apply_method": "ssa",
        });
        for hook in json["hooks"].as_array_mut().into_iter().flatten() {
            hook["last_run"] = json!({"started_at": "", "completed_at": "", "phase": ""});
        }
        if !rendered.notes.is_empty() {
            json["info"]["notes"] = rendered.notes.as_str().into();
        }
        json
    }

    /// Hooks, objects, hooks.
    pub(crate) async fn carry_out(
        &self,
        plan: &Plan,
        operation: &Operation,
        held: &Held<'_>,
        tell: Tell<'_>,
    ) -> Result<ReleaseDone, HelmReleaseError> {
        let mut objects = Objects::new(self, tell);
        objects.define(&plan.definitions).await?;
        run_hooks(self, held, operation.before, tell).await?;
        let members = objects.apply(&plan.objects).await?;
        let deleted = objects.delete(&plan.before, &plan.objects).await?;
        objects.wait(&members).await?;
        run_hooks(self, held, operation.after, tell).await?;
        Ok(ReleaseDone {
            revision: plan.revision,
            objects: members.len(),
            deleted,
        })
    }

    /// Marks a revision as deployed, then older ones as superseded: at no time is there none that is deployed.
    pub(crate) async fn finish(
        &self,
        held: &Held<'_>,
        description: &str,
        history: &[RecordHead],
    ) -> Result<(), HelmReleaseError> {
        held.change(|record| record.set_status("deployed", description))
            .await?;
        let records = self.records();
        for head in history.iter().filter(|head| head.is_deployed()) {
            if let Some(mut old) = records.read(head.revision).await? {
                old.json["info"]["status"] = "superseded".into();
                records.write(&mut old).await?;
            }
        }
        Ok(())
    }

    /// Marks a revision as failed and does what is to be done then. Returns what is to be told.
    async fn failed(
        &self,
        error: HelmReleaseError,
        held: &Held<'_>,
        plan: &Plan,
        history: &[RecordHead],
        tell: Tell<'_>,
    ) -> HelmReleaseError {
        let (name, why) = (&self.name, with_causes(&error));
        let description = if plan.is_install {
            format!("Release \"{name}\" failed: {why}")
        } else {
            format!("Upgrade \"{name}\" failed: {why}")
        };
        if matches!(error, HelmReleaseError::Lost(_)) {
            return error;
        }
        let marked = held.change(|record| record.set_status("failed", &description));
        if marked.await.is_err() {
            return HelmReleaseError::Unrecorded {
                revision: plan.revision,
                failure: Box::new(error),
            };
        }
        let good = history
            .iter()
            .rev()
            .find(|head| ["deployed", "superseded"].contains(&head.status.as_str()));
        // The way back is gone to its end even if the run was called off.
        let back = Self {
            token: tokio_util::sync::CancellationToken::new(),
            ..self.clone()
        };
        match (self.on_failure, good) {
            (OnFailure::Keep, _) => error,
            (OnFailure::Rollback, Some(good)) => {
                match Box::pin(back.roll_back(good.revision, tell)).await {
                    Ok(()) => HelmReleaseError::RolledBack {
                        revision: good.revision,
                        failure: Box::new(error),
                    },
                    Err(then) => twice(error, then),
                }
            }
            (OnFailure::Rollback | OnFailure::Uninstall, _) => {
                match Box::pin(back.uninstall(tell)).await {
                    Ok(_) => HelmReleaseError::Uninstalled {
                        failure: Box::new(error),
                    },
                    Err(then) => twice(error, then),
                }
            }
        }
    }
}

fn twice(failure: HelmReleaseError, then: HelmReleaseError) -> HelmReleaseError {
    HelmReleaseError::Twice {
        failure: Box::new(failure),
        then: Box::new(then),
    }
}

/// What is done, found out before anything is changed.
pub(crate) struct Plan {
    pub(crate) revision: i64,
    pub(crate) is_install: bool,
    pub(crate) json: Value,
    pub(crate) definitions: Vec<Value>,
    pub(crate) objects: Vec<Value>,
    /// What the release has now.
    pub(crate) before: Vec<Value>,
}
