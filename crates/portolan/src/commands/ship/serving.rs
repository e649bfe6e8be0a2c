//! The event API beside a run: bound before it begins, ended after it.

use std::net::{SocketAddr, TcpListener};

use portolan_engine::CancellationToken;
use portolan_ship::EventApi;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::error::CommandError;

/// A server, if one was asked for.
pub(super) struct Serving {
    listener: Option<TcpListener>,
    cancelled: CancellationToken,
    task: Option<JoinHandle<Result<(), CommandError>>>,
    failure: Option<CommandError>,
}

impl Serving {
    /// Takes the address, so that a wrong one is told before anything is done.
    pub(super) fn bind(address: Option<SocketAddr>) -> Result<Self, CommandError> {
        let failed = |error: std::io::Error| {
            let address = address
                .map(|address| address.to_string())
                .unwrap_or_default();
            let error = anyhow::Error::new(error);
            CommandError::user(error.context(format!("cannot listen on `{address}`")))
        };
        let listener = address.map(TcpListener::bind).transpose().map_err(failed)?;
        if let Some(listener) = &listener {
            listener.set_nonblocking(true).map_err(failed)?;
        }
        Ok(Self {
            listener,
            cancelled: CancellationToken::new(),
            task: None,
            failure: None,
        })
    }

    /// Begins to answer; inside of the runtime.
    pub(super) fn start(&mut self, api: EventApi) {
        let Some(listener) = self.listener.take() else {
            return;
        };
        let cancelled = self.cancelled.clone();
        let listener = tokio::net::TcpListener::from_std(listener).map_err(CommandError::from);
        let served = listener
            .and_then(|listener| api.start(listener, cancelled).map_err(CommandError::user));
        match served {
            Ok(served) => {
                let task = async { served.await.map_err(CommandError::user) };
                self.task = Some(tokio::spawn(task));
            }
            Err(error) => self.failure = Some(error),
        }
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
