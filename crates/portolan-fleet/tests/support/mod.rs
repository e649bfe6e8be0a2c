//! Modules for tests, which work on files of a directory that tests can count and change.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::io::Write as _;

use camino::Utf8PathBuf;
use portolan_digest::Digest;
use portolan_modules::{
    Action, Applied, Change, ChangeKind, Effect, Host, ModuleDefinition, ModuleError,
    ParameterDefinition, ParameterType, Plan, PredictedPath, Prediction, RootSupport, Subject,
    View,
};
use serde_json::json;

/// All of them.
pub(crate) static MODULES: &[&ModuleDefinition] = &[&PUT, &COMMAND, &NOTE, &BREAK, &REBOOT];

const fn parameter(
    name: &'static str,
    kind: ParameterType,
    is_required: bool,
) -> ParameterDefinition {
    ParameterDefinition {
        name,
        kind,
        is_required,
        summary: "A parameter.",
    }
}

/// Gives a file its content.
static PUT: ModuleDefinition = ModuleDefinition {
    name: "put",
    summary: "Gives a file its content.",
    parameters: &[
        parameter("path", ParameterType::Path, true),
        parameter("content", ParameterType::Text, false),
        parameter("template", ParameterType::Text, false),
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse: |parameters| {
        let path = parameters.path("path")?;
        let content = parameters.text("content")?.to_owned();
        Some(Box::new(Put { path, content }))
    },
};

/// Adds a line to a file, whenever it runs: the file counts executions.
static COMMAND: ModuleDefinition = ModuleDefinition {
    name: "command",
    summary: "Adds a line to a file.",
    parameters: &[
        parameter("path", ParameterType::Path, true),
        parameter("run", ParameterType::Text, false),
        parameter("stdin", ParameterType::Text, false),
    ],
    effect: Effect::Once,
    root: RootSupport::Full,
    parse: |parameters| {
        let path = parameters.path("path")?;
        let line = parameters.text("run").unwrap_or("run").to_owned();
        Some(Box::new(Append { path, line }))
    },
};

/// Changes nothing and gives its parameters back.
static NOTE: ModuleDefinition = ModuleDefinition {
    name: "note",
    summary: "Gives a value back.",
    parameters: &[parameter("value", ParameterType::Any, true)],
    effect: Effect::Read,
    root: RootSupport::Full,
    parse: |parameters| {
        let value = parameters.value("value")?.clone();
        Some(Box::new(Note { value }))
    },
};

/// Fails until a file exists.
static BREAK: ModuleDefinition = ModuleDefinition {
    name: "break",
    summary: "Fails.",
    parameters: &[parameter("until", ParameterType::Path, false)],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse: |parameters| {
        let until = parameters.path("until");
        Some(Box::new(Break { until }))
    },
};

/// Says that it restarted a machine whose boot id was another one, or is the one that it still has.
static REBOOT: ModuleDefinition = ModuleDefinition {
    name: "reboot",
    summary: "Restarts the machine.",
    parameters: &[
        parameter("path", ParameterType::Path, true),
        parameter("boot", ParameterType::Text, false),
    ],
    effect: Effect::Once,
    root: RootSupport::Full,
    parse: |parameters| {
        let path = parameters.path("path")?;
        let boot = parameters.text("boot").map(str::to_owned);
        Some(Box::new(Reboot { path, boot }))
    },
};

struct Reboot {
    path: Utf8PathBuf,
    boot: Option<String>,
}

impl Action for Reboot {
    fn plan(&self, _view: &View<'_>) -> Result<Plan, ModuleError> {
        let mut plan = Plan::unknown("it restarts");
        let boot = self.boot.clone().unwrap_or_else(boot_id);
        plan.before.insert("bootId".to_owned(), json!(boot));
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let append = Append {
            path: self.path.clone(),
            line: "reboot".to_owned(),
        };
        let mut applied = append.apply(host, plan)?;
        applied
            .result
            .insert("bootId".to_owned(), plan.before["bootId"].clone());
        applied.result.insert("timeoutSeconds".to_owned(), json!(0));
        Ok(applied)
    }

    fn verify(&self, _host: &Host) -> Result<(), ModuleError> {
        Ok(())
    }
}

/// The id of this machine's start.
pub(crate) fn boot_id() -> String {
    portolan_modules::boot_id(&host()).expect("known")
}

struct Put {
    path: Utf8PathBuf,
    content: String,
}

struct Append {
    path: Utf8PathBuf,
    line: String,
}

struct Note {
    value: serde_json::Value,
}

struct Break {
    until: Option<Utf8PathBuf>,
}

impl Action for Put {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let now = match view.ahead.path(&self.path) {
            Some(PredictedPath::File(Some(content))) => content.to_vec(),
            _ => fs::read(&self.path).unwrap_or_default(),
        };
        if now == self.content.as_bytes() {
            return Ok(Plan::unchanged());
        }
        let mut plan = Plan::of_changes(vec![Change {
            subject: Subject::Path(self.path.clone()),
            kind: ChangeKind::Update,
            before: Digest::of(&now),
            after: Digest::of(self.content.as_bytes()),
            diff: format!("+{}\n", self.content),
        }]);
        plan.before
            .insert("content".to_owned(), json!(String::from_utf8_lossy(&now)));
        let content = Some(self.content.as_bytes().into());
        plan.predictions = vec![Prediction::Path(
            self.path.clone(),
            PredictedPath::File(content),
        )];
        Ok(plan)
    }

    fn apply(&self, _host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        fs::write(&self.path, &self.content)
            .map_err(|error| ModuleError::failed("write", self.path.as_str(), error))?;
        Ok(Applied {
            is_changed: true,
            ..Applied::default()
        })
    }
}

impl Action for Append {
    fn plan(&self, _view: &View<'_>) -> Result<Plan, ModuleError> {
        Ok(Plan::unknown("a command without a guard"))
    }

    fn apply(&self, _host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        let failed = |error| ModuleError::failed("write", self.path.as_str(), error);
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)
            .map_err(failed)?;
        writeln!(file, "{}", self.line).map_err(failed)?;
        let mut applied = Applied {
            is_changed: true,
            ..Applied::default()
        };
        applied.result.insert("stdout".to_owned(), json!(self.line));
        Ok(applied)
    }

    fn verify(&self, _host: &Host) -> Result<(), ModuleError> {
        Ok(())
    }
}

impl Action for Note {
    fn plan(&self, _view: &View<'_>) -> Result<Plan, ModuleError> {
        Ok(Plan::unknown("only a look shows it"))
    }

    fn apply(&self, _host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        let mut applied = Applied::default();
        applied
            .result
            .insert("value".to_owned(), self.value.clone());
        Ok(applied)
    }

    fn verify(&self, _host: &Host) -> Result<(), ModuleError> {
        Ok(())
    }
}

impl Action for Break {
    fn plan(&self, _view: &View<'_>) -> Result<Plan, ModuleError> {
        match &self.until {
            Some(path) if path.exists() => Ok(Plan::unchanged()),
            _ => Err(ModuleError::failed("pass", "the step", "it always fails")),
        }
    }

    fn apply(&self, _host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        Ok(Applied::default())
    }
}

/// This machine, for modules that do not look at it.
pub(crate) fn host() -> Host {
    let root = portolan_modules::Root::machine().expect("the root directory");
    let mut host = Host::local(std::sync::Arc::new(root));
    host.book_files = std::sync::Arc::new(portolan_fleet::MemoryFiles::default());
    host
}
