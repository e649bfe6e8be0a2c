//! `portolan rollout promote`, `abort` and the other one-shot commands: each writes a token that the operator acts on once.

use std::time::SystemTime;

use portolan_rollout::{ANNOTATION_PREFIX, Command};
use serde_json::json;

use super::cluster_args::OneArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::exit::ExitStatus;

/// One rollout to tell something.
#[derive(Debug, clap::Args)]
pub(crate) struct CommandArgs {
    #[command(flatten)]
    one: OneArgs,

    /// The text of the token; the same text is acted on once. The time when it is not given
    #[arg(long, value_name = "TEXT", help_heading = "Token")]
    token: Option<String>,
}

pub(crate) fn command(args: &CommandArgs, command: Command, app: &App) -> CommandResult {
    let printer = &app.printer;
    let token = args.token.clone().unwrap_or_else(now);
    let found = app.runtime()?.block_on(async {
        let found = args.one.find().await?;
        let annotation = format!("{ANNOTATION_PREFIX}{command}");
        found
            .merge(&json!({"metadata": {"annotations": {annotation: token}}}))
            .await?;
        Ok::<_, crate::error::CommandError>(found)
    })?;
    let (namespace, name) = (&found.namespace, &found.name);
    printer.say_unless_quiet(&format!(
        "{namespace}/{name}: {command} was asked for; `portolan rollout explain {namespace}/{name}` tells what came of it"
    ));
    Ok(ExitStatus::Clean)
}

/// A text that was never used before.
pub(super) fn now() -> String {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let time = portolan_rollout::Time::from_unix(i64::try_from(since.as_secs()).unwrap_or(0));
    format!("{time}-{:09}", since.subsec_nanos())
}
