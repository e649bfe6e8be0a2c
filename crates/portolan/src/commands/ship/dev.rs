//! `portolan dev`: builds and deploys again whenever a file is saved, and follows logs and ports meanwhile.

use std::sync::Arc;

use portolan_engine::{CancellationToken, Journal};
use portolan_ship::{
    ChangedFiles, DevControl, DevEvents, DevProject, DevSession, FileChanges, SkaffoldTurns,
    serve_skaffold,
};
use tokio::runtime::Runtime;

use super::build_options::BuildOptions;
use super::dev_flux::resume_former;
use super::dev_loop::Dev;
use super::dev_print::{DevPrinter, print_events};
use super::output_args::OutputArgs;
use super::project_args::{ArtifactArgs, ProjectArgs};
use super::serving::stop_token;
use super::target_args::TargetArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;

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
    pub(super) cleanup: bool,

    /// Leave what was deployed in the cluster
    #[arg(long, help_heading = "Cluster")]
    pub(super) no_cleanup: bool,

    /// Suspend what of Flux manages objects of the project; it is resumed when the command ends, also if that is killed
    #[arg(long, help_heading = "Cluster")]
    pub(super) suspend_flux: bool,

    #[command(flatten)]
    pub(super) selected: ArtifactArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    pub(super) target: TargetArgs,

    #[command(flatten)]
    pub(super) build: BuildOptions,

    #[command(flatten)]
    pub(super) project: ProjectArgs,
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
pub(super) struct SkaffoldSession {
    pub(super) control: Arc<DevControl>,
    pub(super) turns: SkaffoldTurns,
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
