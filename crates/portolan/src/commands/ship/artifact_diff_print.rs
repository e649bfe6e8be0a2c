//! How the images of two states of a project are printed.

use std::fmt::Write as _;

use portolan_object::API_VERSION;
use portolan_ship::{ComparedArtifact, ImageDifference, ImagePreview};
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::printer::Printer;

/// How many digits of a digest people see.
const DIGITS: usize = 12;

/// How the answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArtifactFormat {
    Text,
    Json,
    Markdown,
}

pub(super) fn print(
    title: &str,
    compared: &[ComparedArtifact],
    format: ArtifactFormat,
    printer: &Printer,
) -> Result<(), CommandError> {
    printer.data(match format {
        ArtifactFormat::Text => text(title, compared),
        ArtifactFormat::Json => json_text(title, compared),
        ArtifactFormat::Markdown => markdown(title, compared),
    })
}

fn text(title: &str, compared: &[ComparedArtifact]) -> String {
    let mut answer = format!("{title}\n");
    let is_told = |it: &&ComparedArtifact| it.difference() != ImageDifference::Unchanged;
    let told: Vec<&ComparedArtifact> = compared.iter().filter(is_told).collect();
    let width = told.iter().map(|it| it.name.len()).max().unwrap_or(0);
    for artifact in &told {
        let mark = match artifact.difference() {
            ImageDifference::Unchanged => ' ',
            ImageDifference::Changed => '~',
            ImageDifference::Added => '+',
            ImageDifference::Removed => '-',
            ImageDifference::Unknown => '?',
            ImageDifference::Failed => '✗',
        };
        let name = &artifact.name;
        let _ = writeln!(answer, "{mark} {name:width$}  {}", words(artifact));
    }
    if told.is_empty() {
        answer.push_str("a build would make the same images\n");
    }
    answer
}

/// `sha256:… → sha256:…`, or why that is not known.
fn words(artifact: &ComparedArtifact) -> String {
    let name = &artifact.name;
    let side = |preview: &ImagePreview| match preview {
        ImagePreview::Known(digest) => {
            let hex = digest.hex();
            format!("sha256:{}", hex.get(..DIGITS).unwrap_or(&hex))
        }
        ImagePreview::Unknown { until } if until == name => "unknown until built".to_owned(),
        ImagePreview::Unknown { until } => format!("unknown until `{until}` is built"),
        ImagePreview::Failed(error) => error.clone(),
    };
    match (&artifact.old, &artifact.new) {
        (Some(old), Some(new)) if side(old) == side(new) => side(new),
        (Some(old), Some(new)) => format!("{} → {}", side(old), side(new)),
        (None, Some(only)) | (Some(only), None) => side(only),
        (None, None) => String::new(),
    }
}

fn json_text(title: &str, compared: &[ComparedArtifact]) -> String {
    let side = |preview: &Option<ImagePreview>| match preview {
        Some(ImagePreview::Known(digest)) => Value::from(digest.to_string()),
        _ => Value::Null,
    };
    let artifacts = compared.iter().map(|artifact| {
        let difference = artifact.difference();
        let status = match difference {
            ImageDifference::Unchanged => "unchanged",
            ImageDifference::Changed => "changed",
            ImageDifference::Added => "added",
            ImageDifference::Removed => "removed",
            ImageDifference::Unknown => "unknown",
            ImageDifference::Failed => "failed",
        };
        let mut value = json!({
            "name": artifact.name, "image": artifact.image, "status": status,
            "old": side(&artifact.old), "new": side(&artifact.new),
        });
        let known = [ImageDifference::Unchanged, ImageDifference::Changed];
        if !known.contains(&difference) {
            value["message"] = words(artifact).into();
        }
        value
    });
    let artifacts: Vec<Value> = artifacts.collect();
    let value = json!({
        "apiVersion": API_VERSION, "kind": "ArtifactDiff", "title": title, "artifacts": artifacts,
    });
    format!("{value:#}\n")
}

fn markdown(title: &str, compared: &[ComparedArtifact]) -> String {
    let mut answer = format!("**{title}**\n\n");
    let is_told = |it: &&ComparedArtifact| it.difference() != ImageDifference::Unchanged;
    let told: Vec<&ComparedArtifact> = compared.iter().filter(is_told).collect();
    if told.is_empty() {
        answer.push_str("A build would make the same images.\n");
        return answer;
    }
    answer.push_str("| artifact | image |\n| --- | --- |\n");
    for artifact in told {
        // What a cell may not hold.
        let words = words(artifact).replace('|', "\\|").replace('\n', " ");
        let _ = writeln!(answer, "| {} | {words} |", artifact.name);
    }
    answer
}
