//! `portolan ship init`: writes a document for what is found in a directory.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_object::counted;
use portolan_ship::{Draft, draft_of_directory, draft_of_skaffold};

use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Write a document for what is found in a directory
///
/// Looks for Dockerfiles, Cargo packages, Go modules and directories of built files. Nothing that is there is changed: a
/// document is added to a `portolan.yaml` that has none of `kind: Ship`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship init
  portolan ship init --registry registry.example/shop
  portolan ship init --from skaffold.yaml
  portolan ship init --dry-run")]
pub(crate) struct InitArgs {
    /// Directory to look at
    #[arg(value_name = "DIR", default_value = ".")]
    directory: Utf8PathBuf,

    /// Skaffold configuration to convert instead
    #[arg(long, value_name = "FILE", help_heading = "Project")]
    from: Option<Utf8PathBuf>,

    /// Beginning of the names of images
    #[arg(
        long,
        value_name = "PREFIX",
        default_value = "registry.example",
        help_heading = "Project"
    )]
    registry: String,

    /// Print the document and write nothing
    #[arg(long, help_heading = "Output")]
    dry_run: bool,
}

pub(crate) fn init(args: &InitArgs, printer: &Printer) -> CommandResult {
    let directory = args.directory.canonicalize_utf8().map_err(|error| {
        let error = anyhow::Error::new(error);
        CommandError::user(error.context(format!("cannot open `{}`", args.directory)))
    })?;
    let draft = match &args.from {
        Some(file) => {
            let text = fs::read_to_string(file).map_err(|error| {
                CommandError::user(
                    anyhow::Error::new(error).context(format!("cannot read `{file}`")),
                )
            })?;
            draft_of_skaffold(&text).map_err(CommandError::user)?
        }
        None => draft_of_directory(&directory, &args.registry).map_err(CommandError::user)?,
    };
    for note in &draft.notes {
        printer.note(note);
    }
    if args.dry_run {
        printer.data(&draft.text)?;
    } else {
        write(&draft, &directory.join("portolan.yaml"), printer)?;
    }
    Ok(if draft.is_whole {
        ExitStatus::Clean
    } else {
        ExitStatus::Findings
    })
}

/// Adds the document to the file.
fn write(draft: &Draft, path: &Utf8Path, printer: &Printer) -> Result<(), CommandError> {
    let before = match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| CommandError::output(&format!("`{path}`"), error))?,
    };
    let has_one = portolan_ship::has_document(&before);
    if has_one.map_err(CommandError::user)? {
        let error = CommandError::usage(format!("`{path}` has a document of `kind: Ship` already"));
        return Err(error.hint("`portolan ship init --dry-run` prints what it would write"));
    }
    let text = match before.trim_end() {
        "" => draft.text.clone(),
        before => format!("{before}\n---\n{}", draft.text),
    };
    portolan_files::write_file(path, text.as_bytes())?;
    let count = counted(draft.artifacts, "artifact");
    printer.say_unless_quiet(&format!(
        "wrote {count} to `{path}`; `portolan ship build` builds them"
    ));
    Ok(())
}
