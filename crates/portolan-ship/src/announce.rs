//! What a run came to, as an event for a fleet server.

use jiff::Timestamp;
use portolan_client::JobEvent;
use serde_json::{Map, Value, json};

use crate::check::{CheckResult, CheckStatus};
use crate::deploy::{StepResult, StepStatus};
use crate::outcome::{ArtifactStatus, BuildResult};

/// The most parts of a run that an event names.
const MAX_NAMED: usize = 10;

/// The most letters of a failure; the end of a program's output stands at its end.
const MAX_FAILURE: usize = 500;

/// What a command came to.
#[derive(Debug)]
pub struct ShipOutcome<'a> {
    /// The command: `run`, `build` or `deploy`.
    pub command: &'static str,
    /// The name of the project.
    pub project: &'a str,
    /// The context of the cluster, if one was worked on.
    pub context: Option<&'a str>,
    /// What was built.
    pub build: &'a BuildResult,
    /// What was tested.
    pub tests: &'a [CheckResult],
    /// What was deployed.
    pub steps: &'a [StepResult],
    /// What was verified.
    pub verifications: &'a [CheckResult],
}

impl ShipOutcome<'_> {
    /// The event: `ship.failed`, `ship.deployed` or `ship.built`. `None` for a run that was called off before anything
    /// failed.
    pub fn event(&self) -> Option<JobEvent> {
        let now = Timestamp::now();
        let failed = self.failed();
        let project = self.project;
        let event = if failed.is_empty() {
            if !self.is_good() {
                return None;
            }
            let (kind, word) = if self.steps.is_empty() {
                ("ship.built", "built")
            } else {
                ("ship.deployed", "deployed")
            };
            JobEvent::new(kind, &self.id(now), now, format!("{project} was {word}"))
        } else {
            let first = failed.first().map_or("", |(_, name, _)| name);
            let more = match failed.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let summary = format!("{project}: {first}{more} failed");
            JobEvent::new("ship.failed", &self.id(now), now, summary).error()
        };
        Some(event.about("Ship", project).data(self.data(&failed)))
    }

    /// Runs are counted in their store, so a time belongs to their names.
    fn id(&self, now: Timestamp) -> String {
        let (project, run) = (self.project, &self.build.run);
        format!("{project}/{run}/{}", now.as_nanosecond())
    }

    fn is_good(&self) -> bool {
        let is_deployed = |step: &StepResult| step.status == StepStatus::Deployed;
        let mut checks = self.tests.iter().chain(self.verifications);
        self.build.is_good()
            && self.steps.iter().all(is_deployed)
            && checks.all(CheckResult::is_good)
    }

    /// Stage, name and error of everything that failed by itself.
    fn failed(&self) -> Vec<(&'static str, &str, Option<&str>)> {
        let artifacts = self.build.artifacts.iter();
        let artifacts = artifacts
            .filter(|one| one.status == ArtifactStatus::Failed)
            .map(|one| ("build", one.name.as_str(), one.error.as_deref()));
        let steps = self.steps.iter();
        let steps = steps
            .filter(|one| one.status == StepStatus::Failed)
            .map(|one| ("deploy", one.name.as_str(), one.error.as_deref()));
        artifacts
            .chain(failed_checks("test", self.tests))
            .chain(steps)
            .chain(failed_checks("verify", self.verifications))
            .collect()
    }

    fn data(&self, failed: &[(&'static str, &str, Option<&str>)]) -> Map<String, Value> {
        let named = failed.iter().take(MAX_NAMED);
        let named = named.map(|(stage, name, error)| {
            let why = error.map(end_of).unwrap_or_default();
            json!({ "stage": stage, "name": name, "why": why })
        });
        let images = self.build.artifacts.iter().take(MAX_NAMED);
        let images = images.filter_map(|one| Some((one.name.clone(), one.image.clone()?.into())));
        let steps = self.steps.iter().take(MAX_NAMED);
        let steps = steps.map(|one| json!({ "name": one.name, "status": one.status }));
        let mut data = Map::from_iter([
            ("command".to_owned(), self.command.into()),
            ("project".to_owned(), self.project.into()),
            ("run".to_owned(), self.build.run.clone().into()),
            ("images".to_owned(), Value::Object(images.collect())),
            ("steps".to_owned(), steps.collect()),
        ]);
        if let Some(context) = self.context {
            data.insert("context".to_owned(), context.into());
        }
        if !failed.is_empty() {
            data.insert("failed".to_owned(), named.collect());
            data.insert("failures".to_owned(), failed.len().into());
        }
        data
    }
}

/// The event of a command that could not do its work at all.
pub fn ship_stopped(command: &'static str, project: &str, why: &str) -> JobEvent {
    let now = Timestamp::now();
    let id = format!("{project}/{command}/{}", now.as_nanosecond());
    let failed = json!([{ "stage": command, "name": project, "why": end_of(why) }]);
    let data = Map::from_iter([
        ("command".to_owned(), command.into()),
        ("project".to_owned(), project.into()),
        ("failed".to_owned(), failed),
        ("failures".to_owned(), 1.into()),
    ]);
    let summary = format!("{project}: `ship {command}` could not be done: {why}");
    let event = JobEvent::new("ship.failed", &id, now, summary);
    event.error().about("Ship", project).data(data)
}

fn failed_checks<'a>(
    stage: &'static str,
    checks: &'a [CheckResult],
) -> impl Iterator<Item = (&'static str, &'a str, Option<&'a str>)> {
    let failed = checks.iter();
    failed
        .filter(|one| one.status == CheckStatus::Failed)
        .map(move |one| (stage, one.name.as_str(), one.error.as_deref()))
}

/// The last letters of a text, which say more than the first.
fn end_of(text: &str) -> String {
    match text.char_indices().rev().nth(MAX_FAILURE - 1) {
        Some((at, _)) if at > 0 => format!("…{}", text.get(at..).unwrap_or_default()),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::ArtifactResult;

    fn step(status: StepStatus, error: Option<&str>) -> StepResult {
        StepResult {
            name: "app".to_owned(),
            status,
            objects: Vec::new(),
            duration_ms: 1,
            error: error.map(str::to_owned),
            because: Vec::new(),
            note: None,
        }
    }

    fn event(artifact: ArtifactStatus, steps: &[StepResult]) -> Option<JobEvent> {
        let artifact = ArtifactResult {
            name: "web".to_owned(),
            status: artifact,
            image: Some("registry.example/web:1@sha256:0".to_owned()),
            digest: None,
            duration_ms: 1,
            error: Some("no such file".to_owned()),
            because: Vec::new(),
        };
        let build = BuildResult::of_artifacts("7", vec![artifact]);
        let outcome = ShipOutcome {
            command: "run",
            project: "shop",
            context: None,
            build: &build,
            tests: &[],
            steps,
            verifications: &[],
        };
        outcome.event()
    }

    #[test]
    fn a_run_is_one_event_by_what_came_of_it() {
        let kind = |artifact, steps: &[StepResult]| event(artifact, steps).map(|one| one.kind());
        let built = ArtifactStatus::Built;
        assert_eq!(kind(built, &[]), Some("ship.built"));
        let deployed = step(StepStatus::Deployed, None);
        assert_eq!(kind(built, &[deployed]), Some("ship.deployed"));
        let failed = step(StepStatus::Failed, Some("not ready"));
        assert_eq!(kind(built, &[failed]), Some("ship.failed"));
        assert_eq!(kind(ArtifactStatus::Failed, &[]), Some("ship.failed"));
        // What was called off neither failed nor was deployed.
        let cancelled = step(StepStatus::Cancelled, None);
        assert_eq!(kind(built, &[cancelled]), None);
    }

    #[test]
    fn the_end_of_a_long_failure_is_kept() {
        let text = format!("{}the cause", "x".repeat(2_000));
        let kept = end_of(&text);
        assert!(
            kept.starts_with('…') && kept.ends_with("the cause"),
            "{kept}"
        );
        assert_eq!(kept.chars().count(), MAX_FAILURE + 1);
        assert_eq!(end_of("short"), "short");
    }
}
