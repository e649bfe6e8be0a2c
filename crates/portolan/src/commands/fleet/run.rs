//! `portolan fleet run`: a book, carried out on the nodes of a server, or on this machine.

mod inputs;
mod local;
mod matrix;
mod plan_file;
mod remote;
mod screen;
mod upload;

use camino::Utf8PathBuf;

use super::connection::ConnectionArgs;
use super::lint::TagArgs;
use super::object_args::NamespaceArgs;
use crate::app::App;
use crate::commands::CommandResult;

pub(super) use remote::{RunShow, follow_run, status, wait_for_run};
pub(super) use screen::RunScreen;

/// Run a TaskBook on the nodes of a server, or on this machine
///
/// BOOK is a TaskBook of the server; `-f` sends one from a file instead. The book says on which nodes it runs; `-l` and
/// `--nodes` can only narrow that. Every step is looked at first and does only what is missing. `--check` says what would
/// change and changes nothing. Ctrl-C leaves the run alone: `portolan fleet runs cancel` ends it.
///
/// `--check --plan-out` writes the plan of a check, and `--apply-plan` does exactly that within an hour: a node that is not
/// as the check found it is left alone and fails, and a plan of other nodes, variables or steps is refused.
///
/// With `--local`, the book runs on this machine without a server; with `--root`, a directory stands for `/`. A local run
/// that was killed goes on when the same command is given again.
///
/// The exit code is 0 if every node is as it should be, 1 if one failed, was not reached or is unknown, or a check found
/// changes, and 2 if nothing was begun.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet run web --check
  portolan fleet run web -l zone=a --input version=1.4.2 -o json
  portolan fleet run -f book.yaml --nodes web-1,web-2
  portolan fleet run web --check --plan-out plan.json
  portolan fleet run --apply-plan plan.json
  portolan fleet run -f book.yaml --local --root ./image --tags users
  portolan fleet run -f book.yaml --local --input-file token=./token.txt")]
pub(crate) struct RunArgs {
    /// The TaskBook on the server
    #[arg(
        value_name = "BOOK",
        required_unless_present_any = ["file", "apply_plan"],
        conflicts_with_all = ["file", "local"]
    )]
    book: Option<String>,

    /// A book in a file; `-` is standard input
    #[arg(short, long = "filename", value_name = "FILE", help_heading = "Input")]
    file: Option<Utf8PathBuf>,

    /// Run on this machine, without a server
    #[arg(long, requires = "file", help_heading = "Local run")]
    local: bool,

    /// Directory that stands for `/`
    #[arg(
        long,
        value_name = "DIR",
        requires = "local",
        help_heading = "Local run"
    )]
    root: Option<Utf8PathBuf>,

    /// Where programs of steps run below --root: `start` starts them there, `chroot` confines them
    #[arg(
        long,
        value_name = "HOW",
        default_value = "start",
        requires = "root",
        help_heading = "Local run"
    )]
    root_exec: RootExec,

    /// Put a damaged journal aside and begin a new one, after you looked at the node
    #[arg(long, requires = "local", help_heading = "Local run")]
    acknowledge_damage: bool,

    /// Value of an input of the book
    #[arg(long = "input", value_name = "NAME=VALUE", help_heading = "Input")]
    inputs: Vec<String>,

    /// Value of an input, read from a file; for secrets, which must not be arguments
    #[arg(long = "input-file", value_name = "NAME=FILE", help_heading = "Input")]
    input_files: Vec<String>,

    #[command(flatten)]
    tags: TagArgs,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Only nodes of the book's target with these labels, as in `role=web,zone in (a,b)`
    #[arg(
        short = 'l',
        long,
        value_name = "SELECTOR",
        conflicts_with = "local",
        help_heading = "Selection"
    )]
    selector: Option<String>,

    /// Only these nodes of the book's target
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        conflicts_with = "local",
        help_heading = "Selection"
    )]
    nodes: Vec<String>,

    /// Say what would change, and change nothing
    #[arg(long, help_heading = "Run")]
    check: bool,

    /// Write what a check found, with digests, to a file
    #[arg(long, value_name = "FILE", requires = "check", help_heading = "Run")]
    plan_out: Option<Utf8PathBuf>,

    /// Run a book that is not as its commit in git has it; the run is marked
    #[arg(
        long,
        requires = "file",
        conflicts_with = "local",
        help_heading = "Run"
    )]
    allow_dirty: bool,

    /// Do what a plan that --plan-out wrote says, and nothing else
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["book", "file", "local", "check", "selector", "nodes"],
        help_heading = "Run"
    )]
    apply_plan: Option<Utf8PathBuf>,

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

    /// For tests: kills this process at a record of the journal, as in `3:before` or `3:after`
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, value_name = "RECORD")]
    kill_at: Option<String>,
}

/// What programs of steps see below another root directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum RootExec {
    /// They start in the directory and can leave it
    Start,
    /// The directory is their root
    Chroot,
}

/// The forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum RunFormat {
    /// A line for each step, failures last
    Text,
    /// `{"run", "state", "nodes": [{"name", "state", "steps": […]}]}`
    Json,
}

pub(crate) fn run(args: &RunArgs, app: &App) -> CommandResult {
    match (&args.file, args.local) {
        (Some(file), true) => local::run(args, file, app),
        _ => remote::run(args, app),
    }
}
