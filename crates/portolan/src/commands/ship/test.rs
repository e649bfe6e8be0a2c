//! `portolan ship test`: artifacts built and tested.

use portolan_object::API_VERSION;
use portolan_ship::{finish_tests, plan_tests, tested};
use serde_json::json;

use super::build_options::BuildOptions;
use super::build_print::failures_text;
use super::checks_print::checks_text;
use super::output_args::{Format, OutputArgs};
use super::project_args::{ArtifactArgs, ProjectArgs};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Build artifacts that have tests, and test them
///
/// There is one result for each test of each artifact. A test that names its inputs and passed is not run again until they or
/// the image change. The exit code is 1 if a test did not pass.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship test
  portolan ship test web
  portolan ship test -o json")]
pub(crate) struct TestArgs {
    /// Artifacts to test; all that have tests if none is named
    #[arg(value_name = "ARTIFACT")]
    artifacts: Vec<String>,

    #[command(flatten)]
    selected: ArtifactArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    build: BuildOptions,

    #[command(flatten)]
    project: ProjectArgs,
}

pub(crate) fn test(args: &TestArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let project = args.project.read("test", printer)?;
    let ship = &project.ship;
    if ship.tests.is_empty() {
        let error = CommandError::usage(format!("`{}` has no `spec.tests`", project.file));
        return Err(error.hint(
            "add a test: `tests: [{name: unit, artifacts: [web], command: {run: [./test.sh]}}]`",
        ));
    }
    let named = !args.artifacts.is_empty() || !args.selected.names.is_empty();
    let names = if named {
        args.selected.with(&args.artifacts, &project)?
    } else {
        tested(ship)
    };
    let ((result, report), interrupted) =
        args.build.run(&project, &names, app, |build, _, units| {
            plan_tests(ship, &names, build, units);
        })?;
    let tests = finish_tests(ship, &report);
    printer.data(match args.output.format {
        Format::Json => {
            let value = json!({
                "apiVersion": API_VERSION, "kind": "TestResult", "run": result.run,
                "artifacts": result.artifacts, "tests": tests, "durationMs": result.duration_ms,
            });
            format!("{value:#}\n")
        }
        Format::Text => {
            let styled = printer.canvas().styled;
            failures_text(&result, styled) + &checks_text(&tests, "test", styled)
        }
    })?;
    let is_good = result.is_good() && tests.iter().all(portolan_ship::CheckResult::is_good);
    Ok(match is_good {
        _ if interrupted => ExitStatus::Interrupted,
        true => ExitStatus::Clean,
        false => ExitStatus::Findings,
    })
}
