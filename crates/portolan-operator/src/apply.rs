//! Brings one object to what it is to be, if it is not.
//!
//! ```text
//! there and nobody's of ours ──▶ a problem, unless `spec.adopt`
//! says what it is to say     ──▶ nothing
//! else applied; a conflict   ──▶ an event that names who changed it, then applied by force
//! refused by the API server  ──▶ a problem, kept until the object could be applied
//! ```

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use portolan_cluster::{ApplyOptions, ClusterError, EventType, FieldConflict, News, Resource};
use portolan_rollout::objects::ADOPTED_ANNOTATION;
use portolan_rollout::{Observed, Problem, Revision, Slot};
use serde_json::{Value, json};

use crate::contains::says;
use crate::context::{LookError, MANAGER};
use crate::memory::{Applied, ObjectId, Refused, lock};
use crate::observe::{Look, problem};
use crate::point::Point;

/// An object that was refused is tried again after this long, even if nothing changed.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// The label by which other tools know what is theirs.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

const APPLY: ApplyOptions<'_> = ApplyOptions {
    manager: MANAGER,
    force: false,
    dry_run: false,
};

/// What is to be applied.
pub(crate) struct Wanted<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) object: Value,
    pub(crate) point: Point,
    /// The object as it is, as far as it is watched.
    pub(crate) there: Option<Value>,
}

impl Look<'_> {
    /// Applies an object unless it is already so. Returns whether it is so now: a refusal becomes a problem of the next look.
    pub(crate) async fn put(&self, wanted: Wanted<'_>) -> Result<bool, LookError> {
        let id = id_of(&wanted.object);
        let hash = hash_of(&wanted.object);
        if let Some(there) = wanted.there.as_ref().filter(|there| self.owns(there)) {
            let is_applied = lock(self.memo).applied.get(&id).is_some_and(|applied| {
                applied.wanted == hash && applied.version == version_of(there)
            });
            if is_applied || says(there, &wanted.object) {
                self.applied(id, hash, there);
                return Ok(true);
            }
        }
        let read = || {
            let (namespace, name) = (self.namespace(), id.name.as_str());
            self.ctx.cluster.read(wanted.resource, namespace, name)
        };
        let there = read().await?;
        if let Some(problem) = there.as_ref().and_then(|there| self.foreign(there)) {
            self.refuse(&wanted, id, problem);
            return Ok(false);
        }
        if there.is_none() && lock(self.memo).applied.contains_key(&id) {
            let note = format!("{} {} was deleted; it is made again", id.kind, id.name);
            self.tell(EventType::Warning, "ObjectRestored", note).await;
        }
        let is_adopted = there.as_ref().is_some_and(|there| !self.owns(there));
        if is_adopted {
            let note = format!("{} {} is taken over, as spec.adopt asks", id.kind, id.name);
            self.tell(EventType::Normal, "Adopted", note).await;
        }
        if let Some(service) = there.filter(|_| is_adopted && id.kind == "Service") {
            self.remember_service(wanted.resource, &service).await?;
        }
        match self.apply_by_force(&wanted, is_adopted).await {
            Ok(after) => {
                self.applied(id, hash, &after);
                self.ctx.wrote(wanted.point).await;
                Ok(true)
            }
            Err(error) => match error.refusal() {
                Some(message) => {
                    let message = format!("{} {}: {message}", id.kind, id.name);
                    self.refuse(&wanted, id, problem("Refused", &message));
                    Ok(false)
                }
                None => Err(error.into()),
            },
        }
    }

    /// Applies; fields that somebody else has changed are taken back, and that is told.
    async fn apply_by_force(
        &self,
        wanted: &Wanted<'_>,
        is_adopted: bool,
    ) -> Result<Value, ClusterError> {
        let apply = |force| {
            let options = ApplyOptions { force, ..APPLY };
            let cluster = &self.ctx.cluster;
            cluster.apply(wanted.resource, &wanted.object, options)
        };
        match apply(is_adopted).await {
            Err(ClusterError::Conflict { conflicts, .. }) => {
                let id = id_of(&wanted.object);
                let note = drift_note(&id, &conflicts);
                self.tell(EventType::Warning, "DriftCorrected", note).await;
                apply(true).await
            }
            other => other,
        }
    }

    /// Writes down what a Service selects and who manages it before it is taken over, so that it can be given back.
    async fn remember_service(
        &self,
        resource: &Resource,
        service: &Value,
    ) -> Result<(), ClusterError> {
        let before = json!({
            "selector": service["spec"]["selector"],
            "managedBy": service["metadata"]["labels"][MANAGED_BY],
        });
        let annotations = json!({ADOPTED_ANNOTATION: before.to_string()});
        let patch = json!({"metadata": {"annotations": annotations}});
        let name = text(&service["metadata"]["name"]);
        let place = (self.namespace(), name.as_str());
        let cluster = &self.ctx.cluster;
        cluster.merge(resource, place, &patch, MANAGER).await?;
        Ok(())
    }

    fn applied(&self, id: ObjectId, wanted: u64, object: &Value) {
        let mut memo = lock(self.memo);
        memo.refused.remove(&id);
        let version = version_of(object);
        let generation = self.rollout.generation;
        let applied = Applied {
            wanted,
            version,
            generation,
        };
        memo.applied.insert(id, applied);
    }

    /// Whether an object is what was last applied by this generation of the rollout.
    pub(crate) fn is_as_applied(&self, there: &Value, generation: i64) -> bool {
        let memo = lock(self.memo);
        let applied = memo.applied.get(&id_of(there));
        applied.is_some_and(|applied| {
            applied.version == version_of(there) && applied.generation == generation
        })
    }

    fn refuse(&self, wanted: &Wanted<'_>, id: ObjectId, problem: Problem) {
        let refused = Refused {
            problem,
            resource: wanted.resource.clone(),
            wanted: wanted.object.clone(),
            generation: self.rollout.generation,
            checked: Instant::now(),
        };
        lock(self.memo).refused.insert(id, refused);
        self.ctx.wake(&self.rollout.key);
    }

    /// Whether an object belongs to the rollout.
    pub(crate) fn owns(&self, object: &Value) -> bool {
        let owners = object["metadata"]["ownerReferences"].as_array();
        let mut owners = owners.into_iter().flatten();
        owners.any(|owner| owner["uid"].as_str() == Some(&self.rollout.uid))
    }

    /// Why an object may not be taken, if it may not.
    fn foreign(&self, object: &Value) -> Option<Problem> {
        if self.owns(object) {
            return None;
        }
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let owners = object["metadata"]["ownerReferences"].as_array();
        let mut owners = owners.into_iter().flatten();
        if let Some(owner) = owners.find(|owner| owner["controller"] == true) {
            let message = format!(
                "{kind} {name} exists and belongs to {} {}; rename one of them",
                text(&owner["kind"]),
                text(&owner["name"])
            );
            return Some(problem("NotOurs", &message));
        }
        if self.spec.adopt {
            return None;
        }
        let managers = managers_of(object);
        let message = format!(
            "{kind} {name} exists and is managed by {managers}; set spec.adopt to take it over, or rename it"
        );
        Some(problem("NotOurs", &message))
    }

    /// Services and routes of the rollout's names that exist and are not its own.
    pub(crate) async fn foreign_objects(&self) -> Result<Vec<Problem>, ClusterError> {
        let app = self.app();
        let name = self.name();
        let services = [
            name.to_owned(),
            app.slot_name(Slot::A),
            app.slot_name(Slot::B),
            format!("{name}-stable"),
            format!("{name}-canary"),
        ];
        let caches = &self.ctx.caches;
        let services = services
            .iter()
            .map(|name| (&caches.services, name.as_str()));
        let routes = Some(self.routes()).filter(|_| self.spec.virtual_service_ref.is_none());
        let mut problems = Vec::new();
        for (cache, name) in services.chain(routes) {
            let found = cache.get(self.namespace(), name);
            if found.is_none_or(|found| self.is_own(&found)) {
                continue;
            }
            // The cache does not know the managers, and may be late.
            let read = self
                .ctx
                .cluster
                .read(cache.resource(), self.namespace(), name);
            problems.extend(read.await?.and_then(|object| self.foreign(&object)));
        }
        Ok(problems)
    }

    /// Objects that could not be applied. After a while each is tried again.
    pub(crate) async fn refused_objects(&self) -> Vec<Problem> {
        let generation = self.rollout.generation;
        let mut refused = lock(self.memo).refused.clone();
        refused.retain(|_, refused| refused.generation == generation);
        for entry in refused.values_mut() {
            if entry.checked.elapsed() < TRY_AGAIN {
                continue;
            }
            entry.checked = Instant::now();
            let options = ApplyOptions {
                force: true,
                dry_run: true,
                ..APPLY
            };
            let tried = self
                .ctx
                .cluster
                .apply(&entry.resource, &entry.wanted, options)
                .await;
            let there = tried.as_ref().ok();
            if there.is_some_and(|there| self.foreign(there).is_none()) {
                entry.generation = generation - 1;
            }
        }
        refused.retain(|_, refused| refused.generation == generation);
        let problems = refused
            .values()
            .map(|refused| refused.problem.clone())
            .collect();
        lock(self.memo).refused = refused;
        problems
    }

    /// Tries a new template on the API server before anything is made of it.
    pub(crate) async fn refused_template(
        &self,
        seen: &Observed,
    ) -> Result<Option<Problem>, ClusterError> {
        let Some(template) = &seen.template else {
            return Ok(None);
        };
        let revision = Revision::of(template, &seen.config);
        let runs = [&seen.slots.a, &seen.slots.b];
        if runs
            .iter()
            .any(|slot| slot.revision.as_ref() == Some(&revision))
        {
            return Ok(None);
        }
        let known = lock(self.memo).tried.clone();
        if let Some((_, problem)) = known.filter(|(tried, _)| *tried == revision) {
            return Ok(problem);
        }
        let content = portolan_rollout::objects::RevisionContent {
            revision: revision.clone(),
            template: template.clone(),
            config: seen.config.clone(),
        };
        let slot = self
            .status
            .map_or(Slot::A, |status| status.stable_slot().other());
        let object = portolan_rollout::objects::deployment(&self.app(), slot, &content, Some(0));
        let options = ApplyOptions {
            force: true,
            dry_run: true,
            ..APPLY
        };
        let kind = crate::kinds::deployments();
        let found = match self.ctx.cluster.apply(&kind, &object, options).await {
            Ok(_) => None,
            Err(error) => match error.refusal() {
                Some(message) => {
                    let message = format!("the pod template is refused: {message}");
                    Some(problem("InvalidTemplate", &message))
                }
                None => return Err(error),
            },
        };
        lock(self.memo).tried = Some((revision, found.clone()));
        Ok(found)
    }

    /// Tells something as an event of the rollout. An event that cannot be written changes nothing else.
    pub(crate) async fn tell(&self, event_type: EventType, reason: &str, note: String) {
        let news = News {
            event_type,
            reason: reason.to_owned(),
            action: "Reconcile".to_owned(),
            note,
        };
        let told = self.ctx.events.tell(&self.rollout.regarding(), &news).await;
        if let Err(error) = told {
            tracing::warn!(%error, reason, "cannot write an event");
        }
    }
}

fn drift_note(id: &ObjectId, conflicts: &[FieldConflict]) -> String {
    let mut changes: Vec<String> = Vec::new();
    for conflict in conflicts {
        let change = format!("`{}` changed {}", conflict.manager, conflict.field);
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    let changes = changes.join(", ");
    format!("{} {}: {changes}; it is put back", id.kind, id.name)
}

fn managers_of(object: &Value) -> String {
    let fields = object["metadata"]["managedFields"].as_array();
    let managers = fields.into_iter().flatten();
    let mut names: Vec<&str> = managers
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return "nobody known".to_owned();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn id_of(object: &Value) -> ObjectId {
    ObjectId {
        kind: text(&object["kind"]),
        name: text(&object["metadata"]["name"]),
    }
}

fn hash_of(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.to_string().hash(&mut hasher);
    hasher.finish()
}

/// What changes when the object is asked to be something else.
fn version_of(object: &Value) -> String {
    let metadata = &object["metadata"];
    let uid = text(&metadata["uid"]);
    match metadata["generation"].as_i64() {
        Some(generation) => format!("{uid}/{generation}"),
        None => format!("{uid}/{}", text(&metadata["resourceVersion"])),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
