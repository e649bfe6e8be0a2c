//! The stages of one turn of `portolan dev`: artifacts are built and tested, steps deployed and verified.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use portolan_engine::{Report, Run};
use portolan_ship::{
    BuildResult, BuildSetup, DeploySetup, DevStages, RenderedStep, StepResult, StepStatus,
    VerifySetup, finish_deploy, finish_tests, finish_verify, plan_deploy, plan_tests, plan_verify,
    select_verifications,
};

use super::dev_loop::Dev;
use crate::error::CommandError;

impl Dev<'_> {
    /// Builds artifacts and deploys what is stale, as far as these stages are to be done.
    pub(super) fn build_and_deploy(
        &mut self,
        names: BTreeSet<String>,
        steps: &[RenderedStep],
        stages: DevStages,
    ) -> Result<(), CommandError> {
        let _quiet = self.print.pause_logs();
        self.skaffold.turns.begin_turn();
        if !names.is_empty() {
            let names: Vec<String> = names.into_iter().collect();
            let ship = Arc::clone(&self.state.ship);
            let (result, report) = self.run_units(&names, |build, units| {
                plan_tests(&ship, &names, build, units);
            })?;
            self.state.take_built(&result);
            self.print.built(&result)?;
            let tests = finish_tests(&ship, &report);
            self.state.take_tested(&tests);
            self.print.checked("tested", &tests)?;
        }
        if self.stop.is_cancelled() || !stages.deploy {
            return Ok(());
        }
        let stale = self.state.deployable(steps);
        if stale.is_empty() {
            return Ok(());
        }
        let setup = |build: &BuildSetup| DeploySetup {
            build: build.clone(),
            ship: Arc::clone(&self.state.ship),
            cluster: Arc::clone(&self.cluster),
            images: Some(self.state.images().clone()),
            is_pushing: false,
            is_testing: false,
            prune_many: false,
            is_trial: false,
            objects: Arc::new(Mutex::default()),
        };
        let mut planned = None;
        let (result, report) = self.run_units(&[], |build, units| {
            let setup = setup(build);
            plan_deploy(&stale, &setup, units);
            planned = Some(setup);
        })?;
        let results = planned.map(|setup| finish_deploy(&setup, &report));
        let results = results.unwrap_or_default();
        self.state.take_deployed(steps, &results);
        self.print.deployed(&result, &results)?;
        let is_deployed = |step: &StepResult| step.status == StepStatus::Deployed;
        if results.iter().all(is_deployed) && !self.stop.is_cancelled() {
            self.verify(steps)?;
        }
        Ok(())
    }

    /// Verifies what is deployed.
    fn verify(&self, steps: &[RenderedStep]) -> Result<(), CommandError> {
        let ship = &Arc::new(select_verifications(&self.state.ship, steps));
        if ship.verify.is_empty() {
            return Ok(());
        }
        let (_, report) = self.run_units(&[], |build, units| {
            let setup = VerifySetup {
                build: build.clone(),
                ship: Arc::clone(ship),
                cluster: Some(Arc::clone(&self.cluster)),
                is_deploying: false,
            };
            plan_verify(&setup, units);
        })?;
        self.print
            .checked("verified", &finish_verify(ship, &report))
    }

    /// Builds artifacts, and does what `plan` adds; what ends the session ends the run.
    fn run_units(
        &self,
        names: &[String],
        plan: impl FnOnce(&BuildSetup, &Run),
    ) -> Result<(BuildResult, Report), CommandError> {
        let mut watching = None;
        let run = self.args.build.run_in(
            Some(&self.skaffold.turns),
            &self.project,
            names,
            self.app,
            |build, _, units| {
                let (stop, canceller) = (self.stop.clone(), units.canceller());
                watching = Some(tokio::spawn(async move {
                    stop.cancelled().await;
                    canceller.cancel();
                }));
                plan(build, units);
            },
        );
        if let Some(watching) = watching {
            watching.abort();
        }
        Ok(run?.0)
    }
}
