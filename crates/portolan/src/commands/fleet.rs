//! `portolan fleet`: the objects of a Portolan server, and TaskBooks.

mod apply;
mod auth;
mod beacons;
mod bootstrap;
mod compliance;
mod connection;
mod convert;
mod cron;
mod delete;
mod describe;
mod diff;
mod documents;
mod edit;
mod events;
mod exec;
mod explain;
mod get;
mod history;
mod join_token;
mod lint;
mod login;
mod logs;
mod nodes;
mod object_args;
mod run;
mod runs;
mod sandbox;
mod shares;
mod shown;
mod status;
mod triggers;
mod vars;
mod watch;
mod why;

use super::CommandResult;
use crate::app::App;
use crate::cli::Later;

/// Read and write the objects of a Portolan server, and run TaskBooks
///
/// The server, token and authority come from --server, --token-file and --ca-file, from `PORTOLAN_SERVER`, `PORTOLAN_TOKEN_FILE` and
/// `PORTOLAN_CA_FILE`, or from the context that `portolan fleet login` wrote.
#[derive(Debug, clap::Args)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, clap::Subcommand)]
enum FleetCommand {
    /// Create objects from files, or bring them to what the files say
    Apply(Later<apply::ApplyArgs>),
    /// Ask what you may do, and make tokens and certificates
    Auth(Later<auth::AuthArgs>),
    /// List what beacons see on each node
    Beacons(Later<beacons::BeaconsArgs>),
    /// Make a machine that you reach by SSH a node
    Bootstrap(Later<bootstrap::BootstrapArgs>),
    /// Print how far nodes are as their books say, and what is missing
    Compliance(Later<compliance::ComplianceArgs>),
    /// Convert a playbook of Ansible into a TaskBook
    Convert(Later<convert::ConvertArgs>),
    /// List CronJobs with their last and next slots
    Cron(Later<cron::CronArgs>),
    /// Delete objects
    Delete(Later<delete::DeleteArgs>),
    /// Print everything about objects, with their last changes
    Describe(Later<describe::DescribeArgs>),
    /// Show what an apply would change
    Diff(Later<diff::DiffArgs>),
    /// Change an object in an editor
    Edit(Later<edit::EditArgs>),
    /// Print events, and follow them as they happen
    Events(Later<events::EventsArgs>),
    /// Run a single command on nodes, and print what it prints
    Exec(Later<exec::ExecArgs>),
    /// Print the documentation of a kind or a field
    Explain(Later<explain::ExplainArgs>),
    /// List objects, or print them
    Get(Later<get::GetArgs>),
    /// Print who changed an object, when and what
    History(Later<history::HistoryArgs>),
    /// Make, list and end tokens that machines become nodes with
    JoinToken(Later<join_token::JoinTokenArgs>),
    /// Check TaskBooks without running them
    Lint(Later<lint::LintArgs>),
    /// Remember a server, a token and an authority
    Login(Later<login::LoginArgs>),
    /// Print what became of the steps of a run
    Logs(Later<logs::LogsArgs>),
    /// List nodes, approve machines that want to be nodes, label nodes, and remove them
    Nodes(Later<nodes::NodesArgs>),
    /// Run a TaskBook on the nodes of a server, or on this machine
    Run(Later<run::RunArgs>),
    /// List runs, end them, and let stalled ones go on
    Runs(Later<runs::RunsArgs>),
    /// Start a server and some nodes on this machine, to try things
    Sandbox(Later<sandbox::SandboxArgs>),
    /// List what nodes give to each other
    Shares(Later<shares::SharesArgs>),
    /// Print the state of the server
    Status(Later<status::StatusArgs>),
    /// List Triggers, and ask what they would do about an event
    Triggers(Later<triggers::TriggersArgs>),
    /// Explain the variables of nodes
    Vars(Later<vars::VarsArgs>),
    /// Print changes of objects as they happen
    Watch(Later<watch::WatchArgs>),
    /// Explain why a run, a node or a step is as it is
    Why(Later<why::WhyArgs>),
}

pub(crate) fn fleet(args: &FleetArgs, app: &App) -> CommandResult {
    match &args.command {
        FleetCommand::Apply(args) => apply::apply(args, app),
        FleetCommand::Auth(args) => auth::auth(args, app),
        FleetCommand::Beacons(args) => beacons::beacons(args, app),
        FleetCommand::Bootstrap(args) => bootstrap::bootstrap(args, app),
        FleetCommand::Compliance(args) => compliance::compliance(args, app),
        FleetCommand::Convert(args) => convert::convert(args, app),
        FleetCommand::Cron(args) => cron::cron(args, app),
        FleetCommand::Delete(args) => delete::delete(args, app),
        FleetCommand::Describe(args) => describe::describe(args, app),
        FleetCommand::Diff(args) => diff::diff(args, app),
        FleetCommand::Edit(args) => edit::edit(args, app),
        FleetCommand::Events(args) => events::events(args, app),
        FleetCommand::Exec(args) => exec::exec(args, app),
        FleetCommand::Explain(args) => explain::explain(args, &app.printer),
        FleetCommand::Get(args) => get::get(args, app),
        FleetCommand::History(args) => history::history(args, app),
        FleetCommand::JoinToken(args) => join_token::join_token(args, app),
        FleetCommand::Lint(args) => lint::lint(args, app),
        FleetCommand::Login(args) => login::login(args, app),
        FleetCommand::Logs(args) => logs::logs(args, app),
        FleetCommand::Nodes(args) => nodes::nodes(args, app),
        FleetCommand::Run(args) => run::run(args, app),
        FleetCommand::Runs(args) => runs::runs(args, app),
        FleetCommand::Sandbox(args) => sandbox::sandbox(args, app),
        FleetCommand::Shares(args) => shares::shares(args, app),
        FleetCommand::Status(args) => status::status(args, app),
        FleetCommand::Triggers(args) => triggers::triggers(args, app),
        FleetCommand::Vars(args) => vars::vars(args, app),
        FleetCommand::Watch(args) => watch::watch(args, app),
        FleetCommand::Why(args) => why::why(args, app),
    }
}
