//! Which of several processes acts: the one that holds a Lease.
//!
//! ```text
//! acquire (waits) ──▶ keep (renews; ends when the lease is lost) ──▶ release (so that no other process has to wait)
//! ```
//!
//! The holder must stop all of its work when [`Lease::keep`] ends. That happens before another process may take the
//! lease: a holder gives up when it could not renew for two thirds of the lease's duration. Clocks of other machines
//! are not trusted: a lease has expired when this process has seen no renewal for the whole duration.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::discovery::Resource;
use crate::error::ClusterError;

/// Which lease, and who asks for it.
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who asks for it; no other process may have this name.
    pub holder: String,
    /// How long it holds without being renewed.
    pub duration: Duration,
}

/// A lease that is asked for.
pub struct Lease {
    cluster: Cluster,
    resource: Resource,
    options: LeaseOptions,
    is_held: AtomicBool,
}

/// What is known of the lease: the holder, and what changes when it is renewed.
#[derive(PartialEq, Eq, Clone, Debug)]
struct Seen {
    holder: String,
    resource_version: String,
    transitions: i64,
}

impl Lease {
    /// A lease that is not held yet. Requests about it may take no longer than it lasts.
    pub fn new(cluster: &Cluster, options: LeaseOptions) -> Self {
        let patience = renew_deadline(&options).min(Duration::from_secs(10));
        Self {
            cluster: cluster.clone().with_patience(patience),
            resource: Resource::in_namespaces("coordination.k8s.io/v1", "Lease", "leases"),
            options,
            is_held: AtomicBool::new(false),
        }
    }

    /// Whether this process holds it.
    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::SeqCst)
    }

    /// Waits until this process holds the lease. An error of the API server is a reason to ask again; `trouble` is told.
    pub async fn acquire(&self, trouble: impl Fn(&ClusterError)) {
        let mut known: Option<(Seen, Instant)> = None;
        loop {
            match self.try_to_take(&mut known).await {
                Ok(true) => {
                    self.is_held.store(true, Ordering::SeqCst);
                    return;
                }
                Ok(false) | Err(ClusterError::Outdated { .. } | ClusterError::Exists { .. }) => {}
                Err(error) => trouble(&error),
            }
            tokio::time::sleep(self.pause()).await;
        }
    }

    /// Renews the lease; ends when it is lost.
    pub async fn keep(&self) {
        let mut renewed = Instant::now();
        while self.is_held() {
            tokio::time::sleep(self.pause()).await;
            let left = renew_deadline(&self.options).saturating_sub(renewed.elapsed());
            let started = Instant::now();
            match tokio::time::timeout(left, self.renew()).await {
                Ok(Ok(true)) => renewed = started,
                Ok(Err(_)) if renewed.elapsed() < renew_deadline(&self.options) => {}
                _ => self.lose(),
            }
        }
    }

    /// Gives the lease back, so that another process can take it at once.
    pub async fn release(&self) -> Result<(), ClusterError> {
        if !self.is_held() {
            return Ok(());
        }
        self.lose();
        let Some(seen) = self.look().await? else {
            return Ok(());
        };
        if seen.holder == self.options.holder {
            self.write(&seen, "", seen.transitions).await?;
        }
        Ok(())
    }

    fn lose(&self) {
        self.is_held.store(false, Ordering::SeqCst);
    }

    /// The pause between two tries: several fit into the time after which the lease is lost.
    fn pause(&self) -> Duration {
        self.options.duration / 5
    }

    async fn try_to_take(&self, known: &mut Option<(Seen, Instant)>) -> Result<bool, ClusterError> {
        let Some(seen) = self.look().await? else {
            let lease = self.spec(&self.options.holder, 0);
            let object = json!({
                "apiVersion": self.resource.api_version,
                "kind": self.resource.kind,
                "metadata": {"name": self.options.name, "namespace": self.options.namespace},
                "spec": lease,
            });
            let made = self.cluster.create(&self.resource, &object, MANAGER).await;
            return made.map(|_| true);
        };
        let since = match known {
            Some((before, since)) if *before == seen => *since,
            _ => {
                *known = Some((seen.clone(), Instant::now()));
                Instant::now()
            }
        };
        let is_free = seen.holder.is_empty() || seen.holder == self.options.holder;
        if !is_free && since.elapsed() < self.options.duration {
            return Ok(false);
        }
        let transitions = seen.transitions + i64::from(seen.holder != self.options.holder);
        self.write(&seen, &self.options.holder, transitions).await?;
        Ok(true)
    }

    /// Returns `false` if somebody else holds the lease.
    async fn renew(&self) -> Result<bool, ClusterError> {
        let Some(seen) = self.look().await? else {
            return Ok(false);
        };
        if seen.holder != self.options.holder {
            return Ok(false);
        }
        match self
            .write(&seen, &self.options.holder, seen.transitions)
            .await
        {
            Ok(()) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn look(&self) -> Result<Option<Seen>, ClusterError> {
        let (namespace, name) = (&self.options.namespace, &self.options.name);
        let lease = self.cluster.read(&self.resource, namespace, name).await?;
        Ok(lease.map(|lease| Seen {
            holder: text(&lease["spec"]["holderIdentity"]),
            resource_version: text(&lease["metadata"]["resourceVersion"]),
            transitions: lease["spec"]["leaseTransitions"].as_i64().unwrap_or(0),
        }))
    }

    async fn write(&self, seen: &Seen, holder: &str, transitions: i64) -> Result<(), ClusterError> {
        let mut patch = json!({"spec": self.spec(holder, transitions)});
        patch["metadata"] = json!({"resourceVersion": seen.resource_version});
        if holder == seen.holder {
            // When it was taken stays as it is.
            if let Some(spec) = patch["spec"].as_object_mut() {
                spec.remove("acquireTime");
            }
        }
        let place = (self.options.namespace.as_str(), self.options.name.as_str());
        let written = self.cluster.merge(&self.resource, place, &patch, MANAGER);
        written.await.map(|_| ())
    }

    fn spec(&self, holder: &str, transitions: i64) -> Value {
        let now = format!("{:.6}", Timestamp::now());
        json!({
            "holderIdentity": holder,
            "leaseDurationSeconds": self.options.duration.as_secs().max(1),
            "leaseTransitions": transitions,
            "acquireTime": now,
            "renewTime": now,
        })
    }
}

/// Who writes leases.
const MANAGER: &str = "portolan-lease";

/// A holder that could not renew for so long gives up, before others may take the lease.
fn renew_deadline(options: &LeaseOptions) -> Duration {
    options.duration * 2 / 3
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
