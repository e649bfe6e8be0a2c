//! `portolan rollout restart`, `set image` and `release`: changes of the object that a user asks for.

use portolan_canary::Rollout;
use portolan_rollout::Phase;
use serde_json::{Value, json};

use super::cluster_args::{Found, OneArgs, refused, resource};
use super::command::now;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// How often an object is read again that somebody else changed.
const ATTEMPTS: usize = 10;

/// Start all pods again, as a new revision that is judged like any other
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout restart web")]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    one: OneArgs,
}

/// Change something of the pod template
#[derive(Debug, clap::Args)]
pub(crate) struct SetArgs {
    #[command(subcommand)]
    command: SetCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SetCommand {
    /// Change images of containers, which starts a rollout
    Image(SetImageArgs),
}

/// Change images of containers, which starts a rollout
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout set image web app=registry.example.com/web:1.2.3")]
struct SetImageArgs {
    #[command(flatten)]
    one: OneArgs,

    /// Containers with their images, as in CONTAINER=IMAGE
    #[arg(value_name = "CONTAINER=IMAGE", required = true)]
    images: Vec<String>,
}

/// Let the operator go of an application, which keeps running
///
/// The `IstioCanaryDeployment` is deleted; its Deployments, Services and routes stay as they are and belong to nobody.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout release web")]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    one: OneArgs,
}

pub(crate) fn restart(args: &RestartArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let found = app.runtime()?.block_on(async {
        let found = args.one.find().await?;
        own_template(&found).await?;
        let annotations = json!({"portolan.dev/restarted-at": now()});
        let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
        found.merge(&patch).await?;
        Ok::<_, CommandError>(found)
    })?;
    printer.say_unless_quiet(&format!(
        "{}/{}: its pods are started again as a new revision",
        found.namespace, found.name
    ));
    Ok(ExitStatus::Clean)
}

pub(crate) fn set(args: &SetArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let SetCommand::Image(args) = &args.command;
    let found = app.runtime()?.block_on(async {
        let found = args.one.find().await?;
        // The operator writes the status while it works, and each time the version is another.
        for _ in 0..ATTEMPTS {
            let mut object = own_template(&found).await?;
            for image in &args.images {
                set_image(&mut object, image)?;
            }
            // With the resource version: lists are replaced whole, and nobody else's change may be lost.
            let patch = json!({
                "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]},
                "spec": {"template": {"spec": {
                    "containers": object["spec"]["template"]["spec"]["containers"],
                }}},
            });
            if found.merge_version(&patch).await? {
                return Ok(found);
            }
        }
        Err(CommandError::usage(format!(
            "{}/{} is changed all the time: nothing was written",
            found.namespace, found.name
        ))
        .hint("try again"))
    })?;
    printer.say_unless_quiet(&format!(
        "{}/{}: images changed",
        found.namespace, found.name
    ));
    Ok(ExitStatus::Clean)
}

pub(crate) fn release(args: &ReleaseArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let found = app.runtime()?.block_on(async {
        let found = args.one.find().await?;
        let object = found.object().await?;
        let rollout = Rollout::read(&object).map_err(CommandError::user)?;
        // Also while a command that would end it is still to be seen by the operator.
        let phase = rollout.status.as_ref().map(|status| status.phase);
        if phase.is_some_and(|phase| !matches!(phase, Phase::Stable | Phase::RolledBack)) {
            return Err(CommandError::usage(
                "a rollout is in progress, and its traffic would stay split",
            )
            .hint("end it with `portolan rollout abort` or `promote`, then release it"));
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let place = (found.namespace.as_str(), found.name.as_str());
        found
            .cluster
            .release(&resource(), place, uid)
            .await
            .map_err(refused)?;
        Ok(found)
    })?;
    printer.say_unless_quiet(&format!(
        "{}/{}: released; its Deployments, Services and routes run on",
        found.namespace, found.name
    ));
    Ok(ExitStatus::Clean)
}

/// Reads the object; refuses one whose pod template is another object's.
async fn own_template(found: &Found) -> Result<Value, CommandError> {
    let object = found.object().await?;
    match object["spec"]["workloadRef"]["name"].as_str() {
        None => Ok(object),
        Some(name) => Err(CommandError::usage(format!(
            "its pod template is that of Deployment `{name}`"
        ))
        .hint(format!("change that one: `kubectl set image deployment/{name} …`, `kubectl rollout restart deployment/{name}`"))),
    }
}

fn set_image(object: &mut Value, image: &str) -> Result<(), CommandError> {
    let Some((name, image)) = image
        .split_once('=')
        .filter(|(name, image)| !name.is_empty() && !image.is_empty())
    else {
        return Err(CommandError::usage(format!(
            "`{image}` is not CONTAINER=IMAGE"
        )));
    };
    let containers = object
        .pointer_mut("/spec/template/spec/containers")
        .and_then(Value::as_array_mut);
    let mut containers = containers.into_iter().flatten();
    match containers.find(|container| container["name"] == name) {
        Some(container) => {
            container["image"] = json!(image);
            Ok(())
        }
        None => Err(CommandError::usage(format!("it has no container `{name}`"))),
    }
}
