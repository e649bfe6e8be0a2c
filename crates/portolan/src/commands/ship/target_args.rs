//! The arguments that name the cluster that is deployed to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use portolan_cluster::kube::config::Kubeconfig;
use portolan_cluster::{Access, Cluster};
use portolan_ship::{Ship, choose_context};

use super::project_args::{NamespaceArgs, Place};
use crate::error::CommandError;

/// Which cluster.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct TargetArgs {
    /// Kubeconfig; without it `KUBECONFIG`, `~/.kube/config` and the pod's service account are tried
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig; it must be named here or in the document unless the cluster is on this machine
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Seconds that one answer of the API server may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    request_timeout: u64,

    #[command(flatten)]
    namespace: NamespaceArgs,
}

impl TargetArgs {
    /// Which cluster, and as whom.
    pub(super) fn access(&self, ship: &Ship) -> Result<Access, CommandError> {
        Ok(Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.check(ship)?,
            plugin_runner: std::env::current_exe().ok(),
        })
    }

    pub(super) async fn connect(&self, ship: &Ship) -> Result<Cluster, CommandError> {
        let access = self.access(ship)?;
        let cluster = Cluster::connect(&access)
            .await
            .map_err(CommandError::user)?;
        Ok(cluster.with_patience(Duration::from_secs(self.request_timeout)))
    }

    /// The context to use; one that nobody chose is refused.
    fn check(&self, ship: &Ship) -> Result<Option<String>, CommandError> {
        let current = current_context(self.kubeconfig.as_deref());
        let chosen = choose_context(ship, self.context.as_deref(), current.as_deref());
        chosen.map_err(|error| {
            let refused = CommandError::usage(error.to_string());
            match error.hint() {
                Some(hint) => refused.hint(hint),
                None => refused,
            }
        })
    }

    /// The context that is named, or the current one, and the namespace that is named.
    pub(super) fn place(&self) -> Place {
        let current = || current_context(self.kubeconfig.as_deref());
        Place {
            context: self.context.clone().or_else(current),
            namespace: self.namespace(),
        }
    }

    /// The namespace that is named.
    pub(super) fn namespace(&self) -> Option<String> {
        self.namespace.namespace.clone()
    }
}

/// The current context of a kubeconfig; of the usual one if none is named.
pub(super) fn current_context(kubeconfig: Option<&Path>) -> Option<String> {
    let file = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    file.ok()?.current_context
}
