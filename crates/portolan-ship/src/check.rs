//! Tests of artifacts and verifications of what was deployed: a unit for each, and one result.
//!
//! ```text
//! artifact/web ──▶ test/unit/web ──▶ deploy/shop ──▶ verify/http
//! ```

mod cluster;
mod command;
mod http;
mod image;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;

use portolan_cluster::{Cluster, ClusterError, MemberError};
use portolan_engine::{Context, Failure, Key, Outcome, Report, Run, Unit, with_causes};
use portolan_image::BaseError;
use serde::Serialize;
use serde_json::json;

use crate::builder::{BuildSetup, ShipError};
use crate::document::{ArtifactTest, DeployCheck, HttpTarget, Ship, TestSource, VerifySource};
use crate::observe::{Effort, ONCE, Summarised, observe};
use crate::outcome::Built;
use crate::task::Task;
use cluster::ClusterVerifier;
pub(crate) use command::CommandTester;
use http::HttpVerifier;
use image::ImageTester;

/// How a test or verification ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// All is well.
    Passed,
    /// It passed before, with the same inputs and the same image.
    Cached,
    /// Something is wrong.
    Failed,
    /// What it looks at is not there.
    Skipped,
    /// It was called off.
    Cancelled,
}

/// The result of one test of one artifact, or of one verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// Its name.
    pub name: String,
    /// The artifact that was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// How it ended.
    pub status: CheckStatus,
    /// How long it took.
    pub duration_ms: u64,
    /// What is wrong.
    pub error: Option<String>,
    /// What it waited for.
    pub because: Vec<String>,
}

/// A test or verification that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passed {
    /// Whether it passed before, with the same inputs and the same image, and was not run again.
    pub is_cached: bool,
}

/// Why a test or verification did not pass.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A program failed, or could not be run.
    #[error(transparent)]
    Command(#[from] ShipError),
    /// The image is not what it should be.
    #[error("{}", .0.join("; "))]
    Image(Vec<String>),
    /// The image cannot be read.
    #[error("cannot read the image")]
    Read(#[from] BaseError),
    /// Patterns of files are none.
    #[error("not a pattern of files")]
    Pattern(#[from] portolan_image::IgnoreError),
    /// There was no good answer in time.
    #[error("`{url}` did not answer as it should within {seconds} s: {why}")]
    Http {
        /// What was asked for.
        url: String,
        /// How long it was tried.
        seconds: u64,
        /// What was wrong with the last answer.
        why: String,
    },
    /// A port of this machine cannot be listened on.
    #[error("cannot forward a port")]
    Forward(#[source] std::io::Error),
    /// Objects are not in the state that they should be in.
    #[error("{0}")]
    Objects(String),
    /// The cluster could not be asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The cluster does not serve the kind.
    #[error(transparent)]
    Kind(#[from] MemberError),
    /// There is no cluster to look at.
    #[error("no cluster was connected to")]
    NoCluster,
    /// What a tester or verifier of another program found.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
    /// It was called off.
    #[error("it was called off")]
    Cancelled,
}

impl CheckError {
    /// What a tester or verifier of another program found.
    pub fn other(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }

    /// The same with another name for an address: that of a forwarded port says nothing to people.
    fn instead_of(self, address: &str, name: &str) -> Self {
        match self {
            Self::Http { url, seconds, why } => Self::Http {
                url: url.replace(address, name),
                seconds,
                why: why.replace(address, name),
            },
            other => other,
        }
    }
}

/// Tests one artifact.
pub trait Tester: Send + Sync + 'static {
    /// Tests it, or says what is wrong. It may take its time: it runs on a thread of its own.
    fn test(&self, task: &Task) -> Result<Passed, CheckError>;
}

/// Verifies one thing.
pub trait Verifier: Send + Sync + 'static {
    /// Verifies it, or says what is wrong. It may take its time: it runs on a thread of its own.
    fn verify(&self, task: &Task) -> Result<Passed, CheckError>;
}

/// What every verification of a run has.
#[derive(Clone)]
pub struct VerifySetup {
    /// The run, and what builders have.
    pub build: BuildSetup,
    /// The document.
    pub ship: Arc<Ship>,
    /// The cluster, if something needs one.
    pub cluster: Option<Arc<Cluster>>,
    /// Whether the steps are deployed in the same run, and come first.
    pub is_deploying: bool,
}

pub(crate) fn test_key(test: &str, artifact: &str) -> Key<Passed> {
    Key::from(format!("test/{test}/{artifact}").as_str())
}

pub(crate) fn verify_key(name: &str) -> Key<Passed> {
    Key::from(format!("verify/{name}").as_str())
}

/// The keys of the tests of an artifact.
pub(crate) fn tests_of(ship: &Ship, artifact: &str) -> Vec<Key> {
    let tests = ship.tests.iter();
    tests
        .filter(|test| test.artifacts.iter().any(|name| name == artifact))
        .map(|test| test_key(&test.name, artifact).untyped())
        .collect()
}

/// The artifacts that are tested, each once.
pub fn tested(ship: &Ship) -> Vec<String> {
    let names: BTreeSet<&String> = ship.tests.iter().flat_map(|test| &test.artifacts).collect();
    names.into_iter().cloned().collect()
}

/// Adds the tests of artifacts to a run in which these are built.
pub fn plan_tests(ship: &Ship, artifacts: &[String], setup: &BuildSetup, run: &Run) {
    for test in &ship.tests {
        for artifact in test
            .artifacts
            .iter()
            .filter(|name| artifacts.contains(name))
        {
            let need = crate::build::key(artifact).untyped();
            let unit = test_unit(test.clone(), artifact.clone(), setup.clone());
            run.add(test_key(&test.name, artifact), &[need], unit);
        }
    }
}

fn test_unit(test: ArtifactTest, artifact: String, setup: BuildSetup) -> Unit<Passed> {
    let (name, run) = (format!("test-{}-{artifact}", test.name), setup.run.clone());
    let retries = test.retries;
    let work = move |context: &Context, task: &Task| -> Result<Passed, Failure> {
        let image: Arc<Built> = context.need(&crate::build::key(&artifact))?;
        let setup = setup.clone();
        let tester: Box<dyn Tester> = match test.source.clone() {
            TestSource::Command(check) => Box::new(CommandTester {
                name: format!("{}-{artifact}", test.name),
                check,
                image: Some((artifact.clone(), Arc::clone(&image))),
                variables: BTreeMap::new(),
                setup,
            }),
            TestSource::Image(check) => Box::new(ImageTester {
                check,
                image,
                setup,
            }),
        };
        Ok(tester.test(task)?)
    };
    let effort = Effort { retries, ..ONCE };
    observe(&name, &run, effort, work)
}

/// Whether a verification looks at a cluster.
pub fn needs_cluster(ship: &Ship) -> bool {
    let mut verifications = ship.verify.iter();
    verifications.any(|verification| match &verification.source {
        VerifySource::Cluster(_) => true,
        VerifySource::Http(http) => matches!(http.target, HttpTarget::Forward { .. }),
        VerifySource::Command(_) => false,
    })
}

/// Adds the verifications to a run, after the deploy steps that they need.
pub fn plan_verify(setup: &VerifySetup, run: &Run) {
    for verification in &setup.ship.verify {
        let steps = setup.ship.deploy.iter().map(|step| &step.name);
        let needs: Vec<Key> = match (setup.is_deploying, verification.needs.as_slice()) {
            (false, _) => Vec::new(),
            (true, []) => steps
                .map(|name| crate::deploy::key(name).untyped())
                .collect(),
            (true, needs) => needs
                .iter()
                .map(|name| crate::deploy::key(name).untyped())
                .collect(),
        };
        let unit = verify_unit(verification.clone(), setup.clone());
        run.add(verify_key(&verification.name), &needs, unit);
    }
}

fn verify_unit(verification: DeployCheck, setup: VerifySetup) -> Unit<Passed> {
    let name = format!("verify-{}", verification.name);
    let run = setup.build.run.clone();
    let work = move |_: &Context, task: &Task| -> Result<Passed, Failure> {
        let verifier: Box<dyn Verifier> = match verification.source.clone() {
            VerifySource::Http(check) => Box::new(HttpVerifier {
                namespace: verification.namespace.clone(),
                check,
                cluster: setup.cluster.clone(),
            }),
            VerifySource::Command(check) => Box::new(CommandTester {
                name: verification.name.clone(),
                check,
                image: None,
                variables: BTreeMap::new(),
                setup: setup.build.clone(),
            }),
            VerifySource::Cluster(check) => Box::new(ClusterVerifier {
                namespace: verification.namespace.clone(),
                check,
                cluster: setup.cluster.clone().ok_or(CheckError::NoCluster)?,
            }),
        };
        Ok(verifier.verify(task)?)
    };
    observe(&name, &run, ONCE, work)
}

/// What came of the tests, in the document's order.
pub fn finish_tests(ship: &Ship, report: &Report) -> Vec<CheckResult> {
    let tests = ship.tests.iter();
    let pairs = tests.flat_map(|test| test.artifacts.iter().map(move |artifact| (test, artifact)));
    pairs
        .filter_map(|(test, artifact)| {
            let mut result = result(&test.name, &test_key(&test.name, artifact), report)?;
            result.artifact = Some(artifact.clone());
            Some(result)
        })
        .collect()
}

/// What came of the verifications, in the document's order.
pub fn finish_verify(ship: &Ship, report: &Report) -> Vec<CheckResult> {
    let verifications = ship.verify.iter();
    verifications
        .filter_map(|verification| {
            result(&verification.name, &verify_key(&verification.name), report)
        })
        .collect()
}

pub(crate) fn result(name: &str, key: &Key<Passed>, report: &Report) -> Option<CheckResult> {
    let unit = report.get(&key.untyped())?;
    let is_cached = report.output(key).is_some_and(|passed| passed.is_cached);
    let (status, error, because) = match &unit.outcome {
        Outcome::Done(_) if is_cached => (CheckStatus::Cached, None, Vec::new()),
        Outcome::Done(_) => (CheckStatus::Passed, None, Vec::new()),
        Outcome::Failed(failure) => (
            CheckStatus::Failed,
            Some(with_causes(failure.error())),
            Vec::new(),
        ),
        Outcome::Skipped { because } => (
            CheckStatus::Skipped,
            None,
            vec![format!("{because} failed")],
        ),
        Outcome::Cancelled => (CheckStatus::Cancelled, None, Vec::new()),
    };
    Some(CheckResult {
        name: name.to_owned(),
        artifact: None,
        status,
        duration_ms: u64::try_from(unit.took.as_millis()).unwrap_or(u64::MAX),
        error,
        because,
    })
}

impl CheckResult {
    /// Whether all is well.
    pub fn is_good(&self) -> bool {
        matches!(self.status, CheckStatus::Passed | CheckStatus::Cached)
    }
}

impl Summarised for Passed {
    fn summary(&self) -> impl Serialize {
        json!({"status": if self.is_cached { "cached" } else { "passed" }})
    }
}
