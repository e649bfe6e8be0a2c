//! Which cluster is deployed to. A context that nobody named is refused unless it is one of this machine.

use std::path::PathBuf;
use std::time::Duration;

use portolan_cluster::kube::config::Kubeconfig;
use portolan_cluster::{Access, Cluster};
use portolan_ship::Ship;

use crate::error::CommandError;

/// How the names of contexts begin that clusters on this machine have.
const LOCAL: [&str; 4] = ["kind-", "k3d-", "minikube", "docker-desktop"];

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
}

impl TargetArgs {
    pub(super) async fn connect(&self, ship: &Ship) -> Result<Cluster, CommandError> {
        let context = self.check(ship)?;
        let access = Access {
            kubeconfig: self.kubeconfig.clone(),
            context,
            plugin_runner: std::env::current_exe().ok(),
        };
        let cluster = Cluster::connect(&access)
            .await
            .map_err(CommandError::user)?;
        Ok(cluster.with_patience(Duration::from_secs(self.request_timeout)))
    }

    /// The context to use; one that nobody chose is refused.
    fn check(&self, ship: &Ship) -> Result<Option<String>, CommandError> {
        let named: Vec<&str> = ship
            .deploy
            .iter()
            .filter_map(|step| step.context.as_deref())
            .collect();
        let chosen = self.context.clone().or_else(|| self.current());
        for step in &ship.deploy {
            if let (Some(meant), Some(chosen)) = (&step.context, &chosen)
                && self.context.is_some()
                && meant != chosen
            {
                let name = &step.name;
                return Err(CommandError::usage(format!(
                    "the step `{name}` is meant for the context `{meant}`, not `{chosen}`"
                )));
            }
        }
        if self.context.is_some() {
            return Ok(self.context.clone());
        }
        if let [first, rest @ ..] = named.as_slice()
            && named.len() == ship.deploy.len()
            && rest.iter().all(|other| other == first)
        {
            return Ok(Some((*first).to_owned()));
        }
        match chosen {
            Some(chosen) if !LOCAL.iter().any(|local| chosen.starts_with(local)) => {
                let error = CommandError::usage(format!(
                    "the current context `{chosen}` is named by nobody, and no cluster of this machine"
                ));
                Err(error.hint(format!("`--context {chosen}` deploys there; `context` of a step in the document allows it for good")))
            }
            chosen => Ok(chosen),
        }
    }

    fn current(&self) -> Option<String> {
        let file = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        file.ok()?.current_context
    }
}
