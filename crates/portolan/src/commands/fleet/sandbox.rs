//! `portolan fleet sandbox`: a server and some nodes in one process, to try things.

use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_agent::{Agent, AgentData, AgentNotice, AgentOptions, BootClock};
use portolan_http::Secret;
use portolan_identity::{CaPin, EXPORTER_LABEL, JoinToken};
use portolan_listen::ListenConfig;
use portolan_modules::Root;
use portolan_server::{
    ApiServer, DataDirectory, FleetClient, FleetMethod, ServerOptions, listen_limits,
};
use portolan_store::{Embedded, EmbeddedOptions, Store};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connection::told;
use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::agent::own_program;
use crate::error::CommandError;
use crate::exit::ExitStatus;
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
    let (token, pin) = join_token(&url, &data, args.nodes).await?;
    let (connected, mut told_connected) = mpsc::unbounded_channel();
    for number in 1..=args.nodes {
        let node = SandboxNode {
            name: format!("node-{number}"),
            directory: directory.join("nodes").join(format!("node-{number}")),
        };
        let agent = node.agent(&url, &token, pin, connected.clone())?;
        let stop = stop.clone();
        tasks.spawn(async move {
            if let Err(error) = agent.run(stop).await {
                tracing::error!(%error, "an agent has ended");
            }
        });
    }
    let all = async {
        for _ in 0..args.nodes {
            told_connected.recv().await;
        }
    };
    let ready = tokio::time::timeout(READY_TIME, all).await;
    if ready.is_err() {
        return Err(CommandError::usage(
            "the nodes did not get ready within a minute",
        ));
    }
    grant_nodes(&url, &data).await?;
    welcome(printer, args, &url, directory, started.elapsed());
    wait_for_signal().await?;
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    Ok(ExitStatus::Clean)
}

fn welcome(printer: &Printer, args: &SandboxArgs, url: &str, directory: &Utf8Path, took: Duration) {
    let count = args.nodes;
    let data = directory.join("server");
    printer.note(&format!(
        "{count} nodes are ready after {:.1} s, in {directory}/nodes; try in another terminal:",
        took.as_secs_f64()
    ));
    printer.note(&format!(
        "  portolan fleet login --server {url} --token-file {data}/admin.token --ca-file {data}/ca.pem"
    ));
    printer.note("  portolan fleet get nodes");
    printer.note("  portolan fleet run -f book.yaml      # with `target: {group: sandbox}`");
}

async fn wait_for_signal() -> std::io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    Ok(())
}

/// Starts a server on a free port and returns its address.
async fn start_server(
    data: &Utf8Path,
    tasks: &mut JoinSet<()>,
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
        if let Err(error) = served.await {
            tracing::error!(%error, "the server has ended");
        }
    });
    let run = server.run(stop.clone());
    tasks.spawn(async {
        if let Some(reason) = run.await {
            tracing::error!(reason, "the server has ended");
        }
    });
    Ok(format!("https://localhost:{port}"))
}

async fn join_token(
    url: &str,
    data: &Utf8Path,
    uses: u16,
) -> Result<(JoinToken, CaPin), CommandError> {
    let client = admin(url, data)?;
    let body = json!({"uses": uses, "labels": {GROUP: "true"}}).to_string();
    let made = client.request(
        FleetMethod::Post,
        "/api/v1alpha/join-tokens",
        &[],
        Some(&body),
    );
    let made = made.await.map_err(told)?;
    let text = |key: &str| made[key].as_str().unwrap_or_default().to_owned();
    let token = text("token").parse().map_err(CommandError::user)?;
    Ok((token, text("caPin").parse().map_err(CommandError::user)?))
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

/// A directory that stands for a machine.
struct SandboxNode {
    name: String,
    directory: Utf8PathBuf,
}

impl SandboxNode {
    fn agent(
        &self,
        url: &str,
        token: &JoinToken,
        pin: CaPin,
        connected: mpsc::UnboundedSender<()>,
    ) -> Result<Agent, CommandError> {
        let root = self.directory.join("root");
        self.make_root(&root)?;
        let data = AgentData::open(&self.directory.join("data")).map_err(CommandError::user)?;
        let options = AgentOptions {
            server: url.to_owned(),
            ca_pin: Some(pin),
            join_token: Some(token.clone()),
            name: self.name.clone(),
            root: Arc::new(Root::other(&root).map_err(CommandError::user)?),
            program: own_program()?,
            clock: Arc::new(BootClock),
            notify: Box::new(move |notice| {
                if matches!(notice, AgentNotice::Connected(_)) {
                    // Nobody waits any more after the first time.
                    let _ = connected.send(());
                }
            }),
        };
        Ok(Agent::new(data, options))
    }

    /// Makes the few files that a machine has.
    fn make_root(&self, root: &Utf8Path) -> std::io::Result<()> {
        for inside in ["etc", "root", "srv", "tmp", "usr/bin", "var/lib", "var/log"] {
            std::fs::create_dir_all(root.join(inside))?;
        }
        let files = [
            ("etc/hostname", format!("{}\n", self.name)),
            ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n".to_owned()),
            ("etc/group", "root:x:0:\n".to_owned()),
            (
                "etc/os-release",
                "ID=sandbox\nNAME=\"Portolan sandbox\"\nVERSION_ID=1\n".to_owned(),
            ),
        ];
        for (name, text) in files {
            if !root.join(name).exists() {
                std::fs::write(root.join(name), text)?;
            }
        }
        Ok(())
    }
}
