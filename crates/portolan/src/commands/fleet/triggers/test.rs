//! `portolan fleet triggers test`: what an event would do.

use std::fmt::Write as _;
use std::path::PathBuf;

use portolan_kinds::KindObject;
use portolan_server::FleetMethod;
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::fleet::connection::{ConnectionArgs, told};
use crate::commands::fleet::object_args::NamespaceArgs;
use crate::commands::fleet::shown;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::table::Tone;

/// Say whether an event would fire each trigger, and why, without firing any
///
/// The event is one that happened, by its name, or one in a file that has not. The rules of each trigger are listed in the order in
/// which they are asked, up to the one that stops the event. The exit code is 0 if a trigger would fire and 1 if none would.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet triggers test step-4f1c2a9b0d3e8c7a6f5b4d3c
  portolan fleet triggers test -f event.yaml -n shop
  portolan fleet triggers test -f event.yaml -o json")]
pub(super) struct TestArgs {
    /// The name of an event that happened
    #[arg(value_name = "EVENT", required_unless_present = "file")]
    event: Option<String>,

    /// A file with an Event, instead of one that happened
    #[arg(
        short,
        long,
        value_name = "FILE",
        conflicts_with = "event",
        help_heading = "Selection"
    )]
    file: Option<PathBuf>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: TestFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of what triggers would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TestFormat {
    /// Each trigger with its rules
    Text,
    /// `{"event", "items": [{"trigger", "fires", "result", "rules": […], "inputs"}]}`
    Json,
    /// The same as YAML
    Yaml,
}

pub(super) fn test(args: &TestArgs, app: &App) -> CommandResult {
    let body = body(args)?;
    let client = args.connection.connect()?;
    let path = "/api/v1alpha/trigger-tests";
    let asked = client.request(FleetMethod::Post, path, &[], Some(&body));
    let answer = app.wait(asked)?.map_err(told)?;
    let items: Vec<&Value> = answer["items"].as_array().into_iter().flatten().collect();
    match args.output {
        TestFormat::Json => app.printer.data(format!("{answer:#}\n"))?,
        TestFormat::Yaml => app.printer.data(shown::yaml(&answer)?)?,
        TestFormat::Text if items.is_empty() => {
            app.printer.say_unless_quiet("there are no triggers");
        }
        TestFormat::Text => {
            let texts: Vec<String> = items
                .iter()
                .map(|item| text(item, app.printer.is_styled()))
                .collect();
            app.printer.data(texts.join("\n"))?;
        }
    }
    let fires = items.iter().any(|item| item["fires"] == true);
    Ok(if fires {
        ExitStatus::Clean
    } else {
        ExitStatus::Findings
    })
}

/// What is asked: the name of an event, or an Event.
fn body(args: &TestArgs) -> Result<String, CommandError> {
    let namespace = &args.namespace.namespace;
    let Some(file) = &args.file else {
        let body = json!({"namespace": namespace, "name": args.event});
        return Ok(body.to_string());
    };
    let read = std::fs::read_to_string(file).map_err(|error| {
        let context = format!("cannot read `{}`", file.display());
        CommandError::user(anyhow::Error::new(error).context(context))
    })?;
    let mut event = KindObject::read_text(&read).map_err(|faults| {
        let first = faults.first().map(ToString::to_string);
        CommandError::usage(format!("{}:{}", file.display(), first.unwrap_or_default()))
    })?;
    if event.metadata.namespace.is_none() {
        event.metadata.namespace = Some(namespace.clone());
    }
    Ok(event.to_json().to_string())
}

fn text(item: &Value, is_styled: bool) -> String {
    let word = |key: &str| item[key].as_str().unwrap_or_default();
    let fires = item["fires"] == true;
    let (tone, verdict) = if fires {
        (Tone::Good, "fires".to_owned())
    } else {
        (Tone::Plain, format!("does not fire: {}", word("result")))
    };
    let mut text = format!(
        "trigger/{} in {} {}\n",
        word("trigger"),
        word("namespace"),
        tone.paint(&verdict, is_styled)
    );
    for rule in item["rules"].as_array().into_iter().flatten() {
        let sign = if rule["passed"] == true { "✓" } else { "✗" };
        let part = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
        let _ = writeln!(text, "  {sign} {}: {}", part("rule"), part("detail"));
    }
    if fires {
        let inputs = item["inputs"].as_object().into_iter().flatten();
        let inputs: Vec<String> = inputs
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let with = if inputs.is_empty() {
            String::new()
        } else {
            format!(" with {}", inputs.join(", "))
        };
        let _ = writeln!(text, "  → runs the TaskBook {}{with}", word("book"));
    }
    text
}
