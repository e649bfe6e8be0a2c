//! A release brought back to an earlier revision, which becomes the newest one.

use portolan_engine::with_causes;
use portolan_helm::HookEvent;
use serde_json::Value;

use crate::deploy::{Operation, Plan};
use crate::error::HelmReleaseError;
use crate::live::{parse_objects, seed};
use crate::lock::{Held, unlocked};
use crate::record::{RecordHead, now};
use crate::target::{ReleaseTarget, Tell};

impl ReleaseTarget {
    /// Deploys what a revision had.
    pub(crate) async fn roll_back(
        &self,
        revision: i64,
        tell: Tell<'_>,
    ) -> Result<(), HelmReleaseError> {
        let records = self.records();
        let history = unlocked(&records).await?;
        let none = || HelmReleaseError::None(format!("{}` of revision `{revision}", self.name));
        let good = records.read(revision).await?.ok_or_else(none)?;
        let last = history.last().map_or(revision, |last| last.revision);
        let mut before = Vec::new();
        let changed = history
            .iter()
            .filter(|head| head.is_deployed() || head.revision == last);
        for head in changed {
            let record = records.read(head.revision).await?;
            before.extend(
                record
                    .map(|record| objects(record.manifest(), head.revision))
                    .transpose()?
                    .unwrap_or_default(),
            );
        }
        let mut json = good.json.clone();
        json["version"] = (last + 1).into();
        json["info"]["last_deployed"] = now().into();
        json["info"]["status"] = "pending-rollback".into();
        json["info"]["description"] = format!("Rollback to {revision}").into();
        let plan = Plan {
            revision: last + 1,
            is_install: false,
            definitions: Vec::new(),
            objects: objects(good.manifest(), revision)?,
            before,
            json,
        };
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
        let operation = Operation {
            before: HookEvent::PreRollback,
            after: HookEvent::PostRollback,
            done: "",
        };
        match held
            .during(self.carry_out(&plan, &operation, &held, tell))
            .await
        {
            Ok(_) => {
                self.finish(&held, &format!("Rollback to {revision}"), &history)
                    .await
            }
            Err(error) => {
                let why = format!("Rollback \"{}\" failed: {}", self.name, with_causes(&error));
                held.change(|record| record.set_status("failed", &why))
                    .await?;
                Err(error)
            }
        }
    }
}

pub(crate) fn objects(manifest: &str, revision: i64) -> Result<Vec<Value>, HelmReleaseError> {
    parse_objects(manifest)
        .map_err(|message| HelmReleaseError::Manifest(format!("revision {revision}"), message))
}
