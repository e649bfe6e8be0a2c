//! Garbage collection: removes blobs without a name, a recent record or a live run.

use std::collections::HashSet;
use std::fs::File;
use std::time::SystemTime;

use camino::Utf8Path;
use portolan_digest::Digest;
use portolan_image::{Descriptor, Index, Manifest, media_type};
use serde_json::Value;

use crate::action::{ActionResult, LayerRecord};
use crate::error::{At, StoreError};
use crate::refs;
use crate::store::Store;

/// What a collection took away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Collected {
    /// Blobs.
    pub blobs: usize,
    /// The bytes of those blobs.
    pub bytes: u64,
    /// Records of what came of a key.
    pub records: usize,
}

impl Store {
    /// Removes records that were last used before `unused_since`, and every blob that then has no name, no record and no run.
    ///
    /// A run that begins meanwhile waits; a run that lives keeps all that it holds.
    pub fn collect(&self, unused_since: SystemTime) -> Result<Collected, StoreError> {
        let _collect = self.collect_lock()?;
        let _index = self.index_lock()?;
        let mut collected = Collected::default();
        let mut kept = self.live_holds()?;
        let index = refs::read(self)?;
        let (lists, images): (Vec<_>, Vec<_>) = index.manifests.iter().partition(|descriptor| {
            refs::name_of(descriptor)
                .and_then(refs::subject_of)
                .is_some()
        });
        kept.extend(reachable(self, images)?);
        for result in self.records::<ActionResult>("actions", unused_since, &mut collected)? {
            kept.extend(reachable(self, [&result.image])?);
        }
        for layer in self.records::<LayerRecord>("layers", unused_since, &mut collected)? {
            kept.extend(layer.layer().map(|layer| layer.blob));
        }
        self.records::<Value>("files", unused_since, &mut collected)?;
        // What refers to an image goes with it.
        let is_kept = |descriptor: &&Descriptor| {
            let subject = refs::name_of(descriptor).and_then(refs::subject_of);
            subject.is_some_and(|subject| kept.contains(&subject))
        };
        let (lists, orphans): (Vec<&Descriptor>, Vec<&Descriptor>) =
            lists.into_iter().partition(is_kept);
        kept.extend(reachable(self, lists)?);
        if !orphans.is_empty() {
            let mut left = index.clone();
            left.manifests
                .retain(|descriptor| !orphans.contains(&descriptor));
            refs::write(self, &left)?;
        }
        self.remove_blobs(&kept, &mut collected)?;
        Ok(collected)
    }

    /// What live runs hold. What dead ones left is removed.
    fn live_holds(&self) -> Result<HashSet<Digest>, StoreError> {
        let mut held = HashSet::new();
        let mut live = HashSet::new();
        let holds = self.path("portolan/holds");
        for name in names(&holds)? {
            let path = holds.join(&name);
            let Ok(file) = File::open(&path) else {
                continue;
            };
            if file.try_lock().is_ok() {
                unless_gone(std::fs::remove_file(&path)).at(&path)?;
                continue;
            }
            // Read from what was opened: the run may end now and remove the name.
            let text = std::io::read_to_string(&file).at(&path)?;
            let digests = text
                .lines()
                .map(|hex| format!("sha256:{hex}").parse::<Digest>());
            held.extend(digests.filter_map(Result::ok));
            live.insert(name);
        }
        let staging = self.path("portolan/staging");
        for name in names(&staging)? {
            if !live.contains(&name) {
                let path = staging.join(name);
                unless_gone(std::fs::remove_dir_all(&path)).at(&path)?;
            }
        }
        Ok(held)
    }

    /// Reads the records of a kind, and removes those that are old or broken.
    fn records<T: serde::de::DeserializeOwned>(
        &self,
        kind: &str,
        unused_since: SystemTime,
        collected: &mut Collected,
    ) -> Result<Vec<T>, StoreError> {
        let mut records = Vec::new();
        let root = self.path(&format!("portolan/{kind}"));
        for directory in names(&root)? {
            for name in names(&root.join(&directory))? {
                let path = root.join(&directory).join(&name);
                let used = path
                    .metadata()
                    .and_then(|found| found.modified())
                    .at(&path)?;
                let record = if used >= unused_since {
                    let content = std::fs::read(&path).ok();
                    content.and_then(|content| serde_json::from_slice(&content).ok())
                } else {
                    None
                };
                match record {
                    Some(record) => records.push(record),
                    None => {
                        std::fs::remove_file(&path).at(&path)?;
                        collected.records += 1;
                    }
                }
            }
        }
        Ok(records)
    }

    fn remove_blobs(
        &self,
        kept: &HashSet<Digest>,
        collected: &mut Collected,
    ) -> Result<(), StoreError> {
        let blobs = self.path("blobs/sha256");
        for name in names(&blobs)? {
            let is_kept = format!("sha256:{name}")
                .parse()
                .is_ok_and(|digest| kept.contains(&digest));
            if is_kept {
                continue;
            }
            let path = blobs.join(name);
            let size = path.metadata().at(&path)?.len();
            std::fs::remove_file(&path).at(&path)?;
            collected.blobs += 1;
            collected.bytes += size;
        }
        Ok(())
    }
}

/// A run that ends removes its own files: that one of them is gone is no failure.
fn unless_gone(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The names in a directory; none if it is not there.
fn names(directory: &Utf8Path) -> Result<Vec<String>, StoreError> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(StoreError::Io {
                path: directory.to_owned(),
                source,
            });
        }
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.at(directory)?.file_name();
        names.extend(name.into_string().ok());
    }
    Ok(names)
}

/// The digests of documents and everything that they name, themselves included. What is missing names nothing.
pub(crate) fn reachable<'a>(
    store: &Store,
    roots: impl IntoIterator<Item = &'a Descriptor>,
) -> Result<HashSet<Digest>, StoreError> {
    let mut found = HashSet::new();
    let mut left: Vec<Descriptor> = roots.into_iter().cloned().collect();
    while let Some(descriptor) = left.pop() {
        if !found.insert(descriptor.digest) {
            continue;
        }
        let is_index = matches!(
            descriptor.media_type.as_str(),
            media_type::INDEX | media_type::DOCKER_INDEX
        );
        let is_manifest = matches!(
            descriptor.media_type.as_str(),
            media_type::MANIFEST | media_type::DOCKER_MANIFEST
        );
        if !is_index && !is_manifest {
            continue;
        }
        let relative = crate::store::blob(&descriptor.digest);
        let Some(content) = store.read_document(&relative)? else {
            continue;
        };
        let broken = |source| StoreError::Parse {
            path: store.path(&relative),
            source,
        };
        if is_index {
            let index: Index = serde_json::from_slice(&content).map_err(broken)?;
            left.extend(index.manifests);
        } else {
            let manifest: Manifest = serde_json::from_slice(&content).map_err(broken)?;
            left.push(manifest.config);
            left.extend(manifest.layers);
        }
    }
    Ok(found)
}
