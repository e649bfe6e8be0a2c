//! `portolan rollout list`: every rollout of a namespace or a cluster.

use portolan_canary::{Rollout, Standing};
use portolan_cluster::TOO_DEEP;
use portolan_cluster::kube::core::DynamicObject;
use portolan_yaml::{Node, from_json};
use serde_json::json;

use super::cluster_args::{ClusterArgs, refused, resource};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::{Column, Entry, Format, Listing};
use crate::table::Cell;

/// List rollouts with where they stand
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout list
  portolan rollout list -A -l team=shop
  portolan rollout list -o name")]
pub(crate) struct ListArgs {
    /// Only this namespace; that of the context when it is not given
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    namespace: Option<String>,

    /// In all namespaces
    #[arg(
        short = 'A',
        long,
        conflicts_with = "namespace",
        help_heading = "Selection"
    )]
    all_namespaces: bool,

    /// Only rollouts with these labels, as in `app=web,tier!=test`
    #[arg(
        short = 'l',
        long,
        value_name = "SELECTOR",
        default_value = "",
        hide_default_value = true,
        help_heading = "Selection"
    )]
    selector: String,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: Format,

    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) fn list(args: &ListArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let objects = app.runtime()?.block_on(read(args))?;
    let mut listing = Listing::new(
        "RolloutList",
        vec![
            Column::Always("NAMESPACE"),
            Column::Always("NAME"),
            Column::Always("PHASE"),
            Column::Always("WEIGHT"),
            Column::Roomy("WAITING"),
            Column::Wide("STABLE"),
            Column::Wide("NEW"),
        ],
    )
    .otherwise("no rollouts found");
    let mut status = ExitStatus::Clean;
    for object in &objects {
        let read = rollout(object);
        match read {
            Ok(rollout) => listing.push(entry(&rollout)?),
            Err(error) => {
                printer.warning(&error);
                status = ExitStatus::Failure;
            }
        }
    }
    listing.print(args.output, printer)?;
    Ok(status)
}

fn rollout(object: &DynamicObject) -> Result<Rollout, String> {
    if object.data.get(TOO_DEEP).is_some() {
        let metadata = &object.metadata;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let (namespace, name) = (text(&metadata.namespace), text(&metadata.name));
        return Err(format!(
            "{namespace}/{name} is not listed: its fields are nested too deep to be read; delete it, or write it anew"
        ));
    }
    let object = serde_json::to_value(object).map_err(|error| error.to_string())?;
    Rollout::read(&object).map_err(|error| error.to_string())
}

async fn read(args: &ListArgs) -> Result<Vec<DynamicObject>, CommandError> {
    let cluster = args.cluster.connect().await?;
    let namespace = match &args.namespace {
        _ if args.all_namespaces => None,
        Some(namespace) => Some(namespace.as_str()),
        None => Some(cluster.default_namespace()),
    };
    let mut query = resource().query(namespace);
    query.labels.clone_from(&args.selector);
    let mut objects = Vec::new();
    let listed = cluster
        .list_shallow(&query, |object| objects.push(object))
        .await;
    listed.map_err(refused)?;
    Ok(objects)
}

fn entry(rollout: &Rollout) -> Result<Entry, CommandError> {
    let status = rollout.status.as_ref();
    let phase = status.map_or_else(|| "-".to_owned(), |status| status.phase.to_string());
    let weight = status.map_or(0, |status| status.weight);
    let hold = status.and_then(|status| status.hold.as_ref());
    let hold = hold.map_or("", |hold| hold.reason.name());
    let stable = status.and_then(|status| status.stable.as_ref());
    let stable = stable
        .map(|stable| stable.revision.as_str())
        .unwrap_or_default();
    let new = status.and_then(|status| status.canary.as_deref());
    let new = new
        .map(|canary| canary.revision.as_str())
        .unwrap_or_default();
    let record = json!({
        "namespace": rollout.namespace,
        "name": rollout.name,
        "phase": phase,
        "reason": Standing::of(rollout).reason(),
        "weight": weight,
        "hold": hold,
        "stable": stable,
        "new": new,
    });
    let record: Node = from_json(&record.to_string()).map_err(CommandError::user)?;
    Ok(Entry {
        cells: vec![
            rollout.namespace.as_str().into(),
            Cell::name(rollout.name.as_str()),
            phase.as_str().into(),
            format!("{weight} %").as_str().into(),
            hold.into(),
            stable.into(),
            new.into(),
        ],
        record,
        name: format!("istiocanarydeployment.portolan.dev/{}", rollout.name),
    })
}
