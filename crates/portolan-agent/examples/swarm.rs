//! Many agents in one process, each with its own stream, journal and root directory: the other side of `bench/fleet.sh`.
//!
//! `swarm SERVER PIN PROGRAM DIRECTORY FIRST NODES` reads a join token from standard input, connects so many nodes from number
//! FIRST on, prints `connected in SECONDS`, and ends when it is terminated.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its results and mistakes go there"
)]

use std::error::Error;
use std::io::Read;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

use portolan_agent::{AgentNotice, RootedFleet, RootedNode};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How many agents may enrol and connect at the same moment.
const AT_ONCE: usize = 64;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let [server, pin, program, directory, first, nodes] = words[..] else {
        eprintln!("the head of this program's source says what it takes");
        return ExitCode::from(2);
    };
    let connected = fleet(server, pin, program)
        .and_then(|fleet| Ok((fleet, first.parse::<usize>()?, nodes.parse::<usize>()?)))
        .and_then(|(fleet, first, nodes)| connect(&fleet, directory, first..first + nodes));
    match connected {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn fleet(server: &str, pin: &str, program: &str) -> Result<RootedFleet, Box<dyn Error>> {
    let mut token = String::new();
    std::io::stdin().read_to_string(&mut token)?;
    Ok(RootedFleet {
        server: server.to_owned(),
        ca_pin: pin.parse()?,
        join_token: token.trim().parse()?,
        program: program.into(),
    })
}

#[tokio::main]
async fn connect(
    fleet: &RootedFleet,
    directory: &str,
    nodes: Range<usize>,
) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let (told, mut connected) = mpsc::unbounded_channel();
    let mut agents = JoinSet::new();
    let mut waiting = 0;
    for number in nodes {
        let node = RootedNode {
            name: format!("swarm-{number}"),
            directory: format!("{directory}/swarm-{number}").into(),
        };
        let told = told.clone();
        let agent = node.agent(fleet, move |notice| match notice {
            AgentNotice::Connected(_) => {
                // Nobody waits any more when all are connected.
                let _ = told.send(());
            }
            AgentNotice::Disconnected(reason) => eprintln!("not connected: {reason}"),
            _ => {}
        })?;
        agents.spawn(agent.run(CancellationToken::new()));
        waiting += 1;
        while waiting >= AT_ONCE {
            connected.recv().await;
            waiting -= 1;
        }
    }
    for _ in 0..waiting {
        connected.recv().await;
    }
    println!("connected in {:.2} s", began.elapsed().as_secs_f64());
    // An agent ends only when it cannot go on.
    match agents.join_next().await {
        Some(ended) => {
            ended??;
            Ok(())
        }
        None => Ok(()),
    }
}
