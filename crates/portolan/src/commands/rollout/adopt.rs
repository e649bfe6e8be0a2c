//! `portolan rollout adopt`: the rollout that takes over a running Deployment.

use portolan_canary::adopt as adopted;
use portolan_cluster::Resource;

use super::cluster_args::{ClusterArgs, refused};
use super::convert::as_yaml;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Print the rollout that takes a running Deployment over, and the steps without an outage
///
/// Nothing is changed: the object is printed, to be looked at and applied.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout adopt deployment/web
  portolan rollout adopt deployment/web -n shop > icd.yaml")]
pub(crate) struct AdoptArgs {
    /// The Deployment, as in deployment/NAME
    #[arg(value_name = "deployment/NAME")]
    deployment: String,

    /// Its namespace; that of the context when it is not given
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    namespace: Option<String>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) fn adopt(args: &AdoptArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let kinds = ["deployment/", "deployments/", "deploy/"];
    let Some(name) = kinds
        .iter()
        .find_map(|kind| args.deployment.strip_prefix(kind))
    else {
        return Err(
            CommandError::usage(format!("`{}` is no Deployment", args.deployment)).hint(
                "only Deployments can be taken over: `portolan rollout adopt deployment/NAME`",
            ),
        );
    };
    let conversion = app.runtime()?.block_on(async {
        let cluster = args.cluster.connect().await?;
        let namespace = args.namespace.clone();
        let namespace = namespace.unwrap_or_else(|| cluster.default_namespace().to_owned());
        let deployments = Resource::in_namespaces("apps/v1", "Deployment", "deployments");
        let deployment = cluster
            .read(&deployments, &namespace, name)
            .await
            .map_err(refused)?;
        let deployment = deployment.ok_or_else(|| {
            CommandError::usage(format!(
                "there is no Deployment `{name}` in namespace `{namespace}`"
            ))
        })?;
        let mut services = Vec::new();
        let query = Resource::in_namespaces("v1", "Service", "services").query(Some(&namespace));
        let listed = cluster
            .list_whole(&query, |service| services.push(service))
            .await;
        listed.map_err(refused)?;
        Ok::<_, CommandError>(adopted(&deployment, &services))
    })?;
    printer.data(as_yaml(&conversion)?)?;
    Ok(ExitStatus::Clean)
}
