//! Objects as YAML: one stream, or one file each; the values of Secrets hidden.

use std::collections::HashSet;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_object::Object;

use super::Batch;
use crate::error::CommandError;
use crate::printer::{Hidden, Printer};
use crate::secret::SecretArgs;

/// How objects are written.
#[derive(Debug, clap::Args)]
pub(super) struct WriteArgs {
    #[command(flatten)]
    pub(super) secrets: SecretArgs,

    /// Say before each object what it belongs to and where it comes from
    #[arg(long)]
    provenance: bool,

    /// In which form
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml")]
    output: Form,

    /// Write to a file instead of standard output
    #[arg(long, value_name = "FILE", conflicts_with = "output_dir")]
    output_file: Option<Utf8PathBuf>,

    /// Write one file per object to a directory instead of standard output
    ///
    /// The files lie below the name of their owner, and below their cluster's when there are several.
    #[arg(long, value_name = "DIR")]
    output_dir: Option<Utf8PathBuf>,
}

/// In which form objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// Documents
    Yaml,
    /// A list
    Json,
}

pub(super) fn write(
    batches: &[Batch],
    args: &WriteArgs,
    printer: &Printer,
) -> Result<(), CommandError> {
    if let Some(directory) = &args.output_dir {
        return write_files(batches, args, directory, &printer.hidden());
    }
    if let Some(file) = &args.output_file {
        let mut text = String::new();
        each_text(batches, args, |part| {
            text.push_str(part);
            Ok(())
        })?;
        return write_file(file, &printer.hidden().clean(&text));
    }
    each_text(batches, args, |part| printer.data(part))
}

/// Gives the text of all objects piece by piece, so that it is never in memory as a whole.
fn each_text(
    batches: &[Batch],
    args: &WriteArgs,
    mut give: impl FnMut(&str) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut separator = "[\n";
    for batch in batches {
        let mut text = String::new();
        for object in &batch.objects {
            if args.output == Form::Yaml {
                push_document(&mut text, batch, object, &print(object, args)?, args);
            } else {
                text.push_str(separator);
                text.push_str(&print(object, args)?);
                separator = ",\n";
            }
        }
        give(&text)?;
    }
    match (args.output, separator) {
        (Form::Yaml, _) => Ok(()),
        (Form::Json, "[\n") => give("[]\n"),
        (Form::Json, _) => give("\n]\n"),
    }
}

/// Writes a file for each object.
fn write_files(
    batches: &[Batch],
    args: &WriteArgs,
    directory: &Utf8Path,
    hidden: &Hidden,
) -> Result<(), CommandError> {
    let mut taken = HashSet::new();
    for batch in batches {
        for object in &batch.objects {
            let name = file_name(batch, object, args.output, &mut taken);
            let mut text = print(object, args)?;
            if args.provenance && args.output == Form::Yaml {
                text.insert_str(0, &provenance(batch, object));
            }
            write_file(&directory.join(name), &hidden.clean(&text))?;
        }
    }
    Ok(())
}

fn push_document(text: &mut String, batch: &Batch, object: &Object, yaml: &str, args: &WriteArgs) {
    text.push_str("---\n");
    if args.provenance {
        text.push_str(&provenance(batch, object));
    }
    text.push_str(yaml);
}

/// What an object belongs to and where it comes from, as comments.
fn provenance(batch: &Batch, object: &Object) -> String {
    let cluster = batch.cluster.as_ref();
    let cluster = cluster.map_or_else(String::new, |name| format!(" of {name}"));
    let origin = object.origin.to_string().replace(['\n', '\r'], " ");
    format!("# {}{cluster}\n# {origin}\n", batch.owner)
}

fn print(object: &Object, args: &WriteArgs) -> Result<String, CommandError> {
    let shown = args.secrets.shown(object);
    let printed = match args.output {
        Form::Yaml => portolan_yaml::write_kustomize(&shown),
        Form::Json => portolan_yaml::to_json(&shown),
    };
    printed.map_err(|error| CommandError::usage(format!("cannot print {}: {error}", object.id())))
}

/// `Kustomization/flux-system/apps/shop/Deployment-web.yaml`; a second one of that name gets a number.
fn file_name(
    batch: &Batch,
    object: &Object,
    form: Form,
    taken: &mut HashSet<Utf8PathBuf>,
) -> Utf8PathBuf {
    let namespace = if object.namespace().is_empty() {
        "_cluster"
    } else {
        object.namespace()
    };
    let safe = |text: &str| text.replace(['/', ':', '\\'], "_");
    let directory = Utf8PathBuf::from(batch.cluster.as_deref().map(safe).unwrap_or_default())
        .join(batch.owner.replace(' ', "/"))
        .join(safe(namespace));
    let stem = format!("{}-{}", safe(object.kind()), safe(object.name()));
    let extension = match form {
        Form::Yaml => "yaml",
        Form::Json => "json",
    };
    let numbers = (2..).map(|number| format!("{stem}-{number}.{extension}"));
    let mut paths = std::iter::once(format!("{stem}.{extension}"))
        .chain(numbers)
        .map(|name| directory.join(name));
    paths
        .find(|path| taken.insert(path.clone()))
        .unwrap_or(directory)
}

/// Writes a file whole or not at all.
fn write_file(path: &Utf8Path, text: &str) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| {
        CommandError::user(anyhow::Error::new(error).context(format!("cannot write `{path}`")))
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    let temporary = Utf8PathBuf::from(format!("{path}.part"));
    fs::write(&temporary, text)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(failed)
}
