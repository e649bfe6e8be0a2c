//! A release taken away: its hooks run, its objects and records are deleted.

use portolan_helm::HookEvent;

use crate::error::HelmReleaseError;
use crate::hooks::run_hooks;
use crate::live::seed;
use crate::lock::{Held, unlocked};
use crate::news::ReleaseNews;
use crate::objects::Objects;
use crate::record::now;
use crate::rollback::objects;
use crate::target::{ReleaseTarget, Tell};

impl ReleaseTarget {
    /// Uninstalls the release. Returns how many objects were deleted; `None` if there is no release.
    ///
    /// # Errors
    /// When a hook failed or an object could not be deleted; what is left of the release stays recorded.
    pub async fn uninstall(
        &self,
        tell: &(dyn Fn(ReleaseNews<'_>) + Sync),
    ) -> Result<Option<usize>, HelmReleaseError> {
        self.unless_cancelled(self.uninstall_all(tell)).await
    }

    async fn uninstall_all(&self, tell: Tell<'_>) -> Result<Option<usize>, HelmReleaseError> {
        let records = self.records();
        let history = unlocked(&records).await?;
        let Some(last) = history.last() else {
            return Ok(None);
        };
        let Some(mut record) = records.read(last.revision).await? else {
            return Ok(None);
        };
        let mut deleted = 0;
        if last.status != "uninstalled" {
            // A failed revision may have made only a part of what the deployed one has.
            let mut all = objects(record.manifest(), last.revision)?;
            let deployed = history.iter().rev().find(|head| head.is_deployed());
            let deployed = deployed.filter(|head| head.revision != last.revision);
            if let Some(head) = deployed
                && let Some(older) = records.read(head.revision).await?
            {
                all.extend(objects(older.manifest(), head.revision)?);
            }
            record.set_status("uninstalling", "Deletion in progress (or silently failed)");
            record.json["info"]["deleted"] = now().into();
            let holder = seed()?;
            records.write(&mut record).await?;
            records.renew(&mut record, &holder).await?;
            let held = Held::new(records, record, holder);
            let work = async {
                run_hooks(self, &held, HookEvent::PreDelete, tell).await?;
                let deleted = Objects::new(self, tell).delete(&all, &[]).await?;
                run_hooks(self, &held, HookEvent::PostDelete, tell).await?;
                Ok(deleted)
            };
            deleted = match held.during(work).await {
                Ok(deleted) => deleted,
                Err(error) => {
                    let why = format!("Uninstallation failed: {error}");
                    held.change(|record| record.set_status("failed", &why))
                        .await?;
                    return Err(error);
                }
            };
        }
        for head in &history {
            records.remove(head).await?;
        }
        Ok(Some(deleted))
    }
}
