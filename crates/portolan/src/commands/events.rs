//! `portolan events`: what happened in a run of `ship`, from its files.

mod remote;

use std::time::Duration;

use portolan_engine::{Line, ReadError, Record};
use portolan_object::similar;
use portolan_ship::ShipRun;

use self::remote::Wanted;
use super::CommandResult;
use super::ship::{ServingArgs, StoreArgs, serve_files};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::session::typed;

/// Print what happened in a run of `ship`, also while it goes on
///
/// Prints the events of the newest run as JSON lines, the same that `--events` writes. Events are numbered without gaps:
/// `--after` goes on where a reader stopped. With an address, the run is served there instead of printed, also if it has
/// ended long ago, until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan events
  portolan events --follow | jq -c 'select(.event == \"failed\")'
  portolan events --after 120
  portolan events --run 20261117-151433-5f1c
  portolan events --server http://127.0.0.1:4711 --follow
  portolan events --run 20261117-151433-5f1c --rpc-http-port 50052")]
pub(crate) struct EventsArgs {
    /// Wait for more until the run ends
    #[arg(long, help_heading = "Selection")]
    follow: bool,

    /// Number of the last event that is known already
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        help_heading = "Selection"
    )]
    after: u64,

    /// Run to print; the default is the newest, or that of the server
    #[arg(long, value_name = "ID", help_heading = "Selection")]
    run: Option<String>,

    /// Address of a build that serves its events (`--listen`); its token is taken from the store, or from the variable
    /// `PORTOLAN_TOKEN`
    #[arg(long, value_name = "URL", help_heading = "Selection", conflicts_with_all = ["listen", "rpc_port", "rpc_http_port"])]
    server: Option<String>,

    #[command(flatten)]
    serving: ServingArgs,

    #[command(flatten)]
    store: StoreArgs,
}

/// How often is looked for more.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn events(args: &EventsArgs, app: &App) -> CommandResult {
    if let Some(server) = &args.server {
        let wanted = Wanted {
            run: args.run.as_deref(),
            after: args.after,
            follow: args.follow,
        };
        let token = remote::token(server, args.store.directory(None).ok().as_deref());
        return app
            .runtime()?
            .block_on(remote::print(server, &wanted, token, &app.printer));
    }
    let run = find(args)?;
    if args.serving.is_asked() {
        return serve_files(args.serving, args.store.directory(None)?, run, app);
    }
    let mut files = run.events_after(args.after);
    loop {
        // Asked before reading: what was written before the end of the process is read after it.
        let was_live = args.follow && run.is_live().map_err(CommandError::user)?;
        match files.read() {
            Ok(records) if records.is_empty() && !was_live => return Ok(ExitStatus::Clean),
            Ok(records) if records.is_empty() => std::thread::sleep(LOOK),
            Ok(records) => print(&records, &app.printer)?,
            Err(ReadError::Forgotten { next, oldest }) => {
                let (from, to) = (next, oldest - 1);
                let line = typed(&Line::Forgotten { from, to }.to_json());
                app.printer.data(format!("{line}\n"))?;
                files.seek(to);
            }
            Err(error) => return Err(CommandError::user(error)),
        }
    }
}

fn print(records: &[Record], printer: &Printer) -> Result<(), CommandError> {
    let mut text = String::new();
    for record in records {
        text.push_str(&typed(&record.to_json()));
        text.push('\n');
    }
    printer.data(text)
}

fn find(args: &EventsArgs) -> Result<ShipRun, CommandError> {
    let store = args.store.directory(None)?;
    let none = || {
        let error = CommandError::usage(format!("no run is in the store `{store}`"));
        error.hint("`portolan ship build` begins one; `--store DIR` names another store")
    };
    let Some(id) = &args.run else {
        let newest = ShipRun::newest(&store).map_err(CommandError::user)?;
        return newest.ok_or_else(none);
    };
    let runs = ShipRun::list(&store).map_err(CommandError::user)?;
    if let Some(run) = runs.iter().find(|run| run.id() == id) {
        return Ok(run.clone());
    }
    let error = CommandError::usage(format!("no run `{id}` is in the store `{store}`"));
    Err(match similar(id, runs.iter(), |run| run.id()) {
        Some(near) => error.hint(format!("did you mean `{}`?", near.id())),
        None => match runs.last() {
            Some(newest) => error.hint(format!("the newest is `{}`", newest.id())),
            None => none(),
        },
    })
}
