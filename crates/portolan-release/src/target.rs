//! Which release is meant, and how it is handled.

use std::sync::Arc;
use std::time::Duration;

use portolan_cluster::{ApplyOptions, Cluster, ClusterError, Resource};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::error::HelmReleaseError;
use crate::news::ReleaseNews;

/// Who changes objects, as the cluster keeps it. It is the name that `helm` uses: what it applies on the server's side and
/// what this crate applies have the same owner, so that each can go on with a release of the other.
pub(crate) const MANAGER: &str = "helm";

/// A release of a cluster.
#[derive(Clone)]
pub struct ReleaseTarget {
    /// The cluster.
    pub cluster: Arc<Cluster>,
    /// The namespace of the release.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether the namespace is made if it is not there.
    pub create_namespace: bool,
    /// How many revisions are kept; 0 keeps all.
    pub history_max: usize,
    /// What is done after a failure.
    pub on_failure: OnFailure,
    /// How long objects, and each hook, are waited for.
    pub timeout: Duration,
    /// Whether the first object that failed ends the wait.
    pub fail_fast: bool,
    /// Whether fields of other managers are taken over.
    pub force: bool,
    /// Whether objects of others are taken over.
    pub adopt: bool,
    /// Calls the work off.
    pub token: CancellationToken,
}

/// What is done after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Nothing: the failed revision stays for a look.
    #[default]
    Keep,
    /// The last revision that was deployed is deployed again; a first installation is uninstalled.
    Rollback,
    /// The release is uninstalled.
    Uninstall,
}

/// What hears of news.
pub(crate) type Tell<'a> = &'a (dyn Fn(ReleaseNews<'_>) + Sync);

impl ReleaseTarget {
    pub(crate) async fn make_namespace(&self) -> Result<(), ClusterError> {
        let kind = Resource::without_namespace("v1", "Namespace", "namespaces");
        if !self.create_namespace
            || self
                .cluster
                .read(&kind, "", &self.namespace)
                .await?
                .is_some()
        {
            return Ok(());
        }
        // The label is Helm's.
        let object = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self.namespace, "labels": {"name": self.namespace}},
        });
        let options = ApplyOptions {
            manager: MANAGER,
            force: false,
            dry_run: false,
        };
        self.cluster
            .apply(&kind, &object, options)
            .await
            .map(|_| ())
    }

    /// Does work unless it is called off before.
    pub(crate) async fn unless_cancelled<T>(
        &self,
        work: impl Future<Output = Result<T, HelmReleaseError>>,
    ) -> Result<T, HelmReleaseError> {
        tokio::select! {
            done = work => done,
            () = self.token.cancelled() => Err(HelmReleaseError::Cancelled),
        }
    }
}
