//! The commands of a deploy step: what runs before anything is applied, and when everything is ready.

use std::collections::BTreeMap;

use super::{DeployError, DeploySetup, namespace};
use crate::builder::{BuildSetup, variable_word};
use crate::check::{CommandTester, Verifier};
use crate::document::{CommandCheck, DeployStep};
use crate::task::Task;

/// The commands of a step, and what they are told.
pub(super) struct StepCommands {
    step: DeployStep,
    /// The step, its namespace and its images.
    variables: BTreeMap<String, String>,
    setup: BuildSetup,
}

impl StepCommands {
    pub(super) fn new(
        step: &DeployStep,
        images: &BTreeMap<String, String>,
        setup: &DeploySetup,
    ) -> Self {
        let of_images = images.iter().map(|(artifact, image)| {
            let word = variable_word(artifact);
            (format!("PORTOLAN_IMAGE_{word}"), image.clone())
        });
        let mut variables: BTreeMap<String, String> = of_images.collect();
        let namespace = namespace(step, &setup.cluster);
        variables.insert("PORTOLAN_NAMESPACE".to_owned(), namespace);
        variables.insert("PORTOLAN_STEP".to_owned(), step.name.clone());
        Self {
            step: step.clone(),
            variables,
            setup: setup.build.clone(),
        }
    }

    /// Runs what comes before the step, one after the other, until one fails.
    pub(super) fn run_before(&self, task: &Task) -> Result<(), DeployError> {
        self.run("before", &self.step.before, task)
    }

    /// Runs what comes after the step, one after the other, until one fails.
    pub(super) fn run_after(&self, task: &Task) -> Result<(), DeployError> {
        self.run("after", &self.step.after, task)
    }

    fn run(
        &self,
        when: &'static str,
        commands: &[CommandCheck],
        task: &Task,
    ) -> Result<(), DeployError> {
        for (at, command) in commands.iter().enumerate() {
            let program = CommandTester {
                name: format!("{when}-{}-{at}", self.step.name),
                check: command.clone(),
                image: None,
                variables: self.variables.clone(),
                setup: self.setup.clone(),
            };
            let ran = program.verify(task);
            ran.map_err(|error| DeployError::Command {
                when,
                source: Box::new(error),
            })?;
        }
        Ok(())
    }
}
