//! Which fleet server is told what happens in a job, and as whom.

use std::path::PathBuf;
use std::time::Duration;

use portolan_client::{EventDelivery, EventPublisher, EventTarget, FleetServerFiles};

use crate::error::CommandError;
use crate::printer::Printer;

/// How often people are told of trouble at most.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// The fleet server that is told.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Fleet events")]
#[expect(
    clippy::struct_field_names,
    reason = "options are named after their fields"
)]
pub(crate) struct EventsArgs {
    /// Namespace of a fleet server that is told what happens, as events that its triggers can match; without it nothing is sent
    #[arg(long, value_name = "NAME")]
    events_namespace: Option<String>,

    /// Address of that server; the default is `PORTOLAN_SERVER`
    #[arg(long, value_name = "URL", requires = "events_namespace")]
    events_server: Option<String>,

    /// File with a token that may create events in the namespace; the default is `PORTOLAN_TOKEN_FILE`
    #[arg(long, value_name = "FILE", requires = "events_namespace")]
    events_token_file: Option<PathBuf>,

    /// Certificate of the server's authority; the default is `PORTOLAN_CA_FILE`
    #[arg(long, value_name = "FILE", requires = "events_namespace")]
    events_ca_file: Option<PathBuf>,

    /// Label of all events, as in `cluster=staging`, by which two clusters are told apart; may be repeated
    #[arg(long = "events-label", value_name = "KEY=VALUE", value_parser = parse_label, requires = "events_namespace")]
    events_labels: Vec<(String, String)>,
}

impl EventsArgs {
    /// The same; nobody is told of what only says what it would do.
    #[cfg(feature = "ship")]
    pub(crate) fn unless(&self, is_dry_run: bool) -> Self {
        if is_dry_run {
            Self::default()
        } else {
            self.clone()
        }
    }

    /// A publisher, and what sends its events. A file that cannot be used is told now, before anything is done.
    pub(crate) fn publisher(
        &self,
        printer: &Printer,
    ) -> Result<(EventPublisher, Option<EventDelivery>), CommandError> {
        let Some(namespace) = &self.events_namespace else {
            return Ok((EventPublisher::default(), None));
        };
        let server = self.server()?;
        server.client().map_err(CommandError::user)?;
        let target = EventTarget {
            server,
            namespace: namespace.clone(),
            labels: self.events_labels.iter().cloned().collect(),
            secrets: printer.secrets(),
        };
        let (publisher, delivery) = EventPublisher::new(target);
        Ok((publisher, Some(delivery)))
    }
}

impl EventsArgs {
    fn server(&self) -> Result<FleetServerFiles, CommandError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let file = |own: &Option<PathBuf>, name: &str| {
            own.clone().or_else(|| variable(name).map(PathBuf::from))
        };
        let address = self.events_server.clone();
        let address = address.or_else(|| variable("PORTOLAN_SERVER"));
        let token = file(&self.events_token_file, "PORTOLAN_TOKEN_FILE");
        Ok(FleetServerFiles {
            address: address.ok_or_else(|| {
                CommandError::usage("no fleet server is known for events")
                    .hint("name it with --events-server")
            })?,
            token: token.ok_or_else(|| {
                CommandError::usage("no token is known for events")
                    .hint("name its file with --events-token-file")
            })?,
            authority: file(&self.events_ca_file, "PORTOLAN_CA_FILE"),
        })
    }
}

/// Sends events and tells what keeps them from being sent, until the future is dropped.
pub(crate) async fn deliver(
    publisher: &EventPublisher,
    delivery: Option<EventDelivery>,
    printer: &Printer,
) {
    let Some(delivery) = delivery else {
        return std::future::pending().await;
    };
    tokio::join!(delivery.run(), tell_trouble(publisher, printer));
}

async fn tell_trouble(publisher: &EventPublisher, printer: &Printer) {
    let Some(mut states) = publisher.subscribe() else {
        return;
    };
    let (mut told, mut lost) = (None, 0);
    loop {
        let state = states.borrow_and_update().clone();
        let trouble = state.trouble.map(|trouble| trouble.message);
        if trouble != told {
            match &trouble {
                Some(why) => printer.warning(&format!("events wait for the fleet server: {why}")),
                None => printer.note("the fleet server takes events again"),
            }
            told = trouble;
        }
        if state.lost > lost {
            let count = state.lost - lost;
            printer.warning(&format!("{count} events for the fleet server were lost"));
            lost = state.lost;
        }
        if states.changed().await.is_err() {
            return;
        }
        tokio::time::sleep(TELL_EVERY).await;
    }
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not of the form KEY=VALUE")),
    }
}
