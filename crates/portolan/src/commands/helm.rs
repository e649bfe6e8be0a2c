//! `portolan helm`: charts rendered and checked without Helm.

mod access_options;
mod chart_options;
mod dependency;
mod install_options;
mod lint;
mod pull;
mod template;

use super::CommandResult;
use crate::printer::Printer;

/// Render and check Helm charts
#[derive(Debug, clap::Args)]
pub(crate) struct HelmArgs {
    #[command(subcommand)]
    command: HelmCommand,
}

#[derive(Debug, clap::Subcommand)]
enum HelmCommand {
    Dependency(dependency::DependencyArgs),
    Lint(lint::LintArgs),
    Pull(pull::PullArgs),
    Template(Box<template::TemplateArgs>),
}

pub(crate) fn helm(args: &HelmArgs, printer: &Printer) -> CommandResult {
    match &args.command {
        HelmCommand::Dependency(args) => dependency::dependency(args, printer),
        HelmCommand::Lint(args) => lint::lint(args, printer),
        HelmCommand::Pull(args) => pull::pull(args, printer),
        HelmCommand::Template(args) => template::template(args, printer),
    }
}
