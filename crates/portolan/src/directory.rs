//! Directories that users name: the real path, or an error with the nearest one that exists.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_object::nearest;

use crate::error::CommandError;

/// The directory with all links followed; one that is not there is refused with the nearest that is.
///
/// `shown` is the path as the user wrote it.
pub(crate) fn existing(path: &Utf8Path, shown: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    match path.canonicalize_utf8() {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) => Err(CommandError::usage(format!("`{shown}` is not a directory"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(missing(path, shown)),
        Err(error) => {
            let error = anyhow::Error::new(error).context(format!("cannot open `{shown}`"));
            Err(CommandError::user(error))
        }
    }
}

fn missing(path: &Utf8Path, shown: &Utf8Path) -> CommandError {
    let error = CommandError::usage(format!("there is no directory `{shown}`"));
    let mut above = path.ancestors().skip(1).zip(shown.ancestors().skip(1));
    let Some((real, written)) = above.find(|(real, _)| real.is_dir()) else {
        return error;
    };
    let lost = path.strip_prefix(real).unwrap_or(path);
    let lost = lost.components().next().map_or("", |part| part.as_str());
    match nearest(&[lost], directories(real), |name| name) {
        Some(near) => error.hint(format!("did you mean `{}`?", written.join(near))),
        None => error,
    }
}

/// The names of the directories in a directory, hidden ones left out.
fn directories(path: &Utf8Path) -> Vec<String> {
    let entries = path.read_dir_utf8().into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = directories
        .map(|entry| entry.file_name().to_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}
