//! How artifacts are built, in every command that builds them.

use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_engine::{CancellationToken, Journal, Limits, Report, Run};
use portolan_ship::{
    BuildResult, BuildSetup, EventApi, LiveRun, Pusher, RunOutline, ShipRun, SkaffoldTurns, finish,
    finish_push, plan, plan_push, stop_at_first_failure,
};

use super::project::Project;
use super::registry_args::{BasePins, RegistryArgs};
use super::serving::{Serving, ServingArgs, SkaffoldListeners};
use super::store_args::{StoreArgs, begin};
use crate::app::App;
use crate::error::CommandError;
use crate::session::ShownRun;

/// How artifacts are built, in every command that builds them.
#[derive(Debug, clap::Args)]
pub(crate) struct BuildOptions {
    /// Cancel everything else when an artifact fails
    #[arg(long, help_heading = "Build")]
    fail_fast: bool,

    /// Number of artifacts that are built at the same time; the default is the number of cores
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Build")]
    jobs: Option<u16>,

    /// Write a bill of materials (SPDX) for each image of files, beside its provenance
    #[arg(long, help_heading = "Build")]
    sbom: bool,

    #[command(flatten)]
    serving: ServingArgs,

    /// Push images to the repositories that the document names
    #[arg(long, overrides_with = "no_push", help_heading = "Registries")]
    push: bool,

    /// Push nothing, which is the default
    #[arg(long, help_heading = "Registries")]
    no_push: bool,

    /// Tag to push images under, besides the one of their digest; may be repeated, and hold `{commit}`, `{artifact}` and `{digest}`
    #[arg(
        long,
        value_name = "TAG",
        requires = "push",
        help_heading = "Registries"
    )]
    tag: Vec<String>,

    #[command(flatten)]
    registries: RegistryArgs,

    #[command(flatten)]
    store: StoreArgs,
}

impl BuildOptions {
    /// Where images and runs are kept; made if it is not there.
    pub(super) fn store_directory(&self, project: &Project) -> Result<Utf8PathBuf, CommandError> {
        Ok(self.store.open(project)?.root().to_owned())
    }

    /// A run for what a session does beside its runs.
    pub(super) fn session_run(
        &self,
        project: &Project,
    ) -> Result<(ShipRun, Journal), CommandError> {
        begin(&self.store.open(project)?)
    }

    /// What is needed to look at artifacts without building them.
    pub(super) fn look(
        &self,
        project: &Project,
    ) -> Result<(BuildSetup, ShipRun, Journal), CommandError> {
        let store = self.store.open(project)?;
        let (run, journal) = begin(&store)?;
        let registry = self.registries.registry()?;
        let bases = BasePins::load(&project.directory)?.images(&registry, false);
        let setup = project.setup(Arc::new(store), run.clone(), Arc::new(bases), 1);
        Ok((setup, run, journal))
    }

    /// The addresses of Skaffold's API, for a session that serves it longer than one run; inside of the runtime.
    pub(super) fn skaffold_listeners(&self) -> Result<SkaffoldListeners, CommandError> {
        Serving::bind(self.serving.only_skaffold())?.skaffold()
    }

    /// Builds artifacts and pushes them if that is asked for; `plan_more` adds what comes after. Returns whether Ctrl-C
    /// stopped it, too.
    pub(super) fn run(
        &self,
        project: &Project,
        names: &[String],
        app: &App,
        plan_more: impl FnOnce(&BuildSetup, bool, &Run),
    ) -> Result<((BuildResult, Report), bool), CommandError> {
        self.run_in(None, project, names, app, plan_more)
    }

    /// The same as a turn of a dev loop, which serves Skaffold's API itself.
    pub(super) fn run_in(
        &self,
        turns: Option<&SkaffoldTurns>,
        project: &Project,
        names: &[String],
        app: &App,
        plan_more: impl FnOnce(&BuildSetup, bool, &Run),
    ) -> Result<((BuildResult, Report), bool), CommandError> {
        let printer = &app.printer;
        let store = self.store.open(project)?;
        let (run, journal) = begin(&store)?;
        let limits = Limits::default();
        let jobs = self.jobs.map_or(limits.process, usize::from);
        let registry = self.registries.registry()?;
        let mut pins = BasePins::load(&project.directory)?;
        let bases = Arc::new(pins.images(&registry, false));
        let setup = BuildSetup {
            writes_sbom: self.sbom,
            ..project.setup(
                Arc::new(store),
                run.clone(),
                Arc::clone(&bases),
                // One artifact alone has all cores.
                jobs.min(names.len()),
            )
        };
        let pusher = self
            .push
            .then(|| Arc::new(Pusher::new(registry, self.tag.clone())));
        let shown = ShownRun {
            journal: journal.clone(),
            limits: Limits {
                process: jobs,
                ..limits
            },
            style: printer.progress_style_of_few(),
        };
        let token = CancellationToken::new();
        let outline = RunOutline::of(&project.ship, run.id());
        let mut serving = match turns {
            None => Serving::bind(self.serving)?,
            Some(turns) => {
                turns.next(&journal, outline.clone().of_dev_loop());
                Serving::bind(self.serving.without_skaffold())?
            }
        };
        if let Err(error) = run.keep_outline(&outline) {
            // Nothing is built less well for it.
            tracing::warn!(%error, "clients of Skaffold cannot read the run when it has ended");
        }
        let root = setup.store.root().to_owned();
        let report = shown.finish(&token, app, |units| {
            serving.start(EventApi {
                store: root,
                run: run.clone(),
                live: Some(LiveRun {
                    journal: journal.clone(),
                    canceller: units.canceller(),
                    outline,
                }),
            });
            if !names.is_empty() {
                // Every name is known.
                let _ = plan(&project.ship, names, &setup, units);
                if let Some(pusher) = &pusher {
                    plan_push(&project.ship, names, &setup, pusher, units);
                }
            }
            plan_more(&setup, pusher.is_some(), units);
            if self.fail_fast {
                tokio::spawn(stop_at_first_failure(journal.after(0), units.canceller()));
            }
        });
        serving.end(app)?;
        let report = report?;
        run.clear_scratch().map_err(CommandError::user)?;
        for name in pins.save(&bases)? {
            printer.note(&format!(
                "`portolan.lock` pins the base image `{name}` now; `portolan ship update` moves it"
            ));
        }
        let mut result = BuildResult::new(&run, finish(&project.ship, &report), &report);
        result.pushed = pusher.map(|_| finish_push(&project.ship, &report));
        Ok(((result, report), token.is_cancelled()))
    }
}
