//! Objects as YAML: one stream, or one file each; the values of Secrets hidden.

use std::collections::HashSet;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_files::{OutputDir, file_name, write_file};
use portolan_object::{API_VERSION, Object, Step};
use portolan_secret::readable_json;
use portolan_yaml::Node;

use super::Batch;
use crate::error::CommandError;
use crate::printer::{Hidden, Printer};
use crate::secret::{ObjectView, SecretArgs};

/// How objects are written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct WriteArgs {
    #[command(flatten)]
    pub(super) secrets: SecretArgs,

    /// Leave out the owner labels that Flux's controllers add
    #[arg(long)]
    pub(super) no_owner_labels: bool,

    /// Values of Secrets are always hidden; other tools have to be told
    #[arg(long, hide = true, conflicts_with = "show_secrets")]
    wipe_secrets: bool,

    /// Print the owner and the origin of each object as comments
    #[arg(long)]
    pub(super) provenance: bool,

    /// Output format
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

/// Output format of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// Documents
    Yaml,
    /// A list
    Json,
}

/// Writes the objects of one owner after another.
pub(super) struct Writer<'a> {
    args: &'a WriteArgs,
    printer: &'a Printer,
    view: ObjectView,
    /// What goes before the next object of a JSON list.
    separator: &'static str,
    /// The text for `--output-file`, which is written whole or not at all.
    text: String,
    /// The directory of `--output-dir`, opened for the first object.
    directory: Option<OutputDir>,
    /// The files of `--output-dir` so far.
    taken: HashSet<Utf8PathBuf>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(args: &'a WriteArgs, printer: &'a Printer) -> Self {
        Self {
            args,
            printer,
            view: ObjectView::new(printer),
            separator: "\n",
            text: String::new(),
            directory: None,
            taken: HashSet::new(),
        }
    }

    pub(super) fn write(&mut self, batch: &Batch) -> Result<(), CommandError> {
        match &self.args.output_dir {
            Some(directory) => self.write_files(batch, directory),
            None => {
                let text = self.text_of(batch)?;
                self.give(&text)
            }
        }
    }

    pub(super) fn finish(mut self) -> Result<(), CommandError> {
        self.view.tell(self.printer, Some("--skip-secrets"));
        if self.args.output_dir.is_some() {
            return Ok(());
        }
        match (self.args.output, self.separator) {
            (Form::Yaml, _) => {}
            (Form::Json, "\n") => {
                let begin = list_begin();
                self.give(&format!("{begin}]}}\n"))?;
            }
            (Form::Json, _) => self.give("\n]}\n")?,
        }
        match &self.args.output_file {
            Some(file) => {
                let text = self.printer.hidden();
                Ok(write_file(file, text.clean(&self.text).as_bytes())?)
            }
            None => Ok(()),
        }
    }

    fn give(&mut self, text: &str) -> Result<(), CommandError> {
        if self.args.output_file.is_some() {
            self.text.push_str(text);
            return Ok(());
        }
        self.printer.data(text)
    }

    fn text_of(&mut self, batch: &Batch) -> Result<String, CommandError> {
        let mut text = String::new();
        let secrets = self.view.secrets_of(batch.all.iter(), batch.owner_kind);
        for object in &batch.objects {
            let printed = print(object, &self.view.show(object, &secrets), self.args)?;
            if self.args.output == Form::Yaml {
                push_document(&mut text, batch, object, &printed, self.args);
            } else {
                if self.separator == "\n" {
                    text.push_str(&list_begin());
                }
                text.push_str(self.separator);
                text.push_str(&printed);
                self.separator = ",\n";
            }
        }
        Ok(text)
    }

    /// Writes a file for each object.
    fn write_files(&mut self, batch: &Batch, directory: &Utf8Path) -> Result<(), CommandError> {
        let secrets = self.view.secrets_of(batch.all.iter(), batch.owner_kind);
        for object in &batch.objects {
            let hidden = self.printer.hidden();
            let path = object_path(batch, object, self.args.output, &hidden, &mut self.taken);
            let mut text = print(object, &self.view.show(object, &secrets), self.args)?;
            if self.args.provenance && self.args.output == Form::Yaml {
                text.insert_str(0, &provenance(batch, object));
            }
            let directory = match &self.directory {
                Some(open) => open,
                None => self.directory.insert(OutputDir::create(directory)?),
            };
            directory.write(&path, hidden.clean(&text).as_bytes())?;
        }
        Ok(())
    }
}

/// What a list of objects begins with.
fn list_begin() -> String {
    format!("{{\"apiVersion\":\"{API_VERSION}\",\"kind\":\"ObjectList\",\"items\":[")
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
    let one_line = |text: String| text.replace(['\n', '\r'], " ");
    let origin = one_line(object.origin.to_relative());
    let mut text = format!("# {}{cluster}\n# {origin}\n", batch.owner);
    if !batch.made_of.is_empty() {
        let made_of = batch.made_of.iter().map(Step::to_string);
        let made_of = one_line(made_of.collect::<Vec<_>>().join(", "));
        text += &["# declared in ", &made_of, "\n"].concat();
    }
    text
}

fn print(object: &Object, shown: &Node, args: &WriteArgs) -> Result<String, CommandError> {
    let printed = match args.output {
        Form::Yaml => portolan_yaml::write_kustomize(shown),
        Form::Json => portolan_yaml::to_json(shown).map(|json| readable_json(&json).into_owned()),
    };
    printed.map_err(|error| CommandError::usage(format!("cannot print {}: {error}", object.id())))
}

/// `Kustomization/flux-system/apps/shop/Deployment-web.yaml`; a second one of that name gets a number. All names come
/// out of the repository, so each becomes one name of a file, without what is secret in it.
fn object_path(
    batch: &Batch,
    object: &Object,
    form: Form,
    hidden: &Hidden,
    taken: &mut HashSet<Utf8PathBuf>,
) -> Utf8PathBuf {
    let namespace = if object.namespace().is_empty() {
        "_cluster"
    } else {
        object.namespace()
    };
    let (kind, owner) = batch.owner.split_once(' ').unwrap_or(("", &batch.owner));
    let (place, name) = owner.split_once('/').unwrap_or(("", owner));
    let mut directory = Utf8PathBuf::new();
    let parents = [batch.cluster.as_deref().unwrap_or_default(), kind, place];
    for parent in parents.into_iter().filter(|parent| !parent.is_empty()) {
        directory.push(file_name(&hidden.clean(parent)));
    }
    directory.push(file_name(&hidden.clean(name)));
    directory.push(file_name(&hidden.clean(namespace)));
    let stem = file_name(&hidden.clean(&format!("{}-{}", object.kind(), object.name())));
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
