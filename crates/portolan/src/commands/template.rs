//! `portolan template`: executes one Go template with the functions of sprig and Helm.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_gotmpl::{
    Executor, Limits, MissingKey, Options, TemplateSet, TextParser, Value, clean_output,
    exec_message, helm_functions, parse_message,
};
use portolan_helm::values::Tree;

use super::CommandResult;
use crate::diagnostic::{Diagnostic, Place};
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;
use crate::limit_args::LimitArgs;
use crate::printer::Printer;
use crate::random_args::{CommandHost, RandomArgs};

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

/// Why a template gave nothing, and the line that is to blame.
struct Refusal {
    message: String,
    line: usize,
    column: usize,
}

impl Refusal {
    fn tell(&self, input: &Input, printer: &Printer) {
        let text = String::from_utf8_lossy(&input.bytes);
        let (line, column) = (self.line, self.column);
        let place = Place {
            file: &input.name,
            text: &text,
            line,
            column,
        };
        let place = (line > 0).then_some(place);
        printer.diagnostic(&Diagnostic {
            message: self.message.clone(),
            place,
            hints: Vec::new(),
        });
    }
}

fn execute(args: &TemplateArgs, input: &Input, dot: Value) -> Result<String, Refusal> {
    let limits = Limits::default();
    let mut parser = TextParser::new(Arc::new(helm_functions()), limits.parse_depth);
    if let [left, right] = args.delimiters.as_slice() {
        parser = parser.with_delimiters(left, right);
    }
    let mut set = TemplateSet::default();
    for file in &args.include {
        let helper = Input::read(file).map_err(|error| Refusal::outside(&error))?;
        add(&mut set, &parser, &helper).map_err(|mut refusal| {
            refusal.line = 0;
            refusal
        })?;
    }
    add(&mut set, &parser, input)?;
    let options = Options {
        missing_key: args.missing_key.into(),
        ..Options::default()
    };
    let outside = |error: CommandError| Refusal::outside(&error);
    let mut host = CommandHost::new(&input.name, args.random).map_err(outside)?;
    let mut executor =
        Executor::new(&set, &parser, options, &limits, &mut host).with_budget(args.limit.budget());
    let output = executor.execute(&input.name, dot).map_err(|error| {
        let own = error
            .place
            .as_ref()
            .filter(|place| place.file == input.name);
        let (line, column) = own.map_or((0, 0), |place| (place.line, place.column + 1));
        Refusal {
            message: exec_message(&error),
            line,
            column,
        }
    })?;
    host.check().map_err(outside)?;
    Ok(if args.missing_key == MissingKeyName::Zero {
        clean_output(output)
    } else {
        output
    })
}

fn add(set: &mut TemplateSet, parser: &TextParser, input: &Input) -> Result<(), Refusal> {
    let parsed = parser
        .parse(&input.name, &String::from_utf8_lossy(&input.bytes))
        .map_err(|error| Refusal {
            message: parse_message(&error),
            line: error.line,
            column: 1,
        })?;
    set.add(&parsed);
    Ok(())
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

impl Refusal {
    fn outside(error: &CommandError) -> Self {
        Self {
            message: format!("{:#}", error.source),
            line: 0,
            column: 0,
        }
    }
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
