//! `portolan fleet events`: what happened, and what happens.

use portolan_kinds::{find_kind, read_span};
use portolan_server::{FleetClient, FleetError, ObjectPath};
use serde_json::{Value, json};

use super::connection::{ConnectionArgs, told};
use super::object_args::NamespaceArgs;
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::table::Tone;

/// Print events, and follow them as they happen
///
/// Events are in the namespace of what they are about; those of the whole fleet, such as of nodes, are in `system`. They are kept for a
/// day unless the Config says otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet events
  portolan fleet events -A -f
  portolan fleet events -n shop --type 'run.*' --node web-3 --since 1h
  portolan fleet events -A --severity warning -o json")]
pub(crate) struct EventsArgs {
    /// Go on, and print events as they happen
    #[arg(short, long, help_heading = "Output")]
    follow: bool,

    /// Only events of this type, or below it as in `run.*`
    #[arg(long = "type", value_name = "TYPE", help_heading = "Selection")]
    kind: Option<String>,

    /// Only events that are at least so bad
    #[arg(long, value_name = "SEVERITY", help_heading = "Selection")]
    severity: Option<AtLeast>,

    /// Only events that happened on this node
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    node: Option<String>,

    /// Only events of the last while, such as `10m`
    #[arg(long, value_name = "SPAN", value_parser = span, help_heading = "Selection")]
    since: Option<i64>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Events of all namespaces
    #[arg(short = 'A', long, help_heading = "Selection")]
    all_namespaces: bool,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: EventsFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// How bad an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
enum AtLeast {
    /// Everything
    Info,
    /// Somebody should look
    Warning,
    /// Something is broken
    Error,
}

/// Output format of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum EventsFormat {
    /// A line for each event
    Text,
    /// The objects; one in a line with --follow
    Json,
    /// The objects, as documents
    Yaml,
    /// Names
    Name,
}

pub(crate) fn events(args: &EventsArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let kind = find_kind("Event").ok_or_else(|| CommandError::usage("there is no kind Event"))?;
    let path = ObjectPath {
        kind,
        namespace: (!args.all_namespaces).then(|| args.namespace.namespace.clone()),
        name: None,
    };
    app.wait(show(args, &client, &path, &app.printer))??;
    Ok(ExitStatus::Clean)
}

async fn show(
    args: &EventsArgs,
    client: &FleetClient,
    path: &ObjectPath,
    printer: &Printer,
) -> Result<(), CommandError> {
    let (items, mut version) = client.list(path, &[]).await.map_err(told)?;
    let items: Vec<Value> = items.into_iter().filter(|item| args.wants(item)).collect();
    if args.output == EventsFormat::Json && !args.follow {
        let list =
            json!({"apiVersion": portolan_kinds::VERSION, "kind": "EventList", "items": items});
        return printer.data(format!("{list:#}\n"));
    }
    for item in &items {
        args.print(item, printer)?;
    }
    if items.is_empty() && !args.follow {
        printer.say_unless_quiet("nothing found");
    }
    if !args.follow {
        return Ok(());
    }
    loop {
        version = follow(args, client, path, version, printer).await?;
    }
}

/// Prints events after a version until the server ends the watch; gives the version to go on from.
async fn follow(
    args: &EventsArgs,
    client: &FleetClient,
    path: &ObjectPath,
    version: String,
    printer: &Printer,
) -> Result<String, CommandError> {
    let mut newest = version.clone();
    let mut failed = None;
    let query = [("resourceVersion", version.as_str())];
    let ended = client
        .watch(path, &query, |message| {
            if let Some(now) = message["object"]["metadata"]["resourceVersion"].as_str() {
                now.clone_into(&mut newest);
            }
            let event = &message["object"];
            if message["type"] == "ADDED" && args.wants(event) {
                failed = args.print(event, printer).err();
            }
            failed.is_none()
        })
        .await;
    match (failed, ended) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(newest),
        (None, Err(FleetError::Refused { status: 410, .. })) => {
            printer.warning("some events were missed: they came faster than they could be read");
            let (_, now) = client.list(path, &[("limit", "1")]).await.map_err(told)?;
            Ok(now)
        }
        (None, Err(error)) => Err(told(error)),
    }
}

impl EventsArgs {
    fn wants(&self, event: &Value) -> bool {
        let kind = shown::text(event, "spec.type");
        let fits_type = self
            .kind
            .as_deref()
            .is_none_or(|wanted| match wanted.strip_suffix('*') {
                Some(prefix) => kind.starts_with(prefix),
                None => kind == wanted,
            });
        let severity = match shown::text(event, "spec.severity").as_str() {
            "error" => AtLeast::Error,
            "warning" => AtLeast::Warning,
            _ => AtLeast::Info,
        };
        let node = shown::text(event, "spec.source.node");
        let time = shown::text(event, "spec.time");
        fits_type
            && self.severity.is_none_or(|least| severity >= least)
            && self.node.as_ref().is_none_or(|wanted| *wanted == node)
            && self.since.is_none_or(|since| {
                shown::seconds_since(&time).is_some_and(|passed| passed <= since)
            })
    }

    fn print(&self, event: &Value, printer: &Printer) -> Result<(), CommandError> {
        match self.output {
            EventsFormat::Json => printer.data(format!("{event}\n")),
            EventsFormat::Yaml => printer.data(format!("---\n{}", shown::yaml(event)?)),
            EventsFormat::Name => printer.data(format!("{}\n", shown::name(event))),
            EventsFormat::Text => printer.data(self.line(event, printer.is_styled())),
        }
    }

    fn line(&self, event: &Value, is_styled: bool) -> String {
        let text = |path: &str| shown::text(event, path);
        let severity = text("spec.severity");
        let tone = match severity.as_str() {
            "error" => Tone::Bad,
            "warning" => Tone::Warning,
            _ => Tone::Plain,
        };
        let place = if self.all_namespaces {
            format!("{:<10} ", text("metadata.namespace"))
        } else {
            String::new()
        };
        let time = text("spec.time");
        // Some senders give parts of a second.
        let second = time.get(..19).unwrap_or(&time);
        format!(
            "{second}Z {place}{} {:<18} {}\n",
            tone.paint(&format!("{severity:<7}"), is_styled),
            text("spec.type"),
            text("spec.summary")
        )
    }
}

fn span(text: &str) -> Result<i64, String> {
    let span = read_span(text)?;
    i64::try_from(span.as_secs()).map_err(|_| "is too long".to_owned())
}
