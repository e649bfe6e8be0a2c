//! Images pushed to registries: what is there is not sent, what another repository of the registry has is mounted.
//!
//! A push is a unit of its own: what needs the artifact needs its image in the store, not in a registry.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use portolan_digest::Digest;
use portolan_engine::{Failure, Key, Report, Run, Unit};
use portolan_http::Upload;
use portolan_image::{Descriptor, referrers_tag};
use portolan_oci::{OciError, PushedBlob, Reference, ReferenceError, Registry, Repository};
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::builder::BuildSetup;
use crate::document::{Artifact, Ship};
use crate::observe::{ONCE, Summarised, observe};
use crate::parts::{Parts, parts};
use crate::task::Task;

/// How many blobs of an image are sent at the same time.
const AT_ONCE: usize = 4;

/// Pushes the images of a run.
#[derive(Debug)]
pub struct Pusher {
    registry: Arc<Registry>,
    /// More tags for each image, besides the one of its digest.
    tags: Vec<String>,
    /// Which repository of a registry has a blob, as far as this run knows.
    homes: Mutex<BTreeMap<(String, Digest), Repository>>,
}

/// What a push of an image did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pushed {
    /// The artifact.
    pub name: String,
    /// Blobs that were sent.
    pub sent: usize,
    /// The bytes of those.
    pub bytes: u64,
    /// Blobs that were mounted from another repository.
    pub mounted: usize,
    /// Blobs that were there.
    pub present: usize,
}

/// Why an image could not be pushed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The name of the image names no repository.
    #[error("`{image}` cannot be pushed to")]
    Reference {
        /// The name.
        image: String,
        /// What is wrong with it.
        #[source]
        source: ReferenceError,
    },
    /// The registry did not take it.
    #[error("cannot push to `{repository}`")]
    Registry {
        /// The repository.
        repository: Repository,
        /// Why.
        #[source]
        source: OciError,
    },
    /// A tag asks for a commit, and there is none that says what was built.
    #[error("the tag `{tag}` asks for a commit: {why}")]
    Tag {
        /// The tag as it was given.
        tag: String,
        /// Why there is none.
        why: &'static str,
    },
    /// The image is no longer in the store.
    #[error("parts of the image `{0}` are no longer in the store")]
    Missing(Digest),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] portolan_layout::StoreError),
    /// The run was called off.
    #[error("it was called off")]
    Cancelled,
}

impl Pusher {
    /// Pushes by a client, under more tags if there are any.
    pub fn new(registry: Arc<Registry>, tags: Vec<String>) -> Self {
        Self {
            registry,
            tags,
            homes: Mutex::default(),
        }
    }
}

/// A tag with what stands in braces put in: `{commit}`, `{artifact}` and `{digest}`; or why there is no commit.
fn filled(
    tag: &str,
    artifact: &Artifact,
    digest: &str,
    setup: &BuildSetup,
) -> Result<String, &'static str> {
    let tag = tag
        .replace("{artifact}", &artifact.name)
        .replace("{digest}", digest);
    if !tag.contains("{commit}") {
        return Ok(tag);
    }
    match setup.git_facts() {
        None => Err("the document is in no git repository with a commit"),
        Some(facts) if !facts.is_clean => Err("the work tree has changes that were not committed"),
        Some(facts) => {
            let commit = facts.revision.get(..12).unwrap_or(&facts.revision);
            Ok(tag.replace("{commit}", commit))
        }
    }
}

pub(crate) fn key(name: &str) -> Key<Pushed> {
    Key::from(format!("push/{name}").as_str())
}

/// Adds the pushes of the artifacts that are asked for to a run that builds them.
pub fn plan_push(
    ship: &Ship,
    names: &[String],
    setup: &BuildSetup,
    pusher: &Arc<Pusher>,
    run: &Run,
) {
    for artifact in &ship.artifacts {
        if names.is_empty() || names.contains(&artifact.name) {
            let unit = unit(artifact.clone(), setup.clone(), Arc::clone(pusher));
            let need = crate::build::key(&artifact.name).untyped();
            run.add(key(&artifact.name), &[need], unit);
        }
    }
}

/// What the pushes of a run did, in the document's order.
pub fn finish_push(ship: &Ship, report: &Report) -> Vec<Pushed> {
    let artifacts = ship.artifacts.iter();
    let pushed = artifacts.filter_map(|artifact| report.output(&key(&artifact.name)));
    pushed.map(|pushed| Pushed::clone(&pushed)).collect()
}

fn unit(artifact: Artifact, setup: BuildSetup, pusher: Arc<Pusher>) -> Unit<Pushed> {
    let (name, run) = (format!("push-{}", artifact.name), setup.run.clone());
    observe(
        &name,
        &run,
        ONCE,
        move |context, task| -> Result<Pushed, Failure> {
            let built = context.need(&crate::build::key(&artifact.name))?;
            let image = Descriptor::new(&built.media_type, built.digest, built.size);
            let pushing = pusher.push(&artifact, &image, &setup, task);
            let pushed = Handle::current().block_on(async {
                tokio::select! {
                    pushed = pushing => pushed,
                    () = task.token().cancelled() => Err(PushError::Cancelled),
                }
            });
            Ok(pushed?)
        },
    )
}

impl Pusher {
    async fn push(
        &self,
        artifact: &Artifact,
        image: &Descriptor,
        setup: &BuildSetup,
        task: &Task,
    ) -> Result<Pushed, PushError> {
        let refused = |source| PushError::Reference {
            image: artifact.image.clone(),
            source,
        };
        let repository: Repository = artifact.image.parse().map_err(refused)?;
        let failed = |source| PushError::Registry {
            repository: repository.clone(),
            source,
        };
        let holding = setup.store.begin()?;
        let missing = || PushError::Missing(image.digest);
        let parts = parts(&holding, image).ok_or_else(missing)?;
        for blob in &parts.blobs {
            if !holding.hold(&blob.digest)? {
                return Err(missing());
            }
        }
        let mut pushed = Pushed {
            name: artifact.name.clone(),
            ..Pushed::default()
        };
        let by_digest = repository.digest(image.digest);
        // A registry that has the manifest has all of it.
        if self
            .registry
            .has_manifest(&by_digest)
            .await
            .map_err(failed)?
        {
            pushed.present = parts.blobs.len();
        } else {
            self.push_blobs(&repository, &parts, setup, task, &mut pushed)
                .await
                .map_err(failed)?;
            self.push_documents(&repository, &parts)
                .await
                .map_err(failed)?;
        }
        self.remember(&repository, parts.blobs.iter().map(|blob| blob.digest));
        let Some((root, bytes)) = parts.documents.last() else {
            return Err(missing());
        };
        let own = crate::outcome::tag(&image.digest);
        let mut more = Vec::with_capacity(self.tags.len());
        for tag in &self.tags {
            let filled = filled(tag, artifact, &own, setup);
            more.push(filled.map_err(|why| PushError::Tag {
                tag: tag.clone(),
                why,
            })?);
        }
        for tag in std::iter::once(&own).chain(&more) {
            let reference: Reference = repository.tag(tag).map_err(refused)?;
            // The tag of a digest never means anything else.
            if *tag == own
                && self
                    .registry
                    .has_manifest(&reference)
                    .await
                    .map_err(failed)?
            {
                continue;
            }
            let put = self
                .registry
                .push_manifest(&reference, &root.media_type, bytes);
            put.await.map_err(failed)?;
        }
        let referred = self.push_referrers(&repository, image, setup, task).await?;
        referred.map_err(failed)?;
        Ok(pushed)
    }

    /// Sends the blobs that are not there, several at a time.
    async fn push_blobs(
        &self,
        repository: &Repository,
        parts: &Parts,
        setup: &BuildSetup,
        task: &Task,
        pushed: &mut Pushed,
    ) -> Result<(), OciError> {
        let total: u64 = parts.blobs.iter().map(|blob| blob.size).sum();
        let mut left = parts.blobs.iter();
        let mut under_way = JoinSet::new();
        let mut done = 0;
        loop {
            while under_way.len() < AT_ONCE
                && let Some(blob) = left.next()
            {
                let path = setup.store.blob_path(&blob.digest);
                let body = Upload::new(blob.size, move || Ok(Box::new(File::open(&path)?)));
                let home = self.home(repository, &blob.digest);
                let (registry, repository) = (Arc::clone(&self.registry), repository.clone());
                let (digest, size) = (blob.digest, blob.size);
                under_way.spawn(async move {
                    let sent = registry.push_blob(&repository, &digest, &body, home.as_ref());
                    sent.await.map(|how| (how, size))
                });
            }
            let Some(ended) = under_way.join_next().await else {
                return Ok(());
            };
            let (how, size) = match ended {
                Ok(ended) => ended?,
                Err(died) => std::panic::resume_unwind(died.into_panic()),
            };
            done += size;
            task.progress(done, Some(total), "pushing");
            match how {
                PushedBlob::Present => pushed.present += 1,
                PushedBlob::Mounted => pushed.mounted += 1,
                PushedBlob::Sent => {
                    pushed.sent += 1;
                    pushed.bytes += size;
                }
            }
        }
    }

    /// Pushes what is said about an image, under the tag where readers look for it.
    async fn push_referrers(
        &self,
        repository: &Repository,
        image: &Descriptor,
        setup: &BuildSetup,
        task: &Task,
    ) -> Result<Result<(), OciError>, PushError> {
        let tag = referrers_tag(&image.digest);
        let Some(list) = setup.store.refs()?.remove(&tag) else {
            return Ok(Ok(()));
        };
        let holding = setup.store.begin()?;
        let Some(parts) = parts(&holding, &list) else {
            return Ok(Ok(()));
        };
        let known = self
            .registry
            .has_manifest(&repository.digest(list.digest))
            .await;
        if !matches!(known, Ok(false)) {
            return Ok(known.map(|_| ()));
        }
        for blob in &parts.blobs {
            holding.hold(&blob.digest)?;
        }
        let mut counts = Pushed::default();
        let pushing = async {
            self.push_blobs(repository, &parts, setup, task, &mut counts)
                .await?;
            self.push_documents(repository, &parts).await?;
            if let (Some((root, bytes)), Ok(reference)) =
                (parts.documents.last(), repository.tag(&tag))
            {
                self.registry
                    .push_manifest(&reference, &root.media_type, bytes)
                    .await?;
            }
            Ok(())
        };
        Ok(pushing.await)
    }

    async fn push_documents(&self, repository: &Repository, parts: &Parts) -> Result<(), OciError> {
        for (document, bytes) in &parts.documents {
            let reference = repository.digest(document.digest);
            let put = self
                .registry
                .push_manifest(&reference, &document.media_type, bytes);
            put.await?;
        }
        Ok(())
    }

    fn home(&self, repository: &Repository, digest: &Digest) -> Option<Repository> {
        let homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (repository.registry().to_owned(), *digest);
        homes.get(&key).cloned()
    }

    fn remember(&self, repository: &Repository, blobs: impl Iterator<Item = Digest>) {
        let mut homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        for blob in blobs {
            let key = (repository.registry().to_owned(), blob);
            homes.entry(key).or_insert_with(|| repository.clone());
        }
    }
}

impl Summarised for Pushed {
    fn summary(&self) -> impl Serialize {
        self
    }
}

/// What came of a push, if it did not end well.
pub(crate) fn failure(name: &str, report: &Report) -> Option<portolan_engine::Outcome> {
    let unit = report.get(&key(name).untyped())?;
    (!unit.outcome.is_done()).then(|| unit.outcome.clone())
}
