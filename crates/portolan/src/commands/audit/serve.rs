//! `portolan audit serve`: an exporter that never keeps a scrape waiting.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use portolan_audit::Target;
use portolan_cluster::Cluster;
use portolan_exporter::{Exporter, ExporterOptions, scanning_threads, serve as answer};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::check_options::JudgeOptions;
use super::cluster::LookArgs;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Serve what a cluster's audit finds: metrics, findings as JSON, a page
///
/// `/metrics`, `/api/v1/findings` and `/` are answered at once from the last good scan; the metrics tell its age and
/// whether the last scan failed. The cluster is scanned again when the data are older than --ttl, one scan at a time, and
/// what changes in Helm releases and live objects is followed in between. `/readyz` is 503 until there is an answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan audit serve --listen 127.0.0.1:9180 --state /var/lib/portolan
  portolan audit serve --target 1.36 --ttl 6h --only helm")]
pub(crate) struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9180")]
    listen: SocketAddr,

    /// The directory that keeps the last good scan over restarts
    #[arg(long, value_name = "DIRECTORY")]
    state: Option<PathBuf>,

    /// How old the data may become: seconds, or a number with s, m, h or d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    ttl: Duration,

    /// How many findings get a series of their own in the metrics
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    finding_series: usize,

    #[command(flatten)]
    look: LookArgs,

    #[command(flatten)]
    judge: JudgeOptions,
}

pub(crate) fn serve(args: &ServeArgs, printer: &Printer) -> CommandResult {
    // Rules that cannot be used are told now, not at the first scan; the target alone follows the cluster.
    let (checker, warnings) = args.judge.checker()?;
    for warning in warnings {
        printer.warning(&warning);
    }
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
    let exporter = Arc::new(exporter);
    let scanning = scanning_threads()?;
    let cluster = scanning.block_on(args.look.connect())?;
    let scans = scanning.spawn(scan(Arc::clone(&exporter), cluster));
    let ended = Runtime::new()?.block_on(run(args.listen, exporter, scans, printer));
    scanning.shutdown_background();
    ended
}

async fn scan(exporter: Arc<Exporter>, cluster: Cluster) {
    exporter.run(&cluster).await;
}

async fn run(
    address: SocketAddr,
    exporter: Arc<Exporter>,
    scans: JoinHandle<()>,
    printer: &Printer,
) -> CommandResult {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let error = anyhow::Error::new(error);
        CommandError::user(error.context(format!("cannot listen on `{address}`")))
    })?;
    printer.note(&format!("listening on http://{}", listener.local_addr()?));
    // A pod is ended by SIGTERM, a terminal by SIGINT; both are the usual end.
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        served = answer(listener, exporter) => served?,
        ended = scans => ended.map_err(CommandError::user)?,
        _ = terminated.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(ExitStatus::Clean)
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
