//! Which files a build read or looked for, and what it found.
//!
//! If another tree gives the same answers to the same questions, the build has the same result and need not be
//! repeated. This is how two refs, or the tree before and after a file was saved, share what did not change.
//!
//! ```text
//! build ──asks──▶ Traced ──▶ Artifact        afterwards: Trace = questions with digests of their answers
//! other tree ──▶ Trace::holds_for ──▶ the same result, without building
//! ```
//!
//! If the trees know which files changed between them, equal identities are enough and no content is hashed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_object::Digest;
use portolan_vfs::{DirEntry, FileKind, Vfs, VfsError};

use crate::session::fingerprint::Fingerprint;
use crate::source::artifact::{Artifact, Identity};

/// A question to a tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    about: About,
    /// As text, which is hashed faster than a path.
    path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum About {
    Content,
    Listing,
    Kind,
    RealPath,
}

/// What a tree answers, long answers by their digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The identity of what was asked for says it all.
    ByIdentity,
    Nothing,
    Kind(FileKind),
    Path(Utf8PathBuf),
    Digest(Digest),
}

/// What is kept of an answer.
#[derive(Debug)]
struct Kept {
    answer: Answer,
    identity: Option<Identity>,
}

/// The questions of one build with their answers.
#[derive(Debug)]
pub(crate) struct Trace(Vec<(Question, Kept)>);

/// A tree that remembers what it is asked.
pub(crate) struct Traced<'a> {
    artifact: &'a Artifact,
    asked: Mutex<HashMap<Question, Kept>>,
}

/// Answers that a tree has given before; files are hashed once however often they are asked for.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<HashMap<Question, Answer>>);

// === impl Trace ===

impl Trace {
    /// Whether another tree answers the same.
    pub(crate) fn holds_for(&self, artifact: &Artifact) -> bool {
        let mut asked = self.0.iter();
        asked.all(|(question, kept)| kept.holds_for(question, artifact))
    }
}

impl Kept {
    fn holds_for(&self, question: &Question, artifact: &Artifact) -> bool {
        let is_same =
            self.identity.is_some() && self.identity == artifact.identity(question.path());
        is_same
            || self.answer != Answer::ByIdentity
                && self.answer == artifact.answers().get(question, artifact)
    }
}

// === impl Answers ===

impl Answers {
    fn get(&self, question: &Question, files: &dyn Vfs) -> Answer {
        if let Some(known) = lock(&self.0).get(question) {
            return known.clone();
        }
        let answer = question.ask(files);
        lock(&self.0).insert(question.clone(), answer.clone());
        answer
    }
}

impl Question {
    fn path(&self) -> &Utf8Path {
        Utf8Path::new(&self.path)
    }

    fn ask(&self, files: &dyn Vfs) -> Answer {
        let path = self.path();
        match self.about {
            About::Content => content(files.read(path).as_deref()),
            About::Listing => listing(files.list(path).as_deref()),
            About::Kind => kind(&files.kind(path)),
            About::RealPath => real_path(&files.canonicalize(path)),
        }
    }
}

fn content(read: Result<&[u8], &VfsError>) -> Answer {
    read.map_or(Answer::Nothing, |bytes| Answer::Digest(Digest::of(bytes)))
}

fn listing(list: Result<&[DirEntry], &VfsError>) -> Answer {
    let Ok(entries) = list else {
        return Answer::Nothing;
    };
    let mut names = Fingerprint::of("listing");
    for entry in entries {
        names.text(&entry.name);
        names.flag(entry.is_directory);
        names.flag(entry.is_symlink);
    }
    Answer::Digest(names.finish())
}

fn kind(kind: &Result<Option<FileKind>, VfsError>) -> Answer {
    match kind {
        Ok(Some(kind)) => Answer::Kind(*kind),
        _ => Answer::Nothing,
    }
}

fn real_path(path: &Result<Utf8PathBuf, VfsError>) -> Answer {
    path.as_ref()
        .map_or(Answer::Nothing, |path| Answer::Path(path.clone()))
}

// === impl Traced ===

impl<'a> Traced<'a> {
    pub(crate) fn new(artifact: &'a Artifact) -> Self {
        Self {
            artifact,
            asked: Mutex::default(),
        }
    }

    /// Everything that was asked so far.
    pub(crate) fn into_trace(self) -> Trace {
        let asked = self
            .asked
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        Trace(asked.into_iter().collect())
    }

    fn note(&self, about: About, path: &Utf8Path, answer: impl FnOnce() -> Answer) {
        let question = Question {
            about,
            path: path.as_str().to_owned(),
        };
        if lock(&self.asked).contains_key(&question) {
            return;
        }
        let identity = self.artifact.identity(path);
        let answer = if about == About::Content && identity.is_some() {
            Answer::ByIdentity
        } else {
            let answer = answer();
            let mut known = lock(&self.artifact.answers().0);
            known.entry(question.clone()).or_insert(answer).clone()
        };
        lock(&self.asked).insert(question, Kept { answer, identity });
    }
}

impl Vfs for Traced<'_> {
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        let read = self.artifact.read(path);
        self.note(About::Content, path, || content(read.as_deref()));
        read
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError> {
        let list = self.artifact.list(directory);
        self.note(About::Listing, directory, || listing(list.as_deref()));
        list
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        let found = self.artifact.kind(path);
        self.note(About::Kind, path, || kind(&found));
        found
    }

    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        let found = self.artifact.canonicalize(path);
        self.note(About::RealPath, path, || real_path(&found));
        found
    }
}

/// What a thread that panicked left behind is complete: every change is a single insertion.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
