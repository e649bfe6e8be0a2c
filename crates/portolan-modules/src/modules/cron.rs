//! `cron`: a job of the system's cron, as a file of its own in `/etc/cron.d`.

use camino::Utf8PathBuf;

use crate::account_tool::fault_of_name;
use crate::action::{Action, Applied, ModuleError};
use crate::cron_schedule::fault_of_schedule;
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::Plan;
use crate::text_file::{TextFile, TextLook};
use crate::view::View;

/// The module `cron`.
pub(super) static CRON: ModuleDefinition = ModuleDefinition {
    name: "cron",
    summary: "Makes or removes a job of the system's cron, as a file in `/etc/cron.d`.",
    parameters: &[
        ParameterDefinition::required(
            "name",
            ParameterType::Text,
            "The name of the file: letters, digits, `_` and `-`. Cron ignores files with a dot in the name.",
        ),
        ParameterDefinition::optional(
            "schedule",
            ParameterType::Text,
            "When it runs: minute, hour, day of month, month, day of week, or a word such as `@daily`.",
        ),
        ParameterDefinition::optional(
            "command",
            ParameterType::Text,
            "One line of shell. A `%` in it is escaped for cron.",
        ),
        ParameterDefinition::optional(
            "user",
            ParameterType::Text,
            "Who it runs as; `root` by default.",
        ),
        ParameterDefinition::optional(
            "state",
            ParameterType::Word(&["present", "absent"]),
            "`present`, which is the default, or `absent`.",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::FilesOnly,
    parse,
};

/// The permissions of the file. Cron ignores files that others than their owner may write.
const MODE: u32 = 0o644;

struct CronJob {
    path: Utf8PathBuf,
    /// `None` if it should not exist.
    job: Option<Job>,
}

struct Job {
    schedule: String,
    user: String,
    command: String,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let name = parameters.text("name")?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if name.is_empty() || !name.chars().all(is_name) {
        let message = "must have letters, digits, `_` and `-` only: cron ignores other files";
        parameters.fault("name", message);
    }
    let path = format!("/etc/cron.d/{name}").into();
    if parameters.word("state") == Some("absent") {
        return Some(Box::new(CronJob { path, job: None }));
    }
    for name in ["schedule", "command"] {
        if !parameters.has(name) {
            parameters.fault(name, "is missing");
        }
    }
    let user = parameters.line("user").unwrap_or("root").to_owned();
    if let Some(fault) = fault_of_name(&user) {
        parameters.fault("user", fault);
    }
    let schedule = parameters.line("schedule")?;
    if let Some(fault) = fault_of_schedule(schedule) {
        parameters.fault("schedule", fault);
    }
    let command = parameters.line("command")?;
    if command.contains("\\%") {
        let hint = "write `%` alone: it is escaped for cron".to_owned();
        parameters.fault_with("command", "cannot contain `\\%`", Some(hint));
    }
    let job = Job {
        schedule: schedule
            .split_ascii_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        user,
        command: command.trim().to_owned(),
    };
    Some(Box::new(CronJob {
        path,
        job: Some(job),
    }))
}

impl Action for CronJob {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        if let Some(job) = &self.job
            && !view.has_user(&job.user)?
        {
            let reason = format!("the user `{}` does not exist", job.user);
            return Err(ModuleError::failed(
                "make cron job",
                self.path.as_str(),
                reason,
            ));
        }
        match self.look(view)? {
            TextLook::File(file) => Ok(file.plan()),
            TextLook::Unknown => Ok(Plan::unknown("an earlier step writes the file")),
        }
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let view = View::of(host);
        plan.confirm(&self.plan(&view)?)?;
        let mut applied = Applied::default();
        if let TextLook::File(file) = self.look(&view)? {
            applied.is_changed = file.write(host)?;
        }
        Ok(applied)
    }
}

impl CronJob {
    fn look(&self, view: &View<'_>) -> Result<TextLook, ModuleError> {
        let content = self.job.as_ref().map(|job| job.content(&view.host.book));
        TextFile::look(view, &self.path, MODE, |_| content)
    }
}

impl Job {
    fn content(&self, book: &str) -> String {
        // A `%` ends the command for cron and begins its input, unless a backslash stands before it.
        let command = self.command.replace('%', "\\%");
        let origin = match book.lines().next() {
            Some(book) => format!("Written by the TaskBook {book}"),
            None => "Written by a TaskBook".to_owned(),
        };
        format!(
            "# {origin}. Changes are overwritten.\n{} {} {command}\n",
            self.schedule, self.user
        )
    }
}
