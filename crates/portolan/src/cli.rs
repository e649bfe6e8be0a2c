//! The command line: global options and the list of commands.

use clap::{Parser, Subcommand};

use crate::commands::{
    audit::AuditArgs, build::BuildArgs, completions::CompletionsArgs, diff::DiffArgs,
    explain::ExplainArgs, fetch::FetchArgs, get::GetArgs, helm::HelmArgs, kustomize::KustomizeArgs,
    man::ManArgs, template::TemplateArgs, test::TestArgs, version::VersionArgs, watch::WatchArgs,
    yaml::YamlArgs,
};
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
    Audit(Box<AuditArgs>),
    Build(BuildArgs),
    Completions(CompletionsArgs),
    Diff(Box<DiffArgs>),
    Explain(ExplainArgs),
    Fetch(FetchArgs),
    Get(GetArgs),
    Helm(Box<HelmArgs>),
    Kustomize(KustomizeArgs),
    Man(ManArgs),
    Template(TemplateArgs),
    Test(TestArgs),
    Version(VersionArgs),
    Watch(WatchArgs),
    Yaml(YamlArgs),
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
    fn every_command_shows_an_example() {
        let mut queue = vec![Cli::command()];
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
