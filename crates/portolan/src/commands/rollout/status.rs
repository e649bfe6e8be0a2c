//! `portolan rollout status`: whether the newest revision succeeded, for scripts.

use std::time::{Duration, Instant};

use portolan_canary::{RevisionWait, Rollout, Standing, explain};
use portolan_object::API_VERSION;
use serde_json::json;

use super::cluster_args::{Found, OneArgs};
use super::output_args::{Format, OutputArgs};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Say whether the newest revision made it
///
/// Without --wait the exit code is 0 when the rollout is stable or in progress, 1 when the newest revision was rolled
/// back, and 2 when that cannot be found out. With --wait it is 0 when the newest revision was promoted (the answer says
/// if that is unproven), 1 when it was rolled back, taken back or replaced by another, and 2 when the time is over or it
/// cannot be found out.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout status web
  portolan rollout status shop/web --wait --timeout 3600
  portolan rollout status web --wait -o json")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    one: OneArgs,

    /// Wait until the newest revision is promoted or refused
    #[arg(long, help_heading = "Waiting")]
    wait: bool,

    /// How long to wait, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 7_200,
        requires = "wait",
        help_heading = "Waiting"
    )]
    timeout: u64,

    #[command(flatten)]
    output: OutputArgs,
}

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);

pub(crate) fn status(args: &StatusArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let (rollout, standing) = app.runtime()?.block_on(look(args))?;
    match args.output.format {
        Format::Json => printer.data(as_json(&rollout, &standing))?,
        Format::Table => {
            let lines = explain(&rollout).join("\n");
            printer.data(format!(
                "{}/{}: {}\n{lines}\n",
                rollout.namespace,
                rollout.name,
                standing.reason()
            ))?;
        }
    }
    match (&standing, args.wait) {
        (Standing::Refused(_), _) => Ok(ExitStatus::Findings),
        (Standing::Stable { .. }, _) | (Standing::InProgress, false) => Ok(ExitStatus::Clean),
        (Standing::NotSeen, false) if rollout.status.is_some() => Ok(ExitStatus::Clean),
        (Standing::NotSeen, _) => Err(CommandError::usage("no operator has seen it")
            .hint("is `portolan operator` running, and does it watch this namespace?")),
        (Standing::InProgress, true) => Err(CommandError::usage(format!(
            "not decided after {} seconds",
            args.timeout
        ))),
    }
}

async fn look(args: &StatusArgs) -> Result<(Rollout, Standing), CommandError> {
    let found = args.one.find().await?;
    if !args.wait {
        let rollout = found.rollout().await?;
        let standing = Standing::of(&rollout);
        return Ok((rollout, standing));
    }
    wait(&found, Duration::from_secs(args.timeout)).await
}

/// Looks until the revision that was the newest at first is decided, or the time is over.
async fn wait(found: &Found, timeout: Duration) -> Result<(Rollout, Standing), CommandError> {
    let started = Instant::now();
    let mut awaited = RevisionWait::default();
    loop {
        let rollout = found.rollout().await?;
        let standing = awaited.look(&rollout);
        if standing.is_final() || started.elapsed() >= timeout {
            return Ok((rollout, standing));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn as_json(rollout: &Rollout, standing: &Standing) -> String {
    let status = rollout.status.as_ref();
    let document = json!({
        "apiVersion": API_VERSION,
        "kind": "RolloutStatus",
        "namespace": rollout.namespace,
        "name": rollout.name,
        "reason": standing.reason(),
        "phase": status.map(|status| status.phase),
        "weight": status.map(|status| status.weight),
        "hold": status.and_then(|status| status.hold.as_ref()),
        "revision": status.and_then(|status| status.target.as_ref()),
        "evidence": status.map(portolan_rollout::Status::evidence),
    });
    format!("{document:#}\n")
}
