//! `portolan helm lint`: checks whether a chart renders, and whether it reads the given values.

use camino::Utf8PathBuf;
use portolan_helm::{Profile, Release, TemplateInput, unread_values};

use super::chart_options::{ChartOptions, load_chart};
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Check that a chart renders and reads every value it is given
///
/// A value is reported when changing it changes nothing the chart prints: a spelling mistake, a key of another version
/// of the chart, or one below the wrong parent.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan helm lint ./charts/web -f values.yaml")]
pub(crate) struct LintArgs {
    /// The chart: a directory or an archive
    chart: Utf8PathBuf,

    #[command(flatten)]
    options: ChartOptions,

    /// The namespace of the release
    #[arg(short, long, default_value = "default", help_heading = "Release")]
    namespace: String,

    /// The release's name
    #[arg(long, default_value = "release-name", help_heading = "Release")]
    name: String,
}

pub(crate) fn lint(args: &LintArgs, printer: &Printer) -> CommandResult {
    let chart = load_chart(&args.chart)?;
    let input = TemplateInput {
        values: args.options.merged_values()?,
        capabilities: args.options.capabilities(Profile::Helm3)?,
        skip_schema_validation: args.options.skip_schema_validation,
        ..TemplateInput::new(Release::new(args.name.as_str(), args.namespace.as_str()))
    };
    portolan_helm::template(&chart, &input).map_err(CommandError::user)?;
    let unread = unread_values(&chart, &input).map_err(CommandError::user)?;
    for path in &unread {
        printer.data(format!("{path}: the chart never reads this value\n"))?;
    }
    Ok(if unread.is_empty() {
        ExitStatus::Clean
    } else {
        ExitStatus::Findings
    })
}
