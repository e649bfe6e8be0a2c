//! Get, list and watch, after the caller was authorised.

use portolan_kinds::wire::SecretSpec;
use portolan_kinds::{KindObject, find_kind};
use portolan_store::StoreError;
use serde_json::{Map, Value};

use super::{ApiServer, Caller, Target};
use crate::error::{ApiError, RefusalReason};
use crate::keys::{ObjectKey, is_event};
use crate::node_access::forbidden;
use crate::page::{ListQuery, ObjectPage};
use crate::record::StoredKind;
use crate::watching::{ObjectWatch, WatchQuery};

impl ApiServer {
    /// Returns an object; with `reveal`, a Secret with its values.
    pub(crate) async fn get(
        &self,
        caller: &Caller,
        target: &Target,
        reveal: bool,
    ) -> Result<KindObject, ApiError> {
        self.check_visible(caller, target).await?;
        let found = self.find(target).await?;
        let found = found.ok_or_else(|| ApiError::not_found(&target.shown()))?;
        if !reveal {
            return Ok(found.object);
        }
        // Whatever becomes of it, that it was asked for is in the log.
        self.record(caller, "read-secret", target, Ok(None)).await?;
        let values = self.secret_values(&found).await?;
        let mut object = found.object;
        object.spec["values"] = Value::Object(values);
        Ok(object)
    }

    /// The values of a Secret, from the store or from Vault.
    pub(crate) async fn secret_values(
        &self,
        found: &StoredKind,
    ) -> Result<Map<String, Value>, ApiError> {
        match found.object.spec.get("vault") {
            Some(_) => self.read_vault(&found.object).await,
            None => self.objects.open_values(found),
        }
    }

    /// Reads the object that a request is about.
    pub(crate) async fn find(&self, target: &Target) -> Result<Option<StoredKind>, ApiError> {
        let key = target.key()?;
        match (&target.namespace, &target.name) {
            (Some(namespace), Some(name)) if is_event(target.kind) => {
                self.events.get(namespace, name).await
            }
            _ => self.objects.get(&key).await,
        }
    }

    /// Refuses a node what does not concern it, whether it exists or not.
    pub(crate) async fn check_visible(
        &self,
        caller: &Caller,
        target: &Target,
    ) -> Result<(), ApiError> {
        let (Some(scope), Some(node)) = (self.scope_of(caller), &caller.identity.node) else {
            return Ok(());
        };
        let found = self.find(target).await?;
        if found.is_some_and(|found| scope.sees(&found.object)) {
            return Ok(());
        }
        let error = forbidden(node, "read what is not bound to it");
        Err(self.refuse(caller, "get", target, error).await)
    }

    /// The values of a Secret that are in Vault, below the prefix of its namespace.
    async fn read_vault(&self, secret: &KindObject) -> Result<Map<String, Value>, ApiError> {
        let Some(vault) = &self.vault else {
            return Err(ApiError::unavailable("this server knows no Vault"));
        };
        let spec: SecretSpec = secret
            .typed_spec()
            .map_err(|error| ApiError::internal(error.to_string()))?;
        let source = spec.vault.unwrap_or_default();
        let namespace = secret.namespace().unwrap_or_default();
        let kind = find_kind("Namespace").ok_or_else(|| ApiError::internal("no kind Namespace"))?;
        let found = self
            .objects
            .get(&ObjectKey::new(kind, None, namespace))
            .await?;
        let prefix =
            found.and_then(|found| found.object.spec["vaultPrefix"].as_str().map(str::to_owned));
        let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) else {
            let message = format!(
                "namespace {namespace} has no `vaultPrefix`, below which its secrets are in Vault"
            );
            return Err(ApiError::conflict(RefusalReason::Conflict, message));
        };
        vault.read(&prefix, source.path(), &source.keys).await
    }

    /// Returns a page of objects.
    pub(crate) async fn list(&self, query: &ListQuery) -> Result<ObjectPage, ApiError> {
        if is_event(query.kind) {
            return self.events.list(query).await;
        }
        self.objects.list(query).await
    }

    /// Follows objects: from a revision, or from the objects that exist.
    pub(crate) async fn watch(
        &self,
        query: WatchQuery,
        version: Option<&str>,
    ) -> Result<ObjectWatch, ApiError> {
        if let Some(version) = version {
            let revision = self.objects.revision(version)?;
            if revision > self.cache.revision() {
                let current = self.objects.store.status().await?.revision;
                if revision > current {
                    return Err(StoreError::Future {
                        asked: revision,
                        current,
                    }
                    .into());
                }
            }
            return Ok(ObjectWatch::after(self.cache.clone(), query, revision));
        }
        let mut list = ListQuery {
            kind: query.kind,
            namespace: query.namespace.clone(),
            filter: query.filter.clone(),
            limit: crate::page::MAX_OBJECTS,
            resume: None,
        };
        let mut objects = Vec::new();
        loop {
            let page = self.list(&list).await?;
            objects.extend(page.objects.into_iter().map(|stored| stored.object));
            if page.next.is_none() {
                return Ok(ObjectWatch::initial(
                    self.cache.clone(),
                    query,
                    objects,
                    page.revision,
                ));
            }
            list.resume = page.next;
        }
    }
}
