//! Which cluster and which rollouts to use, and how they are read.

use std::path::PathBuf;
use std::time::Duration;

use portolan_canary::Rollout;
use portolan_cluster::{Access, Cluster, ClusterError, ErrorKind, Resource};
use portolan_rollout::{API_VERSION, KIND};
use serde_json::Value;

use crate::error::CommandError;

/// Who changes objects, as the cluster keeps it.
pub(super) const MANAGER: &str = "portolan-cli";

/// Which cluster.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct ClusterArgs {
    /// The kubeconfig; without it `KUBECONFIG`, `~/.kube/config` and the pod's service account are tried
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// How long one answer of the API server may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    request_timeout: u64,
}

/// One rollout.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct OneArgs {
    /// The rollout, as in NAME or NAMESPACE/NAME
    #[arg(value_name = "NAME")]
    name: String,

    /// Its namespace; that of the context when it is not given
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    namespace: Option<String>,

    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
}

/// A rollout in its cluster.
pub(super) struct Found {
    pub(super) cluster: Cluster,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl ClusterArgs {
    pub(super) async fn connect(&self) -> Result<Cluster, CommandError> {
        let access = Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            plugin_runner: std::env::current_exe().ok(),
        };
        let cluster = Cluster::connect(&access).await.map_err(refused)?;
        Ok(cluster.with_patience(Duration::from_secs(self.request_timeout)))
    }
}

impl OneArgs {
    /// Connects; nothing is read yet.
    pub(super) async fn find(&self) -> Result<Found, CommandError> {
        let cluster = self.cluster.connect().await?;
        let kindless = self.name.strip_prefix("icd/").unwrap_or(&self.name);
        let (namespace, name) = match kindless.split_once('/') {
            Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
            None => {
                let namespace = self.namespace.clone();
                let namespace = namespace.unwrap_or_else(|| cluster.default_namespace().to_owned());
                (namespace, kindless.to_owned())
            }
        };
        Ok(Found {
            cluster,
            namespace,
            name,
        })
    }
}

impl Found {
    /// Reads the object as it is.
    pub(super) async fn object(&self) -> Result<Value, CommandError> {
        let found = self
            .cluster
            .read(&resource(), &self.namespace, &self.name)
            .await;
        found.map_err(refused)?.ok_or_else(|| {
            CommandError::usage(format!(
                "there is no {KIND} `{}` in namespace `{}`",
                self.name, self.namespace
            ))
            .hint("`portolan rollout list -A` shows all of them")
        })
    }

    /// Reads the object with its status.
    pub(super) async fn rollout(&self) -> Result<Rollout, CommandError> {
        Rollout::read(&self.object().await?).map_err(CommandError::user)
    }

    /// Merges a patch into the object.
    pub(super) async fn merge(&self, patch: &Value) -> Result<(), CommandError> {
        match self.merged(patch).await {
            Ok(()) => Ok(()),
            Err(error) if error.is_missing() => self.object().await.map(drop),
            Err(error) => Err(refused(error)),
        }
    }

    /// Merges a patch that holds for one version of the object; says whether it still was that one.
    pub(super) async fn merge_version(&self, patch: &Value) -> Result<bool, CommandError> {
        match self.merged(patch).await {
            Ok(()) => Ok(true),
            Err(ClusterError::Outdated { .. }) => Ok(false),
            Err(error) => Err(refused(error)),
        }
    }

    async fn merged(&self, patch: &Value) -> Result<(), ClusterError> {
        let place = (self.namespace.as_str(), self.name.as_str());
        let merged = self.cluster.merge(&resource(), place, patch, MANAGER).await;
        merged.map(drop)
    }
}

/// The kind in a cluster.
pub(super) fn resource() -> Resource {
    Resource::in_namespaces(API_VERSION, KIND, "istiocanarydeployments")
}

/// What a cluster did not do, with what to do about it.
pub(super) fn refused(error: ClusterError) -> CommandError {
    let hint = match error.kind() {
        ErrorKind::Config => {
            "name a kubeconfig with --kubeconfig, or a context of it with --context"
        }
        ErrorKind::Unreachable => {
            "is the cluster up, and can it be reached from here? --context chooses another"
        }
        ErrorKind::Unauthorized => {
            "the credentials of the kubeconfig are not accepted, or no longer: log in again"
        }
        ErrorKind::Timeout => "--request-timeout gives it longer",
        ErrorKind::Other if error.is_missing() => {
            "the cluster does not know the kind: `portolan crds | kubectl apply --server-side -f -` defines it"
        }
        _ => return CommandError::user(error),
    };
    CommandError::user(error).hint(hint)
}
