//! Builders, testers, deployers and verifiers of another program, as units of a run.
//!
//! Each gets a [`Task`](crate::Task) and returns a result. That it is queued, starts and ends is told by the runner, as for those
//! that the document has words for:
//!
//! ```
//! use portolan_ship::{Built, Builder, ShipError, Task};
//!
//! struct Pages(portolan_ship::BuildSetup);
//!
//! impl Builder for Pages {
//!     fn build(&self, task: &Task) -> Result<Built, ShipError> {
//!         std::fs::write(task.scratch().join("index.html"), "a page").map_err(ShipError::other)?;
//!         self.0.image_of_files("pages", "registry.example/pages", task.scratch(), task)
//!     }
//! }
//! ```
//!
//! A whole program is in `examples/own_builder.rs`. The runner alone makes a unit of a builder, so none can be put into a run in
//! which its lifecycle would not be told:
//!
//! ```compile_fail,E0603
//! use portolan_ship::observe::observe;
//! ```
//!
//! ```compile_fail,E0308
//! fn add(run: &portolan_engine::Run, builder: impl portolan_ship::Builder) {
//!     run.add("artifact/web", &[], builder);
//! }
//! ```

use portolan_engine::{Context, Failure, Key, Report, Run};

use crate::batch::{BatchBuilder, plan_batch};
use crate::builder::Builder;
use crate::check::{self, CheckResult, Tester, Verifier, test_key, verify_key};
use crate::deploy::{self, Deployer, StepResult, step_result};
use crate::observe::{Effort, ONCE, observe};
use crate::outcome::{self, ArtifactResult};
use crate::runs::ShipRun;
use crate::task::Task;

/// Where work of another program is added: a run, and its directory.
#[derive(Clone, Copy)]
pub struct OwnWork<'a> {
    /// The directory of the run.
    pub run: &'a ShipRun,
    /// Its units.
    pub units: &'a Run,
    /// How often work is done again that failed.
    pub retries: u32,
}

impl<'a> OwnWork<'a> {
    /// Work that is added to a run, and done once.
    pub fn new(run: &'a ShipRun, units: &'a Run) -> Self {
        Self {
            run,
            units,
            retries: 0,
        }
    }

    /// Adds an artifact, which is built after those that it needs.
    pub fn build(&self, artifact: &str, needs: &[&str], builder: impl Builder) {
        let work = move |_: &Context, task: &Task| Ok::<_, Failure>(builder.build(task)?);
        let unit = observe(artifact, self.run, self.effort(), work);
        let key = crate::build::key(artifact);
        self.units.add(key, &artifacts(needs), unit);
    }

    /// Adds artifacts that one builder builds together.
    pub fn build_all(&self, batch: &str, artifacts: &[&str], builder: impl BatchBuilder) {
        plan_batch(batch, artifacts, builder, self.run, self.units);
    }

    /// Adds a test of an artifact.
    pub fn test(&self, test: &str, artifact: &str, tester: impl Tester) {
        let name = format!("test-{test}-{artifact}");
        let work = move |_: &Context, task: &Task| Ok::<_, Failure>(tester.test(task)?);
        let unit = observe(&name, self.run, self.effort(), work);
        self.units
            .add(test_key(test, artifact), &artifacts(&[artifact]), unit);
    }

    /// Adds a deploy step, which is done after these artifacts and steps.
    pub fn deploy(&self, step: &str, built: &[&str], deployed: &[&str], deployer: impl Deployer) {
        let name = format!("deploy-{step}");
        let work = move |_: &Context, task: &Task| Ok::<_, Failure>(deployer.deploy(task)?);
        let unit = observe(&name, self.run, self.effort(), work);
        let needs = [artifacts(built), steps(deployed)].concat();
        self.units.add(deploy::key(step), &needs, unit);
    }

    /// Adds a verification, which is done after these steps.
    pub fn verify(&self, name: &str, deployed: &[&str], verifier: impl Verifier) {
        let work = move |_: &Context, task: &Task| Ok::<_, Failure>(verifier.verify(task)?);
        let unit = observe(&format!("verify-{name}"), self.run, self.effort(), work);
        self.units.add(verify_key(name), &steps(deployed), unit);
    }

    fn effort(&self) -> Effort {
        Effort {
            retries: self.retries,
            ..ONCE
        }
    }
}

/// What came of an artifact whose images go to this repository; `None` if it is not in the run.
pub fn own_artifact(name: &str, repository: &str, report: &Report) -> Option<ArtifactResult> {
    outcome::result(name, repository, report)
}

/// What came of a test of an artifact; `None` if it is not in the run.
pub fn own_test(test: &str, artifact: &str, report: &Report) -> Option<CheckResult> {
    let mut result = check::result(test, &test_key(test, artifact), report)?;
    result.artifact = Some(artifact.to_owned());
    Some(result)
}

/// What came of a deploy step; `None` if it is not in the run.
pub fn own_step(name: &str, report: &Report) -> Option<StepResult> {
    step_result(name, report)
}

/// What came of a verification; `None` if it is not in the run.
pub fn own_verification(name: &str, report: &Report) -> Option<CheckResult> {
    check::result(name, &verify_key(name), report)
}

fn artifacts(names: &[&str]) -> Vec<Key> {
    let keys = names.iter().map(|name| crate::build::key(name).untyped());
    keys.collect()
}

fn steps(names: &[&str]) -> Vec<Key> {
    let keys = names.iter().map(|name| deploy::key(name).untyped());
    keys.collect()
}
