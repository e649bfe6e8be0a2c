//! What came of each artifact: exactly one result, whatever happened to the others.

use std::time::Duration;

use camino::Utf8PathBuf;
use portolan_digest::Digest;
use portolan_engine::{Outcome, Report, with_causes};
use serde::Serialize;

use crate::document::{API_VERSION, Ship};
use crate::push::{self, Pushed};
use crate::runs::ShipRun;

/// An image that is in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The digest of its manifest or index.
    pub digest: Digest,
    /// The kind of that document.
    pub media_type: String,
    /// The length of that document in bytes.
    pub size: u64,
    /// Whether it was there before.
    pub is_cached: bool,
    /// Why it had to be built: what changed since it was built last.
    pub because: Vec<String>,
}

/// What the last event of an artifact says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary<'a> {
    pub(crate) digest: String,
    pub(crate) status: ArtifactStatus,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) because: &'a [String],
}

/// How an artifact ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactStatus {
    /// It was built now.
    Built,
    /// It was there: nothing that it is made of has changed.
    Cached,
    /// It could not be built.
    Failed,
    /// Something that it needs could not be built.
    Skipped,
    /// The run was called off before it ended.
    Cancelled,
}

/// The result of one artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactResult {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub status: ArtifactStatus,
    /// The image by repository, tag and digest, if there is one.
    pub image: Option<String>,
    /// Its digest, if there is one.
    pub digest: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// Why there is none.
    pub error: Option<String>,
    /// What changed since it was built last, or what it waited for.
    pub because: Vec<String>,
}

/// What a build came to, as programs get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildResult {
    api_version: &'static str,
    kind: &'static str,
    /// The name of the run.
    pub run: String,
    /// Where the output of its programs lies.
    #[serde(skip)]
    pub output: Utf8PathBuf,
    /// The result of each artifact, in the document's order.
    pub artifacts: Vec<ArtifactResult>,
    /// What was pushed, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed: Option<Vec<Pushed>>,
    /// How long it took.
    pub duration_ms: u64,
}

impl BuildResult {
    /// The results of a run.
    pub fn new(run: &ShipRun, artifacts: Vec<ArtifactResult>, report: &Report) -> Self {
        Self {
            api_version: API_VERSION,
            kind: "BuildResult",
            run: run.id().to_owned(),
            output: run.output(),
            artifacts,
            pushed: None,
            duration_ms: milliseconds(report.took()),
        }
    }

    /// The results of a run for tests.
    #[cfg(test)]
    pub(crate) fn of_artifacts(run: &str, artifacts: Vec<ArtifactResult>) -> Self {
        Self {
            api_version: API_VERSION,
            kind: "BuildResult",
            run: run.to_owned(),
            output: Utf8PathBuf::new(),
            artifacts,
            pushed: None,
            duration_ms: 1,
        }
    }

    /// Whether there is an image of each artifact.
    pub fn is_good(&self) -> bool {
        self.artifacts.iter().all(ArtifactResult::is_good)
    }

    /// How many artifacts ended so.
    pub fn count(&self, status: ArtifactStatus) -> usize {
        let ended = self.artifacts.iter();
        ended.filter(|artifact| artifact.status == status).count()
    }
}

impl Built {
    pub(crate) fn summary(&self) -> Summary<'_> {
        Summary {
            digest: self.digest.to_string(),
            status: self.status(),
            because: &self.because,
        }
    }

    fn status(&self) -> ArtifactStatus {
        if self.is_cached {
            ArtifactStatus::Cached
        } else {
            ArtifactStatus::Built
        }
    }
}

impl ArtifactResult {
    /// Whether there is an image.
    pub fn is_good(&self) -> bool {
        matches!(self.status, ArtifactStatus::Built | ArtifactStatus::Cached)
    }
}

impl ArtifactResult {
    /// An image that did not get where it should is no good result.
    fn take_push(&mut self, outcome: Option<Outcome>) {
        match outcome {
            Some(Outcome::Failed(failure)) => {
                self.status = ArtifactStatus::Failed;
                self.error = Some(with_causes(failure.error()));
            }
            Some(Outcome::Cancelled) => self.status = ArtifactStatus::Cancelled,
            _ => {}
        }
    }
}

/// The results of the artifacts that were asked for, in the document's order.
pub(crate) fn results(ship: &Ship, report: &Report) -> Vec<ArtifactResult> {
    let artifacts = ship.artifacts.iter();
    artifacts
        .filter_map(|artifact| result(&artifact.name, &artifact.image, report))
        .collect()
}

/// The result of an artifact whose images go to this repository; `None` if it is not in the run.
pub(crate) fn result(name: &str, repository: &str, report: &Report) -> Option<ArtifactResult> {
    let key = crate::build::key(name);
    let unit = report.get(&key.untyped())?;
    let mut result = ArtifactResult {
        name: name.to_owned(),
        status: ArtifactStatus::Cancelled,
        image: None,
        digest: None,
        duration_ms: milliseconds(unit.took),
        error: None,
        because: Vec::new(),
    };
    match &unit.outcome {
        Outcome::Done(_) => {
            let built = report.output(&key)?;
            result.status = built.status();
            result.image = Some(reference(repository, &built.digest));
            result.digest = Some(built.digest.to_string());
            result.because.clone_from(&built.because);
        }
        Outcome::Failed(failure) => {
            result.status = ArtifactStatus::Failed;
            result.error = Some(with_causes(failure.error()));
        }
        Outcome::Skipped { because } => {
            result.status = ArtifactStatus::Skipped;
            let name = because.as_str().trim_start_matches("artifact/");
            result.because = vec![format!("{name} failed")];
        }
        Outcome::Cancelled => {}
    }
    if result.is_good() {
        result.take_push(push::failure(name, report));
    }
    Some(result)
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// `repository:tag@sha256:…`; the tag is the beginning of the digest, so that it never means two images.
pub(crate) fn reference(repository: &str, digest: &Digest) -> String {
    format!("{repository}:{}@{digest}", tag(digest))
}

/// The tag of a digest.
pub(crate) fn tag(digest: &Digest) -> String {
    digest.hex().get(..12).unwrap_or_default().to_owned()
}
