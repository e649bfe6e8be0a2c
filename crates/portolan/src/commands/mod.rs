//! One file per command: its arguments, and a function that calls a library and prints.

pub(crate) mod audit;
pub(crate) mod build;
pub(crate) mod cache;
pub(crate) mod completions;
#[cfg(feature = "rollout")]
pub(crate) mod crds;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod fetch;
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
pub(crate) mod template;
pub(crate) mod test;
pub(crate) mod version;
pub(crate) mod watch;
pub(crate) mod yaml;

use crate::cli::Command;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// How every command ends.
pub(crate) type CommandResult = Result<ExitStatus, CommandError>;

/// Runs the command that was asked for.
pub(crate) fn run(command: Command, printer: &Printer) -> CommandResult {
    match command {
        Command::Audit(args) => audit::audit(&args, printer),
        Command::Build(args) => build::build(&args, printer),
        Command::Cache(args) => cache::cache(&args, printer),
        Command::Completions(args) => completions::completions(&args, printer),
        #[cfg(feature = "rollout")]
        Command::Crds(args) => crds::crds(&args, printer),
        Command::Diff(args) => diff::diff(&args, printer),
        Command::Explain(args) => explain::explain(&args, printer),
        Command::Fetch(args) => fetch::fetch(&args, printer),
        Command::Get(args) => get::get(&args, printer),
        Command::Helm(args) => helm::helm(&args, printer),
        Command::Kustomize(args) => kustomize::kustomize(&args, printer),
        Command::Man(args) => man::man(&args, printer),
        #[cfg(feature = "rollout")]
        Command::Operator(args) => operator::operator(&args, printer),
        #[cfg(feature = "rollout")]
        Command::Rollout(args) => rollout::rollout(&args, printer),
        Command::Template(args) => template::template(&args, printer),
        Command::Test(args) => test::test(&args, printer),
        Command::Version(args) => version::version(&args, printer),
        Command::Watch(args) => watch::watch(&args, printer),
        Command::Yaml(args) => yaml::yaml(&args, printer),
    }
}
