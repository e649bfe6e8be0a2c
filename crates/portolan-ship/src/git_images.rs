//! Images in the files of a git repository: found, and changed without touching anything else of a file.
//!
//! A reference is changed where its text stands, so that comments, quotes and the order of fields stay. What is changed are
//! image fields of objects, and `newTag` and `digest` of the images of a kustomization.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_image::{Ignore, IgnoreError};
use portolan_object::{Gvk, images};
use portolan_yaml::{Dialect, Node, Position, parse};

use crate::document::{GitSource, Ship};
use crate::render::{canonical, repositories};

/// The longest file that is looked at.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// The most files of a repository that are looked at.
const MAX_FILES: usize = 100_000;

/// Why images could not be found, changed or committed.
#[derive(Debug, thiserror::Error)]
pub enum GitImagesError {
    /// A file cannot be read or written.
    #[error("cannot use `{path}`")]
    File {
        /// The file.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A pattern of files is none.
    #[error("not a pattern of files")]
    Pattern(#[from] IgnoreError),
    /// There are too many files.
    #[error("`{0}` has more than {MAX_FILES} files")]
    TooMany(Utf8PathBuf),
    /// An image is written in a way that cannot be changed in place.
    #[error(
        "{file}:{line}:{column}: cannot change this image where it stands: write it on one line, without an anchor"
    )]
    Place {
        /// The file.
        file: Utf8PathBuf,
        /// Where.
        line: u32,
        /// Where.
        column: u32,
    },
    /// There is something in the work tree that was not committed.
    #[error("the work tree `{path}` has changes that were not committed: {first}")]
    Dirty {
        /// The work tree.
        path: Utf8PathBuf,
        /// The first of them.
        first: String,
    },
    /// git could not be started.
    #[error("cannot start `git`")]
    Start(#[source] io::Error),
    /// git failed.
    #[error("`git {command}` {how}")]
    Git {
        /// What was asked for.
        command: String,
        /// How it ended, and what it printed.
        how: String,
    },
    /// It was called off.
    #[error("it was called off")]
    Cancelled,
}

/// A reference to an image of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FoundImage {
    artifact: String,
    at: Position,
    /// The text that stands there.
    text: String,
    part: ImagePart,
}

/// Which part of a reference stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImagePart {
    Whole,
    Tag,
    Digest,
}

/// The artifacts whose images the files of a repository name.
pub(crate) fn named_images(
    source: &GitSource,
    ship: &Ship,
    directory: &Utf8Path,
) -> Result<BTreeSet<String>, GitImagesError> {
    let mut names = BTreeSet::new();
    let root = directory.join(&source.path);
    for file in files(&root, &source.files)? {
        let found = found_images(&read(&root.join(file))?, ship);
        names.extend(found.into_iter().map(|image| image.artifact));
    }
    Ok(names)
}

/// Puts images into the files below a directory. Returns the files that changed, and the artifacts.
pub(crate) fn put_images(
    source: &GitSource,
    ship: &Ship,
    root: &Utf8Path,
    by_artifact: &BTreeMap<String, String>,
) -> Result<(Vec<Utf8PathBuf>, BTreeSet<String>), GitImagesError> {
    let (mut changed, mut artifacts) = (Vec::new(), BTreeSet::new());
    for file in files(root, &source.files)? {
        let path = root.join(&file);
        let text = read(&path)?;
        let mut edited = text.clone();
        // The last first: those before it stay where they are.
        for image in found_images(&text, ship).into_iter().rev() {
            let Some(new) = by_artifact
                .get(&image.artifact)
                .and_then(|new| image.part.of(new))
            else {
                continue;
            };
            if new == image.text {
                continue;
            }
            edited = replaced(&edited, &image, new).ok_or_else(|| GitImagesError::Place {
                file: file.clone(),
                line: image.at.line,
                column: image.at.column,
            })?;
            artifacts.insert(image.artifact);
        }
        if edited != text {
            std::fs::write(&path, edited)
                .map_err(|source| GitImagesError::File { path, source })?;
            changed.push(file);
        }
    }
    Ok((changed, artifacts))
}

impl ImagePart {
    /// The part of `repository:tag@digest`.
    fn of(self, image: &str) -> Option<&str> {
        let (name, digest) = image.split_once('@')?;
        match self {
            Self::Whole => Some(image),
            Self::Digest => Some(digest),
            Self::Tag => name.rsplit_once(':').map(|(_, tag)| tag),
        }
    }
}

/// The files below a directory that patterns name, sorted; hidden directories are left out.
fn files(root: &Utf8Path, patterns: &[String]) -> Result<Vec<Utf8PathBuf>, GitImagesError> {
    let all = ["**"].into_iter().map(str::to_owned);
    let wanted: Vec<String> = all
        .chain(patterns.iter().map(|pattern| format!("!{pattern}")))
        .collect();
    let wanted = Ignore::new(wanted.iter().map(String::as_str))?;
    let failed = |path: &Utf8Path| {
        let path = path.to_owned();
        move |source| GitImagesError::File { path, source }
    };
    let (mut found, mut left) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in directory.read_dir_utf8().map_err(failed(&directory))? {
            let entry = entry.map_err(failed(&directory))?;
            let kind = entry.file_type().map_err(failed(&directory))?;
            let path = entry.path();
            let relative = path.strip_prefix(root).unwrap_or(path);
            let is_yaml = matches!(path.extension(), Some("yaml" | "yml"));
            if kind.is_dir() && !entry.file_name().starts_with('.') {
                left.push(path.to_owned());
            } else if kind.is_file() && is_yaml && !wanted.is_left_out(relative.as_str())? {
                found.push(relative.to_owned());
            }
            if found.len() + left.len() > MAX_FILES {
                return Err(GitImagesError::TooMany(root.to_owned()));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Utf8Path) -> Result<String, GitImagesError> {
    let failed = |source| GitImagesError::File {
        path: path.to_owned(),
        source,
    };
    if path.metadata().map_err(failed)?.len() > MAX_FILE_BYTES {
        let source = io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 8 MiB");
        return Err(failed(source));
    }
    std::fs::read_to_string(path).map_err(failed)
}

/// The images of artifacts in a file, in the order in which they stand there. A file that is no plain YAML, such as a
/// template, names none.
fn found_images(text: &str, ship: &Ship) -> Vec<FoundImage> {
    let Ok(documents) = parse(text.to_owned(), Dialect::Kustomize) else {
        return Vec::new();
    };
    let by_repository = repositories(ship);
    let artifact = |reference: &str| {
        by_repository
            .get(&canonical(reference)?)
            .map(|name| (*name).to_owned())
    };
    let mut found = Vec::new();
    for document in &documents {
        let word = |key: &str| document.get(key).and_then(Node::as_str).unwrap_or_default();
        let gvk = Gvk::from_api_version(word("apiVersion"), word("kind"));
        for image in images(&gvk, document) {
            let reference = image.reference.to_string();
            if let (Some(artifact), Some(node)) =
                (artifact(&reference), at_path(document, &image.path))
            {
                found.extend(found_image(artifact, node, ImagePart::Whole));
            }
        }
        if word("kind") == "Kustomization" && word("apiVersion").starts_with("kustomize.config")
            || word("kind").is_empty()
        {
            let entries = document.get("images").and_then(Node::as_list);
            for entry in entries.into_iter().flat_map(|list| list.iter()) {
                let name = |key: &str| entry.get(key).and_then(Node::as_str);
                let Some(artifact) = name("newName").or_else(|| name("name")).and_then(artifact)
                else {
                    continue;
                };
                let parts = [("digest", ImagePart::Digest), ("newTag", ImagePart::Tag)];
                let part = parts
                    .iter()
                    .find_map(|(key, part)| Some((entry.get(key)?, *part)));
                found.extend(part.and_then(|(node, part)| found_image(artifact, node, part)));
            }
        }
    }
    found.sort_by_key(|image| image.at);
    found.dedup_by_key(|image| image.at);
    found
}

fn found_image(artifact: String, node: &Node, part: ImagePart) -> Option<FoundImage> {
    Some(FoundImage {
        artifact,
        at: node.at,
        text: node.as_scalar()?.text.to_string(),
        part,
    })
}

/// The node at a path such as `spec.template.spec.containers[0].image`.
fn at_path<'a>(document: &'a Node, path: &str) -> Option<&'a Node> {
    let mut node = document;
    for part in path.split('.') {
        let (key, indexes) = match part.split_once('[') {
            Some((key, rest)) => (key, rest.trim_end_matches(']')),
            None => (part, ""),
        };
        node = node.get(key)?;
        for index in indexes.split("][").filter(|index| !index.is_empty()) {
            let index: usize = index.parse().ok()?;
            node = node.as_list()?.iter().nth(index)?;
        }
    }
    Some(node)
}

/// The text of a file with one scalar replaced; `None` if it does not stand there as it is read.
fn replaced(text: &str, image: &FoundImage, new: &str) -> Option<String> {
    let line_start = match image.at.line.checked_sub(2) {
        None => 0,
        Some(line) => text.match_indices('\n').nth(line as usize)?.0 + 1,
    };
    let rest = text.get(line_start..)?;
    let column = image.at.column.checked_sub(1)? as usize;
    let start = line_start + rest.char_indices().nth(column)?.0;
    let there = text.get(start..)?;
    let old = &image.text;
    let quoted = [format!("\"{old}\""), format!("'{old}'"), old.clone()];
    let found = quoted
        .iter()
        .position(|quoted| there.starts_with(quoted.as_str()))?;
    let new = match found {
        0 => format!("\"{new}\""),
        1 => format!("'{new}'"),
        // A tag of digits alone would be read as a number.
        _ if image.part == ImagePart::Tag => format!("\"{new}\""),
        _ => new.to_owned(),
    };
    let end = start + quoted.get(found)?.len();
    Some(format!("{}{new}{}", text.get(..start)?, text.get(end..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ship() -> Ship {
        let text = "apiVersion: portolan.dev/v1alpha1\nkind: Ship\nmetadata: {name: shop}\nspec:\n  artifacts:\n  - {name: web, image: registry.example/shop/web, oci: {}}\n";
        Ship::read(text, &|_| None).unwrap()
    }

    fn put(text: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(directory.path()).unwrap();
        std::fs::write(root.join("a.yaml"), text).unwrap();
        let source = GitSource {
            path: ".".into(),
            files: vec!["**".into()],
            branch: "b".into(),
            message: String::new(),
        };
        let image = "registry.example/shop/web:123456789012@sha256:aa";
        let images = BTreeMap::from([("web".to_owned(), image.to_owned())]);
        put_images(&source, &ship(), root, &images).unwrap();
        std::fs::read_to_string(root.join("a.yaml")).unwrap()
    }

    #[test]
    fn only_the_images_of_artifacts_change_and_comments_stay() {
        let pod = "# top\napiVersion: v1\nkind: Pod\nmetadata: {name: a} # é\nspec:\n  containers:\n  - name: a\n    image: \"registry.example/shop/web:1\"   # ours\n  - {name: b, image: registry.example/shop/other:1}\n  - {image: registry.example/shop/web, name: c}\n";
        let image = "registry.example/shop/web:123456789012@sha256:aa";
        let expected = pod
            .replace("\"registry.example/shop/web:1\"", &format!("\"{image}\""))
            .replace("registry.example/shop/web, name", &format!("{image}, name"));
        assert_eq!(put(pod), expected);
    }

    #[test]
    fn a_kustomization_gets_tag_or_digest() {
        let text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nimages:\n- name: web\n  newName: registry.example/shop/web\n  newTag: old # note\n- name: registry.example/shop/web\n  digest: sha256:bb\n- {name: other, newTag: x}\n";
        let expected = text
            .replace("old #", "\"123456789012\" #")
            .replace("sha256:bb", "sha256:aa");
        assert_eq!(put(text), expected);
    }

    #[test]
    fn a_template_is_left_alone() {
        let text = "image: {{ .Values.image }}\n";
        assert_eq!(put(text), text);
    }
}
