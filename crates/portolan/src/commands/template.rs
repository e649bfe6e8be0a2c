//! `portolan template`: executes one Go template with the functions of sprig and Helm.

mod execute;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_gotmpl::{MissingKey, Value};
use portolan_helm::values::Tree;

use super::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;
use crate::limit_args::LimitArgs;
use crate::printer::Printer;
use crate::random_args::RandomArgs;
use execute::execute;

/// Execute a Go template with the functions of sprig and Helm
///
/// The values are seen as `.Values`, as in a chart. Random functions, keys and the clock follow from the file's name, so
/// that equal input gives equal output; --live-random makes them real. The exit code is 1 when the template is refused
/// or fails.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan template page.tmpl --values values.yaml
  echo '{{ .Values.name | upper }}' | portolan template - --values values.yaml
  portolan template page.tmpl --include _helpers.tpl --missing-key error")]
pub(crate) struct TemplateArgs {
    /// The template; `-` is standard input
    #[arg(value_name = "FILE")]
    file: Utf8PathBuf,

    /// A YAML file with values; may be repeated, later files win
    #[arg(short = 'f', long, value_name = "FILE", help_heading = "Input")]
    values: Vec<Utf8PathBuf>,

    /// A file whose definitions the template can include; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    include: Vec<Utf8PathBuf>,

    /// What a missing map key evaluates to
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "zero",
        help_heading = "Input"
    )]
    missing_key: MissingKeyName,

    /// Delimiters other than `{{` and `}}`
    #[arg(long, num_args = 2, value_names = ["LEFT", "RIGHT"], help_heading = "Input")]
    delimiters: Vec<String>,

    #[command(flatten)]
    random: RandomArgs,

    #[command(flatten)]
    limit: LimitArgs,
}

/// What a missing map key evaluates to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MissingKeyName {
    /// `<no value>`
    Default,
    /// Nothing, as in a chart
    Zero,
    /// An error
    Error,
}

pub(crate) fn template(args: &TemplateArgs, printer: &Printer) -> CommandResult {
    let input = Input::read(&args.file)?;
    let dot = Value::map(
        [("Values".into(), read_values(&args.values)?)]
            .into_iter()
            .collect(),
    );
    match execute(args, &input, dot) {
        Ok(output) => {
            printer.data(output)?;
            Ok(ExitStatus::Clean)
        }
        Err(refusal) => {
            refusal.tell(&input, printer);
            Ok(ExitStatus::Findings)
        }
    }
}

fn read_values(files: &[Utf8PathBuf]) -> Result<Value, CommandError> {
    let mut values = Tree::empty_table();
    for file in files {
        values = values.overlay(&read_table(file)?);
    }
    Ok(values.thaw())
}

fn read_table(file: &Utf8Path) -> Result<Tree, CommandError> {
    let input = Input::read(file)?;
    Tree::read_table(&input.bytes).map_err(|reason| {
        CommandError::usage(format!("cannot read `{}` as values: {reason}", input.name))
    })
}

impl From<MissingKeyName> for MissingKey {
    fn from(name: MissingKeyName) -> Self {
        match name {
            MissingKeyName::Default => Self::Invalid,
            MissingKeyName::Zero => Self::Zero,
            MissingKeyName::Error => Self::Error,
        }
    }
}
