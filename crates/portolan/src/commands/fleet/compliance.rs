//! `portolan fleet compliance`: how far nodes are as their books say.

use std::collections::BTreeMap;

use portolan_fleet::{ComplianceRun, RunReport};
use portolan_kinds::find_kind;
use portolan_server::{FleetClient, FleetMethod, ObjectPath};
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::object_args::NamespaceArgs;
use super::runs::{order_in_time, run_path};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};

/// How many runs of a book are looked at: some have a part of its nodes.
const RUNS_OF_BOOK: usize = 10;

/// Print how far nodes are as their books say, and what is missing
///
/// Every node gets a number: how many of its steps, of a hundred, the newest runs of its books found or made as they should be. In a
/// check, what would change is missing. `portolan fleet run BOOK --check` makes new evidence and changes nothing.
///
/// The exit code is 0 if nothing is missing anywhere, and 1 otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet compliance
  portolan fleet compliance web base -n shop
  portolan fleet compliance --node web-3 -o json")]
pub(crate) struct ComplianceArgs {
    /// Only these TaskBooks
    #[arg(value_name = "BOOK")]
    books: Vec<String>,

    /// Only these nodes
    #[arg(
        long = "node",
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Selection"
    )]
    nodes: Vec<String>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: ComplianceFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of compliance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ComplianceFormat {
    /// Columns
    Table,
    /// `[{"node", "percent", "right", "all", "missing": […]}]`
    Json,
}

pub(crate) fn compliance(args: &ComplianceArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let runs = newest_runs(args, &client, app)?;
    let mut found = portolan_fleet::compliance(&runs);
    found.retain(|node| args.nodes.is_empty() || args.nodes.contains(&node.node));
    let is_right = found.iter().all(|node| node.missing.is_empty());
    match args.output {
        ComplianceFormat::Json => {
            let all = found.iter().map(portolan_fleet::NodeCompliance::to_json);
            let all: Value = all.collect();
            app.printer.data(format!("{all:#}\n"))?;
        }
        ComplianceFormat::Table => {
            let mut table = Table::new(["NODE", "COMPLIANCE", "STEPS", "MISSING"]);
            for node in &found {
                table.push(vec![
                    Cell::name(node.node.clone()),
                    Cell::from(format!("{} %", node.percent())),
                    Cell::from(format!("{}/{}", node.right, node.all)),
                    Cell::from(node.missing.join("; ")),
                ]);
            }
            app.printer.data(table.render(app.printer.canvas()))?;
        }
    }
    Ok(if is_right {
        ExitStatus::Clean
    } else {
        ExitStatus::Findings
    })
}

/// The newest runs of each book that have ended, the newest first.
fn newest_runs(
    args: &ComplianceArgs,
    client: &FleetClient,
    app: &App,
) -> Result<Vec<ComplianceRun>, CommandError> {
    let kind = find_kind("Run").ok_or_else(|| CommandError::usage("there is no kind Run"))?;
    let path = ObjectPath {
        kind,
        namespace: Some(args.namespace.namespace.clone()),
        name: None,
    };
    let (mut items, _) = app.wait(client.list(&path, &[]))?.map_err(told)?;
    items.sort_by_key(|run| std::cmp::Reverse(order_in_time(run)));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut runs = Vec::new();
    for item in &items {
        let book = shown::text(item, "spec.book");
        let phase = shown::text(item, "status.phase");
        let is_wanted = args.books.is_empty() || args.books.contains(&book);
        // A single command says nothing about what a node should be.
        let is_evidence = matches!(phase.as_str(), "succeeded" | "failed") && book != "exec";
        let count = counts.entry(book.clone()).or_default();
        if !is_wanted || !is_evidence || *count >= RUNS_OF_BOOK {
            continue;
        }
        *count += 1;
        let name = shown::text(item, "metadata.name");
        let route = format!("{}/nodes", run_path(&args.namespace, &name));
        let asked = client.request(FleetMethod::Get, &route, &[], None);
        let found = app.wait(asked)?.map_err(told)?;
        let unknown = || CommandError::usage("the server answers in a way that is not known here");
        runs.push(ComplianceRun {
            is_check: shown::text(item, "spec.mode") == "check",
            report: RunReport::read(&found).ok_or_else(unknown)?,
            book,
        });
    }
    Ok(runs)
}
