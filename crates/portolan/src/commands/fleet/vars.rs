//! `portolan fleet vars`: the variables of a node, and where each came from.

use std::fmt::Write as _;

use portolan_server::FleetMethod;
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::object_args::NamespaceArgs;
use super::shown;
use crate::app::App;
use crate::cli::Later;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Explain the variables of nodes
#[derive(Debug, clap::Args)]
pub(crate) struct VarsArgs {
    #[command(subcommand)]
    command: VarsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum VarsCommand {
    /// Print where the variables of a node come from
    Explain(Later<ExplainArgs>),
}

/// Print where the variables of a node come from
///
/// All sources of a value are listed, the one that counts first: all nodes < group < node, in each of them a bound `ClusterVariable` < a
/// Variable of the namespace, then the higher `priority`. Values that are secret are not shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet vars explain web-1
  portolan fleet vars explain web-1 port -n shop
  portolan fleet vars explain web-1 port -o json")]
struct ExplainArgs {
    /// The node
    #[arg(value_name = "NODE")]
    node: String,

    /// The variable; all of them without it
    #[arg(value_name = "KEY")]
    key: Option<String>,

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
    output: ExplainFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExplainFormat {
    /// Each variable with its sources
    Text,
    /// `{"node", "items": [{"key", "value", "computed", "candidates": […], "origins"}]}`
    Json,
    /// The same as YAML
    Yaml,
}

pub(crate) fn vars(args: &VarsArgs, app: &App) -> CommandResult {
    let VarsCommand::Explain(args) = &args.command;
    explain(args, app)
}

fn explain(args: &ExplainArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let namespace = &args.namespace.namespace;
    let path = format!(
        "/api/v1alpha/namespaces/{namespace}/nodes/{}/variables",
        args.node
    );
    let asked = client.request(FleetMethod::Get, &path, &[], None);
    let mut answer = app.wait(asked)?.map_err(told)?;
    if let (Some(key), Some(items)) = (&args.key, answer["items"].as_array_mut()) {
        items.retain(|item| item["key"] == key.as_str());
        if items.is_empty() {
            let message = format!("node {} has no variable `{key}` in {namespace}", args.node);
            return Err(CommandError::usage(message));
        }
    }
    let printer = &app.printer;
    match args.output {
        ExplainFormat::Json => printer.data(format!("{answer:#}\n"))?,
        ExplainFormat::Yaml => printer.data(shown::yaml(&answer)?)?,
        ExplainFormat::Text => {
            let items = answer["items"].as_array().into_iter().flatten();
            let texts: Vec<String> = items.map(text).collect();
            if texts.is_empty() {
                printer.say_unless_quiet("nothing found");
            }
            printer.data(texts.join("\n"))?;
        }
    }
    Ok(ExitStatus::Clean)
}

/// Which step made a value, and when.
fn produced_text(produced: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (maker, mut text) = (&produced["producer"], String::new());
    if maker.is_object() {
        let _ = writeln!(
            text,
            "             version {} of {}, by step {} of TaskBook {} on {} (run {})",
            produced["version"],
            word(&produced["computedAt"]),
            word(&maker["step"]),
            word(&maker["taskBook"]),
            word(&maker["node"]),
            word(&maker["run"]),
        );
    }
    if let Some(why) = produced["stale"].as_str() {
        let _ = writeln!(text, "             {why}");
    }
    text
}

fn text(item: &Value) -> String {
    let word = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let (key, is_computed) = (word(item, "key"), item["computed"] == true);
    let value = if item["sensitive"] == true {
        "[redacted]".to_owned()
    } else {
        item["value"].to_string()
    };
    let mut text = format!("{key}: {value}\n");
    for candidate in item["candidates"].as_array().into_iter().flatten() {
        let given = match &candidate["value"] {
            Value::Null if candidate.get("produced").is_some() => "no value yet".to_owned(),
            Value::Null => "[redacted]".to_owned(),
            Value::String(expression) if is_computed => expression.clone(),
            value => value.to_string(),
        };
        let (role, scope) = (word(candidate, "role"), word(candidate, "scope"));
        let mut source = word(candidate, "source");
        if let Some(secret) = candidate.get("secret") {
            let (name, key) = (word(secret, "name"), word(secret, "key"));
            source = format!("{source} (Secret {name}, key {key})");
        }
        let _ = writeln!(text, "  {role:<10} {scope:<9} {source}: {given}");
        if let Some(produced) = candidate.get("produced") {
            text.push_str(&produced_text(produced));
        }
    }
    let origins = item["origins"].as_object().into_iter().flatten();
    for (path, source) in origins.filter(|(path, _)| !path.is_empty()) {
        let source = source.as_str().unwrap_or_default();
        let _ = writeln!(text, "  {key}.{path} from {source}");
    }
    text
}
