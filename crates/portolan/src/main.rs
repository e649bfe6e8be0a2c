//! The `portolan` binary: reads the command line, calls one command, prints its answer and exits.
//!
//! ```text
//! arguments ──cli──▶ command ──library──▶ answer ──Printer──▶ stdout, stderr, exit code
//! ```
//!
//! There is no logic here: a command parses arguments, calls one function of a library crate and prints.

mod app;
mod arenas;
mod cli;
mod commands;
mod diagnostic;
mod directory;
mod error;
mod exit;
mod findings;
mod graph_tree;
mod input;
mod interrupt;
mod limit_args;
mod listing;
mod log;
mod outside;
mod places;
mod printer;
mod random_args;
mod repository;
mod secret;
mod selection;
mod session;
mod source_args;
mod table;
mod units;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;

use crate::app::App;
use crate::cli::{Cli, Command};
use crate::exit::ExitStatus;
use crate::printer::Printer;

fn main() -> ExitCode {
    silence_panics_of_git();
    #[cfg(any(feature = "cluster", feature = "rollout", feature = "ship"))]
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == portolan_cluster::RUN_PLUGIN)
    {
        return portolan_cluster::run_plugin(std::env::args_os().skip(2));
    }
    #[cfg(feature = "ship")]
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == commands::ship::GUARD)
    {
        return commands::ship::run_guard(std::env::args_os().skip(2));
    }
    #[cfg(feature = "fleet")]
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == portolan_agent::SHIM)
    {
        portolan_agent::forbid_core_dumps();
        let arguments: Vec<String> = std::env::args().skip(2).collect();
        return portolan_agent::run_shim(&arguments);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => return usage_exit(&usage),
    };
    let log_format = cli.output.log_format;
    if matches!(cli.command, Command::Build(_)) {
        arenas::restart_with_one();
    }
    let printer = Printer::new(cli.output);
    let log = log::start(log_format, printer.hidden());
    if let Err(text) = log {
        let variable = log::VARIABLE;
        printer.warning(&format!(
            "{variable}: `{text}` is no filter; write `debug` or `info,hyper=warn`"
        ));
    }
    let app = App::new(printer);
    let status = commands::run(cli.command, &app).unwrap_or_else(|error| app.printer.error(&error));
    app.finish(status).into()
}

/// gix panics on some answers that no git server gives. That is told as an error of the fetch, and needs no other words.
fn silence_panics_of_git() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(portolan_git::REMOTE_THREAD) {
            print(panic);
        }
    }));
}

/// Prints what clap has to say: help goes to stdout with success, a usage error to stderr with 2.
fn usage_exit(usage: &clap::Error) -> ExitCode {
    let status = if usage.use_stderr() {
        ExitStatus::Failure
    } else {
        ExitStatus::Clean
    };
    let printed = usage.print().and_then(|()| io::stdout().flush());
    match printed {
        // A closed pipe is the reader's choice; there is nobody left to tell.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(
                io::stderr(),
                "error: cannot write to standard output: {error}"
            );
            ExitStatus::Failure.into()
        }
        _ => status.into(),
    }
}
