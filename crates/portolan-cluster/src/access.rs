//! Which cluster to use: a kubeconfig and its context, or the service account of the pod that Portolan runs in.

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use portolan_engine::{causes, with_causes};

use crate::error::ClusterError;

/// Which cluster, and as whom.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// A kubeconfig file; without it `KUBECONFIG`, `~/.kube/config` and the pod's service account are tried.
    pub kubeconfig: Option<std::path::PathBuf>,
    /// A context of the kubeconfig; the current one without it.
    pub context: Option<String>,
    /// A binary that calls [`crate::run_plugin`] when its first argument is [`crate::RUN_PLUGIN`]: programs that the
    /// kubeconfig names for credentials are run by it, under limits. Without it they are run as they are.
    pub plugin_runner: Option<std::path::PathBuf>,
}

pub(crate) async fn config(access: &Access) -> Result<kube::Config, ClusterError> {
    if access.kubeconfig.is_none() && access.context.is_none() {
        let inferred = kube::Config::infer().await;
        return inferred.map_err(|error| match cause(&error) {
            Some(KubeconfigError::ReadConfig(..) | KubeconfigError::FindPath) => nothing(),
            Some(error) => refused(error, &[]),
            None => ClusterError::Config(with_causes(&error)),
        });
    }
    let file = match &access.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let file = file.map_err(|error| refused(&error, &[]))?;
    let contexts: Vec<String> = file
        .contexts
        .iter()
        .map(|named| named.name.clone())
        .collect();
    let options = KubeConfigOptions {
        context: access.context.clone(),
        ..KubeConfigOptions::default()
    };
    kube::Config::from_custom_kubeconfig(file, &options)
        .await
        .map_err(|error| refused(&error, &contexts))
}

fn cause<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a KubeconfigError> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

fn nothing() -> ClusterError {
    let places =
        "neither `KUBECONFIG` nor `~/.kube/config` leads to a kubeconfig, and this is not a pod";
    ClusterError::Config(places.to_owned())
}

/// Tells why a kubeconfig cannot be used, without a word of the file but names.
fn refused(error: &KubeconfigError, contexts: &[String]) -> ClusterError {
    let text = match error {
        KubeconfigError::Parse(error) => {
            let place = place(&error.to_string());
            return ClusterError::Kubeconfig { place };
        }
        KubeconfigError::ReadConfig(error, path) => {
            format!("cannot read the kubeconfig `{}`: {error}", path.display())
        }
        KubeconfigError::CurrentContextNotSet => {
            format!("the kubeconfig has no current context{}", listed(contexts))
        }
        KubeconfigError::LoadContext(name) => {
            format!("the kubeconfig has no context `{name}`{}", listed(contexts))
        }
        KubeconfigError::LoadClusterOfContext(name) => {
            format!("the context means the cluster `{name}`, which the kubeconfig does not have")
        }
        other => with_causes(other),
    };
    ClusterError::Config(text)
}

fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!("; there are {}", names.join(", ")),
    }
}

/// The line that a parser names, in words.
fn place(text: &str) -> String {
    let named = text.split_once("line ").map(|(_, rest)| rest);
    let digits = named.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    match digits {
        Some(line) if !line.is_empty() => format!(", at line {line}"),
        _ => String::new(),
    }
}
