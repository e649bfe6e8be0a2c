//! The command line: global options and the list of commands.

mod later;

use clap::{Parser, Subcommand};

pub(crate) use later::Later;

#[cfg(feature = "store")]
use crate::commands::store::ServerStoreArgs;
#[cfg(feature = "fleet")]
use crate::commands::{agent::AgentArgs, fleet::FleetArgs, serve::ServeArgs};
use crate::commands::{
    audit::AuditArgs, build::BuildArgs, cache::CacheArgs, completions::CompletionsArgs,
    diff::DiffArgs, explain::ExplainArgs, fetch::FetchArgs, get::GetArgs, helm::HelmArgs,
    kustomize::KustomizeArgs, man::ManArgs, template::TemplateArgs, test::TestArgs,
    version::VersionArgs, watch::WatchArgs, yaml::YamlArgs,
};
#[cfg(feature = "rollout")]
use crate::commands::{crds::CrdsArgs, operator::OperatorArgs, rollout::RolloutArgs};
#[cfg(feature = "ship")]
use crate::commands::{events::EventsArgs, ship::DevArgs, ship::ShipArgs};
use crate::printer::OutputOptions;

/// Take what a Git repository declares all the way to where it runs
#[derive(Debug, Parser)]
#[command(
    name = "portolan",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make this machine a node of a fleet, and stay connected to a server
    #[cfg(feature = "fleet")]
    Agent(Later<AgentArgs>),
    /// Find deprecated and removed Kubernetes APIs
    Audit(Later<AuditArgs>),
    /// Print the objects that a Flux repository declares
    Build(Later<BuildArgs>),
    /// Show what was fetched before, and make room
    Cache(Later<CacheArgs>),
    /// Print the completion script of a shell
    Completions(Later<CompletionsArgs>),
    /// Print the definitions of Portolan's own kinds
    #[cfg(feature = "rollout")]
    Crds(Later<CrdsArgs>),
    /// Build and deploy again whenever a file is saved, and follow the logs and ports of the pods
    #[cfg(feature = "ship")]
    Dev(Later<DevArgs>),
    /// Show what a change of a Flux repository would change in its clusters
    Diff(Later<DiffArgs>),
    /// Print what happened in a run of `ship`, also while it goes on
    #[cfg(feature = "ship")]
    Events(Later<EventsArgs>),
    /// Say which file, patch, value or substitution produced an object or a field
    Explain(Later<ExplainArgs>),
    /// Fetch and pin every remote source and chart that a Flux repository needs
    Fetch(Later<FetchArgs>),
    /// Read and write the objects of a Portolan server, and run TaskBooks
    #[cfg(feature = "fleet")]
    Fleet(Later<FleetArgs>),
    /// Show what a Flux repository holds
    Get(Later<GetArgs>),
    /// Render and check Helm charts
    Helm(Later<HelmArgs>),
    /// Build kustomize overlays
    Kustomize(Later<KustomizeArgs>),
    /// Write the manual pages, one file per command
    Man(Later<ManArgs>),
    /// Carry out the rollouts of a cluster
    #[cfg(feature = "rollout")]
    Operator(Later<OperatorArgs>),
    /// Judge canaries by measurement, look after them, and convert those of other tools
    #[cfg(feature = "rollout")]
    Rollout(Later<RolloutArgs>),
    /// Serve the objects of the control plane
    #[cfg(feature = "fleet")]
    Serve(Later<ServeArgs>),
    /// Build the artifacts of a project into images and deploy them, one result for each
    #[cfg(feature = "ship")]
    Ship(Later<ShipArgs>),
    /// Back up, restore, check, compact and move the store of a server
    #[cfg(feature = "store")]
    Store(Later<ServerStoreArgs>),
    /// Execute a Go template with the functions of sprig and Helm
    Template(Later<TemplateArgs>),
    /// Check that a Flux repository builds, and that a cluster would accept it
    Test(Later<TestArgs>),
    /// Print the version
    Version(Later<VersionArgs>),
    /// Render again whenever a file is saved, and show what changed
    Watch(Later<WatchArgs>),
    /// Read and print YAML exactly as Go's libraries do
    Yaml(Later<YamlArgs>),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_list_of_commands_tells_what_each_tells_of_itself() {
        let mut described = Cli::command();
        described.build();
        for listed in Cli::command().get_subcommands() {
            let name = listed.get_name();
            let own = described.find_subcommand(name).expect("it is listed");
            let texts = [listed, own].map(|command| command.get_about().map(ToString::to_string));
            assert_eq!(texts[0], texts[1], "`{name}`");
        }
    }

    #[test]
    fn every_option_stands_under_a_heading() {
        let mut cli = Cli::command();
        cli.build();
        let mut queue = vec![cli];
        while let Some(command) = queue.pop() {
            queue.extend(command.get_subcommands().cloned());
            let listed = command.get_arguments();
            let listed = listed.filter(|one| !one.is_positional() && !one.is_hide_set());
            // `--help` and `--version` are clap's own.
            let bare = listed.filter(|one| one.get_help_heading().is_none());
            let bare: Vec<&str> = bare.map(|one| one.get_id().as_str()).collect();
            let (name, own) = (command.get_name(), ["help", "version"]);
            assert!(
                bare.iter().all(|option| own.contains(option)),
                "`{name}`: {bare:?}"
            );
        }
    }

    #[test]
    fn every_command_shows_an_example() {
        let mut cli = Cli::command();
        cli.build();
        let mut queue = vec![cli];
        while let Some(command) = queue.pop() {
            let leaf = command.get_subcommands().next().is_none();
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                !leaf || help.contains("Examples:\n  portolan "),
                "`{}` has no example",
                command.get_name()
            );
            queue.extend(command.get_subcommands().cloned());
        }
    }
}
