//! Applies what repositories declare, as the account that each acts for.
//!
//! ```text
//! files of a commit ──read all──▶ objects ──may the account write all of them?──▶ apply each ──▶ prune what is gone
//!                        │                          │
//!                        └── any fault: nothing changes, the status says file and line ◀──┘
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use portolan_fleet::read_variable_file;
use portolan_kinds::wire::{RepositorySpec, RepositoryStatus, Source};
use portolan_kinds::{KindObject, find_kind, read_span};
use portolan_store::Ownership;
use portolan_yaml::{Dialect, parse_bytes};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::{Access, Action};
use crate::cache::Cache;
use crate::clock::rfc3339;
use crate::error::{ApiError, RefusalReason};
use crate::keys::ObjectKey;
use crate::live::check_live;
use crate::objects::{Author, Objects, Preconditions, key_of, shown};
use crate::repository_source::{SourceFiles, SourceOptions, read_source};
use crate::runs::{VariablePatterns, check_circles, write_without_circle};
use crate::server::WriteMode;
use crate::token::Identity;

/// How often it is looked whether a repository is due.
const LOOK: Duration = Duration::from_millis(500);
/// A prune of more than this part and more than this many objects stops and asks.
const LARGE_PRUNE_PERCENT: usize = 20;
const LARGE_PRUNE: usize = 10;
/// The most faults that a status tells.
const MAX_FAULTS: usize = 20;

/// Applies repositories while this server owns the shard.
pub(crate) struct Repositories {
    pub(crate) objects: Objects,
    pub(crate) cache: Cache,
    pub(crate) access: Arc<Access>,
    pub(crate) source: SourceOptions,
    /// The shard, while this server owns it.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
}

/// When a repository is looked at again.
struct Due {
    at: Instant,
    generation: u32,
}

/// An object of a repository and the file that it is in.
struct Declared {
    object: KindObject,
    file: String,
}

impl Repositories {
    /// Applies repositories until the future is dropped.
    pub(crate) async fn run(self) {
        let mut due: BTreeMap<String, Due> = BTreeMap::new();
        loop {
            let owned = self.owned.borrow().clone();
            if let Some(owned) = owned {
                self.round(&mut due, &owned).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn round(&self, due: &mut BTreeMap<String, Due>, owned: &Ownership) {
        let Some(kind) = find_kind("Repository") else {
            return;
        };
        let repositories = self.cache.objects(kind, None);
        due.retain(|name, _| repositories.iter().any(|one| one.name() == name));
        for repository in repositories {
            let generation = repository.metadata.generation();
            let is_due = due
                .get(repository.name())
                .is_none_or(|due| due.generation != generation || Instant::now() >= due.at);
            if !is_due || repository.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let Ok(spec) = repository.typed_spec::<RepositorySpec>() else {
                continue;
            };
            if !spec.suspend() {
                self.reconcile(&repository, &spec, owned).await;
            }
            let every = read_span(spec.interval()).unwrap_or(Duration::from_mins(5));
            due.insert(
                repository.name().to_owned(),
                Due {
                    at: Instant::now() + every,
                    generation,
                },
            );
        }
        if let Err(error) = self.release_orphans(owned).await {
            tracing::warn!(%error, "objects of a deleted repository cannot be released");
        }
    }

    /// Brings the newest commit, or says in the status why not.
    async fn reconcile(&self, repository: &KindObject, spec: &RepositorySpec, owned: &Ownership) {
        let before: RepositoryStatus = repository.typed_status().unwrap_or_default();
        let (wanted, options) = (spec.clone(), self.source.clone());
        let read = tokio::task::spawn_blocking(move || read_source(&wanted, &options)).await;
        let read = read.unwrap_or_else(|_| Err("reading the repository failed".to_owned()));
        let generation = Some(repository.metadata.generation());
        let is_known = |commit: &str| {
            before.commit.as_deref() == Some(commit)
                && before.error.is_none()
                && before.observed_generation == generation
        };
        if read.as_ref().is_ok_and(|source| is_known(&source.commit)) {
            return;
        }
        let commit = read.as_ref().ok().map(|source| source.commit.clone());
        let applied = match &read {
            Ok(source) => self.apply(repository.name(), spec, source, owned).await,
            Err(error) => Err(error.clone()),
        };
        let mut status = RepositoryStatus {
            observed_generation: generation,
            checked_at: Some(rfc3339(self.objects.time.now())),
            ..before.clone()
        };
        match applied {
            Ok(count) => {
                status.commit = commit;
                status.objects = Some(u32::try_from(count).unwrap_or(u32::MAX));
                status.error = None;
                status.failed_commit = None;
            }
            Err(error) => {
                // The same failure again is no news.
                if before.error.as_ref() == Some(&error)
                    && before.failed_commit == commit
                    && before.observed_generation == generation
                {
                    return;
                }
                status.error = Some(error);
                status.failed_commit = commit;
            }
        }
        self.write_status(repository, &status, owned).await;
    }

    async fn write_status(
        &self,
        repository: &KindObject,
        status: &RepositoryStatus,
        owned: &Ownership,
    ) {
        let mut object = repository.clone();
        if object.set_status(status).is_err() {
            return;
        }
        let author = Author {
            name: "system:repositories".to_owned(),
            fence: Some(owned.fence()),
            ..Author::default()
        };
        let written = self
            .objects
            .set_status(&key_of(repository), object.status, &author)
            .await;
        if let Err(error) = written {
            tracing::warn!(%error, repository = repository.name(), "the status cannot be written");
        }
    }

    /// Applies and prunes; returns how many objects there are. The error is a sentence for the status.
    async fn apply(
        &self,
        name: &str,
        spec: &RepositorySpec,
        source: &SourceFiles,
        owned: &Ownership,
    ) -> Result<usize, String> {
        let declared = read_objects(source, spec)?;
        let account = Identity {
            user: spec.service_account().to_owned(),
            ..Identity::default()
        };
        let gone = if spec.prune() {
            self.gone(name, &declared)
        } else {
            Vec::new()
        };
        self.check(name, &account, &declared, &gone)?;
        check_prune(spec, source, gone.len(), declared.len())?;
        for one in &declared {
            let author = self.author(name, &account, source, one, owned);
            let (how, object) = (WriteMode::Apply, one.object.clone());
            let applied = write_without_circle(&self.objects, &self.cache, how, object, author);
            applied
                .await
                .map_err(|error| format!("{}: {}", one.file, error.message))?;
        }
        for object in &gone {
            let author = Author {
                name: account.user.clone(),
                source: object.metadata.source.clone(),
                fence: Some(owned.fence()),
                ..Author::default()
            };
            let same = Preconditions {
                uuid: object.metadata.uuid.clone(),
                version: None,
            };
            let deleted = self
                .objects
                .delete(&key_of(object), &shown(object), &same, &author)
                .await;
            match deleted {
                Err(error) if error.reason != RefusalReason::NotFound => {
                    return Err(format!(
                        "{} cannot be pruned: {}",
                        shown(object),
                        error.message
                    ));
                }
                _ => {}
            }
        }
        Ok(declared.len())
    }

    fn author(
        &self,
        name: &str,
        account: &Identity,
        source: &SourceFiles,
        one: &Declared,
        owned: &Ownership,
    ) -> Author {
        let reads = action("read-secret", &one.object);
        Author {
            name: account.user.clone(),
            source: Some(Source {
                repository: Some(name.to_owned()),
                commit: Some(source.commit.clone()),
                path: Some(one.file.split(':').next().unwrap_or_default().to_owned()),
            }),
            fence: Some(owned.fence()),
            reads_secrets: self.access.check(account, &reads).is_ok(),
            ..Author::default()
        }
    }

    /// Objects of the repository that it does not declare any more.
    fn gone(&self, name: &str, declared: &[Declared]) -> Vec<Arc<KindObject>> {
        let kept: BTreeSet<ObjectKey> = declared.iter().map(|one| key_of(&one.object)).collect();
        let all = self.cache.sourced().into_iter();
        all.filter(|object| {
            let source = object.metadata.source.as_ref();
            source.is_some_and(|source| source.repository() == name)
                && !kept.contains(&key_of(object))
        })
        .collect()
    }

    /// Everything that would be refused, before anything is written.
    fn check(
        &self,
        name: &str,
        account: &Identity,
        declared: &[Declared],
        gone: &[Arc<KindObject>],
    ) -> Result<(), String> {
        let mut faults = Vec::new();
        for one in declared {
            let found = self.cache.object(&key_of(&one.object));
            let owner = found
                .as_ref()
                .and_then(|found| found.metadata.source.as_ref());
            if let Some(owner) = owner.filter(|owner| owner.repository() != name) {
                faults.push(format!(
                    "{}: {} comes from Repository {}",
                    one.file,
                    shown(&one.object),
                    owner.repository()
                ));
            }
            let verbs: &[&str] = if found.is_some() {
                &["update"]
            } else {
                &["create", "update"]
            };
            let rights = verbs.iter().map(|verb| {
                self.access
                    .check(account, &action(verb, &one.object))
                    .map(|_| ())
            });
            let escalation = self.access.check_escalation(account, &one.object);
            let live = check_live(&self.access, account, &one.object);
            let circles = check_circles(&self.cache, &one.object);
            let refused = rights
                .chain([escalation, live, circles])
                .filter_map(Result::err);
            faults.extend(refused.map(|error| format!("{}: {}", one.file, error.message)));
        }
        for object in gone {
            if let Err(error) = self.access.check(account, &action("delete", object)) {
                faults.push(error.message);
            }
        }
        told(faults)
    }

    /// Objects of repositories that are gone belong to nobody, so that people can change them.
    async fn release_orphans(&self, owned: &Ownership) -> Result<(), ApiError> {
        let Some(kind) = find_kind("Repository") else {
            return Ok(());
        };
        let mut lives: BTreeMap<String, bool> = BTreeMap::new();
        for object in self.cache.sourced() {
            let Some(source) = &object.metadata.source else {
                continue;
            };
            let lives = match lives.get(source.repository()) {
                Some(known) => *known,
                None => {
                    let key = ObjectKey::new(kind, None, source.repository());
                    let found = self.objects.get(&key).await?.is_some();
                    lives.insert(source.repository().to_owned(), found);
                    found
                }
            };
            if !lives {
                self.objects
                    .release_source(&key_of(&object), owned.fence())
                    .await?;
            }
        }
        Ok(())
    }
}

fn action<'a>(verb: &'a str, object: &'a KindObject) -> Action<'a> {
    Action {
        verb,
        kind: object.kind.name,
        namespace: object.namespace(),
        name: Some(object.name()),
    }
}

/// All objects of a commit, or every fault with file and line.
fn read_objects(source: &SourceFiles, spec: &RepositorySpec) -> Result<Vec<Declared>, String> {
    let namespace = spec.namespace.as_deref();
    let (mut declared, mut faults): (Vec<Declared>, Vec<String>) = (Vec::new(), Vec::new());
    let mut documents = Vec::with_capacity(source.files.len());
    let mut patterns = VariablePatterns::default();
    for (path, content) in &source.files {
        match parse_bytes(content, Dialect::Kustomize) {
            Ok(nodes) => {
                for node in &nodes {
                    patterns.add(node, path, &mut faults);
                }
                documents.push((path, content, nodes));
            }
            Err(errors) => {
                let first = errors.first();
                faults.push(format!(
                    "{path}:{}:{}: {}",
                    first.at.line, first.at.column, first.message
                ));
            }
        }
    }
    for (path, content, nodes) in &documents {
        if patterns.has(path, nodes) {
            faults.extend(read_variable_file(path, content).err());
            continue;
        }
        for node in nodes.iter().filter(|node| !node.is_null()) {
            let file = format!("{path}:{}", node.at.line);
            match KindObject::read(node) {
                Ok(object) => add(
                    Declared { object, file },
                    namespace,
                    &mut declared,
                    &mut faults,
                ),
                Err(found) => faults.extend(found.iter().map(|fault| format!("{path}:{fault}"))),
            }
        }
    }
    let exists = |file: &str| source.files.iter().any(|(path, _)| path == file);
    faults.extend(patterns.missing(spec.path(), &exists));
    told(faults)?;
    if declared.is_empty() {
        return Err("there are no objects in the repository".to_owned());
    }
    declared.sort_by_key(|one| match one.object.kind.name {
        "Namespace" => 0,
        "ClusterRole" | "Role" => 1,
        _ => 2,
    });
    Ok(declared)
}

fn add(
    mut one: Declared,
    namespace: Option<&str>,
    declared: &mut Vec<Declared>,
    faults: &mut Vec<String>,
) {
    if one.object.kind.is_namespaced && one.object.metadata.namespace.is_none() {
        one.object.metadata.namespace = namespace.map(str::to_owned);
    }
    let name = shown(&one.object);
    let key = key_of(&one.object);
    if one.object.kind.is_namespaced && one.object.metadata.namespace.is_none() {
        faults.push(format!("{}: {name} has no namespace", one.file));
    } else if matches!(one.object.kind.name, "Event" | "Repository") {
        faults.push(format!(
            "{}: {name} cannot come from a repository",
            one.file
        ));
    } else if let Some(first) = declared.iter().find(|other| key_of(&other.object) == key) {
        faults.push(format!("{}: {name} is also at {}", one.file, first.file));
    } else {
        declared.push(one);
    }
}

fn check_prune(
    spec: &RepositorySpec,
    source: &SourceFiles,
    gone: usize,
    kept: usize,
) -> Result<(), String> {
    let is_large = gone > LARGE_PRUNE && gone * 100 > (gone + kept) * LARGE_PRUNE_PERCENT;
    if !is_large || spec.allow_prune_at() == source.commit {
        return Ok(());
    }
    Err(format!(
        "{gone} of {} objects would be deleted; set `allowPruneAt: {}` if that is meant",
        gone + kept,
        source.commit
    ))
}

fn told(mut faults: Vec<String>) -> Result<(), String> {
    if faults.is_empty() {
        return Ok(());
    }
    let count = faults.len();
    faults.truncate(MAX_FAULTS);
    if count > MAX_FAULTS {
        faults.push(format!("and {} more", count - MAX_FAULTS));
    }
    Err(faults.join("\n"))
}
