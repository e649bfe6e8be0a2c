//! Waits until objects have reached the state that they ask for.

use std::time::Duration;

use futures_util::StreamExt as _;
use portolan_budget::RetryPolicy;
use tokio::time::Instant;

use super::{Member, MemberError, ObjectSet};
use crate::cluster::Cluster;
use crate::discovery::Resource;
use crate::error::ClusterError;
use crate::kstatus::{Stage, Status, kstatus};

/// How many objects are asked for at the same time.
const AT_ONCE: usize = 8;

/// The pauses between two looks.
const PAUSES: RetryPolicy = RetryPolicy::new(Duration::from_millis(100), Duration::from_secs(2));

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
    /// What events and logs of its pods say, if one of them is stuck.
    pub evidence: Vec<String>,
}

impl Waited {
    /// Whether it has become what it asks for.
    pub fn is_current(&self) -> bool {
        self.is_at(Stage::Current)
    }

    /// What it waits for or what went wrong: a sentence, then lines of events and logs.
    pub fn state(&self) -> String {
        let mut state = match &self.status {
            None => "it does not exist".to_owned(),
            Some(status) => status.message.clone(),
        };
        for line in &self.evidence {
            state.push_str("\n  ");
            state.push_str(line);
        }
        state
    }

    fn is_at(&self, stage: Stage) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| status.stage == stage)
    }
}

/// How far an object is. One whose pods are stuck has failed, though its controller would go on trying for minutes.
async fn look(
    cluster: &Cluster,
    resource: &Resource,
    member: &Member,
) -> Result<(Option<Status>, Vec<String>), ClusterError> {
    let read = cluster.read(resource, &member.namespace, &member.name);
    let Some(mut found) = read.await? else {
        return Ok((None, Vec::new()));
    };
    let status = kstatus(&found);
    let has_pods = matches!(
        member.kind.as_str(),
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job" | "Pod"
    );
    if !has_pods || !matches!(status.stage, Stage::InProgress | Stage::Failed) {
        return Ok((Some(status), Vec::new()));
    }
    found["kind"] = member.kind.as_str().into();
    // Pods that may not be read explain nothing; the object itself is still waited for.
    let Ok(Some(stuck)) = cluster.stuck_container(&found).await else {
        return Ok((Some(status), Vec::new()));
    };
    let evidence = cluster.evidence(&stuck).await;
    let status = Status {
        stage: Stage::Failed,
        message: stuck.sentence(),
    };
    Ok((Some(status), evidence))
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
                evidence: Vec::new(),
            });
        }
        let mut pauses = PAUSES.backoff();
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
                    (index, look(cluster, resource, member).await)
                });
            let mut looks = futures_util::stream::iter(looks).buffer_unordered(AT_ONCE);
            while let Some((index, found)) = looks.next().await {
                let (status, evidence) = found?;
                if let Some(waited) = waited.get_mut(index)
                    && waited.status != status
                {
                    (waited.status, waited.evidence) = (status, evidence);
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
            tokio::time::sleep_until(deadline.min(now + pauses.next_wait())).await;
        }
    }
}
