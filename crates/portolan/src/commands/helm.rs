//! `portolan helm`: charts rendered and checked without Helm.

mod access_options;
mod chart_options;
mod cluster_options;
mod dependency;
mod go_flags;
mod install_options;
mod lint;
mod pull;
mod schemas;
mod template;
mod template_files;

use super::CommandResult;
use crate::app::App;
use crate::cli::Later;

/// Render and check Helm charts
#[derive(Debug, clap::Args)]
pub(crate) struct HelmArgs {
    #[command(subcommand)]
    command: HelmCommand,
}

#[derive(Debug, clap::Subcommand)]
enum HelmCommand {
    /// Work with the charts that a chart depends on
    Dependency(Later<dependency::DependencyArgs>),
    /// Check that a chart renders and reads every value it is given
    Lint(Later<lint::LintArgs>),
    /// Fetch a chart into a directory
    Pull(Later<pull::PullArgs>),
    /// Render a chart and print its manifests
    Template(Later<template::TemplateArgs>),
}

pub(crate) fn helm(args: &HelmArgs, app: &App) -> CommandResult {
    match &args.command {
        HelmCommand::Dependency(args) => dependency::dependency(args, app),
        HelmCommand::Lint(args) => lint::lint(args, &app.printer),
        HelmCommand::Pull(args) => pull::pull(args, app),
        HelmCommand::Template(args) => template::template(args, app),
    }
}
