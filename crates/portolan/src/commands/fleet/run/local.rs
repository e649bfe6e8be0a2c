//! A run on this machine, or on a directory that stands for one.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use camino::{Utf8Path, Utf8PathBuf};
use portolan_fleet::{
    Book, LocalError, LocalOutcome, LocalRun, NodeState, RunMode, RunReport, bind_inputs, compile,
    plan_document,
};
use portolan_modules::Root;
use serde_json::{Map, Value};

use super::inputs::given_inputs;
use super::screen::RunScreen;
use super::{RootExec, RunArgs, RunFormat};
use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::fleet::lint::{BookFile, print_faults};
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

pub(super) fn run(args: &RunArgs, path: &Utf8PathBuf, app: &App) -> CommandResult {
    let printer = &app.printer;
    let file = BookFile::read(path)?;
    let book = match compile(&file.source(args.tags.selection())) {
        Ok(book) => book,
        Err(faults) => {
            print_faults(&faults, &file, printer);
            return Ok(ExitStatus::Failure);
        }
    };
    let given = given_inputs(args, Some(&book.inputs), printer)?;
    let inputs = bind_inputs(&book.inputs, &given).map_err(|faults| {
        let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let error = CommandError::usage(all.join("\n"));
        let hints = faults.into_iter().filter_map(|fault| fault.hint);
        hints.fold(error, CommandError::hint)
    })?;
    let run = LocalRun {
        root: Arc::new(open_root(args.root.as_deref())?),
        is_confined: args.root_exec == RootExec::Chroot,
        files: Arc::clone(&file.files),
        mode: if args.check {
            RunMode::Check
        } else {
            RunMode::Apply
        },
        inputs,
        variables: Map::new(),
        about: None,
        id: new_id(),
        secrets: printer.secrets(),
        stop: app.cancellation()?.clone(),
        acknowledges_damage: args.acknowledge_damage,
        kill_at: kill_at(args)?,
    };
    let mut screen = RunScreen::new(printer, args.check);
    let mut failed = None;
    let done = run.run(&book, &mut |report| {
        if args.output == RunFormat::Text
            && let Err(error) = screen.step(report)
        {
            failed.get_or_insert(error);
        }
    });
    let done = done.map_err(not_begun)?;
    if let Some(error) = failed {
        return Err(error);
    }
    let report = RunReport::of_one(&done.run, &done.node, &done.outcome);
    if let Some(path) = &args.plan_out {
        write_plan(path, &book, &run.inputs, &report, printer)?;
    }
    match args.output {
        RunFormat::Json => printer.data(format!("{:#}\n", report.to_json()))?,
        RunFormat::Text => {
            for note in &done.notes {
                printer.note(note);
            }
            if done.is_resumed {
                printer.note(&format!("went on with the interrupted run {}", done.run));
            }
            screen.end_of_one(&report, &file)?;
        }
    }
    Ok(status(&done, args.check))
}

#[cfg(debug_assertions)]
fn kill_at(args: &RunArgs) -> Result<Option<(usize, bool)>, CommandError> {
    let Some(text) = &args.kill_at else {
        return Ok(None);
    };
    let read = text
        .split_once(':')
        .and_then(|(number, when)| Some((number.parse().ok()?, when == "after")));
    read.map(Some)
        .ok_or_else(|| CommandError::usage("--kill-at is no record"))
}

#[cfg(not(debug_assertions))]
#[expect(clippy::unnecessary_wraps, reason = "the same as in builds for tests")]
fn kill_at(_args: &RunArgs) -> Result<Option<(usize, bool)>, CommandError> {
    Ok(None)
}

fn not_begun(error: LocalError) -> CommandError {
    let hint = error.hint();
    let error = CommandError::user(anyhow!(error));
    hint.into_iter().fold(error, CommandError::hint)
}

fn open_root(path: Option<&Utf8Path>) -> Result<Root, CommandError> {
    let opened = path.map_or_else(Root::machine, Root::other);
    opened.map_err(|error| CommandError::user(anyhow!(error)))
}

/// A name that two runs on one machine do not share.
fn new_id() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!("local-{}-{}", since.as_secs(), std::process::id())
}

/// Writes the plan of a check, whole or not at all; what is secret is masked in it.
fn write_plan(
    path: &Utf8Path,
    book: &Book,
    inputs: &Map<String, Value>,
    report: &RunReport,
    printer: &Printer,
) -> Result<(), CommandError> {
    let plan = format!("{:#}\n", plan_document(book, inputs, report));
    let masked = printer.secrets().mask().text(&plan).into_owned();
    portolan_files::write_file(path, masked.as_bytes()).map_err(CommandError::user)
}

fn status(done: &LocalOutcome, is_check: bool) -> ExitStatus {
    let state = done.outcome.state;
    if done.outcome.stopped.as_deref() == Some("interrupted") {
        ExitStatus::Interrupted
    } else if done.outcome.stopped.is_some()
        || state.is_bad()
        || is_check && state == NodeState::Changed
    {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    }
}
