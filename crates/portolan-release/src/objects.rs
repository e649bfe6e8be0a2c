//! The objects of a release in the cluster: applied, awaited, and deleted when they are no longer in the chart.

use std::collections::BTreeSet;
use std::time::Duration;

use portolan_cluster::{
    ApplyOptions, Cluster, ClusterError, Member, MemberError, ObjectSet, Resource, ServedKinds,
    Stage, WaitOptions, kstatus,
};
use portolan_engine::with_causes;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::error::HelmReleaseError;
use crate::managed_fields::updates_to_apply;
use crate::news::{ObjectState, ReleaseNews};
use crate::target::{MANAGER, ReleaseTarget, Tell};

/// How often something that is awaited is looked at.
const LOOK: Duration = Duration::from_millis(200);

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const RELEASE_NAME: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// Why an object that is no longer in the chart stays.
pub(crate) const KEPT_BY: &str = "`helm.sh/resource-policy: keep` says so";

/// An object that a release no longer has.
pub(crate) enum Surplus {
    /// The one with this UID may be deleted.
    Deletable(String),
    /// It stays, because it says so.
    Kept,
}

/// The objects of one release.
pub(crate) struct Objects<'a> {
    target: &'a ReleaseTarget,
    kinds: ServedKinds<'a>,
    tell: Tell<'a>,
}

impl<'a> Objects<'a> {
    pub(crate) fn new(target: &'a ReleaseTarget, tell: Tell<'a>) -> Self {
        Self {
            target,
            kinds: ServedKinds::new(&target.cluster),
            tell,
        }
    }

    fn cluster(&self) -> &'a Cluster {
        &self.target.cluster
    }

    /// The kind of an object, which gets the namespace of the release if it needs one and says none.
    pub(crate) async fn place(&mut self, object: &mut Value) -> Result<Resource, MemberError> {
        let resource = self.kinds.resource(object).await?;
        let metadata = &mut object["metadata"];
        if resource.namespaced && metadata["namespace"].as_str().is_none_or(str::is_empty) {
            metadata["namespace"] = self.target.namespace.as_str().into();
        }
        Ok(resource)
    }

    /// Refuses objects that exist and are not of this release; `known` are those that it had before.
    pub(crate) async fn check_owners(
        &mut self,
        objects: &[Value],
        known: &[Value],
    ) -> Result<(), HelmReleaseError> {
        let known = self.keys(known).await?;
        for object in objects {
            let mut object = object.clone();
            let resource = match self.place(&mut object).await {
                // Its definition comes with the release.
                Err(MemberError::Unserved { .. }) => continue,
                resource => resource?,
            };
            let member = Member::of(&object);
            if known.contains(&key(&member)) || self.target.adopt {
                continue;
            }
            let found = self
                .cluster()
                .read(&resource, &member.namespace, &member.name)
                .await?;
            if let Some(why) = found.as_ref().and_then(|found| self.not_ours(found)) {
                let object = member.to_string();
                return Err(HelmReleaseError::Foreign { object, why });
            }
        }
        Ok(())
    }

    /// What says that an object is not of this release.
    fn not_ours(&self, found: &Value) -> Option<String> {
        let metadata = &found["metadata"];
        let wanted = [
            ("labels", MANAGED_BY, "Helm"),
            ("annotations", RELEASE_NAME, &self.target.name),
            ("annotations", RELEASE_NAMESPACE, &self.target.namespace),
        ];
        let wrong = wanted
            .into_iter()
            .find(|(part, name, value)| metadata[*part][*name] != **value);
        wrong.map(
            |(_, name, value)| match metadata[wrong_part(name)][name].as_str() {
                Some(other) => {
                    format!("`{name}` is `{other}` and not `{value}`; `adopt: true` takes it over")
                }
                None => format!("it has no `{name}: {value}`; `adopt: true` takes it over"),
            },
        )
    }

    /// Makes the definitions of `crds/` that are not there, and waits until they are served.
    pub(crate) async fn define(&mut self, definitions: &[Value]) -> Result<(), HelmReleaseError> {
        let deadline = Instant::now() + self.target.timeout;
        for definition in definitions {
            let mut definition = definition.clone();
            let resource = self.place(&mut definition).await?;
            let member = Member::of(&definition);
            match self.cluster().create(&resource, &definition, MANAGER).await {
                Err(ClusterError::Exists { .. }) => continue,
                made => made.map(|_| ())?,
            }
            (self.tell)(ReleaseNews::Line(format!("made {member}")));
            loop {
                let found = self
                    .cluster()
                    .read(&resource, &member.namespace, &member.name)
                    .await?;
                if found.is_some_and(|found| kstatus(&found).stage == Stage::Current) {
                    break;
                }
                if Instant::now() >= deadline {
                    return Err(HelmReleaseError::Objects(vec![format!(
                        "{member} was not served in time"
                    )]));
                }
                sleep(LOOK).await;
            }
        }
        self.kinds.forget();
        Ok(())
    }

    /// Applies objects in their order. The first that is refused ends it.
    pub(crate) async fn apply(
        &mut self,
        objects: &[Value],
    ) -> Result<Vec<Member>, HelmReleaseError> {
        let mut members = Vec::new();
        for object in objects {
            let mut object = object.clone();
            let applied = self.apply_one(&mut object).await;
            let mut member = Member::of(&object);
            match applied {
                Ok(applied) => {
                    member = Member::of(&applied);
                    self.say(&member, ObjectState::Applied, None);
                    members.push(member);
                }
                Err(error) => {
                    let why = with_causes(&error);
                    self.say(&member, ObjectState::Failed, Some(why.clone()));
                    return Err(HelmReleaseError::Objects(vec![format!("{member}: {why}")]));
                }
            }
        }
        Ok(members)
    }

    async fn apply_one(&mut self, object: &mut Value) -> Result<Value, MemberError> {
        let resource = self.place(object).await?;
        mark(object, self.target);
        let member = Member::of(object);
        let place = (member.namespace.as_str(), member.name.as_str());
        let found = self.cluster().read(&resource, place.0, place.1).await?;
        if let Some(patch) = found.and_then(|found| updates_to_apply(&found, MANAGER)) {
            self.cluster()
                .merge(&resource, place, &patch, MANAGER)
                .await?;
        }
        let options = ApplyOptions {
            manager: MANAGER,
            force: self.target.force,
            dry_run: false,
        };
        let applied = self.cluster().apply(&resource, object, options).await?;
        if member.kind == "CustomResourceDefinition" {
            self.kinds.forget();
        }
        Ok(applied)
    }

    /// Waits until objects are what they ask for.
    pub(crate) async fn wait(&self, members: &[Member]) -> Result<(), HelmReleaseError> {
        let mut set = ObjectSet::new(
            self.cluster(),
            &self.target.namespace,
            &self.target.name,
            MANAGER,
        );
        let options = WaitOptions {
            timeout: self.target.timeout,
            fail_fast: self.target.fail_fast,
        };
        let waited = set.wait(members, options, |waited| {
            let message = waited.status.as_ref().map(|_| waited.state());
            if waited.is_current() {
                self.say(&waited.member, ObjectState::Ready, None);
            } else {
                self.say(&waited.member, ObjectState::Applied, message);
            }
        });
        let waited = waited.await?;
        let open = waited.iter().filter(|waited| !waited.is_current());
        let open: Vec<String> = open
            .map(|waited| {
                let message = waited.state();
                self.say(&waited.member, ObjectState::Failed, Some(message.clone()));
                format!("{} is not ready: {message}", waited.member)
            })
            .collect();
        if open.is_empty() {
            Ok(())
        } else {
            Err(HelmReleaseError::Objects(open))
        }
    }

    /// Objects in the opposite order, but for those that are to be kept: what a release no longer has.
    pub(crate) async fn surplus(
        &mut self,
        objects: &[Value],
        but: &[Value],
    ) -> Result<Vec<(Resource, Member)>, HelmReleaseError> {
        let kept = self.keys(but).await?;
        let mut surplus = Vec::new();
        for object in objects.iter().rev() {
            let mut object = object.clone();
            let resource = match self.place(&mut object).await {
                // Its definition is gone, and so are all objects of the kind.
                Err(MemberError::Unserved { .. }) => continue,
                resource => resource?,
            };
            let member = Member::of(&object);
            if !kept.contains(&key(&member)) {
                surplus.push((resource, member));
            }
        }
        Ok(surplus)
    }

    /// Deletes objects in the opposite order, but for those that are to be kept. Returns how many.
    pub(crate) async fn delete(
        &mut self,
        objects: &[Value],
        but: &[Value],
    ) -> Result<usize, HelmReleaseError> {
        let (mut deleted, mut failures) = (0, Vec::new());
        for (resource, member) in self.surplus(objects, but).await? {
            match self.delete_one(&resource, &member).await {
                Ok(Some(Surplus::Deletable(_))) => {
                    deleted += 1;
                    self.say(&member, ObjectState::Deleted, None);
                }
                Ok(Some(Surplus::Kept)) => {
                    self.say(&member, ObjectState::Kept, Some(KEPT_BY.to_owned()));
                }
                Ok(None) => {}
                Err(error) => {
                    let why = with_causes(&error);
                    self.say(&member, ObjectState::Failed, Some(why.clone()));
                    failures.push(format!("cannot delete {member}: {why}"));
                }
            }
        }
        if failures.is_empty() {
            Ok(deleted)
        } else {
            Err(HelmReleaseError::Objects(failures))
        }
    }

    /// Deletes an object that may be deleted; `None` if it is not there.
    async fn delete_one(
        &self,
        resource: &Resource,
        member: &Member,
    ) -> Result<Option<Surplus>, ClusterError> {
        let found = self.find_surplus(resource, member).await?;
        if let Some(Surplus::Deletable(uid)) = &found {
            let place = (member.namespace.as_str(), member.name.as_str());
            self.cluster().delete(resource, place, uid).await?;
        }
        Ok(found)
    }

    /// Whether an object may be deleted; `None` if it is not there.
    pub(crate) async fn find_surplus(
        &self,
        resource: &Resource,
        member: &Member,
    ) -> Result<Option<Surplus>, ClusterError> {
        let place = (member.namespace.as_str(), member.name.as_str());
        let found = self.cluster().read(resource, place.0, place.1).await?;
        Ok(found.map(|found| {
            let policy = found["metadata"]["annotations"]["helm.sh/resource-policy"].as_str();
            if policy.is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep")) {
                Surplus::Kept
            } else {
                Surplus::Deletable(Member::of(&found).uid)
            }
        }))
    }

    /// Deletes one object and waits until it is gone.
    pub(crate) async fn remove(&mut self, object: &Value) -> Result<(), HelmReleaseError> {
        let mut object = object.clone();
        let resource = match self.place(&mut object).await {
            Err(MemberError::Unserved { .. }) => return Ok(()),
            resource => resource?,
        };
        let member = Member::of(&object);
        let place = (member.namespace.as_str(), member.name.as_str());
        let deadline = Instant::now() + self.target.timeout;
        loop {
            let Some(found) = self.cluster().read(&resource, place.0, place.1).await? else {
                return Ok(());
            };
            if found["metadata"]["deletionTimestamp"].is_null() {
                let uid = Member::of(&found).uid;
                self.cluster().delete(&resource, place, &uid).await?;
                continue;
            }
            if Instant::now() >= deadline {
                return Err(HelmReleaseError::Objects(vec![format!(
                    "{member} was not deleted in time"
                )]));
            }
            sleep(LOOK).await;
        }
    }

    async fn keys(&mut self, objects: &[Value]) -> Result<BTreeSet<ObjectKey>, HelmReleaseError> {
        let mut keys = BTreeSet::new();
        for object in objects {
            let mut object = object.clone();
            match self.place(&mut object).await {
                Ok(_) | Err(MemberError::Unserved { .. }) => keys.insert(key(&Member::of(&object))),
                Err(error) => return Err(error.into()),
            };
        }
        Ok(keys)
    }

    fn say(&self, member: &Member, state: ObjectState, message: Option<String>) {
        (self.tell)(ReleaseNews::Object {
            member,
            state,
            message,
        });
    }
}

/// Group, kind, namespace and name: the version of an object does not tell it apart.
type ObjectKey = (String, String, String, String);

fn key(member: &Member) -> ObjectKey {
    let group = member
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    (
        group.to_owned(),
        member.kind.clone(),
        member.namespace.clone(),
        member.name.clone(),
    )
}

fn wrong_part(name: &str) -> &'static str {
    if name == MANAGED_BY {
        "labels"
    } else {
        "annotations"
    }
}

/// Says in an object which release it is of.
pub(crate) fn mark(object: &mut Value, target: &ReleaseTarget) {
    let metadata = &mut object["metadata"];
    for part in ["labels", "annotations"] {
        if !metadata[part].is_object() {
            metadata[part] = json!({});
        }
    }
    metadata["labels"][MANAGED_BY] = "Helm".into();
    metadata["annotations"][RELEASE_NAME] = target.name.as_str().into();
    metadata["annotations"][RELEASE_NAMESPACE] = target.namespace.as_str().into();
}
