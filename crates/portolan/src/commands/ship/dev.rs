//! `portolan dev`: builds and deploys again whenever a file is saved, and follows logs and ports meanwhile.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use portolan_cluster::{Cluster, PruneOptions};
use portolan_engine::{CancellationToken, Journal, Report, Run};
use portolan_ship::{
    BuildResult, BuildSetup, ChangedFiles, DeploySetup, DevControl, DevEvent, DevEvents,
    DevProject, DevSession, DevStages, FileChanges, RenderedStep, SkaffoldTurns, StepResult,
    StepStatus, VerifySetup, delete_step, finish_deploy, finish_tests, finish_verify, plan_deploy,
    plan_tests, plan_verify, select_verifications, serve_skaffold,
};
use tokio::runtime::Runtime;

use super::build::BuildOptions;
use super::deploy_print::deleted_text;
use super::dev_flux::{Suspension, resume_former, suspend};
use super::dev_print::{DevPrinter, print_events};
use super::output_args::OutputArgs;
use super::project::{ArtifactArgs, Project, ProjectArgs};
use super::render::{all_artifacts, selected};
use super::serving::stop_token;
use super::target_args::TargetArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::{CommandError, ErrorKind};
use crate::exit::ExitStatus;

/// Build and deploy again whenever a file is saved, and follow the logs and ports of the pods
///
/// Everything is built and deployed once. Then the files below the document are watched: a saved file builds the
/// artifacts that are made of it and deploys the steps that change, or is copied into the running pods if a rule of
/// `dev.sync` says so. The logs of all pods that run the project's images go to standard output. The ports of
/// `dev.forward` stay connected from one pod to the next. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan dev
  portolan dev --push --context staging
  portolan dev --cleanup
  portolan dev -o json | jq -c 'select(.type == \"log\")'")]
pub(crate) struct DevArgs {
    /// Delete what was deployed at the end; the default is what `dev.cleanup` of the document says
    #[arg(long, overrides_with = "no_cleanup", help_heading = "Cluster")]
    cleanup: bool,

    /// Leave what was deployed in the cluster
    #[arg(long, help_heading = "Cluster")]
    no_cleanup: bool,

    /// Suspend what of Flux manages objects of the project; it is resumed when the command ends, also if that is killed
    #[arg(long, help_heading = "Cluster")]
    suspend_flux: bool,

    #[command(flatten)]
    selected: ArtifactArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    build: BuildOptions,

    #[command(flatten)]
    project: ProjectArgs,
}

pub(crate) fn dev(args: &DevArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let project = args.project.read_for("dev", args.target.place(), printer)?;
    let runtime = app.runtime()?;
    let stop = stop_token(runtime);
    let cluster = Arc::new(runtime.block_on(args.target.connect(&project.ship))?);
    // Nothing is built for a cluster that does not answer.
    runtime
        .block_on(cluster.version())
        .map_err(CommandError::user)?;
    let store = args.build.store_directory(&project)?;
    resume_former(&cluster, &store, runtime, printer)?;
    let (session_run, journal) = args.build.session_run(&project)?;
    printer.say_unless_quiet(&format!(
        "`portolan events --run {} --follow` tells of copied files and forwarded ports",
        session_run.id()
    ));
    let (events, waiting) = DevEvents::channel();
    let events = events.kept_in(&journal);
    let print = DevPrinter::new(args.output.format, printer);
    let gone = stop.clone();
    std::thread::scope(|scope| {
        let printing = scope.spawn(|| {
            let printed = print_events(waiting, &print);
            // Nobody reads any more.
            gone.cancel();
            printed
        });
        let files = ChangedFiles::below(&project.directory, vec![store.clone()]);
        let ship = Arc::new(project.ship.clone());
        let name = project.file.file_name().unwrap_or_default();
        let document = project.directory.join(name);
        let skaffold = match skaffold_session(args, &journal, &stop, runtime) {
            Ok(skaffold) => skaffold,
            Err(error) => {
                drop(events);
                return Err(error);
            }
        };
        let dev = Dev {
            skaffold,
            pending: FileChanges::default(),
            state: DevProject::new(ship, &project.directory, &document),
            session: DevSession::new(&cluster, &events),
            suspension: None,
            project,
            cluster,
            store,
            files,
            events,
            print: &print,
            stop,
            args,
            app,
            runtime,
        };
        let ended = dev.run();
        let printed = printing.join();
        journal.close();
        session_run.clear_scratch().map_err(CommandError::user)?;
        // What cannot be printed ends the command, unless it failed by itself.
        printed.unwrap_or(Ok(())).and(ended)
    })
}

/// Skaffold's API for a whole session: what clients ask for, and the runs that they see.
struct SkaffoldSession {
    control: Arc<DevControl>,
    turns: SkaffoldTurns,
}

/// Serves Skaffold's API until the session ends, where that is asked for.
fn skaffold_session(
    args: &DevArgs,
    journal: &Journal,
    stop: &CancellationToken,
    runtime: &Runtime,
) -> Result<SkaffoldSession, CommandError> {
    let session = SkaffoldSession {
        control: Arc::default(),
        turns: SkaffoldTurns::of_session(journal),
    };
    let _inside = runtime.enter();
    let listeners = args.build.skaffold_listeners()?;
    let (turns, control) = (session.turns.clone(), Arc::clone(&session.control));
    let served = serve_skaffold(listeners, turns, Some(control), stop.clone());
    let served = served.map_err(CommandError::user)?;
    runtime.spawn(async {
        if let Err(error) = served.await {
            tracing::warn!(%error, "Skaffold's API is no longer served");
        }
    });
    Ok(session)
}

/// A session and what it works on.
struct Dev<'a> {
    skaffold: SkaffoldSession,
    /// What was saved and has not been dealt with, because a stage was switched off.
    pending: FileChanges,
    project: Project,
    state: DevProject,
    cluster: Arc<Cluster>,
    store: Utf8PathBuf,
    suspension: Option<Suspension>,
    files: ChangedFiles,
    session: DevSession,
    events: DevEvents,
    print: &'a DevPrinter<'a>,
    stop: CancellationToken,
    args: &'a DevArgs,
    app: &'a App,
    runtime: &'a Runtime,
}

impl Dev<'_> {
    fn run(mut self) -> CommandResult {
        self.begin()?;
        let mut polls = false;
        loop {
            if let Some(why) = self.files.why_polling().filter(|_| !polls) {
                let why = why.to_owned();
                self.events.tell(DevEvent::Polling { why });
                polls = true;
            }
            let (files, stop) = (&mut self.files, &self.stop);
            let control = &self.skaffold.control;
            let news = self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => None,
                    asked = control.asked() => Some((FileChanges::default(), asked)),
                    changes = files.next() => Some((changes, DevStages::default())),
                }
            });
            let Some((changes, asked)) = news else {
                return self.end();
            };
            self.pending.extend(changes);
            self.react(self.skaffold.control.auto().or(asked))?;
        }
    }

    /// Builds and deploys for the first time.
    fn begin(&mut self) -> Result<(), CommandError> {
        let steps = selected(&self.project, &self.args.selected, &self.app.printer)?;
        self.suspension = suspend(
            self.args.suspend_flux,
            &self.args.target.access(&self.project.ship)?,
            (&self.cluster, &self.store),
            &steps,
            (self.runtime, &self.app.printer),
        )?;
        self.session
            .follow(&self.project.ship, self.runtime.handle());
        self.build_and_deploy(all_artifacts(&steps), &steps, DevStages::ALL)
    }

    /// Does what changed files ask for, as far as these stages are to be done. What is wrong with them is told, and the next
    /// change waited for.
    fn react(&mut self, stages: DevStages) -> Result<(), CommandError> {
        if stages.is_empty() {
            return Ok(());
        }
        let changes = self.pending.clone();
        let mut dirty = self.state.dirty(&changes);
        if !stages.build {
            dirty.artifacts.clear();
        }
        if !stages.sync {
            dirty.files.clear();
        }
        if stages.build && stages.sync {
            self.pending = FileChanges::default();
        }
        if dirty.document {
            let (project, target) = (&self.args.project, &self.args.target);
            let read = project.read_for("dev", target.place(), &self.app.printer);
            let Some(project) = self.or_wait(read)? else {
                return Ok(());
            };
            self.state.replace_document(Arc::new(project.ship.clone()));
            self.project = project;
            self.session
                .follow(&self.project.ship, self.runtime.handle());
        }
        let steps = selected(&self.project, &self.args.selected, &self.app.printer);
        let Some(steps) = self.or_wait(steps)? else {
            return Ok(());
        };
        let deployed = all_artifacts(&steps);
        let mut names: BTreeSet<String> = if dirty.document && stages.build {
            deployed.clone()
        } else {
            std::mem::take(&mut dirty.artifacts)
        };
        let is_stale = stages.deploy && !self.state.stale_steps(&steps).is_empty();
        if names.is_disjoint(&deployed) && dirty.files.is_empty() && !is_stale {
            return Ok(());
        }
        if !changes.paths.is_empty() || changes.is_partial {
            self.print.changed(&changes, &self.project.directory)?;
        }
        names.extend(
            self.runtime
                .block_on(self.session.sync(&self.state, &dirty)),
        );
        if !stages.build {
            names.clear();
        }
        let names: BTreeSet<String> = names.intersection(&deployed).cloned().collect();
        if names.is_empty() && !is_stale {
            return Ok(());
        }
        let done = self.build_and_deploy(names, &steps, stages);
        self.or_wait(done).map(drop)
    }

    fn build_and_deploy(
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

    /// What went well; a mistake of the user is told and waited out.
    fn or_wait<T>(&self, result: Result<T, CommandError>) -> Result<Option<T>, CommandError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind == ErrorKind::User && !error.is_broken_pipe() => {
                self.app.printer.error(&error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Ends every task, deletes what was deployed if that is asked for, and resumes Flux.
    fn end(mut self) -> CommandResult {
        self.skaffold.turns.end();
        let suspension = self.suspension.take();
        let (cluster, runtime, app) = (self.cluster.clone(), self.runtime, self.app);
        let ended = self.clean_up();
        if let Some(suspension) = suspension {
            suspension.end(&cluster, runtime, &app.printer)?;
        }
        ended.map(|()| ExitStatus::Interrupted)
    }

    fn clean_up(self) -> Result<(), CommandError> {
        drop(self.session);
        let is_asked = self.args.cleanup || self.project.ship.dev.cleanup;
        if !is_asked || self.args.no_cleanup {
            return Ok(());
        }
        let options = PruneOptions {
            dangerous: false,
            many: true,
        };
        let ship = &self.project.ship;
        for step in ship.deploy.iter().rev() {
            let deleted = self.runtime.block_on(async {
                tokio::select! {
                    deleted = delete_step(ship, step, &self.cluster, options) => Some(deleted),
                    _ = tokio::signal::ctrl_c() => None,
                }
            });
            let Some(deleted) = deleted else {
                let rest =
                    "a second Ctrl-C: not all is deleted; `portolan ship delete` deletes the rest";
                self.app.printer.warning(rest);
                return Ok(());
            };
            let deleted = deleted.map_err(CommandError::user)?;
            let text = deleted_text(&deleted, &self.app.printer);
            self.app.printer.say_unless_quiet(text.trim_end());
        }
        Ok(())
    }
}
