//! The event API beside a run: bound before it begins, ended after it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use camino::Utf8PathBuf;
use portolan_engine::CancellationToken;
use portolan_ship::{Addresses, EventApi, ShipRun};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Where a run is served
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct ServingArgs {
    /// Serve the events of the run at this address, as in `127.0.0.1:0`; its token is in the file `session.json` of the run
    #[arg(long, value_name = "ADDRESS", help_heading = "Events")]
    listen: Option<SocketAddr>,

    /// Serve Skaffold's event API over gRPC on this port of this machine, without a token
    #[arg(long, value_name = "PORT", help_heading = "Events")]
    rpc_port: Option<u16>,

    /// Serve Skaffold's event API over HTTP on this port of this machine, without a token
    #[arg(long, value_name = "PORT", help_heading = "Events")]
    rpc_http_port: Option<u16>,
}

/// The server of a run: on its socket, and at the addresses that were asked for.
pub(super) struct Serving {
    own: Option<TcpListener>,
    skaffold_grpc: Option<TcpListener>,
    skaffold_http: Option<TcpListener>,
    cancelled: CancellationToken,
    task: Option<JoinHandle<Result<(), CommandError>>>,
    failure: Option<CommandError>,
}

/// The addresses of Skaffold's API, over gRPC and over HTTP.
pub(super) type SkaffoldListeners = (
    Option<tokio::net::TcpListener>,
    Option<tokio::net::TcpListener>,
);

impl ServingArgs {
    /// Whether an address is named.
    pub(crate) fn is_asked(self) -> bool {
        self.listen.is_some() || self.rpc_port.is_some() || self.rpc_http_port.is_some()
    }

    /// The same without Skaffold's API.
    pub(super) fn without_skaffold(self) -> Self {
        Self {
            rpc_port: None,
            rpc_http_port: None,
            ..self
        }
    }

    /// Only Skaffold's API.
    pub(super) fn only_skaffold(self) -> Self {
        Self {
            listen: None,
            ..self
        }
    }
}

impl Serving {
    /// Takes the addresses, so that a wrong one is told before anything is done.
    pub(super) fn bind(args: ServingArgs) -> Result<Self, CommandError> {
        let of_this_machine = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(Self {
            own: bind(args.listen)?,
            skaffold_grpc: bind(args.rpc_port.map(of_this_machine))?,
            skaffold_http: bind(args.rpc_http_port.map(of_this_machine))?,
            cancelled: CancellationToken::new(),
            task: None,
            failure: None,
        })
    }

    /// The addresses of Skaffold's API, for a session that serves it longer than one run; inside of the runtime.
    pub(super) fn skaffold(mut self) -> Result<SkaffoldListeners, CommandError> {
        let addresses = self.addresses()?;
        Ok((addresses.skaffold_grpc, addresses.skaffold_http))
    }

    /// Begins to answer; inside of the runtime.
    pub(super) fn start(&mut self, api: EventApi) {
        let cancelled = self.cancelled.clone();
        let served = self
            .addresses()
            .and_then(|addresses| api.start(addresses, cancelled).map_err(CommandError::user));
        match served {
            Ok(served) => {
                let task = async { served.await.map_err(CommandError::user) };
                self.task = Some(tokio::spawn(task));
            }
            Err(error) => self.failure = Some(error),
        }
    }

    fn addresses(&mut self) -> Result<Addresses, CommandError> {
        let listener = |bound: &mut Option<TcpListener>| {
            let bound = bound.take().map(tokio::net::TcpListener::from_std);
            bound.transpose().map_err(CommandError::from)
        };
        Ok(Addresses {
            own: listener(&mut self.own)?,
            skaffold_grpc: listener(&mut self.skaffold_grpc)?,
            skaffold_http: listener(&mut self.skaffold_http)?,
        })
    }

    /// Lets readers take the last events and ends.
    pub(super) fn end(self, app: &App) -> Result<(), CommandError> {
        self.cancelled.cancel();
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        match self.task {
            None => Ok(()),
            Some(task) => app.runtime()?.block_on(task).unwrap_or(Ok(())),
        }
    }
}

/// Serves a run of a store from its files, until Ctrl-C or a request to end.
pub(crate) fn serve_files(
    args: ServingArgs,
    store: Utf8PathBuf,
    run: ShipRun,
    app: &App,
) -> CommandResult {
    let runtime = app.runtime()?;
    let stop = stop_token(runtime);
    let mut serving = Serving::bind(args)?;
    let id = run.id().to_owned();
    {
        let _inside = runtime.enter();
        serving.start(EventApi {
            store,
            run,
            live: None,
        });
    }
    if serving.failure.is_none() {
        app.printer
            .note(&format!("the run `{id}` is served; Ctrl-C ends that"));
        runtime.block_on(stop.cancelled());
    }
    serving.end(app)?;
    Ok(ExitStatus::Interrupted)
}

/// A token that Ctrl-C and a request to end cancel.
pub(super) fn stop_token(runtime: &Runtime) -> CancellationToken {
    let token = CancellationToken::new();
    let stop = token.clone();
    runtime.spawn(async move {
        use tokio::signal::unix::{SignalKind, signal};
        let mut end = signal(SignalKind::terminate()).ok();
        let end = async {
            match &mut end {
                Some(end) => end.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = end => {}
        }
        stop.cancel();
    });
    token
}

fn bind(address: Option<SocketAddr>) -> Result<Option<TcpListener>, CommandError> {
    let Some(address) = address else {
        return Ok(None);
    };
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map(Some).map_err(|error| {
        let error = anyhow::Error::new(error);
        CommandError::user(error.context(format!("cannot listen on `{address}`")))
    })
}
