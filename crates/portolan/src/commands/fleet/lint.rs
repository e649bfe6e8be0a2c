//! `portolan fleet lint`: books in files, before anything runs them.

use std::fmt::Write as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_fleet::{
    BookFault, BookSource, DirectoryFiles, GitIncludes, IncludePolicy, TagSelection, compile,
};
use portolan_git::FetchOptions;
use portolan_modules::{BookFiles, BookRepository, NoBookFiles};
use portolan_object::counted;
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::CommandResult;
use crate::diagnostic::{Diagnostic, Place};
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;
use crate::outside::netrc;
use crate::places;
use crate::printer::Printer;

/// Check TaskBooks without running them
///
/// Everything in a book is checked: names of modules, options and parameters, types in decisions, names in templates and in
/// the files that a book uses, barriers, handlers and includes. What a book includes from other Git repositories is fetched.
/// All problems are reported at once, each with its line, causes before what follows from them. The exit code is 1 when there
/// are problems.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet lint book.yaml
  portolan fleet lint books/*.yaml -o json
  portolan fleet lint book.yaml --tags users")]
pub(crate) struct LintArgs {
    /// Files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<Utf8PathBuf>,

    #[command(flatten)]
    tags: TagArgs,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: Format,
}

/// Which steps of a book are taken.
#[derive(Debug, clap::Args)]
pub(super) struct TagArgs {
    /// Only steps with one of these tags
    #[arg(
        long,
        value_name = "TAG",
        value_delimiter = ',',
        help_heading = "Selection"
    )]
    tags: Vec<String>,

    /// No steps with one of these tags
    #[arg(
        long,
        value_name = "TAG",
        value_delimiter = ',',
        help_heading = "Selection"
    )]
    skip_tags: Vec<String>,
}

impl TagArgs {
    pub(super) fn selection(&self) -> TagSelection {
        TagSelection {
            tags: self.tags.iter().cloned().collect(),
            skip: self.skip_tags.iter().cloned().collect(),
        }
    }
}

/// The forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Each problem with its line
    Text,
    /// `{"findings": [{"file", "line", "column", "message", "hint"}]}`
    Json,
}

/// A book with its text and the files beside it.
pub(super) struct BookFile {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) files: Arc<dyn BookFiles>,
}

impl BookFile {
    pub(super) fn read(path: &Utf8PathBuf) -> Result<Self, CommandError> {
        let input = Input::read(path)?;
        let text = String::from_utf8(input.bytes);
        let text = text.map_err(|_| CommandError::usage(format!("`{path}` is not UTF-8")))?;
        let files: Arc<dyn BookFiles> = if path == "-" {
            Arc::new(NoBookFiles)
        } else {
            Arc::new(DirectoryFiles::beside(path).map_err(CommandError::usage)?)
        };
        let mirrors = places::cache_directory().join("includes");
        let files = Arc::new(GitIncludes::new(files, mirrors, OwnLogins));
        Ok(Self {
            name: input.name,
            text,
            files,
        })
    }

    /// The text of a file that the book includes or renders; empty if it cannot be read.
    fn text_of(&self, file: &str) -> String {
        let own = Utf8Path::new(&self.name).parent();
        let below = own.and_then(|own| Utf8Path::new(file).strip_prefix(own).ok());
        let included = below.filter(|below| BookRepository::split(below).is_some());
        let Some(included) = included else {
            return std::fs::read_to_string(file).unwrap_or_default();
        };
        let content = self.files.read(included).unwrap_or_default();
        String::from_utf8_lossy(&content).into_owned()
    }

    pub(super) fn source(&self, selection: TagSelection) -> BookSource<'_> {
        let mut source = BookSource::new(&self.name, &self.text, Arc::clone(&self.files));
        source.selection = selection;
        source
    }
}

/// Repositories are fetched as the user who runs the command.
struct OwnLogins;

impl IncludePolicy for OwnLogins {
    fn options(&self, url: &str) -> Result<FetchOptions, String> {
        Ok(FetchOptions {
            credentials: netrc().login(url),
            allow_local: true,
            ..FetchOptions::default()
        })
    }
}

pub(crate) fn lint(args: &LintArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let mut all = Vec::new();
    for path in &args.files {
        let file = BookFile::read(path)?;
        match compile(&file.source(args.tags.selection())) {
            Ok(book) if args.output == Format::Text => {
                let steps = count_steps(&book);
                printer.say_unless_quiet(&format!("{path}: {} checked", counted(steps, "step")));
            }
            Ok(_) => {}
            Err(faults) => {
                if args.output == Format::Text {
                    print_faults(&faults, &file, printer);
                }
                all.extend(faults);
            }
        }
    }
    if args.output == Format::Json {
        let findings: Vec<Value> = all.iter().map(as_json).collect();
        printer.data(format!("{:#}\n", json!({ "findings": findings })))?;
    }
    Ok(if all.is_empty() {
        ExitStatus::Clean
    } else {
        ExitStatus::Findings
    })
}

fn count_steps(book: &portolan_fleet::Book) -> usize {
    let mut count = 0;
    for step in book.steps.iter().chain(&book.handlers) {
        step.visit(&mut |_| count += 1);
    }
    count
}

/// Draws each fault with its line.
pub(super) fn print_faults(faults: &[BookFault], book: &BookFile, printer: &Printer) {
    for fault in faults {
        let other;
        let text = if *fault.place.file == *book.name {
            book.text.as_str()
        } else {
            other = book.text_of(&fault.place.file);
            &other
        };
        printer.diagnostic(&Diagnostic {
            message: fault.message.clone(),
            place: Some(Place {
                file: &fault.place.file,
                text,
                line: fault.place.line as usize,
                column: fault.place.column as usize,
            }),
            hints: fault.hint.iter().cloned().collect(),
        });
    }
    let mut summary = counted(faults.len(), "problem");
    let consequences = faults.iter().filter(|fault| fault.is_consequence).count();
    if consequences > 0 {
        let _ = write!(
            summary,
            ", {consequences} of them may follow from the others"
        );
    }
    printer.say_unless_quiet(&summary);
}

fn as_json(fault: &BookFault) -> Value {
    json!({
        "file": &*fault.place.file, "line": fault.place.line, "column": fault.place.column,
        "message": fault.message, "hint": fault.hint,
    })
}
