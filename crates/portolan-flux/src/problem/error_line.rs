//! The line that made a build fail: errors of kustomize and of variables say what is wrong, the files show where it
//! is written.

use std::error::Error as _;

use camino::Utf8Path;
use portolan_kustomize::{Error, Located};
use portolan_object::Place;
use portolan_vfs::{Vfs, VfsError, resolve};

use crate::kustomization::generate;
use crate::problem::written::named_files;
use crate::walk::hints::Reach;

/// Where the cause of a failed build is written, as far as that can be told.
pub(crate) fn of_build(error: &Error, files: &dyn Vfs, directory: &Utf8Path) -> Option<Place> {
    let mut named = None;
    let mut missing = None;
    let mut cause = Some(error);
    while let Some(error) = cause {
        match error {
            Error::Located(located) if is_patch_there(located, files) => {
                return Some(Place::new(located.file.as_str(), located.at));
            }
            Error::Located(located) => {
                cause = Some(&located.error);
                continue;
            }
            Error::Yaml { file, source } => {
                return Some(Place::new(file.as_str(), source.first().at));
            }
            Error::File(
                VfsError::NotFound(path)
                | VfsError::IsDirectory(path)
                | VfsError::NotDirectory(path),
            )
            | Error::MissingKustomization(path) => {
                missing = Some(path);
                named = path.file_name().map(str::to_owned);
            }
            Error::Fetch { url, .. } => named = Some(url.clone()),
            Error::NeitherFileNorDirectory { path, .. } => named = Some(path.clone()),
            _ => {}
        }
        cause = error.source().and_then(as_build_error);
    }
    let reach = Reach::of(files, directory);
    let exact = missing.and_then(|path| {
        mention(files, &reach, |directory, line| {
            resolve(directory, entry(line)) == *path
        })
    });
    let named = || {
        let name = named.as_deref()?;
        mention(files, &reach, |_, line| line.contains(name))
    };
    exact.or_else(named).or_else(|| {
        let file = generate::existing(files, directory)?;
        Some(Place::line(file.as_str(), 1))
    })
}

/// Whether a patch begins at the place: one that Flux adds stands in another file.
fn is_patch_there(located: &Located, files: &dyn Vfs) -> bool {
    let text = files.read(&located.file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().nth((located.at.line as usize).wrapping_sub(1));
    line.is_some_and(|line| line.contains("patch") || line.contains("path"))
}

/// A cause is kept in a box, which is an error of its own kind.
fn as_build_error<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a Error> {
    let boxed = cause.downcast_ref::<Box<Error>>().map(Box::as_ref);
    boxed.or_else(|| cause.downcast_ref())
}

/// The first line of a kustomization file that is meant; the files' directories are given with their lines.
fn mention(
    files: &dyn Vfs,
    reach: &Reach,
    is_meant: impl Fn(&Utf8Path, &str) -> bool,
) -> Option<Place> {
    let mut kustomizations = reach.kustomization_files();
    kustomizations.find_map(|path| {
        let directory = path.parent()?;
        let text = files.read(path).ok()?;
        let text = String::from_utf8_lossy(&text);
        let at = text.lines().position(|line| is_meant(directory, line))?;
        Some(Place::line(path.as_str(), line_number(at)))
    })
}

/// What a line such as `- path: "a.yaml"` or `- key=a.txt` names.
fn entry(line: &str) -> &str {
    let last = line.trim_end().rsplit([' ', '=']).next().unwrap_or(line);
    last.trim_matches(['"', '\''])
}

/// The line of an expression such as `${NAME}`, searched for in the file from where its object begins, and in the files
/// that a kustomization file names for what it generates.
pub(crate) fn of_expression(files: &dyn Vfs, object: &Place, line: &str) -> Place {
    let Some(start) = line.find("${") else {
        return object.clone();
    };
    let expression = line.get(start..).unwrap_or_default();
    let end = expression.find('}').map_or(expression.len(), |at| at + 1);
    let expression = expression.get(..end).unwrap_or(expression);
    let own = Utf8Path::new(object.file.as_str());
    let above = object.at.line.saturating_sub(1) as usize;
    let generated = || {
        let mut named = named_files(files, own).into_iter();
        named.find_map(|file| line_with(files, &file, 0, expression))
    };
    let found = line_with(files, own, above, expression).or_else(generated);
    found.unwrap_or_else(|| object.clone())
}

/// The first line of a file, below some, that holds a word.
fn line_with(files: &dyn Vfs, file: &Utf8Path, above: usize, word: &str) -> Option<Place> {
    let bytes = files.read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().enumerate().skip(above);
    let (at, _) = lines.find(|(_, line)| line.contains(word))?;
    Some(Place::line(file.as_str(), line_number(at)))
}

fn line_number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}
