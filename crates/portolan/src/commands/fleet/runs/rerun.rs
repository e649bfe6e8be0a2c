//! `portolan fleet runs rerun`: a new run of what a run was made from.

use std::time::{SystemTime, UNIX_EPOCH};

use camino::Utf8Path;
use portolan_server::{FleetMethod, request_key};
use serde_json::{Map, Value, json};

use super::run_path;
use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::fleet::connection::{ConnectionArgs, told};
use crate::commands::fleet::object_args::NamespaceArgs;
use crate::commands::fleet::run::{RunFormat, RunShow, follow_run};
use crate::error::CommandError;
use crate::input::Input;

/// Make a new run of what a run was made from
///
/// The new run has the same book and files, inputs, tags and nodes, also if the book on the server has changed. Nodes are
/// looked at anew, and only what is missing is done. Secret inputs are not kept: give them again by --input-file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet runs rerun web-20261118-010203-4f1c
  portolan fleet runs rerun web-20261118-010203-4f1c --failed -o json")]
pub(super) struct RerunArgs {
    /// The run to repeat
    #[arg(value_name = "RUN")]
    run: String,

    /// Only nodes that failed, were not reached, are unknown or were not begun
    #[arg(long, help_heading = "Selection")]
    failed: bool,

    /// Value of an input, read from a file; for secrets, which must not be arguments
    #[arg(long = "input-file", value_name = "NAME=FILE", help_heading = "Input")]
    input_files: Vec<String>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: RunFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn rerun(args: &RerunArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let body = json!({
        "onlyFailed": args.failed, "inputs": inputs(args, app)?, "dedupeKey": request_key(now.unwrap_or_default()),
    });
    let path = format!("{}/rerun", run_path(&args.namespace, &args.run));
    let body = body.to_string();
    let asked = client.request(FleetMethod::Post, &path, &[], Some(&body));
    let made = app.wait(asked)?.map_err(told)?;
    let show = RunShow {
        namespace: args.namespace.namespace.clone(),
        is_check: made["spec"]["mode"] == "check",
        format: args.output,
    };
    follow_run(client, &made, &show, app)
}

fn inputs(args: &RerunArgs, app: &App) -> Result<Map<String, Value>, CommandError> {
    let mut given = Map::new();
    for text in &args.input_files {
        let split = text.split_once('=');
        let (name, path) =
            split.ok_or_else(|| CommandError::usage(format!("`{text}` is not NAME=FILE")))?;
        let content = String::from_utf8(Input::read(Utf8Path::new(path))?.bytes);
        let content = content.map_err(|_| CommandError::usage(format!("`{path}` is not UTF-8")))?;
        let content = content.strip_suffix('\n').unwrap_or(&content);
        app.printer.secrets().add_text(name, content);
        given.insert(name.to_owned(), Value::from(content));
    }
    Ok(given)
}
