//! Objects as YAML: one stream, or one file each; the values of Secrets hidden.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_object::Object;

use super::Batch;
use crate::error::CommandError;
use crate::printer::Printer;
use crate::secret::SecretArgs;

/// How objects are written.
#[derive(Debug, clap::Args)]
pub(super) struct WriteArgs {
    #[command(flatten)]
    secrets: SecretArgs,

    /// Say before each object what it belongs to and where it comes from
    #[arg(long)]
    provenance: bool,

    /// Write one file per object to a directory instead of standard output
    #[arg(long, value_name = "DIR")]
    output_dir: Option<Utf8PathBuf>,
}

pub(super) fn write(
    batches: &[Batch],
    args: &WriteArgs,
    printer: &Printer,
) -> Result<(), CommandError> {
    let mut taken = HashSet::new();
    for batch in batches {
        let mut text = String::new();
        for object in &batch.objects {
            let yaml = print(object, args)?;
            match &args.output_dir {
                None => push_document(&mut text, batch, object, &yaml, args),
                Some(dir) => write_file(&dir.join(file_name(batch, object, &mut taken)), &yaml)?,
            }
        }
        printer.data(text)?;
    }
    Ok(())
}

fn push_document(text: &mut String, batch: &Batch, object: &Object, yaml: &str, args: &WriteArgs) {
    text.push_str("---\n");
    if args.provenance {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# {}\n# {}", batch.owner, object.origin);
    }
    text.push_str(yaml);
}

fn print(object: &Object, args: &WriteArgs) -> Result<String, CommandError> {
    portolan_yaml::write_kustomize(&args.secrets.shown(object))
        .map_err(|error| CommandError::usage(format!("cannot print {}: {error}", object.id())))
}

/// `apps/Deployment-web.yaml` below the owner's directory; a second one of that name gets a number.
fn file_name(batch: &Batch, object: &Object, taken: &mut HashSet<Utf8PathBuf>) -> Utf8PathBuf {
    let namespace = if object.namespace().is_empty() {
        "_cluster"
    } else {
        object.namespace()
    };
    let safe = |text: &str| text.replace(['/', ':'], "_");
    let directory = Utf8Path::new(&batch.owner.replace(' ', "/")).join(namespace);
    let stem = format!("{}-{}", object.kind(), safe(object.name()));
    let names =
        std::iter::once(format!("{stem}.yaml")).chain((2..).map(|n| format!("{stem}-{n}.yaml")));
    let mut paths = names.map(|name| directory.join(name));
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
    let temporary = path.with_extension("yaml.part");
    fs::write(&temporary, text)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(failed)
}
