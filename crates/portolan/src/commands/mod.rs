//! One file per command: its arguments, and a function that calls a library and prints.

#[cfg(feature = "fleet")]
pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod build;
pub(crate) mod cache;
pub(crate) mod completions;
#[cfg(feature = "rollout")]
pub(crate) mod crds;
pub(crate) mod diff;
#[cfg(feature = "ship")]
pub(crate) mod events;
#[cfg(any(feature = "cluster", feature = "rollout", feature = "ship"))]
pub(crate) mod events_args;
pub(crate) mod explain;
pub(crate) mod fetch;
#[cfg(feature = "fleet")]
pub(crate) mod fleet;
pub(crate) mod get;
pub(crate) mod helm;
pub(crate) mod kustomize;
pub(crate) mod man;
#[cfg(feature = "rollout")]
pub(crate) mod operator;
#[cfg(feature = "rollout")]
pub(crate) mod prometheus_args;
#[cfg(feature = "rollout")]
pub(crate) mod rollout;
#[cfg(feature = "fleet")]
pub(crate) mod serve;
#[cfg(feature = "ship")]
pub(crate) mod ship;
#[cfg(feature = "store")]
pub(crate) mod store;
pub(crate) mod template;
pub(crate) mod test;
pub(crate) mod version;
pub(crate) mod watch;
pub(crate) mod yaml;

use crate::app::App;
use crate::cli::Command;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// How every command ends.
pub(crate) type CommandResult = Result<ExitStatus, CommandError>;

/// Runs the command that was asked for.
pub(crate) fn run(command: Command, app: &App) -> CommandResult {
    match command {
        #[cfg(feature = "fleet")]
        Command::Agent(args) => agent::agent(&args, app),
        Command::Audit(args) => audit::audit(&args, app),
        Command::Build(args) => build::build(&args, app),
        Command::Cache(args) => cache::cache(&args, &app.printer),
        Command::Completions(args) => completions::completions(&args, &app.printer),
        #[cfg(feature = "rollout")]
        Command::Crds(args) => crds::crds(&args, &app.printer),
        #[cfg(feature = "ship")]
        Command::Dev(args) => ship::dev(&args, app),
        Command::Diff(args) => diff::diff(&args, app),
        #[cfg(feature = "ship")]
        Command::Events(args) => events::events(&args, app),
        Command::Explain(args) => explain::explain(&args, app),
        Command::Fetch(args) => fetch::fetch(&args, app),
        #[cfg(feature = "fleet")]
        Command::Fleet(args) => fleet::fleet(&args, app),
        Command::Get(args) => get::get(&args, app),
        Command::Helm(args) => helm::helm(&args, app),
        Command::Kustomize(args) => kustomize::kustomize(&args, app),
        Command::Man(args) => man::man(&args, &app.printer),
        #[cfg(feature = "rollout")]
        Command::Operator(args) => operator::operator(&args, app),
        #[cfg(feature = "rollout")]
        Command::Rollout(args) => rollout::rollout(&args, app),
        #[cfg(feature = "fleet")]
        Command::Serve(args) => serve::serve(&args, app),
        #[cfg(feature = "ship")]
        Command::Ship(args) => ship::ship(&args, app),
        #[cfg(feature = "store")]
        Command::Store(args) => store::store(&args, app),
        Command::Template(args) => template::template(&args, &app.printer),
        Command::Test(args) => test::test(&args, app),
        Command::Version(args) => version::version(&args, &app.printer),
        Command::Watch(args) => watch::watch(&args, app),
        Command::Yaml(args) => yaml::yaml(&args, app),
    }
}
