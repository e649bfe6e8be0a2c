//! The records of a journal in Skaffold's words.
//!
//! Skaffold splits the build of an artifact into the steps `Cache`, `Build` and `Push`. Whether an artifact was there is
//! known here when it is done, or as soon as a program of its builder prints something: until then its step is `Cache`.
//! What is there is complete; Skaffold leaves it at `NotStarted`.

use std::collections::BTreeMap;

use portolan_engine::{Event, Record};

use super::control::DevStages;
use super::outline::RunOutline;
use super::session_view::SessionView;
use super::wire::{self, event::EventType};
use crate::dev::DevEvent;

/// What the events so far say.
#[derive(Default)]
pub(super) struct Projection {
    outline: RunOutline,
    /// The turn of the dev loop.
    iteration: i32,
    has_begun: bool,
    tasks: BTreeMap<Task, TaskState>,
    units: BTreeMap<String, Unit>,
    beside: SessionView,
}

/// A stage, in the order of Skaffold's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Build,
    Test,
    Render,
    Deploy,
    Verify,
}

#[derive(Default)]
struct TaskState {
    has_begun: bool,
    open: usize,
    /// Why the first one that failed did.
    failure: Option<String>,
    is_cancelled: bool,
}

/// One unit of the run.
struct Unit {
    task: Task,
    step: Step,
    /// What it is called in events.
    id: String,
    /// The image of an artifact.
    image: String,
    status: Word,
}

/// What a unit of a build is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Cache,
    Build,
    Push,
    /// Of another stage.
    None,
}

/// Where something stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    NotStarted,
    InProgress,
    Succeeded,
    Failed,
    Canceled,
}

impl Projection {
    /// Says what the next run is about, and which turn of the dev loop it belongs to. What it does not do again stands where
    /// the runs before left it, unless the document is another one.
    pub(super) fn follow(&mut self, outline: RunOutline, iteration: i32) {
        if !outline.declares_the_same(&self.outline) {
            self.units.clear();
        }
        self.outline = outline;
        self.iteration = iteration;
    }

    /// Takes a record in; returns what Skaffold would say about it.
    pub(super) fn apply(&mut self, record: &Record) -> Vec<wire::Event> {
        let mut said = Vec::new();
        match &record.event {
            Event::Began => self.begin(&mut said),
            Event::Ended { failed, .. } => {
                let status = if *failed > 0 { "Failed" } else { "Complete" };
                self.terminate(status, &mut said);
            }
            Event::Interrupted => self.terminate("Failed", &mut said),
            Event::Published { .. } => {
                let event = record.published::<DevEvent>().and_then(Result::ok);
                said.extend(
                    event.and_then(|event| self.beside.take(&event, &self.outline, self.iteration)),
                );
            }
            event => self.unit_event(record.key.as_str(), event, &mut said),
        }
        let timestamp = Some(timestamp(record.at));
        let with_time = |event| wire::Event {
            timestamp,
            event_type: Some(event),
        };
        said.into_iter().map(with_time).collect()
    }

    fn begin(&mut self, said: &mut Vec<EventType>) {
        self.tasks.clear();
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        if !has_begun {
            said.push(EventType::MetaEvent(wire::MetaEvent {
                entry: format!("Starting Portolan {}", env!("CARGO_PKG_VERSION")),
                metadata: Some(self.outline.metadata()),
            }));
        }
    }

    fn terminate(&self, status: &str, said: &mut Vec<EventType>) {
        if self.outline.is_dev {
            return;
        }
        let failure = self.tasks.iter().find_map(|(task, state)| {
            let message = state.failure.clone()?;
            Some(error(*task, message))
        });
        said.push(EventType::TerminationEvent(wire::TerminationEvent {
            status: status.to_owned(),
            err: failure.filter(|_| status == "Failed"),
        }));
    }

    fn unit_event(&mut self, key: &str, event: &Event, said: &mut Vec<EventType>) {
        if matches!(event, Event::Queued) {
            if let Some(unit) = self.unit(key) {
                self.tasks.entry(unit.task).or_default().open += 1;
                self.units.insert(key.to_owned(), unit);
            }
            return;
        }
        let Some(mut unit) = self.units.remove(key) else {
            return;
        };
        match event {
            Event::Started { .. } if unit.status == Word::NotStarted => {
                self.begin_task(unit.task, said);
                self.say(&mut unit, Word::InProgress, None, said);
            }
            Event::Log { line } => {
                self.miss(&mut unit, said);
                said.push(self.log(&unit, format!("{line}\n")));
            }
            Event::Dropped { lines, .. } => {
                said.push(self.log(&unit, format!("… {lines} lines left out …\n")));
            }
            Event::Retrying { error, .. } => {
                said.push(self.log(&unit, format!("{error}; it is tried again\n")));
            }
            Event::Done { summary, .. } => {
                if !summary.as_deref().is_some_and(is_cached) {
                    self.miss(&mut unit, said);
                }
                self.say(&mut unit, Word::Succeeded, None, said);
                self.end_task(unit.task, said);
            }
            Event::Failed { error, .. } => {
                self.miss(&mut unit, said);
                self.say(&mut unit, Word::Failed, Some(error), said);
                let task = self.tasks.entry(unit.task).or_default();
                task.failure.get_or_insert_with(|| error.clone());
                self.end_task(unit.task, said);
            }
            Event::Skipped { .. } | Event::Cancelled { .. } => {
                self.say(&mut unit, Word::Canceled, None, said);
                self.tasks.entry(unit.task).or_default().is_cancelled = true;
                self.end_task(unit.task, said);
            }
            _ => {}
        }
        self.units.insert(key.to_owned(), unit);
    }

    /// What a key stands for; nothing for work that Skaffold has no word for.
    fn unit(&self, key: &str) -> Option<Unit> {
        let (stage, name) = key.split_once('/')?;
        let (task, step) = match stage {
            "artifact" => (Task::Build, Step::Cache),
            "push" => (Task::Build, Step::Push),
            "test" => (Task::Test, Step::None),
            "render" => (Task::Render, Step::None),
            "deploy" => (Task::Deploy, Step::None),
            "verify" => (Task::Verify, Step::None),
            _ => return None,
        };
        let (id, image) = match task {
            Task::Build => {
                let (at, artifact) = self.outline.artifact(name)?;
                (at.to_string(), artifact.image.clone())
            }
            Task::Deploy => (self.outline.deployer(name)?.to_string(), String::new()),
            _ => (name.to_owned(), String::new()),
        };
        Some(Unit {
            task,
            step,
            id,
            image,
            status: Word::NotStarted,
        })
    }

    /// The artifact was not there.
    fn miss(&self, unit: &mut Unit, said: &mut Vec<EventType>) {
        if unit.step == Step::Cache && unit.status == Word::InProgress {
            self.say(unit, Word::Failed, None, said);
            unit.step = Step::Build;
            self.say(unit, Word::InProgress, None, said);
        }
    }

    fn begin_task(&mut self, task: Task, said: &mut Vec<EventType>) {
        let state = self.tasks.entry(task).or_default();
        if !state.has_begun {
            state.has_begun = true;
            said.push(self.task_event(task, Word::InProgress, None));
        }
    }

    fn end_task(&mut self, task: Task, said: &mut Vec<EventType>) {
        let state = self.tasks.entry(task).or_default();
        state.open = state.open.saturating_sub(1);
        if state.open > 0 {
            return;
        }
        let failure = state.failure.clone();
        let word = match (&failure, state.is_cancelled) {
            (Some(_), _) => Word::Failed,
            (None, true) => Word::Canceled,
            (None, false) => Word::Succeeded,
        };
        said.push(self.task_event(task, word, failure));
    }

    fn task_event(&self, task: Task, status: Word, failure: Option<String>) -> EventType {
        EventType::TaskEvent(wire::TaskEvent {
            id: self.task_id(task),
            task: task.name().to_owned(),
            description: task.description().to_owned(),
            iteration: self.iteration,
            status: status.event_name().to_owned(),
            actionable_err: failure.map(|message| error(task, message)),
        })
    }

    fn task_id(&self, task: Task) -> String {
        format!("{}-{}", task.name(), self.iteration)
    }

    /// Says where a unit stands now.
    fn say(&self, unit: &mut Unit, status: Word, why: Option<&String>, said: &mut Vec<EventType>) {
        unit.status = status;
        let (id, task_id) = (unit.id.clone(), self.task_id(unit.task));
        let status = status.event_name().to_owned();
        let actionable_err = why.map(|why| error(unit.task, why.clone()));
        said.push(match unit.task {
            Task::Build => EventType::BuildSubtaskEvent(wire::BuildSubtaskEvent {
                id,
                task_id,
                artifact: unit.image.clone(),
                step: unit.step.name().to_owned(),
                status,
                actionable_err,
                ..Default::default()
            }),
            Task::Test => EventType::TestEvent(wire::TestSubtaskEvent {
                id,
                task_id,
                status,
                actionable_err,
            }),
            Task::Render => EventType::RenderEvent(wire::RenderSubtaskEvent {
                id,
                task_id,
                status,
                actionable_err,
            }),
            Task::Deploy => EventType::DeploySubtaskEvent(wire::DeploySubtaskEvent {
                id,
                task_id,
                status,
                actionable_err,
            }),
            Task::Verify => EventType::VerifyEvent(wire::VerifySubtaskEvent {
                id,
                task_id,
                status,
                actionable_err,
            }),
        });
    }

    fn log(&self, unit: &Unit, message: String) -> EventType {
        EventType::SkaffoldLogEvent(wire::SkaffoldLogEvent {
            task_id: self.task_id(unit.task),
            subtask_id: unit.id.clone(),
            level: wire::LogLevel::Standard.into(),
            message,
        })
    }

    /// Where everything stands; every artifact of the document is in it.
    pub(super) fn state(&self, auto: DevStages) -> wire::State {
        let artifacts = self.outline.artifacts.iter().map(|artifact| {
            let unit = |stage: &str| self.units.get(&format!("{stage}/{}", artifact.name));
            let built = unit("artifact").map_or(Word::NotStarted, |unit| unit.status);
            let pushed = unit("push").map_or(built, |unit| unit.status);
            let on_its_way = built == Word::Succeeded && pushed < Word::Succeeded;
            let word = if on_its_way {
                Word::InProgress
            } else {
                built.max(pushed)
            };
            // A step of the cache that failed is a build that goes on.
            (artifact.image.clone(), word.state_name().to_owned())
        });
        let stage = |task| self.stage(task);
        let (deploy, test) = (stage(Task::Deploy), stage(Task::Test));
        let (render, verify) = (stage(Task::Render), stage(Task::Verify));
        let build = stage(Task::Build);
        wire::State {
            build_state: Some(wire::BuildState {
                artifacts: artifacts.collect(),
                auto_trigger: auto.build,
                status_code: build.code(Task::Build).into(),
            }),
            deploy_state: Some(wire::DeployState {
                status: deploy.state_name().to_owned(),
                auto_trigger: auto.deploy,
                status_code: deploy.code(Task::Deploy).into(),
            }),
            status_check_state: Some(wire::StatusCheckState {
                status: Word::NotStarted.state_name().to_owned(),
                ..Default::default()
            }),
            file_sync_state: Some(wire::FileSyncState {
                status: self.beside.sync_status().to_owned(),
                auto_trigger: auto.sync,
            }),
            forwarded_ports: self.beside.ports(),
            metadata: Some(self.outline.metadata()),
            test_state: Some(wire::TestState {
                status: test.state_name().to_owned(),
                status_code: test.code(Task::Test).into(),
            }),
            render_state: Some(wire::RenderState {
                status: render.state_name().to_owned(),
                status_code: render.code(Task::Render).into(),
            }),
            verify_state: Some(wire::VerifyState {
                status: verify.state_name().to_owned(),
                status_code: verify.code(Task::Verify).into(),
            }),
            exec_state: Some(wire::ExecState {
                status: Word::NotStarted.state_name().to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    /// Skaffold has one word for a whole stage.
    fn stage(&self, task: Task) -> Word {
        let words = self.units.values().filter(|unit| unit.task == task);
        let words: Vec<Word> = words.map(|unit| unit.status).collect();
        let all = |word| words.iter().all(|known| *known == word);
        match words.iter().max() {
            None => Word::NotStarted,
            Some(_) if all(Word::NotStarted) => Word::NotStarted,
            Some(_) if words.iter().any(|word| *word < Word::Succeeded) => Word::InProgress,
            Some(_) if words.contains(&Word::Failed) => Word::Failed,
            Some(worst) => *worst,
        }
    }
}

impl Task {
    fn name(self) -> &'static str {
        match self {
            Self::Build => "Build",
            Self::Test => "Test",
            Self::Render => "Render",
            Self::Deploy => "Deploy",
            Self::Verify => "Verify",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Build => "Build containers",
            Self::Test => "Test application",
            Self::Render => "Render Manifests",
            Self::Deploy => "Deploy to cluster",
            Self::Verify => "Verify deployment",
        }
    }
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Cache => "Cache",
            Self::Build => "Build",
            Self::Push => "Push",
            Self::None => "",
        }
    }
}

impl Word {
    /// As events have it.
    fn event_name(self) -> &'static str {
        match self {
            Self::NotStarted => "NotStarted",
            Self::InProgress => "InProgress",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Canceled => "Canceled",
        }
    }

    /// As states have it.
    fn state_name(self) -> &'static str {
        match self {
            Self::Succeeded => "Complete",
            other => other.event_name(),
        }
    }

    fn code(self, task: Task) -> wire::StatusCode {
        use wire::StatusCode as Code;
        match (self, task) {
            (Self::Succeeded, Task::Build) => Code::BuildSuccess,
            (Self::Succeeded, Task::Test) => Code::TestSuccess,
            (Self::Succeeded, Task::Render) => Code::RenderSuccess,
            (Self::Succeeded, Task::Deploy) => Code::DeploySuccess,
            (Self::Failed, task) => task_error(task),
            (Self::Canceled, Task::Build) => Code::BuildCancelled,
            (Self::Canceled, Task::Deploy) => Code::DeployCancelled,
            _ => Code::Ok,
        }
    }
}

fn task_error(task: Task) -> wire::StatusCode {
    match task {
        Task::Build => wire::StatusCode::BuildUnknown,
        Task::Test => wire::StatusCode::TestUnknown,
        Task::Deploy => wire::StatusCode::DeployUnknown,
        Task::Render | Task::Verify => wire::StatusCode::UnknownError,
    }
}

fn error(task: Task, message: String) -> wire::ActionableErr {
    wire::ActionableErr {
        err_code: task_error(task).into(),
        message,
        suggestions: Vec::new(),
    }
}

/// Whether the summary of an artifact says that it was there.
fn is_cached(summary: &str) -> bool {
    let summary: serde_json::Value = serde_json::from_str(summary).unwrap_or_default();
    summary["status"] == "cached"
}

fn timestamp(milliseconds: u64) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX),
        nanos: i32::try_from(milliseconds % 1000 * 1_000_000).unwrap_or(0),
    }
}
