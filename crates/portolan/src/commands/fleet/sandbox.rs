//! `portolan fleet sandbox`: a server and some nodes in one process, to try things.

use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_agent::{AgentNotice, RootedFleet, RootedNode};
use portolan_http::Secret;
use portolan_identity::EXPORTER_LABEL;
use portolan_listen::ListenConfig;
use portolan_server::{
    ApiServer, DataDirectory, FleetClient, FleetMethod, ServerOptions, listen_limits,
};
use portolan_store::{Embedded, EmbeddedOptions, Store};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::connection::told;
use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::agent::own_program;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::interrupt;
use crate::printer::Printer;

/// The group of all nodes, and the label that puts them into it.
const GROUP: &str = "sandbox";

/// How long the nodes have to get ready.
const READY_TIME: Duration = Duration::from_mins(1);

/// Start a server and some nodes on this machine, to try things
///
/// Each node is a directory that stands for a machine. Nothing is installed, and nothing outside of the directory changes. Everything
/// ends with Ctrl-C; a directory that was not named is removed then.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet sandbox --nodes 5
  portolan fleet sandbox --nodes 3 --directory ./sandbox")]
pub(crate) struct SandboxArgs {
    /// How many nodes
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..=100),
        help_heading = "Sandbox"
    )]
    nodes: u16,

    /// Where the server and the nodes keep their files; a temporary directory without it
    #[arg(long, value_name = "DIRECTORY", help_heading = "Sandbox")]
    directory: Option<Utf8PathBuf>,
}

pub(crate) fn sandbox(args: &SandboxArgs, app: &App) -> CommandResult {
    let temporary;
    let directory = match &args.directory {
        Some(directory) => {
            std::fs::create_dir_all(directory)?;
            directory.canonicalize_utf8()?
        }
        None => {
            temporary = tempfile::tempdir()?;
            Utf8PathBuf::try_from(temporary.path().to_owned()).map_err(CommandError::user)?
        }
    };
    let stop = CancellationToken::new();
    let run = run(args, &directory, &app.printer, &stop);
    app.runtime()?.block_on(run)
}

async fn run(
    args: &SandboxArgs,
    directory: &Utf8Path,
    printer: &Printer,
    stop: &CancellationToken,
) -> CommandResult {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    let data = directory.join("server");
    let url = start_server(&data, &mut tasks, stop).await?;
    let fleet = nodes_of(&url, &data, args.nodes).await?;
    let (connected, mut told_connected) = mpsc::unbounded_channel();
    for number in 1..=args.nodes {
        let node = RootedNode {
            name: format!("node-{number}"),
            directory: directory.join("nodes").join(format!("node-{number}")),
        };
        let connected = connected.clone();
        let agent = node.agent(&fleet, move |notice| {
            if matches!(notice, AgentNotice::Connected(_)) {
                // Nobody waits any more after the first time.
                let _ = connected.send(());
            }
        });
        let agent = agent.map_err(CommandError::user)?;
        let stop = stop.clone();
        let name = node.name.clone();
        tasks.spawn(async move {
            match agent.run(stop).await {
                Ok(_) => format!("the agent of {name} has stopped"),
                Err(error) => format!("the agent of {name}: {error}"),
            }
        });
    }
    let all = async {
        for _ in 0..args.nodes {
            told_connected.recv().await;
        }
    };
    tokio::select! {
        ready = tokio::time::timeout(READY_TIME, all) => ready.map_err(|_| {
            CommandError::usage("the nodes did not get ready within a minute")
        })?,
        Some(ended) = tasks.join_next() => return Err(ended_early(ended)),
    }
    grant_nodes(&url, &data).await?;
    welcome(printer, args, &url, directory, started.elapsed());
    let failure = tokio::select! {
        asked = interrupt::asked_to_end() => {
            asked?;
            None
        }
        Some(ended) = tasks.join_next() => Some(ended_early(ended)),
    };
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    match failure {
        None => Ok(ExitStatus::Clean),
        Some(failure) => Err(failure),
    }
}

/// The error when a part of the sandbox ends by itself.
fn ended_early(ended: Result<String, JoinError>) -> CommandError {
    let why = ended.unwrap_or_else(|error| error.to_string());
    CommandError::usage(format!("the sandbox has ended: {why}"))
}

fn welcome(printer: &Printer, args: &SandboxArgs, url: &str, directory: &Utf8Path, took: Duration) {
    let count = args.nodes;
    let data = directory.join("server");
    printer.say_unless_quiet(&format!(
        "{count} nodes are ready after {:.1} s, in {directory}/nodes; try in another terminal:",
        took.as_secs_f64()
    ));
    printer.say_unless_quiet(&format!(
        "  portolan fleet login --server {url} --token-file {data}/admin.token --ca-file {data}/ca.pem"
    ));
    printer.say_unless_quiet("  portolan fleet nodes");
    printer.say_unless_quiet(
        "  portolan fleet run -f book.yaml      # with `target: {group: sandbox}`",
    );
}

/// Starts a server on a free port and returns its address.
async fn start_server(
    data: &Utf8Path,
    tasks: &mut JoinSet<String>,
    stop: &CancellationToken,
) -> Result<String, CommandError> {
    let files = DataDirectory::open(data.as_std_path())?;
    let engine = Embedded::open(&files.store(), EmbeddedOptions::default());
    let store = Store::new(Arc::new(engine.map_err(CommandError::user)?));
    let started = ApiServer::start(store, ServerOptions::new(data.as_std_path())).await;
    let (server, _) = started.map_err(CommandError::user)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let config = ListenConfig {
        tls: Some(server.tls(names.clone()).map_err(CommandError::user)?),
        client_certificates: Some(EXPORTER_LABEL),
        readiness: server.readiness(),
        // All agents come from one address.
        limits: listen_limits(),
        ..ListenConfig::default()
    };
    let served = portolan_listen::serve(listener, server.router(names), config, stop.clone());
    tasks.spawn(async {
        match served.await {
            Ok(_) => "the listener has stopped".to_owned(),
            Err(error) => format!("the listener: {error}"),
        }
    });
    let run = server.run(stop.clone());
    tasks.spawn(async {
        let reason = run.await;
        reason.unwrap_or_else(|| "the server has stopped".to_owned())
    });
    Ok(format!("https://localhost:{port}"))
}

/// What the nodes enrol with.
async fn nodes_of(url: &str, data: &Utf8Path, uses: u16) -> Result<RootedFleet, CommandError> {
    let client = admin(url, data)?;
    let body = json!({"uses": uses, "labels": {GROUP: "true"}}).to_string();
    let made = client.request(
        FleetMethod::Post,
        "/api/v1alpha/join-tokens",
        &[],
        Some(&body),
    );
    let made = made.await.map_err(told)?;
    let text = |key: &str| made[key].as_str().unwrap_or_default();
    Ok(RootedFleet {
        server: url.to_owned(),
        join_token: text("token").parse().map_err(CommandError::user)?,
        ca_pin: text("caPin").parse().map_err(CommandError::user)?,
        program: own_program()?,
    })
}

fn admin(url: &str, data: &Utf8Path) -> Result<FleetClient, CommandError> {
    let read = |name: &str| std::fs::read_to_string(data.join(name));
    let token = Secret::from(read("admin.token")?.trim().to_owned());
    FleetClient::new(url, token, vec![read("ca.pem")?]).map_err(told)
}

/// Puts all nodes into a group, which namespace `default` may target.
async fn grant_nodes(url: &str, data: &Utf8Path) -> Result<(), CommandError> {
    let client = admin(url, data)?;
    let selector = format!("{GROUP}=true");
    let grant = json!({"groups": [GROUP], "namespaces": ["default"]});
    for (plural, kind, spec) in [
        ("nodegroups", "NodeGroup", json!({"selector": selector})),
        ("nodegrants", "NodeGrant", grant),
    ] {
        let object = json!({
            "apiVersion": portolan_kinds::VERSION, "kind": kind, "metadata": {"name": GROUP}, "spec": spec,
        });
        let path = format!("/api/v1alpha/{plural}/{GROUP}");
        let body = object.to_string();
        let applied = client.request(FleetMethod::Put, &path, &[("apply", "true")], Some(&body));
        applied.await.map_err(told)?;
    }
    Ok(())
}
