//! `ArtifactGenerator`s: trees composed from parts of other sources. Kustomizations and releases refer to them as
//! external artifacts.
//!
//! ```text
//! @alias/apps/base/** ──copy──▶ @artifact/base/
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use portolan_engine::{FieldHasher, Fingerprint};
use portolan_object::{Object, Place};
use portolan_vfs::{Memory, Vfs, VfsError, clean};
use portolan_yaml::{Node, Text};

use crate::api::{NamespacedName, SourceRef};
use crate::source::artifact::Artifact;
use crate::walk::index::Index;

/// The API group of `ArtifactGenerator`s.
const GROUP: &str = "source.extensions.fluxcd.io";

/// How deep directories are copied.
const MAX_DEPTH: usize = 128;

/// How one artifact is composed.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// The generator by kind and name.
    generator: String,
    /// The sources by the names that copies call them.
    pub(crate) sources: Vec<(Text, SourceRef)>,
    copies: Vec<Copy>,
}

/// An `ArtifactGenerator` copies from where nothing is.
#[derive(Debug, thiserror::Error)]
#[error("{copy}")]
pub(crate) struct CopyError {
    /// Which generator cannot copy from where.
    copy: String,
    /// Where that is written.
    pub(crate) place: Option<Place>,
    #[source]
    source: VfsError,
}

#[derive(Debug, Clone)]
struct Copy {
    /// Where it is written, if the generator stands in a file.
    place: Option<Place>,
    alias: String,
    from: String,
    to: String,
    exclude: Vec<String>,
}

impl Fingerprint for Recipe {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        // Errors name the generator and the places of its lines; what is made does not depend on either.
        let Self {
            generator: _,
            sources,
            copies,
        } = self;
        fields.add(&sources.len());
        for (alias, source) in sources {
            fields.add(alias.as_str()).add(source);
        }
        fields.add(copies);
    }
}

impl Fingerprint for Copy {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        let Self {
            place: _,
            alias,
            from,
            to,
            exclude,
        } = self;
        fields.add(alias).add(from).add(to).add(exclude);
    }
}

/// The recipe of an external artifact, if something in the repository generates it.
pub(crate) fn recipe(artifact: &SourceRef, index: &Index) -> Option<Recipe> {
    if artifact.kind != "ExternalArtifact" {
        return None;
    }
    let generators = index.of_kind(GROUP, "ArtifactGenerator");
    generators
        .filter(|(_, object)| object.namespace() == artifact.id.namespace.as_str())
        .find_map(|(_, object)| Recipe::read(object, &artifact.id.name))
}

/// A tree composed of parts of others.
#[derive(Debug, Default)]
pub(crate) struct ComposedTree {
    /// Its files.
    pub(crate) files: Memory,
    /// The source, by its alias, and the path there that each file was copied from.
    pub(crate) copied_from: HashMap<Utf8PathBuf, (String, Utf8PathBuf)>,
}

impl Recipe {
    fn read(generator: &Object, artifact: &str) -> Option<Self> {
        let spec = generator.node().get("spec")?;
        let items = |node: &Node, key: &str| -> Vec<Node> {
            let list = node.get(key).and_then(Node::as_list);
            list.into_iter().flatten().cloned().collect()
        };
        let is_meant = |node: &Node| text(node, "name").as_deref() == Some(artifact);
        let made = items(spec, "artifacts").into_iter().find(is_meant)?;
        let sources = items(spec, "sources");
        let sources = sources.iter().filter_map(|source| {
            let namespace = text(source, "namespace");
            let namespace = namespace.unwrap_or_else(|| generator.namespace().to_owned());
            let reference = SourceRef {
                kind: Text::from(text(source, "kind")?),
                id: NamespacedName::new(namespace, text(source, "name")?),
            };
            Some((Text::from(text(source, "alias")?), reference))
        });
        let copies = items(&made, "copy");
        let begins = generator.place();
        let place = |copy: &Node| {
            let at = copy.get("from")?.at;
            begins
                .as_ref()
                .map(|begins| Place::new(begins.file.clone(), at))
        };
        let read = |copy: &Node| {
            let place = place(copy);
            Some(Copy {
                place,
                ..Copy::read(copy)?
            })
        };
        Some(Self {
            generator: generator.id().title(),
            sources: sources.collect(),
            copies: copies.iter().filter_map(read).collect(),
        })
    }

    /// Composes the artifact's files.
    pub(crate) fn compose(
        &self,
        trees: &HashMap<Text, Arc<Artifact>>,
    ) -> Result<ComposedTree, CopyError> {
        let mut made = ComposedTree::default();
        for copy in &self.copies {
            let tree = trees.get(copy.alias.as_str());
            let tree = tree.ok_or_else(|| VfsError::NotFound(format!("@{}", copy.alias).into()));
            let copied = tree.and_then(|tree| copy.run(tree.as_ref(), &mut made));
            copied.map_err(|source| CopyError {
                copy: format!(
                    "{} cannot copy from `@{}/{}`",
                    self.generator, copy.alias, copy.from
                ),
                place: copy.place.clone(),
                source,
            })?;
        }
        Ok(made)
    }
}

impl Copy {
    fn read(node: &Node) -> Option<Self> {
        let from = text(node, "from")?;
        let (alias, from) = from.strip_prefix('@')?.split_once('/')?;
        let to = text(node, "to")?;
        let exclude = node.get("exclude").and_then(Node::as_list);
        let exclude = exclude.into_iter().flatten().filter_map(Node::as_str);
        Some(Self {
            place: None,
            alias: alias.to_owned(),
            from: from.to_owned(),
            to: to.strip_prefix("@artifact")?.to_owned(),
            exclude: exclude.map(str::to_owned).collect(),
        })
    }

    /// Without a pattern a file or directory is copied as it is; with one, what matches below the part before it.
    fn run(&self, tree: &dyn Vfs, made: &mut ComposedTree) -> Result<(), VfsError> {
        let is_pattern = |part: &&str| part.contains(['*', '?', '[', '{']);
        let parts: Vec<_> = self.from.split('/').collect();
        let fixed = parts.iter().position(is_pattern);
        let base = clean(Utf8Path::new(
            &parts
                .get(..fixed.unwrap_or(parts.len()))
                .unwrap_or_default()
                .join("/"),
        ));
        let to = clean(Utf8Path::new(&self.to));
        let excluded = patterns(&self.exclude);
        if fixed.is_none() && tree.is_file(&base) {
            let into_directory = self.to.ends_with('/') || to == "/";
            let name = base.file_name().filter(|_| into_directory);
            let target = name.map_or_else(|| to.clone(), |name| to.join(name));
            return self.copy(tree, &base, target, made);
        }
        let wanted = fixed.map(|_| patterns(std::slice::from_ref(&self.from)));
        let mut found = Vec::new();
        collect(tree, &base, 0, &mut found)?;
        for path in found {
            let is_wanted = wanted.as_ref().is_none_or(|wanted| matches(wanted, &path));
            if is_wanted && !matches(&excluded, &path) {
                let below = path.strip_prefix(&base).unwrap_or(&path);
                self.copy(tree, &path, to.join(below), made)?;
            }
        }
        Ok(())
    }

    fn copy(
        &self,
        tree: &dyn Vfs,
        from: &Utf8Path,
        to: Utf8PathBuf,
        made: &mut ComposedTree,
    ) -> Result<(), VfsError> {
        made.files.insert(&to, tree.read(from)?);
        made.copied_from
            .insert(to, (self.alias.clone(), from.to_owned()));
        Ok(())
    }
}

fn collect(
    tree: &dyn Vfs,
    directory: &Utf8Path,
    depth: usize,
    found: &mut Vec<Utf8PathBuf>,
) -> Result<(), VfsError> {
    for entry in tree.list(directory)? {
        let path = directory.join(&entry.name);
        if !entry.is_directory {
            found.push(path);
        } else if depth < MAX_DEPTH {
            collect(tree, &path, depth + 1, found)?;
        }
    }
    Ok(())
}

/// Globs from the top of the source, in which `**` spans directories.
fn patterns(globs: &[String]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("/");
    for glob in globs {
        let anchored = if glob.starts_with("**") {
            glob.clone()
        } else {
            format!("/{glob}")
        };
        let _ = builder.add_line(None, &anchored);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn matches(globs: &Gitignore, path: &Utf8Path) -> bool {
    globs.matched(path.as_std_path(), false).is_ignore()
}

fn text(node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(Node::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(from: &str, to: &str) -> Vec<String> {
        let tree: Memory = [
            ("/apps/base/a.yaml", "1"),
            ("/apps/base/deep/b.yaml", "2"),
            ("/apps/prod/c.yaml", "3"),
        ]
        .into_iter()
        .collect();
        let copy = Copy {
            place: None,
            alias: "x".to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            exclude: vec!["**/b.yaml".to_owned()],
        };
        let mut made = ComposedTree::default();
        copy.run(&tree, &mut made).unwrap();
        let mut found = Vec::new();
        collect(&made.files, Utf8Path::new("/"), 0, &mut found).unwrap();
        found.into_iter().map(Utf8PathBuf::into_string).collect()
    }

    #[test]
    fn what_matches_is_copied_from_below_the_pattern() {
        assert_eq!(copied("apps/**", "/"), ["/base/a.yaml", "/prod/c.yaml"]);
        assert_eq!(copied("apps/base/**", "/base/"), ["/base/a.yaml"]);
    }

    #[test]
    fn a_file_is_copied_into_a_directory_or_under_a_name() {
        assert_eq!(copied("apps/prod/c.yaml", "/x/"), ["/x/c.yaml"]);
        assert_eq!(copied("apps/prod/c.yaml", "/x"), ["/x"]);
    }
}
