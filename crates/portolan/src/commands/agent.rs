//! `portolan agent`: makes this machine a node of a fleet.

mod args;

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_agent::{
    Agent, AgentData, AgentEnd, AgentError, AgentNotice, AgentOptions, BootClock, SystemDate,
    forbid_core_dumps,
};
use portolan_identity::EnrolError;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub(crate) use args::AgentArgs;

use super::CommandResult;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::ExitStatus;

pub(crate) fn agent(args: &AgentArgs, app: &App) -> CommandResult {
    forbid_core_dumps();
    let data = AgentData::open(&args.data).map_err(CommandError::user)?;
    if args.acknowledge_damage {
        let aside = data.acknowledge_damage().map_err(CommandError::user)?;
        let lines = aside.iter().map(|path| format!("kept as {path}\n"));
        app.printer.data(lines.collect::<String>())?;
        return Ok(ExitStatus::Clean);
    }
    let (Some(server), Some(name), false) = (&args.server, &args.name, args.show_key) else {
        let fingerprint = data.fingerprint().map_err(CommandError::user)?;
        app.printer.data(format!("{fingerprint}\n"))?;
        return Ok(ExitStatus::Clean);
    };
    // What only the first start needs is not looked at later: the token may be gone by then.
    let is_enrolled = data.identity().map_err(CommandError::user)?.is_some();
    let (join_token, ca_pin) = if is_enrolled {
        (None, None)
    } else {
        (args.join_token()?, Some(args.ca_pin()?))
    };
    let say = app.printer.announcer();
    let program = own_program()?;
    let options = AgentOptions {
        server: server.clone(),
        ca_pin,
        join_token,
        name: name.clone(),
        root: Arc::new(args.root()?),
        program: program.clone(),
        allows_exec: args.allow_exec,
        fakes_boot: args.fake_boot,
        ends_when_replaced: true,
        gossip: (!args.no_gossip).then_some(args.gossip_listen),
        clock: Arc::new(BootClock),
        date: Arc::new(SystemDate),
        notify: Box::new(move |notice| say(&notice_text(&notice))),
    };
    match app.runtime()?.block_on(run(Agent::new(data, options)))? {
        AgentEnd::Stopped => Ok(ExitStatus::Clean),
        AgentEnd::Replaced => {
            app.printer.say_unless_quiet(
                "the program was replaced, or a step restarts the node: the agent starts anew",
            );
            // Commands go on meanwhile, and the new agent finds them again. This returns only if it cannot be started.
            let error = Command::new(&program)
                .args(std::env::args_os().skip(1))
                .exec();
            let context = format!("cannot start the new program `{program}`");
            Err(CommandError::user(
                anyhow::Error::new(error).context(context),
            ))
        }
    }
}

async fn run(agent: Agent) -> Result<AgentEnd, CommandError> {
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
        ended = agent.run(stop.clone()) => ended.map_err(failed),
        () = signals => Ok(AgentEnd::Stopped),
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

/// This program, which is also the shim of commands.
pub(super) fn own_program() -> Result<Utf8PathBuf, CommandError> {
    let program = std::env::current_exe()?;
    Utf8PathBuf::try_from(program).map_err(CommandError::user)
}
