//! `portolan fleet exec`: a single command on nodes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portolan_fleet::{NodePart, RunReport};
use portolan_server::FleetMethod;
use serde_json::{Value, json};

use super::connection::{ConnectionArgs, told};
use super::object_args::NamespaceArgs;
use super::run::{status, wait_for_run};
use crate::app::App;
use crate::commands::CommandResult;
use crate::exit::ExitStatus;

/// Run a single command on nodes, and print what it prints
///
/// The caller needs the right `exec` for Runs of the namespace, and the agents must have been started with `--allow-exec`: whoever
/// may do this is root on the nodes. Only nodes that the namespace may target are reached. The command is written to the audit
/// log, and its run can be read again with `portolan fleet logs`; 64 KiB of each output are kept. It is started as it is, without a
/// shell. Equal outputs are printed once.
///
/// The exit code is 0 if the command ended with 0 on every node, and 1 otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet exec --nodes web-1,web-2 -- uptime
  portolan fleet exec -l role=db -n shop --timeout 300 -- sh -c 'df -h /var | tail -1'
  portolan fleet exec -l role=db -o json -- systemctl is-active postgresql")]
pub(crate) struct ExecArgs {
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<String>,

    /// Nodes by name
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        required_unless_present = "selector",
        help_heading = "Selection"
    )]
    nodes: Vec<String>,

    /// Nodes with these labels, as in `role=web,zone in (a,b)`
    #[arg(short = 'l', long, value_name = "SELECTOR", help_heading = "Selection")]
    selector: Option<String>,

    /// How long the command may take, in seconds, at most an hour
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        help_heading = "Run"
    )]
    timeout: u32,

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
    output: ExecFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of a command on nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExecFormat {
    /// The nodes, then what the command printed there
    Text,
    /// `[{"node", "state", "output", "error"?}]`
    Json,
}

pub(crate) fn exec(args: &ExecArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let namespace = &args.namespace.namespace;
    let mut body = json!({
        "command": args.command, "nodes": args.nodes, "timeoutSeconds": args.timeout,
    });
    if let Some(selector) = &args.selector {
        body["selector"] = selector.as_str().into();
    }
    let path = format!("/api/v1alpha/namespaces/{namespace}/exec");
    let body = body.to_string();
    let asked = client.request(FleetMethod::Post, &path, &[], Some(&body));
    let made = app.wait(asked)?.map_err(told)?;
    let Some(report) = wait_for_run(client, &made, namespace, app)? else {
        return Ok(ExitStatus::Interrupted);
    };
    let text = match args.output {
        ExecFormat::Text => text(&report),
        ExecFormat::Json => format!("{:#}\n", json(&report)),
    };
    app.printer.data(text)?;
    Ok(status(&report, false))
}

/// What the command printed on a node, and why it failed there.
fn output(node: &NodePart) -> (String, Option<String>) {
    let printed = node.steps.iter().find(|step| step.name == "output");
    let printed = printed
        .map(|step| step.notes.join("\n"))
        .unwrap_or_default();
    let failed = node.steps.iter().find_map(|step| step.error.as_ref());
    let why = failed.map(|error| error.message.clone());
    (printed, why.or_else(|| node.stopped.clone()))
}

fn text(report: &RunReport) -> String {
    let mut same: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    for node in &report.nodes {
        let (printed, why) = output(node);
        let why = why.unwrap_or_else(|| match node.state.as_str() {
            "changed" => "exit code 0".to_owned(),
            state => state.to_owned(),
        });
        same.entry((why, printed)).or_default().push(&node.name);
    }
    let mut text = String::new();
    for ((why, printed), nodes) in same {
        let _ = writeln!(text, "{}: {why}", nodes.join(", "));
        for line in printed.trim_end().lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

fn json(report: &RunReport) -> Value {
    let nodes = report.nodes.iter().map(|node| {
        let (printed, why) = output(node);
        let mut value = json!({"node": node.name, "state": node.state, "output": printed});
        if let Some(why) = why {
            value["error"] = why.into();
        }
        value
    });
    nodes.collect()
}
