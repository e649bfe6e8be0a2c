//! `command`: runs a program, a line of shell or a script of the book, once, unless a guard says that it is not needed.
//!
//! Nobody can tell what a program will do, so a check says *unknown*, unless the step has a guard: `creates` and
//! `removes` name a path, `unless` and `onlyIf` a command whose exit code decides, and `check` a command that tells
//! whether there is something to do and prints what.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use crate::account_tool::refuse_links;
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::{PredictedPath, Prediction};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Plan, Subject};
use crate::process::{Exit, Program};
use crate::root::Follow;
use crate::state::State;
use crate::tool::how_it_ended;
use crate::view::{Found, View};

/// The module `command`.
pub(super) static COMMAND: ModuleDefinition = ModuleDefinition {
    name: "command",
    summary: "Runs a program, a line of shell or a script, unless a guard says that it is not needed.",
    parameters: &[
        ParameterDefinition::optional(
            "run",
            ParameterType::TextList,
            "The program and its arguments; no shell reads them.",
        ),
        ParameterDefinition::optional(
            "shell",
            ParameterType::Text,
            "A text for `/bin/sh -c`, in place of `run`.",
        ),
        ParameterDefinition::optional(
            "script",
            ParameterType::Text,
            "A script of the book's repository with an interpreter line, in place of `run`.",
        ),
        ParameterDefinition::optional(
            "cwd",
            ParameterType::Path,
            "The directory that it starts in; `/` by default.",
        ),
        ParameterDefinition::optional("stdin", ParameterType::Text, "What it reads."),
        ParameterDefinition::optional(
            "creates",
            ParameterType::Path,
            "Not run if this path exists.",
        ),
        ParameterDefinition::optional(
            "removes",
            ParameterType::Path,
            "Not run if this path does not exist.",
        ),
        ParameterDefinition::optional(
            "unless",
            ParameterType::Any,
            "Not run if this command (shell text or argument list) ends with 0. It must change nothing.",
        ),
        ParameterDefinition::optional(
            "onlyIf",
            ParameterType::Any,
            "Not run unless this command (shell text or argument list) ends with 0. It must change nothing.",
        ),
        ParameterDefinition::optional(
            "check",
            ParameterType::Any,
            "A command (shell text or argument list) that changes nothing and ends with 0 if there is \
                      nothing to do, or with 1 and prints what would change.",
        ),
        ParameterDefinition::optional(
            "okCodes",
            ParameterType::Any,
            "The exit codes of success; `[0]` by default.",
        ),
    ],
    effect: Effect::Once,
    root: RootSupport::Full,
    parse,
};

/// Ends with this if there is something to do, as `diff` does.
const CHECK_FOUND_WORK: i32 = 1;

/// The longest name of a command in plans and messages, in characters.
const NAME_LENGTH: usize = 120;

struct RunCommand {
    program: Source,
    directory: Option<Utf8PathBuf>,
    input: Vec<u8>,
    creates: Option<Utf8PathBuf>,
    removes: Option<Utf8PathBuf>,
    unless: Option<Program>,
    only_if: Option<Program>,
    check: Option<Program>,
    ok_codes: Vec<i32>,
}

/// Where the program comes from.
enum Source {
    Program(Program),
    /// A file of the book.
    Script(Utf8PathBuf),
}

/// What the guards say.
enum Verdict {
    NotNeeded(String),
    /// It will run; the text tells why, or is what `check` printed.
    Needed(String),
    Unknown(&'static str),
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let program = source(parameters)?;
    Some(Box::new(RunCommand {
        program,
        directory: parameters.path("cwd"),
        input: parameters.text("stdin").unwrap_or_default().into(),
        creates: parameters.path("creates"),
        removes: parameters.path("removes"),
        unless: guard(parameters, "unless"),
        only_if: guard(parameters, "onlyIf"),
        check: guard(parameters, "check"),
        ok_codes: exit_codes(parameters).unwrap_or_else(|| vec![0]),
    }))
}

fn source(parameters: &mut Parameters<'_>) -> Option<Source> {
    let chosen = parameters.exactly_one(&["run", "shell", "script"])?;
    match chosen {
        "run" => {
            let arguments = parameters.text_list("run")?;
            if arguments.first().is_none_or(String::is_empty) {
                parameters.fault("run", "must name a program");
                return None;
            }
            Some(Source::Program(Program::Arguments(arguments)))
        }
        "shell" => {
            let text = parameters.text("shell")?;
            Some(Source::Program(Program::Shell(text.to_owned())))
        }
        _ => parameters
            .text("script")
            .map(|path| Source::Script(path.into())),
    }
}

fn exit_codes(parameters: &mut Parameters<'_>) -> Option<Vec<i32>> {
    let read = |value: &Value| {
        let code = value.as_i64().filter(|code| (0..=255).contains(code));
        code.and_then(|code| i32::try_from(code).ok())
    };
    let list = parameters.value("okCodes")?.as_array();
    let codes: Option<Vec<i32>> = list.and_then(|list| list.iter().map(read).collect());
    if codes.as_ref().is_none_or(Vec::is_empty) {
        parameters.fault("okCodes", "must be a list of numbers from 0 to 255");
        return None;
    }
    codes
}

/// A command that decides: a text for the shell, or a program with its arguments.
fn guard(parameters: &mut Parameters<'_>, name: &str) -> Option<Program> {
    match parameters.value(name)? {
        Value::String(text) => Some(Program::Shell(text.clone())),
        Value::Array(_) => parameters.text_list(name).map(Program::Arguments),
        _ => {
            parameters.fault(name, "must be a text for the shell or a list of arguments");
            None
        }
    }
}

impl Action for RunCommand {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let plan = match self.verdict(view)? {
            Verdict::NotNeeded(reason) => {
                let mut plan = Plan::unchanged();
                plan.notes.push(reason);
                return Ok(plan);
            }
            Verdict::Needed(why) => Plan::of_changes(vec![
                State::default().act(Subject::Other("command", self.name()), why),
            ]),
            Verdict::Unknown(reason) => Plan::unknown(reason),
        };
        Ok(Plan {
            predictions: self.predictions(),
            ..plan
        })
    }

    fn apply(&self, host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        // The guards decide again, so that a step that is repeated after a crash does not run what has run.
        if let Verdict::NotNeeded(reason) = self.verdict(&View::of(host))? {
            return Ok(Applied {
                notes: vec![reason],
                ..Applied::default()
            });
        }
        let exit = self.run(host, &self.program(host)?, self.input.clone())?;
        let applied = applied_of(host, &exit);
        if self.ok_codes.contains(&exit.code) {
            return Ok(applied);
        }
        Err(ModuleError::Unsuccessful {
            message: format!("`{}` {}", self.name(), how_it_ended(&exit)),
            applied: Box::new(applied),
        })
    }

    /// A command without a guard leaves nothing that could be looked at; one with a guard must satisfy it.
    fn verify(&self, host: &Host) -> Result<(), ModuleError> {
        let view = View::of(host);
        for (path, should_exist) in self.guarded_paths() {
            if will_exist(&view, path)? != should_exist {
                return Err(ModuleError::NotConverged {
                    subject: path.to_string(),
                });
            }
        }
        Ok(())
    }
}

impl RunCommand {
    fn verdict(&self, view: &View<'_>) -> Result<Verdict, ModuleError> {
        if let Some(path) = &self.creates
            && will_exist(view, path)?
        {
            return Ok(Verdict::NotNeeded(format!("`{path}` exists")));
        }
        if let Some(path) = &self.removes
            && !will_exist(view, path)?
        {
            return Ok(Verdict::NotNeeded(format!("`{path}` does not exist")));
        }
        let asks = self.unless.is_some() || self.only_if.is_some() || self.check.is_some();
        if !asks && self.creates.is_none() && self.removes.is_none() {
            return Ok(Verdict::Unknown("a command without a guard"));
        }
        if asks && !view.ahead.is_empty() {
            // A guard that runs sees the host as it is now, not as earlier steps will leave it.
            return Ok(Verdict::Unknown(
                "earlier steps may change what the guard sees",
            ));
        }
        self.ask_guards(view.host)
    }

    fn ask_guards(&self, host: &Host) -> Result<Verdict, ModuleError> {
        if let Some(guard) = &self.unless
            && self.run(host, guard, Vec::new())?.code == 0
        {
            return Ok(Verdict::NotNeeded("`unless` ended with 0".to_owned()));
        }
        if let Some(guard) = &self.only_if {
            let code = self.run(host, guard, Vec::new())?.code;
            if code != 0 {
                return Ok(Verdict::NotNeeded(format!("`onlyIf` ended with {code}")));
            }
        }
        let Some(check) = &self.check else {
            return Ok(Verdict::Needed(format!("run: {}", self.name())));
        };
        let exit = self.run(host, check, Vec::new())?;
        match exit.code {
            0 => Ok(Verdict::NotNeeded("`check` ended with 0".to_owned())),
            CHECK_FOUND_WORK => Ok(Verdict::Needed(
                String::from_utf8_lossy(&exit.stdout).into_owned(),
            )),
            _ => Err(
                ModuleError::failed("check", self.name(), how_it_ended(&exit)).with_hint(
                    "`check` ends with 0 if there is nothing to do and with 1 if there is",
                ),
            ),
        }
    }

    /// The paths of guards, and whether they exist after the command.
    fn guarded_paths(&self) -> impl Iterator<Item = (&Utf8Path, bool)> {
        let created = self.creates.iter().map(|path| (path.as_path(), true));
        created.chain(self.removes.iter().map(|path| (path.as_path(), false)))
    }

    fn predictions(&self) -> Vec<Prediction> {
        self.guarded_paths()
            .map(|(path, exists)| {
                let state = if exists {
                    PredictedPath::File(None)
                } else {
                    PredictedPath::Absent
                };
                Prediction::Path(path.to_owned(), state)
            })
            .collect()
    }

    fn program(&self, host: &Host) -> Result<Program, ModuleError> {
        match &self.program {
            Source::Program(program) => Ok(program.clone()),
            Source::Script(path) => host
                .book_files
                .read(path)
                .map(Program::Script)
                .map_err(|reason| ModuleError::failed("read", path.as_str(), reason)),
        }
    }

    fn run(&self, host: &Host, program: &Program, input: Vec<u8>) -> Result<Exit, ModuleError> {
        let mut command = host.command(program.clone());
        if let Some(directory) = &self.directory {
            command.directory = start_directory(host, directory)?;
        }
        command.input = input;
        host.processes.run(&command, &host.stop)
    }

    /// What people call it: the arguments, or the first line of a shell text.
    fn name(&self) -> String {
        let text = match &self.program {
            Source::Program(Program::Arguments(arguments)) => arguments.join(" "),
            Source::Program(Program::Shell(text)) => text.clone(),
            Source::Program(Program::Script(_)) => "script".to_owned(),
            Source::Script(path) => path.to_string(),
        };
        let line = text.trim().lines().next().unwrap_or_default();
        match line.char_indices().nth(NAME_LENGTH) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    }
}

/// Whether something is, or will be, at a path, links followed.
fn will_exist(view: &View<'_>, path: &Utf8Path) -> Result<bool, ModuleError> {
    let (_, found) = view.find(path, Follow::Yes)?;
    Ok(found != Found::Absent)
}

/// Where the program starts. Below another root directory the path must not lead through a link: the program is
/// not confined and would follow it.
fn start_directory(host: &Host, directory: &Utf8Path) -> Result<Utf8PathBuf, ModuleError> {
    if !host.is_confined {
        refuse_links(&host.root, directory)?;
    }
    Ok(host.program_path(directory))
}

fn applied_of(host: &Host, exit: &Exit) -> Applied {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut applied = Applied {
        is_changed: true,
        ..Applied::default()
    };
    applied.result.insert("code".to_owned(), json!(exit.code));
    applied
        .result
        .insert("stdout".to_owned(), json!(text(&exit.stdout)));
    applied
        .result
        .insert("stderr".to_owned(), json!(text(&exit.stderr)));
    if host.is_rooted() && !host.is_confined {
        applied.result.insert("unconfined".to_owned(), json!(true));
    }
    applied
}
