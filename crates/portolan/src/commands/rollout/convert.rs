//! `portolan rollout convert`: converts canaries of Flagger and Argo Rollouts to ours.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use portolan_canary::{Conversion, convert as converted};
use portolan_object::API_VERSION;
use portolan_yaml::{Dialect, from_json, parse_bytes, to_json, write_kustomize};
use serde_json::{Value, json};

use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;
use crate::printer::Printer;

/// Convert canaries of Flagger and Argo Rollouts
///
/// Every `Canary` of Flagger and every `Rollout` of Argo becomes an `IstioCanaryDeployment`. Deployments, Services,
/// autoscalers and templates of metrics in the same files are used; what has no counterpart is told as a comment above
/// each object.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout convert -f canary.yaml -f deployment.yaml > icd.yaml
  kubectl get canary,metrictemplate,deploy,hpa -o yaml | portolan rollout convert -f -
  portolan rollout convert -f rollout.yaml -o json")]
pub(crate) struct ConvertArgs {
    /// Files with the objects; `-` is standard input
    #[arg(
        short,
        long = "filename",
        value_name = "FILE",
        required = true,
        help_heading = "Input"
    )]
    files: Vec<Utf8PathBuf>,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "yaml",
        help_heading = "Output"
    )]
    output: Format,
}

/// The forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One YAML document for each, with comments
    Yaml,
    /// `{"items": [{"from", "object", "notes"}]}`
    Json,
}

pub(crate) fn convert(args: &ConvertArgs, printer: &Printer) -> CommandResult {
    let mut objects = Vec::new();
    for file in &args.files {
        objects.extend(read(&Input::read(file)?)?);
    }
    let conversions = converted(&objects);
    if conversions.is_empty() {
        return Err(CommandError::usage(
            "no Canary of Flagger and no Rollout of Argo was given",
        ));
    }
    match args.output {
        Format::Json => printer.data(as_json(&conversions))?,
        Format::Yaml => {
            let documents: Result<Vec<String>, CommandError> =
                conversions.iter().map(as_yaml).collect();
            printer.data(documents?.join("---\n"))?;
        }
    }
    Ok(ExitStatus::Clean)
}

/// The objects of a file, those of lists included.
fn read(input: &Input) -> Result<Vec<Value>, CommandError> {
    let documents = parse_bytes(&input.bytes, Dialect::Kustomize).map_err(|error| {
        CommandError::user(
            anyhow::Error::new(error).context(format!("cannot read `{}`", input.name)),
        )
    })?;
    let mut objects = Vec::new();
    for document in &documents {
        let json = to_json(document).map_err(CommandError::user)?;
        let mut object: Value = serde_json::from_str(&json).map_err(CommandError::user)?;
        match object["items"].take() {
            Value::Array(items)
                if object["kind"]
                    .as_str()
                    .is_some_and(|kind| kind.ends_with("List")) =>
            {
                objects.extend(items);
            }
            _ => objects.push(object),
        }
    }
    Ok(objects)
}

/// An object with its notes as comments above it.
pub(super) fn as_yaml(conversion: &Conversion) -> Result<String, CommandError> {
    let mut text = format!("# from {}\n", conversion.from);
    for note in &conversion.notes {
        let _ = writeln!(text, "# {note}");
    }
    let node = from_json(&conversion.object.to_string()).map_err(CommandError::user)?;
    text.push_str(&write_kustomize(&node).map_err(CommandError::user)?);
    Ok(text)
}

fn as_json(conversions: &[Conversion]) -> String {
    let items: Vec<Value> = conversions
        .iter()
        .map(|one| json!({"from": one.from, "object": one.object, "notes": one.notes}))
        .collect();
    let document = json!({"apiVersion": API_VERSION, "kind": "RolloutConversion", "items": items});
    format!("{document:#}\n")
}
