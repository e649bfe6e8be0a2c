//! Waits until objects have reached the state that they ask for.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::time::Instant;

use super::{Member, MemberError, ObjectSet};
use crate::kstatus::{Stage, Status, kstatus};

/// How many objects are asked for at the same time.
const AT_ONCE: usize = 8;

/// The first pause between two looks; it doubles up to [`LAST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two looks.
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// How objects are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitOptions {
    /// How long at most.
    pub timeout: Duration,
    /// Whether the first object that failed ends the wait for all.
    pub fail_fast: bool,
}

/// How far an object came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waited {
    /// The object.
    pub member: Member,
    /// How far it was when it was last looked at; `None` if it does not exist.
    pub status: Option<Status>,
}

impl Waited {
    /// Whether it has become what it asks for.
    pub fn is_current(&self) -> bool {
        self.is_at(Stage::Current)
    }

    fn is_at(&self, stage: Stage) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| status.stage == stage)
    }
}

impl ObjectSet<'_> {
    /// Waits until every object has become what it asks for or failed, or the time is up. `progress` hears of every
    /// object whose status changed. Returns how far each one came, in the given order.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn wait(
        &mut self,
        members: &[Member],
        options: WaitOptions,
        mut progress: impl FnMut(&Waited),
    ) -> Result<Vec<Waited>, MemberError> {
        let deadline = Instant::now() + options.timeout;
        let mut waited = Vec::with_capacity(members.len());
        let mut resources = Vec::with_capacity(members.len());
        for member in members {
            resources.push(self.resource(&member.as_object()).await?);
            waited.push(Waited {
                member: member.clone(),
                status: None,
            });
        }
        let mut pause = FIRST_PAUSE;
        loop {
            let cluster = self.cluster;
            let open = waited.iter().enumerate();
            let open =
                open.filter(|(_, waited)| !waited.is_current() && !waited.is_at(Stage::Failed));
            let open: Vec<usize> = open.map(|(index, _)| index).collect();
            let asked: Vec<_> = open
                .iter()
                .filter_map(|index| Some((*index, resources.get(*index)?, members.get(*index)?)))
                .collect();
            let looks = asked
                .into_iter()
                .map(|(index, resource, member)| async move {
                    let found = cluster
                        .read(resource, &member.namespace, &member.name)
                        .await;
                    (index, found)
                });
            let mut looks = futures_util::stream::iter(looks).buffer_unordered(AT_ONCE);
            while let Some((index, found)) = looks.next().await {
                let status = found?.as_ref().map(|found: &Value| kstatus(found));
                if let Some(waited) = waited.get_mut(index)
                    && waited.status != status
                {
                    waited.status = status;
                    progress(waited);
                }
            }
            drop(looks);
            let has_failed = waited.iter().any(|waited| waited.is_at(Stage::Failed));
            let is_open = |waited: &Waited| !waited.is_current() && !waited.is_at(Stage::Failed);
            if (options.fail_fast && has_failed) || !waited.iter().any(is_open) {
                return Ok(waited);
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(waited);
            }
            tokio::time::sleep_until(deadline.min(now + pause)).await;
            pause = LAST_PAUSE.min(pause * 2);
        }
    }
}
