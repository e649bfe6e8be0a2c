//! `portolan audit serve`: an exporter that answers every scrape immediately.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use portolan_audit::Target;
use portolan_exporter::{Exporter, ExporterOptions, scanning_threads, serve as answer};
use portolan_listen::ListenConfig;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::cluster::LookArgs;
use super::judge_options::JudgeOptions;
use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::events_args::{EventsArgs, deliver};
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// How many lines about scans may wait to be printed.
const SCAN_LINES: usize = 16;

/// How long the end waits until a fleet server has all events.
const LAST_EVENTS: Duration = Duration::from_secs(3);

/// Serve what a cluster's audit finds: metrics, findings as JSON, a page
///
/// `/metrics`, `/api/v1/findings` and `/` are answered immediately from the last good scan; the metrics give its age
/// and whether the last scan failed. The cluster is scanned again when the data are older than --ttl, one scan at a
/// time, and what changes in Helm releases and live objects is followed in between. `/readyz` is 503 until there is an
/// answer. Each scan is one line on stderr.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan audit serve --listen 127.0.0.1:9180 --state /var/lib/portolan
  portolan audit serve --target 1.36 --ttl 6h --only helm")]
pub(crate) struct ServeArgs {
    /// Where to listen
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9180",
        help_heading = "Server"
    )]
    listen: SocketAddr,

    /// The directory that keeps the last good scan over restarts
    #[arg(long, value_name = "DIRECTORY", help_heading = "Server")]
    state: Option<PathBuf>,

    /// How old the data may become: seconds, or a number with s, m, h or d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration, help_heading = "Server")]
    ttl: Duration,

    /// How many findings get a series of their own in the metrics
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 0,
        help_heading = "Server"
    )]
    finding_series: usize,

    #[command(flatten)]
    look: LookArgs,

    #[command(flatten)]
    judge: JudgeOptions,

    #[command(flatten)]
    events: EventsArgs,
}

pub(crate) fn serve(args: &ServeArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    // Rules that cannot be used are told now, not at the first scan; the target alone follows the cluster.
    let (checker, warnings) = args.judge.checker()?;
    for warning in warnings {
        printer.warning(&warning);
    }
    let (publisher, delivery) = args.events.publisher(printer)?;
    let judge = args.judge.clone();
    let options = ExporterOptions {
        scan: args.look.options(),
        checker: Box::new(move |version| {
            let mut checker = checker.clone();
            let cluster = version.parse().map(Target::kubernetes);
            checker.target = judge.target(cluster.unwrap_or_default());
            checker
        }),
        ttl: args.ttl,
        state: args.state.clone(),
        baseline: args.judge.accepted()?,
        finding_series: args.finding_series,
    };
    let (exporter, trouble) = Exporter::open(options);
    if let Some(trouble) = trouble {
        printer.warning(&trouble.to_string());
    }
    let (lines, scanned) = mpsc::channel(SCAN_LINES);
    let exporter = exporter.with_events(publisher.clone());
    let exporter = Arc::new(exporter.with_scan_log(Box::new(move |line| {
        // A terminal that takes no lines must not hold up scans.
        let _ = lines.try_send(line);
    })));
    let scanning = scanning_threads()?;
    let ended = app.runtime()?.block_on(async {
        let work = async {
            let ended = run(args, exporter, scanning.handle(), scanned, printer).await;
            publisher.flush(LAST_EVENTS).await;
            ended
        };
        tokio::select! {
            ended = work => ended,
            () = deliver(&publisher, delivery, printer) => Ok(ExitStatus::Clean),
        }
    });
    scanning.shutdown_background();
    ended
}

/// The port is open before anything is asked that may not answer: credentials, and the cluster.
async fn run(
    args: &ServeArgs,
    exporter: Arc<Exporter>,
    scanning: &Handle,
    mut scanned: mpsc::Receiver<String>,
    printer: &Printer,
) -> CommandResult {
    let address = args.listen;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let error = anyhow::Error::new(error);
        CommandError::user(error.context(format!("cannot listen on `{address}`")))
    })?;
    printer.note(&format!("listening on http://{}", listener.local_addr()?));
    let mut scans = scanning.spawn(scan(args.look.clone(), Arc::clone(&exporter)));
    let cancelled = CancellationToken::new();
    let serving = answer(
        listener,
        exporter,
        ListenConfig::default(),
        cancelled.clone(),
    );
    let mut serving = pin!(serving);
    // A pod is ended by SIGTERM, a terminal by SIGINT; both are the usual end.
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            served = &mut serving => {
                served.map_err(CommandError::user)?;
                return Ok(ExitStatus::Clean);
            }
            ended = &mut scans => return Err(match ended {
                Ok(error) => error,
                Err(died) => CommandError::user(died),
            }),
            Some(line) = scanned.recv() => printer.say_unless_quiet(&line),
            // The second signal does not wait for requests in flight.
            Some(()) = terminated.recv() => if cancelled.is_cancelled() { return Ok(ExitStatus::Clean) } else { cancelled.cancel() },
            Some(()) = interrupted.recv() => if cancelled.is_cancelled() { return Ok(ExitStatus::Clean) } else { cancelled.cancel() },
        }
    }
}

/// Scans for ever; returns why it could not even begin.
async fn scan(look: LookArgs, exporter: Arc<Exporter>) -> CommandError {
    match look.connect().await {
        Ok(cluster) => match exporter.run(&cluster).await {},
        Err(error) => error,
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    );
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        other => return Err(format!("`{other}` is no unit of time")),
    };
    let number: u64 = number.parse().map_err(|_| format!("`{text}` is no time"))?;
    Ok(Duration::from_secs(number.saturating_mul(seconds).max(1)))
}
