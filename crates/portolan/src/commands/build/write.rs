//! Objects as YAML: one stream, or one file each; the values of Secrets hidden.

use std::collections::HashSet;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_files::{OutputDir, write_file};
use portolan_object::API_VERSION;
use portolan_review::SelectedOutput;

use super::document::{object_path, print, provenance};
use crate::error::CommandError;
use crate::printer::Printer;
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
pub(super) enum Form {
    /// Documents
    Yaml,
    /// A list
    Json,
}

/// How much text of one owner is written at once.
const MAX_TEXT: usize = 1 << 18;

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

    pub(super) fn write(&mut self, selected: &SelectedOutput) -> Result<(), CommandError> {
        match &self.args.output_dir {
            Some(directory) => self.write_files(selected, directory),
            None => self.write_text(selected),
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

    /// Writes the objects to one text, of which only a part is in memory at a time.
    fn write_text(&mut self, selected: &SelectedOutput) -> Result<(), CommandError> {
        let mut text = String::new();
        let secrets = self
            .view
            .secrets_of(selected.all.iter(), selected.owner_kind);
        for object in selected.objects() {
            let shown = self.view.show(&object, &secrets);
            let printed = print(&object, &shown, self.args.output)?;
            if self.args.output == Form::Yaml {
                text.push_str("---\n");
                if self.args.provenance {
                    text.push_str(&provenance(selected, &object));
                }
                text.push_str(&printed);
            } else {
                if self.separator == "\n" {
                    text.push_str(&list_begin());
                }
                text.push_str(self.separator);
                text.push_str(&printed);
                self.separator = ",\n";
            }
            if text.len() >= MAX_TEXT {
                self.give(&text)?;
                text.clear();
            }
        }
        self.give(&text)
    }

    /// Writes a file for each object.
    fn write_files(
        &mut self,
        selected: &SelectedOutput,
        directory: &Utf8Path,
    ) -> Result<(), CommandError> {
        let secrets = self
            .view
            .secrets_of(selected.all.iter(), selected.owner_kind);
        for object in selected.objects() {
            let hidden = self.printer.hidden();
            let path = object_path(
                selected,
                &object,
                self.args.output,
                &hidden,
                &mut self.taken,
            );
            let shown = self.view.show(&object, &secrets);
            let mut text = print(&object, &shown, self.args.output)?;
            if self.args.provenance && self.args.output == Form::Yaml {
                text.insert_str(0, &provenance(selected, &object));
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
