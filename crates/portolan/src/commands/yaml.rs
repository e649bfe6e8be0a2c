//! `portolan yaml`: how Go's libraries read and print a file.

mod check;
mod fmt;
mod to_json;

use camino::Utf8PathBuf;
use portolan_yaml::{Dialect, Errors, Node, WriteError};

use super::CommandResult;
use crate::app::App;
use crate::diagnostic::{Diagnostic, Place};
use crate::exit::ExitStatus;
use crate::input::Input;
use crate::printer::Printer;

/// Read and print YAML exactly as Go's libraries do
#[derive(Debug, clap::Args)]
pub(crate) struct YamlArgs {
    #[command(subcommand)]
    command: YamlCommand,
}

#[derive(Debug, clap::Subcommand)]
enum YamlCommand {
    Check(check::CheckArgs),
    Fmt(fmt::FmtArgs),
    ToJson(to_json::ToJsonArgs),
}

/// Whose reading of YAML counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DialectName {
    /// YAML 1.1 as go-yaml v2 reads it: `yes` is a boolean, only the first document counts
    Helm,
    /// As kustomize's fork of go-yaml v3 reads it: `yes` is text, repeated keys are errors
    Kustomize,
}

/// The files of a subcommand.
#[derive(Debug, clap::Args)]
struct Files {
    /// Files to read; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    files: Vec<Utf8PathBuf>,
}

/// Why a file gives no answer.
#[derive(Debug)]
enum Problem {
    /// It cannot be read as YAML.
    Read(Errors),
    /// What was read cannot be printed.
    Write(WriteError),
}

pub(crate) fn yaml(args: &YamlArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    match &args.command {
        YamlCommand::Check(args) => check::check(args, app),
        YamlCommand::Fmt(args) => fmt::fmt(args, printer),
        YamlCommand::ToJson(args) => to_json::to_json(args, printer),
    }
}

/// Prints what `convert` makes of each file, and every problem at its place.
fn convert_files(
    files: &Files,
    printer: &Printer,
    convert: impl Fn(&[u8]) -> Result<String, Problem>,
) -> CommandResult {
    let mut status = ExitStatus::Clean;
    for file in &files.files {
        let input = Input::read(file)?;
        match convert(&input.bytes) {
            Ok(text) => printer.data(text)?,
            Err(problem) => {
                report(&input, &problem, printer);
                status = ExitStatus::Findings;
            }
        }
    }
    Ok(status)
}

/// The documents that count: Helm reads the first only, kustomize all of them.
fn documents(bytes: &[u8], dialect: DialectName) -> Result<Vec<Node>, Problem> {
    match dialect {
        DialectName::Helm => Ok(vec![portolan_yaml::parse_one_bytes(bytes, Dialect::Helm)?]),
        DialectName::Kustomize => Ok(portolan_yaml::parse_bytes(bytes, Dialect::Kustomize)?),
    }
}

/// Draws every error of a file at its place.
fn report(input: &Input, problem: &Problem, printer: &Printer) {
    match problem {
        Problem::Read(errors) => {
            let text = String::from_utf8_lossy(&input.bytes);
            for error in errors {
                let (line, column) = (error.at.line as usize, error.at.column as usize);
                let place = Place {
                    file: &input.name,
                    text: &text,
                    line,
                    column,
                };
                draw(printer, error.message.clone(), (line > 0).then_some(place));
            }
        }
        Problem::Write(error) => draw(printer, format!("{}: {error}", input.name), None),
    }
}

fn draw(printer: &Printer, message: String, place: Option<Place<'_>>) {
    let hints = Vec::new();
    printer.diagnostic(&Diagnostic {
        message,
        place,
        hints,
    });
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::Helm => Self::Helm,
            DialectName::Kustomize => Self::Kustomize,
        }
    }
}

impl From<Errors> for Problem {
    fn from(errors: Errors) -> Self {
        Self::Read(errors)
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}
