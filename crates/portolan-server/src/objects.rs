//! Objects in the store: created, replaced, applied and deleted by compares, never by hope.
//!
//! Who may do what is decided above; this file knows what a write means. Every change is one transaction: the spec
//! is compared with what was read, a new object with the gate of its namespace, and a controller's writes with its
//! shard.

mod differences;
mod fenced;

use std::sync::Arc;

use portolan_digest::hex;
use portolan_kinds::wire::Source;
use portolan_kinds::{KindObject, find_kind};
use portolan_store::{Compare, Incarnation, Position, Store, Transaction};
use serde_json::{Map, Value, json};

use crate::clock::{TimeSource, rfc3339};
use crate::error::{ApiError, RefusalReason};
use crate::keys::{ObjectKey, gate};
use crate::page::{self, ListQuery, ObjectPage};
use crate::record::StoredKind;
use crate::seal::Sealer;
pub(crate) use differences::differences;

/// How often a write that lost a race is made again, where that is meant.
const ATTEMPTS: usize = 8;

/// What a namespace is held by until its objects are deleted.
pub(crate) const CONTENT_FINALIZER: &str = "portolan.dev/content";

/// The namespaces that always exist.
pub(crate) const OWN_NAMESPACES: [&str; 2] = ["default", "system"];

/// Objects in the store.
#[derive(Clone)]
pub(crate) struct Objects {
    pub(crate) store: Store,
    pub(crate) incarnation: Arc<Incarnation>,
    pub(crate) time: Arc<dyn TimeSource>,
    pub(crate) sealer: Option<Arc<Sealer>>,
}

/// Who writes, and under which conditions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Author {
    pub(crate) name: String,
    /// Set for objects that come from Git.
    pub(crate) source: Option<Source>,
    /// What must hold for a controller to write: that it owns its shard.
    pub(crate) fence: Option<Compare>,
    /// What is committed with a new spec, if anything.
    pub(crate) with: Option<Transaction>,
    /// Whether everything is checked and nothing written.
    pub(crate) is_dry_run: bool,
    /// Whether the author can see that secret values are the same; otherwise they always make a new revision.
    pub(crate) reads_secrets: bool,
}

/// What may be deleted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Preconditions {
    pub(crate) uuid: Option<String>,
    pub(crate) version: Option<String>,
}

/// What became of a deletion.
#[derive(Debug, Clone)]
pub(crate) struct Deletion {
    pub(crate) object: KindObject,
    /// Whether the object is gone; otherwise its finalizers have to be waited for.
    pub(crate) is_done: bool,
}

impl Objects {
    /// Reads an object.
    pub(crate) async fn get(&self, key: &ObjectKey) -> Result<Option<StoredKind>, ApiError> {
        page::get(&self.store, &self.incarnation, key, None).await
    }

    /// Reads a page of objects.
    pub(crate) async fn list(&self, query: &ListQuery) -> Result<ObjectPage, ApiError> {
        page::list(&self.store, &self.incarnation, query).await
    }

    /// Creates an object.
    pub(crate) async fn create(
        &self,
        object: KindObject,
        author: &Author,
    ) -> Result<StoredKind, ApiError> {
        let shown = shown(&object);
        let (transaction, created) = self.prepare_creation(object, author).await?;
        self.commit_object(transaction, created, author)
            .await?
            .ok_or_else(|| already_exists(&shown))
    }

    /// The transaction that creates an object, to be committed alone or with more.
    pub(crate) async fn prepare_creation(
        &self,
        object: KindObject,
        author: &Author,
    ) -> Result<(Transaction, StoredKind), ApiError> {
        let key = key_of(&object);
        if self.get(&key).await?.is_some() {
            return Err(already_exists(&shown(&object)));
        }
        let created = self.new_object(object, author)?;
        let mut transaction = Transaction::new().when(Compare::absent(key.spec()));
        transaction = transaction.put(key.spec(), created.spec_value());
        if let Some(status) = created.status_value() {
            transaction = transaction
                .when(Compare::absent(key.status()))
                .put(key.status(), status);
        }
        if created.object.kind.name == "Namespace" {
            let gate = gate(created.object.name());
            transaction = transaction
                .when(Compare::absent(gate.clone()))
                .put(gate, "");
        } else if let Some(namespace) = created.object.namespace() {
            transaction = transaction.when(self.open_gate(namespace).await?);
        }
        Ok((transaction, created))
    }

    /// Replaces an object. Its resource version must be the stored one.
    pub(crate) async fn update(
        &self,
        object: KindObject,
        author: &Author,
    ) -> Result<StoredKind, ApiError> {
        let key = key_of(&object);
        let Some(version) = object.metadata.resource_version.clone() else {
            let message =
                "an update must carry `metadata.resourceVersion`, the version that it replaces";
            let error = ApiError::new(
                http::StatusCode::PRECONDITION_REQUIRED,
                RefusalReason::VersionRequired,
                message,
            );
            return Err(error.hint("read the object, change it and send it back; or apply it"));
        };
        let revision = self.revision(&version)?;
        let found = self.get(&key).await?;
        let found = found.ok_or_else(|| ApiError::not_found(&shown(&object)))?;
        if found.revision() != revision {
            return Err(self.changed(&key, &found, revision).await);
        }
        if object.metadata.uuid.is_some() && object.metadata.uuid != found.object.metadata.uuid {
            let message = format!(
                "{} is another object now: its uuid has changed",
                shown(&object)
            );
            return Err(ApiError::conflict(RefusalReason::Conflict, message));
        }
        let mut wanted = object;
        wanted.metadata = portolan_kinds::wire::Metadata {
            labels: std::mem::take(&mut wanted.metadata.labels),
            annotations: std::mem::take(&mut wanted.metadata.annotations),
            finalizers: std::mem::take(&mut wanted.metadata.finalizers),
            owners: std::mem::take(&mut wanted.metadata.owners),
            ..found.object.metadata.clone()
        };
        match self
            .replace(&key, found.clone(), wanted, None, author)
            .await?
        {
            Some(stored) => Ok(stored),
            None => {
                let now = self.get(&key).await?.unwrap_or(found);
                Err(self.changed(&key, &now, revision).await)
            }
        }
    }

    /// Creates an object, or replaces its spec and the labels and annotations that were applied before.
    pub(crate) async fn apply(
        &self,
        object: KindObject,
        author: &Author,
    ) -> Result<StoredKind, ApiError> {
        let key = key_of(&object);
        for _ in 0..ATTEMPTS {
            let Some(found) = self.get(&key).await? else {
                match self.create(object.clone(), author).await {
                    Err(error) if error.reason == RefusalReason::AlreadyExists => continue,
                    created => return created,
                }
            };
            let labels: Vec<String> = object.metadata.labels.keys().cloned().collect();
            let annotations: Vec<String> = object.metadata.annotations.keys().cloned().collect();
            let wanted = applied(&found, object.clone());
            let keys = Some((labels, annotations));
            if let Some(stored) = self.replace(&key, found, wanted, keys, author).await? {
                return Ok(stored);
            }
        }
        let message = format!("{} changes all the time", shown(&object));
        Err(ApiError::conflict(RefusalReason::Conflict, message))
    }

    /// Writes the status of an object that is still the same one.
    pub(crate) async fn set_status(
        &self,
        key: &ObjectKey,
        status: Value,
        author: &Author,
    ) -> Result<Option<StoredKind>, ApiError> {
        self.change_status(key, author, |_| Ok(status.clone()))
            .await
    }

    /// Makes a new status of the old one, which nobody else changes in between. `None` if there is no object.
    pub(crate) async fn change_status(
        &self,
        key: &ObjectKey,
        author: &Author,
        mut change: impl FnMut(&KindObject) -> Result<Value, ApiError>,
    ) -> Result<Option<StoredKind>, ApiError> {
        for _ in 0..ATTEMPTS {
            let Some(mut found) = self.get(key).await? else {
                return Ok(None);
            };
            let status = change(&found.object)?;
            if found.object.status == status {
                return Ok(Some(found));
            }
            found.object.status = status;
            check_status(&found.object)?;
            let Some(value) = found.status_value() else {
                return Ok(Some(found));
            };
            let mut transaction = Transaction::new()
                .when(Compare::same(key.spec(), found.create_revision))
                .when(Compare::unchanged(key.status(), found.status_revision))
                .put(key.status(), value);
            if let Some(fence) = &author.fence {
                transaction = transaction.when(fence.clone());
            }
            let outcome = self.store.commit(transaction).await?;
            if outcome.succeeded {
                found.status_revision = outcome.revision;
                found.set_version(&self.incarnation);
                return Ok(Some(found));
            }
            self.check_fence(author).await?;
        }
        Err(ApiError::unavailable("the status changes all the time"))
    }

    /// Deletes an object, or marks it when finalizers have to be waited for.
    pub(crate) async fn delete(
        &self,
        key: &ObjectKey,
        name: &str,
        preconditions: &Preconditions,
        author: &Author,
    ) -> Result<Deletion, ApiError> {
        for _ in 0..ATTEMPTS {
            let found = self.get(key).await?;
            let found = found.ok_or_else(|| ApiError::not_found(name))?;
            refuse_managed(&found, author)?;
            self.check_preconditions(&found, preconditions)?;
            if let Some(deletion) = self.delete_found(key, found, author).await? {
                return Ok(deletion);
            }
            self.check_fence(author).await?;
        }
        Err(ApiError::conflict(
            RefusalReason::Conflict,
            format!("{name} changes all the time"),
        ))
    }

    async fn delete_found(
        &self,
        key: &ObjectKey,
        mut found: StoredKind,
        author: &Author,
    ) -> Result<Option<Deletion>, ApiError> {
        let is_namespace = found.object.kind.name == "Namespace";
        if is_namespace && OWN_NAMESPACES.contains(&found.object.name()) {
            let message = format!("namespace {} always exists", found.object.name());
            return Err(ApiError::conflict(RefusalReason::Conflict, message));
        }
        let is_done = found.object.metadata.finalizers.is_empty();
        let object = found.object.clone();
        if author.is_dry_run || (!is_done && object.metadata.deletion_timestamp.is_some()) {
            return Ok(Some(Deletion { object, is_done }));
        }
        if is_done {
            let transaction = Self::remove(key, &found, author);
            let outcome = self.store.commit(transaction).await?;
            return Ok(outcome.succeeded.then_some(Deletion { object, is_done }));
        }
        found.object.metadata.deletion_timestamp = Some(rfc3339(self.time.now()));
        let mut transaction =
            Transaction::new().when(Compare::unchanged(key.spec(), found.spec_revision));
        if is_namespace {
            let gate = gate(found.object.name());
            let open = self.store.get(gate.clone()).await?;
            if let Some(open) = open {
                transaction = transaction
                    .when(Compare::unchanged(gate.clone(), open.mod_revision))
                    .delete(gate);
            }
        }
        found.written_by = author.name.clone();
        found.written_at = rfc3339(self.time.now());
        transaction = transaction.put(key.spec(), found.spec_value());
        let marked = self.commit_object(transaction, found, author).await?;
        Ok(marked.map(|marked| Deletion {
            object: marked.object,
            is_done,
        }))
    }

    /// Replaces what was read by what is wanted, whose metadata is complete; `None` if somebody else was faster.
    async fn replace(
        &self,
        key: &ObjectKey,
        found: StoredKind,
        wanted: KindObject,
        applied: Option<(Vec<String>, Vec<String>)>,
        author: &Author,
    ) -> Result<Option<StoredKind>, ApiError> {
        refuse_managed(&found, author)?;
        if found.is_newer {
            let message = format!(
                "{} was written by a newer server, which alone can change it",
                shown(&wanted)
            );
            return Err(ApiError::conflict(RefusalReason::Conflict, message));
        }
        let mut next = found.clone();
        let values = take_values(&wanted);
        next.object.metadata = wanted.metadata.clone();
        next.object.spec = without_values(&wanted);
        if let Some((labels, annotations)) = applied {
            (next.applied_labels, next.applied_annotations) = (labels, annotations);
        }
        if let Some(source) = &author.source {
            next.object.metadata.source = Some(source.clone());
        }
        let has_new_values = self.seal_values(&mut next, &found, values, author)?;
        let has_new_spec = next.object.spec != found.object.spec || has_new_values;
        if found.object.metadata.deletion_timestamp.is_some() {
            check_terminating(&found, &next, has_new_spec)?;
        }
        if has_new_spec {
            next.object.metadata.generation =
                Some(found.object.metadata.generation().saturating_add(1));
        }
        let is_equal = !has_new_spec
            && next.object.metadata == found.object.metadata
            && next.applied_labels == found.applied_labels
            && next.applied_annotations == found.applied_annotations;
        if is_equal || author.is_dry_run {
            return Ok(Some(next));
        }
        next.written_by = author.name.clone();
        next.written_at = rfc3339(self.time.now());
        if next.object.metadata.deletion_timestamp.is_some()
            && next.object.metadata.finalizers.is_empty()
        {
            let outcome = self.store.commit(Self::remove(key, &found, author)).await?;
            return Ok(outcome.succeeded.then_some(next));
        }
        let mut transaction =
            Transaction::new().when(Compare::unchanged(key.spec(), found.spec_revision));
        transaction = transaction.put(key.spec(), next.spec_value());
        if next.object.status != found.object.status
            && let Some(status) = next.status_value()
        {
            transaction = transaction
                .when(Compare::unchanged(key.status(), found.status_revision))
                .put(key.status(), status);
            next.status_revision = u64::MAX;
        }
        self.commit_object(transaction, next, author).await
    }

    /// A new object, complete but for its revision.
    pub(crate) fn new_object(
        &self,
        mut object: KindObject,
        author: &Author,
    ) -> Result<StoredKind, ApiError> {
        let now = rfc3339(self.time.now());
        let values = take_values(&object);
        object.spec = without_values(&object);
        let metadata = &mut object.metadata;
        metadata.uuid = Some(new_uuid());
        metadata.generation = Some(1);
        metadata.creation_timestamp = Some(now.clone());
        metadata.deletion_timestamp = None;
        metadata.resource_version = None;
        metadata.source.clone_from(&author.source);
        if object.kind.name == "Namespace" {
            if !metadata
                .finalizers
                .iter()
                .any(|one| one == CONTENT_FINALIZER)
            {
                metadata.finalizers.push(CONTENT_FINALIZER.to_owned());
            }
            object.status = json!({"phase": "active"});
        }
        let mut created = StoredKind {
            applied_labels: object.metadata.labels.keys().cloned().collect(),
            applied_annotations: object.metadata.annotations.keys().cloned().collect(),
            object,
            spec_revision: 0,
            create_revision: 0,
            status_revision: 0,
            sealed: None,
            written_by: author.name.clone(),
            written_at: now,
            is_newer: false,
        };
        let nothing = created.clone();
        self.seal_values(&mut created, &nothing, values, author)?;
        Ok(created)
    }

    /// Encrypts the values of a Secret; says whether they are others than before.
    fn seal_values(
        &self,
        next: &mut StoredKind,
        found: &StoredKind,
        values: Option<Map<String, Value>>,
        author: &Author,
    ) -> Result<bool, ApiError> {
        if next.object.kind.name != "Secret" {
            return Ok(false);
        }
        let Some(values) = values else {
            // Who may not see the values sends the object back without them. `values: {}` takes them away.
            if next.object.spec.get("vault").is_none() && next.sealed.is_some() {
                return Ok(false);
            }
            next.object.status = json!({"keys": []});
            return Ok(next.sealed.take().is_some());
        };
        let sealer = self.sealer.as_ref().ok_or_else(|| {
            ApiError::unavailable("this server has no key to encrypt secrets with")
                .hint("start it with --secret-key-file")
        })?;
        let bound_to = bound_to(&next.object);
        if author.reads_secrets
            && let Some(sealed) = &found.sealed
            && sealer
                .open(sealed, &bound_to)
                .is_ok_and(|before| before == values)
        {
            return Ok(false);
        }
        next.object.status = json!({"keys": values.keys().collect::<Vec<_>>()});
        let sealed = sealer.seal(&values, &bound_to);
        next.sealed = Some(sealed.map_err(|error| ApiError::internal(error.to_string()))?);
        Ok(true)
    }

    /// The values of a Secret.
    pub(crate) fn open_values(&self, found: &StoredKind) -> Result<Map<String, Value>, ApiError> {
        let Some(sealed) = &found.sealed else {
            return Ok(Map::new());
        };
        let sealer = self.sealer.as_ref();
        let sealer = sealer.ok_or_else(|| {
            ApiError::unavailable("this server has no key to decrypt secrets with")
        })?;
        let opened = sealer.open(sealed, &bound_to(&found.object));
        opened.map_err(|error| ApiError::internal(error.to_string()))
    }

    /// Encrypts the key of a Secret by the current key-encryption key; `None` if somebody else changed it meanwhile.
    pub(crate) async fn rewrap(
        &self,
        key: &ObjectKey,
        mut found: StoredKind,
        fence: Compare,
    ) -> Result<bool, ApiError> {
        let (Some(sealer), Some(sealed)) = (&self.sealer, &found.sealed) else {
            return Ok(false);
        };
        let rewrapped = sealer.rewrap(sealed, &bound_to(&found.object));
        let rewrapped = rewrapped.map_err(|error| ApiError::internal(error.to_string()))?;
        let Some(rewrapped) = rewrapped else {
            return Ok(false);
        };
        found.sealed = Some(rewrapped);
        let replace = Transaction::replace(key.spec(), found.spec_revision, found.spec_value());
        Ok(self.store.commit(replace.when(fence)).await?.succeeded)
    }

    fn remove(key: &ObjectKey, found: &StoredKind, author: &Author) -> Transaction {
        let mut transaction = Transaction::new()
            .when(Compare::unchanged(key.spec(), found.spec_revision))
            .when(Compare::unchanged(key.status(), found.status_revision))
            .delete(key.spec());
        if found.status_revision > 0 {
            transaction = transaction.delete(key.status());
        }
        if let Some(fence) = &author.fence {
            transaction = transaction.when(fence.clone());
        }
        transaction
    }

    /// Commits a write of an object and gives it its version; `None` if a compare failed.
    pub(crate) async fn commit_object(
        &self,
        mut transaction: Transaction,
        mut object: StoredKind,
        author: &Author,
    ) -> Result<Option<StoredKind>, ApiError> {
        if let Some(fence) = &author.fence {
            transaction = transaction.when(fence.clone());
        }
        if let Some(with) = &author.with {
            transaction = transaction.and(with.clone());
        }
        if author.is_dry_run {
            return Ok(Some(object));
        }
        let outcome = self.store.commit(transaction).await?;
        if !outcome.succeeded {
            self.check_fence(author).await?;
            return Ok(None);
        }
        object.spec_revision = outcome.revision;
        if object.create_revision == 0 {
            object.create_revision = outcome.revision;
        }
        if object.status_revision == u64::MAX
            || (object.create_revision == outcome.revision && !object.object.status.is_null())
        {
            object.status_revision = outcome.revision;
        }
        object.set_version(&self.incarnation);
        Ok(Some(object))
    }

    /// The compare by which an object is created only in a namespace that exists and is not being deleted.
    pub(crate) async fn open_gate(&self, namespace: &str) -> Result<Compare, ApiError> {
        if let Some(open) = self.store.get(gate(namespace)).await? {
            return Ok(Compare::same(gate(namespace), open.create_revision));
        }
        let kind = find_kind("Namespace").ok_or_else(|| ApiError::internal("no kind Namespace"))?;
        let key = ObjectKey::new(kind, None, namespace);
        Err(if self.get(&key).await?.is_some() {
            let message = format!("namespace {namespace} is being deleted");
            ApiError::conflict(RefusalReason::Terminating, message)
        } else {
            ApiError::not_found(&format!("namespace {namespace}")).hint(format!(
                "apply an object of kind Namespace with the name `{namespace}` first"
            ))
        })
    }

    /// The revision of a resource version of this store.
    pub(crate) fn revision(&self, version: &str) -> Result<u64, ApiError> {
        let position: Position = version.parse().map_err(|_| {
            ApiError::bad_request(format!("`{version}` is no resource version"))
                .hint("take it as it is from an answer of this server")
        })?;
        Ok(position.revision_in(&self.incarnation)?)
    }

    pub(crate) fn check_preconditions(
        &self,
        found: &StoredKind,
        wanted: &Preconditions,
    ) -> Result<(), ApiError> {
        let is_other = |message: &str| {
            let message = format!("{} {message}", shown(&found.object));
            ApiError::conflict(RefusalReason::Conflict, message)
        };
        if wanted
            .uuid
            .as_deref()
            .is_some_and(|uuid| uuid != found.object.metadata.uuid())
        {
            return Err(is_other("has another uuid"));
        }
        if let Some(version) = &wanted.version
            && self.revision(version)? != found.revision()
        {
            return Err(is_other("was changed meanwhile"));
        }
        Ok(())
    }

    /// The error that says which fields others changed since a revision.
    async fn changed(&self, key: &ObjectKey, now: &StoredKind, since: u64) -> ApiError {
        let before = page::get(&self.store, &self.incarnation, key, Some(since)).await;
        let mut paths = Vec::new();
        if let Ok(Some(before)) = before {
            differences(
                &before.object.to_json(),
                &now.object.to_json(),
                "",
                &mut paths,
            );
            paths.retain(|path| path != "metadata.resourceVersion");
            if before.sealed != now.sealed
                && !paths.iter().any(|path| path.starts_with("spec.values"))
            {
                paths.push("spec.values".to_owned());
            }
        }
        let what = if paths.is_empty() {
            String::new()
        } else {
            format!(": {}", paths.join(", "))
        };
        let message = format!("{} was changed meanwhile{what}", shown(&now.object));
        ApiError::conflict(RefusalReason::Conflict, message)
            .details(
                json!({"changed": paths, "resourceVersion": now.object.metadata.resource_version}),
            )
            .hint("read it again, and make the change to what is there now")
    }
}

/// What an apply asks for: the stored metadata, with the labels and annotations that were applied replaced.
fn applied(found: &StoredKind, mut wanted: KindObject) -> KindObject {
    let mut metadata = found.object.metadata.clone();
    for old in &found.applied_labels {
        metadata.labels.remove(old);
    }
    for old in &found.applied_annotations {
        metadata.annotations.remove(old);
    }
    metadata.labels.append(&mut wanted.metadata.labels);
    metadata
        .annotations
        .append(&mut wanted.metadata.annotations);
    if !wanted.metadata.owners.is_empty() {
        metadata.owners = std::mem::take(&mut wanted.metadata.owners);
    }
    wanted.metadata = metadata;
    wanted
}

fn refuse_managed(found: &StoredKind, author: &Author) -> Result<(), ApiError> {
    let Some(source) = &found.object.metadata.source else {
        return Ok(());
    };
    let own = author.source.as_ref().map(Source::repository);
    if own == Some(source.repository()) {
        return Ok(());
    }
    let message = format!(
        "{} comes from {} of Repository {} at {}",
        shown(&found.object),
        source.path(),
        source.repository(),
        source.commit()
    );
    Err(ApiError::conflict(RefusalReason::Managed, message)
        .details(json!({
            "repository": source.repository(), "commit": source.commit(), "path": source.path(),
        }))
        .hint("change it there"))
}

fn check_terminating(
    found: &StoredKind,
    next: &StoredKind,
    has_new_spec: bool,
) -> Result<(), ApiError> {
    let before = &found.object.metadata;
    let after = &next.object.metadata;
    let only_removed = after
        .finalizers
        .iter()
        .all(|one| before.finalizers.contains(one));
    if has_new_spec
        || before.labels != after.labels
        || before.annotations != after.annotations
        || !only_removed
    {
        let message = format!(
            "{} is being deleted: only finalizers can be removed",
            shown(&found.object)
        );
        return Err(ApiError::conflict(RefusalReason::Terminating, message));
    }
    Ok(())
}

/// The values of a Secret, which are stored elsewhere than its spec.
fn take_values(object: &KindObject) -> Option<Map<String, Value>> {
    if object.kind.name != "Secret" {
        return None;
    }
    object
        .spec
        .get("values")
        .and_then(Value::as_object)
        .cloned()
}

/// The spec without the values of a Secret.
fn without_values(object: &KindObject) -> Value {
    let mut spec = object.spec.clone();
    if object.kind.name == "Secret"
        && let Value::Object(map) = &mut spec
    {
        map.remove("values");
    }
    spec
}

/// What sealed values are bound to.
fn bound_to(object: &KindObject) -> String {
    format!(
        "{}/{}/{}/{}",
        object.kind.name,
        object.namespace().unwrap_or_default(),
        object.name(),
        object.metadata.uuid()
    )
}

pub(crate) fn key_of(object: &KindObject) -> ObjectKey {
    ObjectKey::new(object.kind, object.namespace(), object.name())
}

/// An object as people name it: `variable web/region`.
pub(crate) fn shown(object: &KindObject) -> String {
    let kind = object.kind.name;
    match object.namespace() {
        Some(namespace) => format!("{kind} {namespace}/{}", object.name()),
        None => format!("{kind} {}", object.name()),
    }
}

pub(crate) fn already_exists(shown: &str) -> ApiError {
    ApiError::conflict(
        RefusalReason::AlreadyExists,
        format!("{shown} exists already"),
    )
    .hint("update it with its resourceVersion, or apply it")
}

/// Refuses a status that would be stored without some of its fields: that is a mistake in this program.
fn check_status(object: &KindObject) -> Result<(), ApiError> {
    let lost = object.unstorable_status();
    if lost.is_empty() {
        return Ok(());
    }
    let lost: Vec<String> = lost.iter().map(|path| format!("`{path}`")).collect();
    Err(ApiError::internal(format!(
        "the status of {} has what its kind does not: {}",
        shown(object),
        lost.join(", ")
    )))
}

/// A random uuid of version 4.
pub(crate) fn new_uuid() -> String {
    let mut bytes: [u8; 16] = rand::random();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = hex(&bytes);
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

#[cfg(test)]
mod tests;
