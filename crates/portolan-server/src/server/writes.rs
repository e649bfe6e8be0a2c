//! Create, update, apply and delete, after the caller was authorised.

use std::time::Duration;

use portolan_kinds::KindObject;

use super::{ApiServer, Caller, Target};
use crate::access::Action;
use crate::error::{ApiError, RefusalReason};
use crate::keys::is_event;
use crate::live::{check_files_beside, check_live};
use crate::node_access::sign_event;
use crate::objects::{Author, Deletion, Preconditions, key_of};
use crate::runs::{is_over, write_without_circle};

/// How long a write of rights waits until they count.
const CACHE_WAIT: Duration = Duration::from_secs(2);

/// How an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    Create,
    Update,
    Apply,
}

impl WriteMode {
    /// The right that it needs.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update | Self::Apply => "update",
        }
    }
}

impl ApiServer {
    /// Creates, replaces or applies an object, after what it asks for was authorised.
    pub(crate) async fn write(
        &self,
        caller: &Caller,
        target: &Target,
        how: WriteMode,
        object: KindObject,
        is_dry_run: bool,
    ) -> Result<KindObject, ApiError> {
        let result = self
            .write_object(caller, target, how, object, is_dry_run)
            .await;
        if is_dry_run && result.is_ok() {
            return result;
        }
        let version = result
            .as_ref()
            .map(|object| object.metadata.resource_version.as_deref());
        self.record(caller, how.verb(), target, version).await?;
        result
    }

    async fn write_object(
        &self,
        caller: &Caller,
        target: &Target,
        how: WriteMode,
        object: KindObject,
        is_dry_run: bool,
    ) -> Result<KindObject, ApiError> {
        if is_event(object.kind) && how != WriteMode::Create {
            let message = "an event cannot be changed";
            return Err(ApiError::new(
                http::StatusCode::METHOD_NOT_ALLOWED,
                RefusalReason::BadRequest,
                message,
            ));
        }
        if object.kind.name == "Run" {
            let message = "a run is made by running a book, and never changed";
            let error = ApiError::new(
                http::StatusCode::METHOD_NOT_ALLOWED,
                RefusalReason::BadRequest,
                message,
            );
            return Err(error.hint(
                "`portolan fleet run BOOK` makes one, `portolan fleet runs cancel` ends it",
            ));
        }
        self.access.check_escalation(&caller.identity, &object)?;
        check_live(&self.access, &caller.identity, &object)?;
        check_files_beside(&object)?;
        let mut object = object;
        if let (Some(node), Some(scope)) = (&caller.identity.node, self.scope_of(caller)) {
            sign_event(node, &scope, &mut object)?;
        }
        let may = |verb: &str| {
            let action = Action {
                verb,
                kind: target.kind.name,
                namespace: target.namespace.as_deref(),
                name: Some(object.name()),
            };
            self.access.check(&caller.identity, &action)
        };
        let author = Author {
            name: caller.identity.user.clone(),
            is_dry_run,
            reads_secrets: may("read-secret").is_ok(),
            ..Author::default()
        };
        if how == WriteMode::Apply && self.objects.get(&key_of(&object)).await?.is_none() {
            may("create")?;
        }
        let stored = if is_event(object.kind) {
            self.events.create(object, &author).await?
        } else {
            write_without_circle(&self.objects, &self.cache, how, object, author).await?
        };
        // Rights come from the cache: who made a role can bind it with the next request.
        if !is_dry_run && stored.object.kind.spec.starts_with("Role") {
            self.cache.wait_for(stored.revision(), CACHE_WAIT).await;
        }
        Ok(stored.object)
    }

    /// Deletes an object.
    pub(crate) async fn delete(
        &self,
        caller: &Caller,
        target: &Target,
        preconditions: &Preconditions,
        is_dry_run: bool,
    ) -> Result<(Deletion, usize), ApiError> {
        let author = Author {
            name: caller.identity.user.clone(),
            is_dry_run,
            ..Author::default()
        };
        let result = self.delete_target(target, preconditions, &author).await;
        if is_dry_run && result.is_ok() {
            return result.map(|deletion| {
                let dependents = self.dependents(&deletion.object);
                (deletion, dependents)
            });
        }
        let recorded = result.as_ref().map(|_| None);
        self.record(caller, "delete", target, recorded).await?;
        result.map(|deletion| {
            let dependents = self.dependents(&deletion.object);
            (deletion, dependents)
        })
    }

    async fn delete_target(
        &self,
        target: &Target,
        preconditions: &Preconditions,
        author: &Author,
    ) -> Result<Deletion, ApiError> {
        let key = target.key()?;
        if target.kind.name == "Run"
            && let Some(run) = self.objects.get(&key).await?
            && !is_over(&run.object)
        {
            let message = format!("{} has not ended", target.shown());
            let error = ApiError::conflict(RefusalReason::Conflict, message);
            return Err(error.hint("cancel it first: `portolan fleet runs cancel`"));
        }
        match (&target.namespace, &target.name) {
            (Some(namespace), Some(name)) if is_event(target.kind) => {
                let events = &self.events;
                events.delete(namespace, name, preconditions, author).await
            }
            _ => {
                let objects = &self.objects;
                objects
                    .delete(&key, &target.shown(), preconditions, author)
                    .await
            }
        }
    }

    /// How many objects go with one: the content of a namespace, and what it owns.
    fn dependents(&self, object: &KindObject) -> usize {
        let namespace = (object.kind.name == "Namespace").then(|| object.name());
        self.cache.dependents(object.metadata.uuid(), namespace)
    }
}
