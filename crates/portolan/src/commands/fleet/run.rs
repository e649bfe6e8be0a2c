//! `portolan fleet run --local`: a book, carried out on this machine or on a directory that stands for one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use camino::{Utf8Path, Utf8PathBuf};
use portolan_fleet::{
    Book, LocalError, LocalOutcome, LocalRun, NodeState, RunMode, StepReport, StepState,
    bind_inputs, compile,
};
use portolan_modules::Root;
use portolan_object::counted;
use serde_json::{Map, Value, json};

use super::lint::{BookFile, TagArgs, print_faults};
use crate::app::App;
use crate::commands::CommandResult;
use crate::diagnostic::{Diagnostic, Place};
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::table::Tone;

/// Run a TaskBook on this machine, without a server
///
/// Every step is looked at first and does only what is missing. `--check` says what would change and changes nothing. With
/// `--root`, a directory stands for `/`. A run that was killed goes on when the same command is given again: what was done
/// is not done twice, and what nobody knows is told. The exit code is 0 if all is as it should be, 1 if a step failed or is
/// unknown or a check found changes, and 2 if nothing was begun.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet run -f book.yaml --local --check
  portolan fleet run -f book.yaml --local --root ./image --input version=1.4.2
  portolan fleet run -f book.yaml --local --tags users -o json
  portolan fleet run -f book.yaml --local --input-file token=./token.txt")]
pub(crate) struct RunArgs {
    /// The book; `-` is standard input
    #[arg(short, long = "filename", value_name = "FILE", help_heading = "Input")]
    file: Utf8PathBuf,

    /// Run on this machine
    #[arg(long, required = true, help_heading = "Input")]
    local: bool,

    /// Directory that stands for `/`
    #[arg(long, value_name = "DIR", help_heading = "Input")]
    root: Option<Utf8PathBuf>,

    /// Where programs of steps run below --root: `start` starts them there, `chroot` confines them
    #[arg(
        long,
        value_name = "HOW",
        default_value = "start",
        requires = "root",
        help_heading = "Input"
    )]
    root_exec: RootExec,

    /// Value of an input of the book
    #[arg(long = "input", value_name = "NAME=VALUE", help_heading = "Input")]
    inputs: Vec<String>,

    /// Value of an input, read from a file; for secrets, which must not be arguments
    #[arg(long = "input-file", value_name = "NAME=FILE", help_heading = "Input")]
    input_files: Vec<String>,

    #[command(flatten)]
    tags: TagArgs,

    /// Say what would change, and change nothing
    #[arg(long, help_heading = "Run")]
    check: bool,

    /// Write what a check found, with digests, to a file
    #[arg(long, value_name = "FILE", requires = "check", help_heading = "Run")]
    plan_out: Option<Utf8PathBuf>,

    /// Put a damaged journal aside and begin a new one, after you looked at the node
    #[arg(long, help_heading = "Run")]
    acknowledge_damage: bool,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: Format,

    /// For tests: kills this process at a record of the journal, as in `3:before` or `3:after`
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, value_name = "RECORD")]
    kill_at: Option<String>,
}

/// What programs of steps see below another root directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum RootExec {
    /// They start in the directory and can leave it
    Start,
    /// The directory is their root
    Chroot,
}

/// The forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A line for each step, failures last
    Text,
    /// `{"run", "state", "nodes": [{"name", "state", "steps": […]}]}`
    Json,
}

pub(crate) fn run(args: &RunArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let file = BookFile::read(&args.file)?;
    let book = match compile(&file.source(args.tags.selection())) {
        Ok(book) => book,
        Err(faults) => {
            print_faults(&faults, &file, printer);
            return Ok(ExitStatus::Failure);
        }
    };
    let given = given_inputs(args, &book, printer)?;
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
        id: new_id(),
        secrets: printer.secrets(),
        stop: app.cancellation()?.clone(),
        acknowledges_damage: args.acknowledge_damage,
        kill_at: kill_at(args)?,
    };
    let mut screen = Screen {
        printer,
        is_text: args.output == Format::Text,
        is_check: args.check,
        styled: printer.canvas().styled,
        last: None,
        failed: None,
    };
    let done = run.run(&book, &mut |report| screen.step(report));
    let done = done.map_err(not_begun)?;
    if let Some(error) = screen.failed.take() {
        return Err(error);
    }
    if let Some(path) = &args.plan_out {
        write_plan(path, &book, &run.inputs, &done)?;
    }
    match args.output {
        Format::Json => printer.data(format!("{:#}\n", as_json(&done)))?,
        Format::Text => screen.end(&done, &file)?,
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

fn given_inputs(
    args: &RunArgs,
    book: &Book,
    printer: &Printer,
) -> Result<Map<String, Value>, CommandError> {
    let mut given = Map::new();
    let named = |text: &str| {
        let split = text
            .split_once('=')
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        split.ok_or_else(|| CommandError::usage(format!("`{text}` is not NAME=VALUE")))
    };
    for text in &args.inputs {
        let (name, value) = named(text)?;
        let input = book.inputs.get(&name);
        if input.is_some_and(|input| input.is_secret) {
            let error = CommandError::usage(format!(
                "the input `{name}` is secret: arguments can be read by every user"
            ));
            return Err(error.hint(format!(
                "write it to a file and give --input-file {name}=FILE"
            )));
        }
        let value = input.map_or_else(|| Value::from(value.as_str()), |input| input.read(&value));
        given.insert(name, value);
    }
    for text in &args.input_files {
        let (name, path) = named(text)?;
        let content = std::fs::read_to_string(&path).map_err(|error| {
            CommandError::user(anyhow!(error).context(format!("cannot read `{path}`")))
        })?;
        let content = content.strip_suffix('\n').unwrap_or(&content);
        let input = book.inputs.get(&name);
        if input.is_some_and(|input| input.is_secret) {
            printer.secrets().add_text(&name, content);
        }
        let value = input.map_or_else(|| Value::from(content), |input| input.read(content));
        given.insert(name, value);
    }
    Ok(given)
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

fn as_json(done: &LocalOutcome) -> Value {
    let steps: Vec<Value> = done.outcome.steps.iter().map(StepReport::to_json).collect();
    let state = done.outcome.state.word();
    let mut node = json!({"name": done.node, "state": state, "steps": steps});
    if !done.outcome.owed.is_empty() {
        node["owed"] = json!(done.outcome.owed);
    }
    json!({"run": done.run, "state": state, "nodes": [node]})
}

/// A plan: what was checked, and the digests of everything that would change.
fn write_plan(
    path: &Utf8Path,
    book: &Book,
    inputs: &Map<String, Value>,
    done: &LocalOutcome,
) -> Result<(), CommandError> {
    let shown: Map<String, Value> = inputs
        .iter()
        .filter(|(name, _)| book.inputs.get(*name).is_some_and(|input| !input.is_secret))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let steps: Vec<Value> = done
        .outcome
        .steps
        .iter()
        .map(|step| {
            let changes: Vec<Value> = step
                .changes
                .iter()
                .map(|change| json!({"subject": change.subject, "before": change.before, "after": change.after}))
                .collect();
            let mut plan = step.to_json();
            plan["changes"] = json!(changes);
            if let Some(plan) = plan.as_object_mut() {
                plan.remove("ms");
            }
            plan
        })
        .collect();
    let plan = json!({
        "book": book.name, "bookDigest": book.digest.to_string(), "inputs": shown,
        "nodes": [{"name": done.node, "state": done.outcome.state.word(), "steps": steps}],
    });
    std::fs::write(path, format!("{plan:#}\n"))
        .map_err(|error| CommandError::output(path.as_str(), error))
}

/// Shows a run to people: a line for each step when it ends, failures again at the end.
struct Screen<'a> {
    printer: &'a Printer,
    is_text: bool,
    is_check: bool,
    styled: bool,
    /// The last step and its diff, to print an equal diff only once.
    last: Option<(String, String)>,
    failed: Option<CommandError>,
}

impl Screen<'_> {
    fn step(&mut self, report: &StepReport) {
        if !self.is_text {
            return;
        }
        let written = self.printer.data(self.line(report));
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }

    fn line(&mut self, report: &StepReport) -> String {
        let word = self.word(report.state);
        let item = report
            .item
            .as_ref()
            .map(|item| format!(" [{}]", plain(item)));
        let name = Tone::Name.paint(&report.name, self.styled);
        let mut line = format!("{word} {name}{}", item.unwrap_or_default());
        match &report.error {
            Some(error) if report.state != StepState::Failed => {
                let _ = write!(line, ": {}", error.message);
            }
            _ if report.took.as_millis() >= 100 => {
                let _ = write!(line, "  {:.1} s", report.took.as_secs_f64());
            }
            _ => {}
        }
        line.push('\n');
        for note in &report.notes {
            let _ = writeln!(line, "           {note}");
        }
        if let Some(diff) = &report.diff {
            let here = (report.name.clone(), diff.clone());
            if self.last.as_ref() == Some(&here) {
                line.push_str("           same diff\n");
            } else {
                for text in diff.lines() {
                    let _ = writeln!(line, "           {}", self.painted(text));
                }
                self.last = Some(here);
            }
        }
        line
    }

    fn word(&self, state: StepState) -> String {
        let word = match (state, self.is_check) {
            (StepState::Changed, true) => "change",
            (state, _) => state.word(),
        };
        let padded = format!("{word:<10}");
        let tone = match state {
            StepState::Changed => Tone::Good,
            StepState::Failed => Tone::Bad,
            StepState::Unknown | StepState::Ignored | StepState::Rescued => Tone::Warning,
            StepState::Ok | StepState::Skipped => return padded,
        };
        tone.paint(&padded, self.styled)
    }

    fn painted(&self, line: &str) -> String {
        match line.as_bytes().first() {
            Some(b'+') => Tone::Good.paint(line, self.styled),
            Some(b'-') => Tone::Bad.paint(line, self.styled),
            _ => line.to_owned(),
        }
    }

    /// The summary, and every failure with its place, its advice and the end of its output.
    fn end(&self, done: &LocalOutcome, book: &BookFile) -> Result<(), CommandError> {
        let printer = self.printer;
        for note in &done.notes {
            printer.note(note);
        }
        if done.is_resumed {
            printer.note(&format!("went on with the interrupted run {}", done.run));
        }
        let outcome = &done.outcome;
        for step in &outcome.steps {
            let is_shown = matches!(step.state, StepState::Failed)
                || step.state == StepState::Unknown && !self.is_check;
            let Some(error) = step.error.as_ref().filter(|_| is_shown) else {
                continue;
            };
            let other;
            let text = if *step.place.file == *book.name {
                book.text.as_str()
            } else {
                other = std::fs::read_to_string(&*step.place.file).unwrap_or_default();
                &other
            };
            let mut hints: Vec<String> = error.hint.iter().cloned().collect();
            if let Some(output) = &error.output {
                hints.push(format!("the last lines of its output:\n{output}"));
            }
            printer.diagnostic(&Diagnostic {
                message: format!("{}: {}", step.name, error.message),
                place: Some(Place {
                    file: &step.place.file,
                    text,
                    line: step.place.line as usize,
                    column: step.place.column as usize,
                }),
                hints,
            });
        }
        if let Some(reason) = outcome
            .stopped
            .as_ref()
            .filter(|reason| *reason != "interrupted")
        {
            printer.warning(&format!("the run ended before its last step: {reason}"));
        }
        for handler in &outcome.owed {
            printer.warning(&format!(
                "owed: {handler} was notified and has not run; the next run runs it"
            ));
        }
        printer.data(format!("{}\n", summary(done)))
    }
}

fn summary(done: &LocalOutcome) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for step in &done.outcome.steps {
        *counts.entry(step.state.word()).or_default() += 1;
    }
    let order = [
        "ok", "changed", "skipped", "ignored", "rescued", "unknown", "failed",
    ];
    let parts: Vec<String> = order
        .iter()
        .filter_map(|word| counts.get(word).map(|count| format!("{count} {word}")))
        .collect();
    let steps = counted(done.outcome.steps.len(), "step");
    let state = done.outcome.state.word();
    format!("{}: {state} · {steps}: {}", done.node, parts.join(", "))
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
