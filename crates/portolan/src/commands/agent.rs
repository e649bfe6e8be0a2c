//! `portolan agent`: makes this machine a node of a fleet.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_agent::{Agent, AgentData, AgentError, AgentNotice, AgentOptions, BootClock};
use portolan_identity::{CaPin, EnrolError, JoinToken};
use portolan_modules::Root;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use super::CommandResult;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Make this machine a node of a fleet, and stay connected to a server
///
/// The first start asks the server for a certificate: with a join token (`portolan fleet join-token create` prints it with the pin),
/// or without one, until somebody approves the key (`portolan fleet nodes approve`). The key never leaves the data directory. Later
/// starts need neither the token nor the pin; the certificate is renewed at half its life.
///
/// No `PORTOLAN_…` variable of the clients is read. SIGTERM ends the agent in good order.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan agent --server https://fleet.example.com:7443 --token-file join.token --ca-pin sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae --name web-1 --data /var/lib/portolan-agent
  portolan agent --server https://fleet.example.com:7443 --name web-1 --data /var/lib/portolan-agent")]
pub(crate) struct AgentArgs {
    /// The address of the server
    #[arg(long, value_name = "URL", help_heading = "Node")]
    server: String,

    /// The name of the node
    #[arg(long, value_name = "NAME", help_heading = "Node")]
    name: String,

    /// The directory of the key, the certificate and the journal
    #[arg(long, value_name = "DIRECTORY", help_heading = "Node")]
    data: Utf8PathBuf,

    /// The directory that stands for `/`, to try things; without it, the machine's own
    #[arg(long, value_name = "DIRECTORY", help_heading = "Node")]
    root: Option<Utf8PathBuf>,

    /// The file with the join token, for the first start
    #[arg(long, value_name = "FILE", help_heading = "Enrolment")]
    token_file: Option<Utf8PathBuf>,

    /// The pin of the server's authority, for the first start
    #[arg(long, value_name = "PIN", help_heading = "Enrolment")]
    ca_pin: Option<String>,
}

pub(crate) fn agent(args: &AgentArgs, app: &App) -> CommandResult {
    let data = AgentData::open(&args.data).map_err(CommandError::user)?;
    // What only the first start needs is not looked at later: the token may be gone by then.
    let is_enrolled = data.identity().map_err(CommandError::user)?.is_some();
    let (join_token, ca_pin) = if is_enrolled {
        (None, None)
    } else {
        (args.join_token()?, Some(args.ca_pin()?))
    };
    let say = app.printer.announcer();
    let options = AgentOptions {
        server: args.server.clone(),
        ca_pin,
        join_token,
        name: args.name.clone(),
        root: Arc::new(args.root()?),
        program: own_program()?,
        clock: Arc::new(BootClock),
        notify: Box::new(move |notice| say(&notice_text(&notice))),
    };
    app.runtime()?.block_on(run(Agent::new(data, options)))
}

async fn run(agent: Agent) -> CommandResult {
    let stop = CancellationToken::new();
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let signals = async {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
        stop.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = agent.run(stop.clone()) => match ended {
            Ok(()) => Ok(ExitStatus::Clean),
            Err(error) => Err(failed(error)),
        },
        () = signals => Ok(ExitStatus::Clean),
    }
}

fn failed(error: AgentError) -> CommandError {
    let hint = match &error {
        AgentError::Enrol(EnrolError::Refused { hint, .. }) => hint.clone(),
        _ => None,
    };
    let mut failure = CommandError::user(error);
    failure.hints.extend(hint);
    failure
}

fn notice_text(notice: &AgentNotice) -> String {
    match notice {
        AgentNotice::WaitingForApproval(key) => {
            format!("waiting until somebody runs: portolan fleet nodes approve {key}")
        }
        AgentNotice::Enrolled(name) => format!("enrolled as node {name}"),
        AgentNotice::Connected(server) => format!("connected to server {server}"),
        AgentNotice::Disconnected(reason) => format!("not connected: {reason}"),
    }
}

impl AgentArgs {
    fn ca_pin(&self) -> Result<CaPin, CommandError> {
        let Some(pin) = &self.ca_pin else {
            let mut error = CommandError::usage("the first start needs --ca-pin");
            let hint =
                "`portolan fleet join-token create` prints the pin of the server's authority";
            error.hints.push(hint.to_owned());
            return Err(error);
        };
        let parsed = pin.parse();
        parsed.map_err(|error| CommandError::usage(format!("--ca-pin: {error}")))
    }

    fn root(&self) -> Result<Root, CommandError> {
        let root = match &self.root {
            Some(path) => Root::other(path),
            None => Root::machine(),
        };
        root.map_err(CommandError::user)
    }

    fn join_token(&self) -> Result<Option<JoinToken>, CommandError> {
        self.token_file.as_deref().map(read_token).transpose()
    }
}

/// This program, which is also the shim of commands.
pub(super) fn own_program() -> Result<Utf8PathBuf, CommandError> {
    let program = std::env::current_exe()?;
    Utf8PathBuf::try_from(program).map_err(CommandError::user)
}

/// Reads a join token. The text of anything else is neither sent nor shown.
fn read_token(path: &Utf8Path) -> Result<JoinToken, CommandError> {
    let text = std::fs::read_to_string(path).map(Zeroizing::new);
    let text = text.map_err(|error| {
        let context = format!("cannot read `{path}`");
        CommandError::user(anyhow::Error::new(error).context(context))
    })?;
    text.trim().parse().map_err(|_| {
        let mut error = CommandError::usage(format!("`{path}` does not hold a join token"));
        let hint = "make one with `portolan fleet join-token create`; tokens of users are for `portolan fleet`";
        error.hints.push(hint.to_owned());
        error
    })
}
