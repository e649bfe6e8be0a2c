//! `portolan yaml check`: every error of every file, at its place.

use camino::Utf8PathBuf;
use portolan_engine::{Failure, Key, Outcome, Run, Unit};
use portolan_yaml::Dialect;

use super::{CommandResult, DialectName, Files, Problem, report};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;
use crate::session;

/// Report every error of YAML files
///
/// All documents of all files are read, several files at a time; each error is drawn with its line. The exit code is 1
/// when there is one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan yaml check values.yaml
  portolan yaml check $(git ls-files '*.yaml')
  cat deployment.yaml | portolan yaml check --dialect helm")]
pub(super) struct CheckArgs {
    #[command(flatten)]
    files: Files,

    /// Whose rules apply
    #[arg(
        long,
        value_name = "NAME",
        default_value = "kustomize",
        help_heading = "Input"
    )]
    dialect: DialectName,
}

/// What became of one file.
type Checked = (Input, Result<(), Problem>);

pub(super) fn check(args: &CheckArgs, app: &App) -> CommandResult {
    let run = session::run(app, |run| plan(run, args))?;
    let mut status = ExitStatus::Clean;
    for file in &args.files.files {
        let key = Key::from(file.as_str());
        if let Some(Outcome::Failed(failure)) = run.get(&key).map(|unit| &unit.outcome) {
            return Err(CommandError::usage(failure.error()));
        }
        let checked = run.output::<Checked>(&file.as_str().into());
        if let Some((input, Err(problem))) = checked.as_deref() {
            report(input, problem, &app.printer);
            status = ExitStatus::Findings;
        }
    }
    Ok(status)
}

/// One unit per file, named as the file is.
fn plan(run: &Run, args: &CheckArgs) {
    for file in &args.files.files {
        let (path, dialect) = (file.clone(), args.dialect.into());
        run.add(
            file.as_str(),
            &[],
            Unit::cpu(move |_| check_file(&path, dialect)),
        );
    }
}

fn check_file(path: &Utf8PathBuf, dialect: Dialect) -> Result<Checked, Failure> {
    let input =
        Input::read(path).map_err(|error| Failure::message(format!("{:#}", error.source)))?;
    let result = portolan_yaml::parse_bytes(&input.bytes, dialect)
        .map(|_| ())
        .map_err(Problem::Read);
    Ok((input, result))
}
