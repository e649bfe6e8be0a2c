//! The files of a source as Flux packs them: all that the source's ignore rules do not exclude, without symbolic
//! links.
//!
//! ```text
//! tree ──(built-in excludes, .sourceignore files, spec.ignore)──▶ Artifact ──▶ kustomize, charts
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use portolan_object::{Digest, Place};
use portolan_vfs::{DirEntry, FileKind, Stamp, Vfs, VfsError, clean};

use crate::session::Session;
use crate::session::fingerprint::Fingerprint;
use crate::session::trace::Answers;

/// Never part of an artifact.
const VERSION_CONTROL: &[&str] = &[".git/", ".gitignore", ".gitmodules", ".gitattributes"];

/// Left out only while neither the source nor a `.sourceignore` file has a rule of its own.
const DEFAULTS: &[&str] = &[
    "*.jpg",
    "*.jpeg",
    "*.gif",
    "*.png",
    "*.wmv",
    "*.flv",
    "*.tar.gz",
    "*.zip",
    ".github/",
    ".circleci/",
    ".travis.yml",
    ".gitlab-ci.yml",
    "appveyor.yml",
    ".drone.yml",
    "cloudbuild.yaml",
    "codeship-services.yml",
    "codeship-steps.yml",
    "**/.goreleaser.yml",
    "**/.sops.yaml",
    "**/.flux.yaml",
];

/// The file that holds a directory's ignore rules.
const IGNORE_FILE: &str = ".sourceignore";

/// How deep directories are searched for ignore files.
const MAX_DEPTH: usize = 128;

/// A source's tree with its ignore rules applied; it does not change while it is used.
pub struct Artifact {
    files: Arc<dyn Vfs>,
    /// Rules by directory, parents first: among rules that match, the last one decides.
    rules: Vec<Rules>,
    /// Whether a rule brings something back that another leaves out.
    brings_back: bool,
    /// The digest of the rules: artifacts with equal rules leave out the same of equal trees.
    rules_digest: Digest,
    /// Tells trees of one session apart.
    number: u64,
    /// What paths were found to lead to: following links and trying rules costs more than remembering.
    kinds: Mutex<HashMap<String, Option<FileKind>>>,
    /// What each of the rules says about a directory, for everything below that no rule names itself.
    verdicts: Mutex<HashMap<String, Arc<[Verdict]>>>,
    answers: Answers,
    /// Where files were copied from that the repository itself holds under another path.
    copied_from: HashMap<Utf8PathBuf, Utf8PathBuf>,
}

/// The rules of a directory: where it is, and what its ignore file says.
pub(crate) type IgnoreFile = (Utf8PathBuf, String);

/// The rules of one directory.
struct Rules {
    directory: Utf8PathBuf,
    patterns: Gitignore,
}

/// What rules say about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Nothing,
    Ignore,
    Keep,
}

/// Names what an artifact holds at and below a path: equal names mean equal files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    rules: Digest,
    stamp: Stamp,
}

/// Why a tree cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// A directory or an ignore file cannot be read.
    #[error("cannot read the source's tree")]
    Read(#[from] VfsError),
    /// Directories are nested too deep.
    #[error("directories are nested deeper than {MAX_DEPTH} at `{0}`")]
    TooDeep(Utf8PathBuf),
}

impl Artifact {
    /// Packs a tree; `ignore` is the source's own `spec.ignore`.
    pub fn pack(
        files: Arc<dyn Vfs>,
        ignore: Option<&str>,
        session: &Session,
    ) -> Result<Self, ArtifactError> {
        let mut found = Vec::new();
        collect_ignore_files(files.as_ref(), Utf8Path::new("/"), 0, session, &mut found)?;
        let own = ignore.unwrap_or_default();
        let mut digest = Fingerprint::of("ignore rules");
        digest.text(own);
        for (directory, text) in &found {
            digest.text(directory.as_str());
            digest.text(text);
        }
        let custom = found.iter().any(|(_, text)| has_rules(text)) || has_rules(own);
        let mut rules = vec![rules_of("/".into(), VERSION_CONTROL.iter().copied())];
        if !custom {
            rules.push(rules_of("/".into(), DEFAULTS.iter().copied()));
        }
        rules.extend(
            found
                .iter()
                .map(|(dir, text)| rules_of(dir.clone(), text.lines())),
        );
        rules.push(rules_of("/".into(), own.lines()));
        Ok(Self {
            files,
            brings_back: rules
                .iter()
                .any(|rules| rules.patterns.num_whitelists() > 0),
            rules,
            rules_digest: digest.finish(),
            number: session.number_tree(),
            kinds: Mutex::default(),
            verdicts: Mutex::default(),
            answers: Answers::default(),
            copied_from: HashMap::new(),
        })
    }

    /// The same, composed of files that the repository holds under other paths.
    pub(crate) fn with_files_copied_from(
        mut self,
        copied_from: HashMap<Utf8PathBuf, Utf8PathBuf>,
    ) -> Self {
        self.copied_from = copied_from;
        self
    }

    /// Whether its files lie elsewhere in the repository.
    pub(crate) fn is_copied(&self) -> bool {
        !self.copied_from.is_empty()
    }

    /// A place in the repository for one in this tree; the same when the file was not copied from there.
    pub(crate) fn place_in_repository(&self, place: &Place) -> Place {
        match self.copied_from.get(Utf8Path::new(place.file.as_str())) {
            Some(path) => Place::new(path.as_str(), place.at),
            None => place.clone(),
        }
    }

    /// A path in the repository for one in this tree; the same when the file was not copied from there.
    pub(crate) fn path_in_repository(&self, path: &Utf8Path) -> Utf8PathBuf {
        let copied = self.copied_from.get(path);
        copied.map_or_else(|| path.to_owned(), Clone::clone)
    }

    /// Tells trees of one session apart.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Names what lies at and below a path, where that is known without reading it.
    pub(crate) fn identity(&self, path: &Utf8Path) -> Option<Identity> {
        Some(Identity {
            rules: self.rules_digest,
            stamp: self.files.stamp(path)?,
        })
    }

    /// Whether it leaves out the same as another.
    pub(crate) fn has_rules_of(&self, other: &Self) -> bool {
        self.rules_digest == other.rules_digest
    }

    /// The tree as it is, with what the rules leave out.
    pub(crate) fn tree(&self) -> &dyn Vfs {
        self.files.as_ref()
    }

    /// Whether what lies at a path has an identity.
    pub(crate) fn is_stamped(&self) -> bool {
        self.files.stamp(Utf8Path::new("/")).is_some()
    }

    /// What was asked of this tree before.
    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Whether the rules leave a path out: the last one that says something about it, or about what it lies in, decides.
    fn is_ignored(&self, path: &Utf8Path, is_directory: bool) -> bool {
        let above = path.parent().map(|above| self.verdicts(above));
        let above = above.as_deref().unwrap_or_default();
        let nothing = std::iter::repeat(&Verdict::Nothing);
        let rules = self.rules.iter().zip(above.iter().chain(nothing));
        let verdict = rules.fold(Verdict::Nothing, |decided, (rule, above)| {
            match rule.verdict(path, is_directory, *above) {
                Verdict::Nothing => decided,
                verdict => verdict,
            }
        });
        verdict == Verdict::Ignore
    }

    /// Whether a path is not in the archive: a directory that is left out is there all the same when something below it
    /// is brought back.
    fn is_left_out(&self, path: &Utf8Path, is_directory: bool) -> bool {
        let can_return = is_directory && self.brings_back && path.file_name() != Some(".git");
        self.is_ignored(path, is_directory) && !(can_return && self.keeps_below(path, MAX_DEPTH))
    }

    /// Whether the rules keep something below a directory that they leave out.
    fn keeps_below(&self, directory: &Utf8Path, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let entries = self.files.list(directory).unwrap_or_default();
        let mut packable = entries.iter().filter(|entry| !entry.is_symlink);
        packable.any(|entry| {
            let path = directory.join(&entry.name);
            !self.is_ignored(&path, entry.is_directory)
                || (entry.is_directory && self.keeps_below(&path, depth))
        })
    }

    /// What each of the rules says about a directory or, where it says nothing, about the nearest one above.
    fn verdicts(&self, directory: &Utf8Path) -> Arc<[Verdict]> {
        let mut known = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pending = Vec::new();
        let nearest = directory.ancestors().find_map(|directory| {
            let known = known.get(directory.as_str()).cloned();
            if known.is_none() {
                pending.push(directory);
            }
            known
        });
        let nothing = || std::iter::repeat_n(Verdict::Nothing, self.rules.len()).collect();
        let mut verdicts: Arc<[Verdict]> = nearest.unwrap_or_else(nothing);
        while let Some(directory) = pending.pop() {
            let rules = self.rules.iter().zip(verdicts.iter());
            verdicts = rules
                .map(|(rules, above)| rules.verdict(directory, true, *above))
                .collect();
            make_room(&mut known);
            known.insert(directory.as_str().to_owned(), Arc::clone(&verdicts));
        }
        verdicts
    }

    /// What a cleaned path leads to, if it exists, is packed and is no link.
    fn packed(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        if let Some(known) = self.kinds().get(path.as_str()) {
            return Ok(*known);
        }
        let found = match self.files.canonicalize(path) {
            Ok(real) if real == path => self.files.kind(path)?,
            Ok(_) | Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => None,
            Err(error) => return Err(error),
        };
        let kind = found.filter(|kind| !self.is_left_out(path, *kind == FileKind::Directory));
        let mut kinds = self.kinds();
        make_room(&mut kinds);
        kinds.insert(path.as_str().to_owned(), kind);
        Ok(kind)
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<String, Option<FileKind>>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        let path = clean(path);
        match self.packed(&path)? {
            Some(_) => Ok(path),
            None => Err(VfsError::NotFound(path)),
        }
    }
}

/// How much is remembered of paths: more than one build asks for.
const MAX_REMEMBERED: usize = 1 << 13;

/// Forgets everything when there is too much: builds ask about the paths of one directory and then of another.
fn make_room<T>(known: &mut HashMap<String, T>) {
    if known.len() >= MAX_REMEMBERED {
        known.clear();
    }
}

impl Rules {
    /// What they say about a path, given what they say about the directory it lies in.
    fn verdict(&self, path: &Utf8Path, is_directory: bool, above: Verdict) -> Verdict {
        let is_below = path != self.directory && path.starts_with(&self.directory);
        if self.patterns.is_empty() || !is_below {
            return above;
        }
        match self.patterns.matched(path.as_std_path(), is_directory) {
            Match::Ignore(_) => Verdict::Ignore,
            Match::Whitelist(_) => Verdict::Keep,
            Match::None => above,
        }
    }
}

impl Identity {
    /// Adds the identity to a digest.
    pub(crate) fn fingerprint(&self, key: &mut Fingerprint) {
        key.digest(&self.rules);
        for part in self.stamp.parts() {
            key.number(part);
        }
    }
}

impl Vfs for Artifact {
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        self.files.read(&self.check(path)?)
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError> {
        let directory = self.check(directory)?;
        let mut entries = self.files.list(&directory)?;
        entries.retain(|entry| {
            let path = directory.join(&entry.name);
            !entry.is_symlink && !self.is_left_out(&path, entry.is_directory)
        });
        Ok(entries)
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        self.packed(&clean(path))
    }

    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        self.check(path)
    }
}

fn collect_ignore_files(
    files: &dyn Vfs,
    directory: &Utf8Path,
    depth: usize,
    session: &Session,
    found: &mut Vec<IgnoreFile>,
) -> Result<(), ArtifactError> {
    if depth > MAX_DEPTH {
        return Err(ArtifactError::TooDeep(directory.to_owned()));
    }
    let memo = &session.ignore_files;
    memo.extend(found, directory, files.stamp(directory), |found| {
        let entries = files.list(directory)?;
        let mut own = entries.iter().filter(|entry| !entry.is_directory);
        if own.any(|entry| entry.name == IGNORE_FILE) {
            let text = files.read(&directory.join(IGNORE_FILE))?;
            let text = String::from_utf8_lossy(&text).into_owned();
            found.push((directory.to_owned(), text));
        }
        let is_below =
            |entry: &&DirEntry| entry.is_directory && !entry.is_symlink && entry.name != ".git";
        for entry in entries.iter().filter(is_below) {
            let below = directory.join(&entry.name);
            collect_ignore_files(files, &below, depth + 1, session, found)?;
        }
        Ok(())
    })
}

/// Whether a text holds a rule besides comments and blank lines.
fn has_rules(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .any(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Builds the rules of one directory; a pattern that is none matches nothing, as in git.
fn rules_of<'a>(directory: Utf8PathBuf, lines: impl Iterator<Item = &'a str>) -> Rules {
    let mut builder = GitignoreBuilder::new(&directory);
    for line in lines {
        let _ = builder.add_line(None, line);
    }
    Rules {
        patterns: builder.build().unwrap_or_else(|_| Gitignore::empty()),
        directory,
    }
}

#[cfg(test)]
mod tests {
    use portolan_vfs::Memory;

    use super::*;

    fn names(files: &[(&str, &str)], ignore: Option<&str>) -> Vec<String> {
        let memory: Memory = files.iter().copied().collect();
        let artifact = Artifact::pack(Arc::new(memory), ignore, &Session::default()).unwrap();
        let mut names = Vec::new();
        let mut queue = vec![Utf8PathBuf::from("/")];
        while let Some(directory) = queue.pop() {
            for entry in artifact.list(&directory).unwrap() {
                let path = directory.join(&entry.name);
                if entry.is_directory {
                    queue.push(path);
                } else {
                    names.push(path.into_string());
                }
            }
        }
        names.sort();
        names
    }

    #[test]
    fn built_in_excludes_hold_without_rules_of_ones_own() {
        let files = [
            ("/a.yaml", ""),
            ("/logo.png", ""),
            ("/.github/x.yaml", ""),
            ("/b/.sops.yaml", ""),
        ];
        assert_eq!(names(&files, None), ["/a.yaml"]);
    }

    #[test]
    fn any_rule_of_ones_own_lifts_the_built_in_excludes_but_for_version_control() {
        let files = [
            ("/a.yaml", ""),
            ("/logo.png", ""),
            ("/.gitignore", ""),
            ("/c.txt", ""),
        ];
        assert_eq!(names(&files, Some("*.txt")), ["/a.yaml", "/logo.png"]);
    }

    #[test]
    fn a_sourceignore_file_counts_for_its_directory_only() {
        let files = [
            ("/x/.sourceignore", "*.yaml\n!keep.yaml\n"),
            ("/x/a.yaml", ""),
            ("/x/keep.yaml", ""),
            ("/y/a.yaml", ""),
        ];
        assert_eq!(
            names(&files, None),
            ["/x/.sourceignore", "/x/keep.yaml", "/y/a.yaml"]
        );
    }
}
