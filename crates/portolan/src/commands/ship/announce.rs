//! Tells a fleet server what a command of `ship` came to.

use std::cell::Cell;
use std::time::Duration;

use portolan_client::EventPublisher;
use portolan_engine::with_causes;
use portolan_ship::{ShipOutcome, ship_stopped};
use tokio::task::JoinHandle;

use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::events_args::EventsArgs;
use crate::error::{CommandError, ErrorKind};

/// How long the end of a command waits until the server has its event.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tells a server of one command.
pub(super) struct Announcer<'a> {
    command: &'static str,
    project: &'a str,
    publisher: EventPublisher,
    delivery: Option<JoinHandle<()>>,
    is_told: Cell<bool>,
}

impl<'a> Announcer<'a> {
    /// Begins to send, beside the command.
    pub(super) fn start(
        args: &EventsArgs,
        command: &'static str,
        project: &'a str,
        app: &App,
    ) -> Result<Self, CommandError> {
        let (publisher, delivery) = args.publisher(&app.printer)?;
        let runtime = app.runtime()?;
        Ok(Self {
            command,
            project,
            publisher,
            delivery: delivery.map(|delivery| runtime.spawn(delivery.run())),
            is_told: Cell::new(false),
        })
    }

    /// Tells what came of it.
    pub(super) fn tell(&self, outcome: &ShipOutcome<'_>) {
        self.is_told.set(true);
        if let Some(event) = outcome.event() {
            self.publisher.publish(event);
        }
    }

    /// Tells that the command could not do its work, if that is so, and waits for the server. The command ends as it would
    /// without a server.
    pub(super) fn end(self, ended: CommandResult, app: &App) -> CommandResult {
        if let Err(error) = &ended
            && !self.is_told.get()
            && error.kind != ErrorKind::Interrupted
        {
            let why = with_causes(error.source.as_ref());
            let event = ship_stopped(self.command, self.project, &why);
            self.publisher.publish(event);
        }
        let Some(delivery) = self.delivery else {
            return ended;
        };
        let state = app.runtime()?.block_on(self.publisher.flush(PATIENCE));
        delivery.abort();
        let missing = state.waiting + state.lost;
        if missing > 0 {
            let why = state
                .trouble
                .map(|trouble| format!(": {}", trouble.message));
            let why = why.unwrap_or_default();
            app.printer
                .warning(&format!("the fleet server was not told of this run{why}"));
        }
        ended
    }
}
