//! `portolan ship verify`: whether what was deployed works.

use std::sync::Arc;

use portolan_object::API_VERSION;
use portolan_ship::{CheckResult, VerifySetup, finish_verify, needs_cluster, plan_verify};
use serde_json::json;

use super::build_options::BuildOptions;
use super::checks_print::checks_text;
use super::output_args::{Format, OutputArgs};
use super::project_args::ProjectArgs;
use super::target_args::TargetArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Verify that what was deployed works
///
/// Sends requests, runs programs and looks at objects as the document says, without building or deploying anything. The exit
/// code is 1 if something did not pass.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship verify --context staging
  portolan ship verify -o json")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    build: BuildOptions,

    #[command(flatten)]
    project: ProjectArgs,
}

pub(crate) fn verify(args: &VerifyArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let project = args
        .project
        .read_for("verify", args.target.place(), printer)?;
    if project.ship.verify.is_empty() {
        let error = CommandError::usage(format!("`{}` has no `spec.verify`", project.file));
        return Err(error.hint(
            "add one: `verify: [{name: up, http: {url: \"http://localhost:8080\", path: /healthz}}]`",
        ));
    }
    let cluster = if needs_cluster(&project.ship) {
        let connected = args.target.connect(&project.ship);
        Some(Arc::new(app.runtime()?.block_on(connected)?))
    } else {
        None
    };
    let ship = Arc::new(project.ship.clone());
    let ((result, report), interrupted) =
        args.build.run(&project, &[], app, |build, _, units| {
            let setup = VerifySetup {
                build: build.clone(),
                ship,
                cluster,
                is_deploying: false,
            };
            plan_verify(&setup, units);
        })?;
    let verifications = finish_verify(&project.ship, &report);
    printer.data(match args.output.format {
        Format::Json => {
            let value = json!({
                "apiVersion": API_VERSION, "kind": "VerifyResult", "run": result.run,
                "verifications": verifications, "durationMs": result.duration_ms,
            });
            format!("{value:#}\n")
        }
        Format::Text => checks_text(&verifications, "verification", printer.canvas().styled),
    })?;
    Ok(match verifications.iter().all(CheckResult::is_good) {
        _ if interrupted => ExitStatus::Interrupted,
        true => ExitStatus::Clean,
        false => ExitStatus::Findings,
    })
}
