//! The loop of `portolan dev`: what a saved file or a client asks for is done, then the next one is waited for.

use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_cluster::{Cluster, PruneOptions};
use portolan_engine::CancellationToken;
use portolan_ship::{
    ChangedFiles, DevEvent, DevEvents, DevProject, DevSession, DevStages, FileChanges, delete_step,
};
use tokio::runtime::Runtime;

use super::deploy_print::deleted_text;
use super::dev::{DevArgs, SkaffoldSession};
use super::dev_flux::{Suspension, suspend};
use super::dev_print::DevPrinter;
use super::project::Project;
use super::render::{all_artifacts, selected};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::{CommandError, ErrorKind};
use crate::exit::ExitStatus;

/// A session and what it works on.
pub(super) struct Dev<'a> {
    pub(super) skaffold: SkaffoldSession,
    /// What was saved and has not been dealt with, because a stage was switched off.
    pub(super) pending: FileChanges,
    pub(super) project: Project,
    pub(super) state: DevProject,
    pub(super) cluster: Arc<Cluster>,
    pub(super) store: Utf8PathBuf,
    pub(super) suspension: Option<Suspension>,
    pub(super) files: ChangedFiles,
    pub(super) session: DevSession,
    pub(super) events: DevEvents,
    pub(super) print: &'a DevPrinter<'a>,
    pub(super) stop: CancellationToken,
    pub(super) args: &'a DevArgs,
    pub(super) app: &'a App,
    pub(super) runtime: &'a Runtime,
}

impl Dev<'_> {
    pub(super) fn run(mut self) -> CommandResult {
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
        let dirty = self.state.dirty(&changes).for_stages(stages);
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
        let is_stale = stages.deploy && !self.state.stale_steps(&steps).is_empty();
        if dirty.is_idle(&deployed, stages) && !is_stale {
            return Ok(());
        }
        if !changes.paths.is_empty() || changes.is_partial {
            self.print.changed(&changes, &self.project.directory)?;
        }
        let uncopied = self
            .runtime
            .block_on(self.session.sync(&self.state, &dirty));
        let names = dirty.to_build(uncopied, &deployed, stages);
        if names.is_empty() && !is_stale {
            return Ok(());
        }
        let done = self.build_and_deploy(names, &steps, stages);
        self.or_wait(done).map(drop)
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
