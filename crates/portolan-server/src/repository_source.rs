//! The files of a `Repository`: fetched from Git and pinned to a commit, or read from a directory of the server.

use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_git::{FetchOptions, Mirror, Wanted};
use portolan_kinds::wire::RepositorySpec;
use portolan_vfs::{Disk, Vfs};
use sha2::{Digest, Sha256};

use portolan_digest::hex;

/// The most files, and their bytes together.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: usize = 64 << 20;
/// How deep directories may nest.
const MAX_DEPTH: usize = 32;

/// The files of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceFiles {
    /// The commit, or a digest of the files of a directory.
    pub(crate) commit: String,
    /// Path and content, by path.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

/// How sources are fetched.
#[derive(Debug, Clone)]
pub(crate) struct SourceOptions {
    /// Where mirrors of repositories are kept.
    pub(crate) mirrors: PathBuf,
    /// Whether `file://` addresses are fetched from.
    pub(crate) allow_local: bool,
}

/// Reads the files of a repository. The error is a sentence for its status.
pub(crate) fn read_source(
    spec: &RepositorySpec,
    options: &SourceOptions,
) -> Result<SourceFiles, String> {
    let directory = Utf8PathBuf::from("/").join(spec.path());
    if let Some(dir) = &spec.dir {
        let disk = Disk::open(Utf8Path::new(dir)).map_err(|error| with_causes(&error))?;
        let files = collect(&disk, &directory)?;
        let commit = digest(&files);
        return Ok(SourceFiles { commit, files });
    }
    let mirror = mirror(spec.url(), options)?;
    let wanted = match spec.r#ref.as_deref() {
        None | Some("") => Wanted::Default,
        Some(name) if name.starts_with("refs/") => Wanted::Name(name.to_owned()),
        Some(name) => Wanted::Branch(name.to_owned()),
    };
    let commit = mirror.fetch(&wanted).map_err(|error| with_causes(&error))?;
    let repository = mirror.repository().map_err(|error| with_causes(&error))?;
    let tree = repository
        .tree(commit)
        .map_err(|error| with_causes(&error))?;
    Ok(SourceFiles {
        commit: commit.to_string(),
        files: collect(&tree, &directory)?,
    })
}

/// The tree of a commit that was applied before. A directory has no commits: it must still have the files that were applied.
pub(crate) fn commit_tree(
    spec: &RepositorySpec,
    options: &SourceOptions,
    commit: &str,
) -> Result<Box<dyn Vfs>, String> {
    if let Some(dir) = &spec.dir {
        let disk = Disk::open(Utf8Path::new(dir)).map_err(|error| with_causes(&error))?;
        let directory = Utf8PathBuf::from("/").join(spec.path());
        if digest(&collect(&disk, &directory)?) != commit {
            return Err(format!(
                "the objects in `{dir}` have changed since they were applied"
            ));
        }
        return Ok(Box::new(disk));
    }
    let mirror = mirror(spec.url(), options)?;
    let open = || mirror.repository().map_err(|error| with_causes(&error));
    let mut repository = open();
    if !repository
        .as_ref()
        .is_ok_and(|known| known.resolve(commit).is_ok())
    {
        // Another server has applied it.
        read_source(spec, options)?;
        repository = open();
    }
    let repository = repository?;
    let id = repository.resolve(commit);
    let id = id.map_err(|error| with_causes(&error))?;
    let tree = repository.tree(id).map_err(|error| with_causes(&error))?;
    Ok(Box::new(tree))
}

fn mirror(url: &str, options: &SourceOptions) -> Result<Mirror, String> {
    let name = hex(&Sha256::digest(url.as_bytes())[..16]);
    let directory: &Path = &options.mirrors.join(name);
    let directory =
        Utf8Path::from_path(directory).ok_or("the data directory's name is not UTF-8")?;
    if let Some(above) = directory.parent() {
        std::fs::create_dir_all(above)
            .map_err(|error| format!("cannot make `{above}`: {error}"))?;
    }
    let fetch = FetchOptions {
        allow_local: options.allow_local,
        ..FetchOptions::default()
    };
    Mirror::new(directory, url, fetch).map_err(|error| with_causes(&error))
}

/// The files of objects below a directory. Symbolic links are not followed.
fn collect(tree: &dyn Vfs, directory: &Utf8Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    if !tree.is_directory(directory) {
        return Err(format!("path `{directory}` does not exist"));
    }
    let (mut files, mut bytes) = (Vec::new(), 0);
    let mut waiting = vec![(directory.to_owned(), 0)];
    while let Some((directory, depth)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(format!(
                "`{directory}` nests deeper than {MAX_DEPTH} levels"
            ));
        }
        for entry in tree.list(&directory).map_err(|error| with_causes(&error))? {
            let path = directory.join(&entry.name);
            let is_objects = matches!(path.extension(), Some("yaml" | "yml" | "json"));
            if entry.is_symlink || entry.name.starts_with('.') {
                continue;
            }
            if entry.is_directory {
                waiting.push((path, depth + 1));
            } else if is_objects {
                let content = tree.read(&path).map_err(|error| with_causes(&error))?;
                bytes += content.len();
                files.push((path.as_str().trim_start_matches('/').to_owned(), content));
            }
            if files.len() > MAX_FILES || bytes > MAX_BYTES {
                return Err(format!(
                    "there are more than {MAX_FILES} files or {MAX_BYTES} bytes"
                ));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn digest(files: &[(String, Vec<u8>)]) -> String {
    let mut hasher = Sha256::new();
    for (path, content) in files {
        hasher.update((path.len() as u64).to_be_bytes());
        hasher.update(path);
        hasher.update((content.len() as u64).to_be_bytes());
        hasher.update(content);
    }
    hex(&hasher.finalize()[..20])
}

/// An error and its causes in a line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
