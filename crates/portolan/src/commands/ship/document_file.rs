//! The file of a document: found, read, and what is wrong with it drawn.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_ship::{DocumentError, Fault};

use crate::diagnostic::{Diagnostic, Place};
use crate::error::CommandError;
use crate::printer::Printer;

/// How many faults of a document are drawn.
const DRAWN: usize = 20;

/// The name of a document's file.
pub(super) const FILE: &str = "portolan.yaml";

/// The document here, or in the nearest directory above that has one.
pub(super) fn find_above() -> Option<Utf8PathBuf> {
    let mut directory = Utf8PathBuf::from(".");
    for _ in 0..256 {
        let file = directory.join(FILE);
        if file.is_file() {
            return Some(file.strip_prefix(".").unwrap_or(&file).to_owned());
        }
        let top = directory.canonicalize_utf8().ok()?;
        top.parent()?;
        directory = if directory == "." {
            "..".into()
        } else {
            directory.join("..")
        };
    }
    None
}

/// The text of a document.
pub(super) fn read_text(file: &Utf8Path) -> Result<String, CommandError> {
    let failed = |error: std::io::Error| {
        let error = anyhow::Error::new(error);
        CommandError::user(error.context(format!("cannot read `{file}`")))
    };
    // A device or a pipe may never end.
    let is_file = fs::metadata(file).map_err(failed)?.is_file();
    if !is_file {
        return Err(CommandError::usage(format!("`{file}` is not a file")));
    }
    let length = fs::metadata(file).map_err(failed)?.len();
    if length > portolan_ship::MAX_DOCUMENT_BYTES as u64 {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let error = anyhow::Error::new(DocumentError::TooLong(length));
        return Err(CommandError::user(
            error.context(format!("cannot read `{file}`")),
        ));
    }
    fs::read_to_string(file).map_err(failed)
}

/// The directory of a document, without links.
pub(super) fn real_directory(file: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    let directory = file.parent().filter(|parent| !parent.as_str().is_empty());
    let directory = directory.unwrap_or(Utf8Path::new("."));
    directory
        .canonicalize_utf8()
        .map_err(|error| cannot_use(directory, error))
}

pub(super) fn cannot_use(path: &Utf8Path, error: std::io::Error) -> CommandError {
    CommandError::output(&format!("`{path}`"), error)
}

/// Draws every fault of a document at its line.
pub(super) fn refused(
    error: &DocumentError,
    file: &Utf8Path,
    text: &str,
    printer: &Printer,
) -> CommandError {
    let faults: &[Fault] = match error {
        DocumentError::Faults(faults) => faults,
        DocumentError::None => {
            let error = CommandError::usage(format!("`{file}` has no document of `kind: Ship`"));
            return error.hint("`portolan ship init` adds one for what it finds here");
        }
        other => return CommandError::usage(format!("cannot use `{file}`: {other}")),
    };
    for fault in faults.iter().take(DRAWN) {
        printer.diagnostic(&Diagnostic {
            message: fault.message.clone(),
            place: Some(Place {
                file: file.as_str(),
                text,
                line: fault.at.line as usize,
                column: fault.at.column as usize,
            }),
            hints: fault.hint.clone().into_iter().collect(),
        });
    }
    let count = faults.len();
    let error = CommandError::usage(format!(
        "cannot use `{file}`: {} in it",
        portolan_object::counted(count, "mistake")
    ));
    error.hint("`portolan ship schema` prints a schema that editors check a document with")
}
