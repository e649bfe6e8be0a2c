//! Applies, creates, patches and deletes objects without silently losing the changes of other clients.
//!
//! Every call can safely be sent twice: applying is idempotent, a patch names the version of the object that it is
//! for, and a deletion names the exact object. A refusal of the server is a typed error: [`ClusterError::Conflict`]
//! names the owners of the fields, [`ClusterError::Outdated`] says that the object has changed since it was read.

use http::Method;
use serde_json::{Value, json};

use crate::cluster::{Call, Cluster};
use crate::discovery::Resource;
use crate::error::ClusterError;

/// How an object is applied.
#[derive(Debug, Clone, Copy)]
pub struct ApplyOptions<'a> {
    /// Who applies it; fields belong to this name afterwards.
    pub manager: &'a str,
    /// Whether fields of others are taken over; else they are a conflict.
    pub force: bool,
    /// Whether it is only tried: everything is checked and nothing is kept.
    pub dry_run: bool,
}

const JSON: &str = "application/json";

/// The content type of a patch that is merged.
const MERGE_PATCH: &str = "application/merge-patch+json";

impl Cluster {
    /// One object, parsed; `None` if it or its kind does not exist.
    pub async fn read(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        match self.json(&resource.path(namespace, name), JSON).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies an object on the server's side. Returns it as it is afterwards.
    pub async fn apply(
        &self,
        resource: &Resource,
        object: &Value,
        options: ApplyOptions<'_>,
    ) -> Result<Value, ClusterError> {
        let (namespace, name) = place(object);
        let mut path = format!(
            "{}?fieldManager={}&fieldValidation=Strict",
            resource.path(namespace, name),
            options.manager
        );
        if options.force {
            path.push_str("&force=true");
        }
        if options.dry_run {
            path.push_str("&dryRun=All");
        }
        // JSON is YAML.
        let body = (
            "application/apply-patch+yaml",
            object.to_string().into_bytes(),
        );
        self.change(Method::PATCH, &path, Some(body)).await
    }

    /// Makes an object; [`ClusterError::Exists`] if there is one.
    pub async fn create(
        &self,
        resource: &Resource,
        object: &Value,
        manager: &str,
    ) -> Result<Value, ClusterError> {
        let (namespace, _) = place(object);
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let path = format!("{}?fieldManager={manager}", resource.query(namespace).path);
        let body = (JSON, object.to_string().into_bytes());
        self.change(Method::POST, &path, Some(body)).await
    }

    /// Replaces the status of an object that is still what it was at a resource version; [`ClusterError::Outdated`] if it
    /// is not.
    pub async fn replace_status(
        &self,
        resource: &Resource,
        at: &ObjectVersion<'_>,
        status: &Value,
        manager: &str,
    ) -> Result<Value, ClusterError> {
        let path = format!("{}/status", resource.path(at.namespace, at.name));
        self.replace_at(&path, at, ("status", status), manager)
            .await
    }

    /// Replaces a field at the top of an object that is still what it was at a resource version;
    /// [`ClusterError::Outdated`] if it is not.
    pub async fn replace_field(
        &self,
        resource: &Resource,
        at: &ObjectVersion<'_>,
        (field, value): (&str, &Value),
        manager: &str,
    ) -> Result<Value, ClusterError> {
        let path = resource.path(at.namespace, at.name);
        self.replace_at(&path, at, (field, value), manager).await
    }

    async fn replace_at(
        &self,
        path: &str,
        at: &ObjectVersion<'_>,
        (field, value): (&str, &Value),
        manager: &str,
    ) -> Result<Value, ClusterError> {
        let patch = json!([
            {"op": "add", "path": "/metadata/resourceVersion", "value": at.resource_version},
            {"op": "add", "path": format!("/{field}"), "value": value},
        ]);
        self.patch(path, "application/json-patch+json", &patch, manager)
            .await
    }

    async fn patch(
        &self,
        path: &str,
        content_type: &'static str,
        patch: &Value,
        manager: &str,
    ) -> Result<Value, ClusterError> {
        let body = (content_type, patch.to_string().into_bytes());
        let path = format!("{path}?fieldManager={manager}");
        self.change(Method::PATCH, &path, Some(body)).await
    }

    /// Replaces the finalizers of an object that is still what it was at a resource version.
    pub async fn replace_finalizers(
        &self,
        resource: &Resource,
        at: &ObjectVersion<'_>,
        finalizers: &[String],
        manager: &str,
    ) -> Result<Value, ClusterError> {
        let patch = json!({"metadata": {
            "resourceVersion": at.resource_version,
            "finalizers": finalizers,
        }});
        self.merge(resource, (at.namespace, at.name), &patch, manager)
            .await
    }

    /// Merges a patch into an object. A patch with a resource version is meant for that state alone.
    pub async fn merge(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        patch: &Value,
        manager: &str,
    ) -> Result<Value, ClusterError> {
        let path = resource.path(namespace, name);
        self.patch(&path, MERGE_PATCH, patch, manager).await
    }

    /// Sets how many pods a workload is asked to have.
    pub async fn scale(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        replicas: u32,
        manager: &str,
    ) -> Result<Value, ClusterError> {
        let path = format!("{}/scale", resource.path(namespace, name));
        let patch = json!({"spec": {"replicas": replicas}});
        self.patch(&path, MERGE_PATCH, &patch, manager).await
    }

    /// Deletes the object with this uid. One that is gone, or that another one has taken the place of, is left alone: `false`.
    pub async fn delete(
        &self,
        resource: &Resource,
        place: (&str, &str),
        uid: &str,
    ) -> Result<bool, ClusterError> {
        let which = json!({"uid": uid});
        self.delete_with(resource, place, &which, "Background")
            .await
    }

    /// Deletes an object that is still what it was at a resource version; `false` if it is not, or is gone.
    pub async fn delete_unchanged(
        &self,
        resource: &Resource,
        at: &ObjectVersion<'_>,
    ) -> Result<bool, ClusterError> {
        let which = json!({"resourceVersion": at.resource_version});
        let place = (at.namespace, at.name);
        self.delete_with(resource, place, &which, "Background")
            .await
    }

    /// Deletes the object with this uid and keeps everything that belongs to it. One that is gone is left alone: `false`.
    pub async fn release(
        &self,
        resource: &Resource,
        place: (&str, &str),
        uid: &str,
    ) -> Result<bool, ClusterError> {
        let which = json!({"uid": uid});
        self.delete_with(resource, place, &which, "Orphan").await
    }

    async fn delete_with(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        which: &Value,
        policy: &str,
    ) -> Result<bool, ClusterError> {
        let options = json!({
            "preconditions": which,
            "propagationPolicy": policy,
        });
        let body = (JSON, options.to_string().into_bytes());
        let path = resource.path(namespace, name);
        match self.change(Method::DELETE, &path, Some(body)).await {
            Ok(_) => Ok(true),
            Err(ClusterError::Outdated { .. }) => Ok(false),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn change(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Vec<u8>)>,
    ) -> Result<Value, ClusterError> {
        let call = Call {
            method,
            path,
            accept: JSON,
            body,
        };
        let answer = self.send(&call).await?;
        serde_json::from_slice(&answer).map_err(|error| ClusterError::Answer {
            path: path.to_owned(),
            message: error.to_string(),
        })
    }
}

/// An object as it was when it was read.
#[derive(Debug, Clone, Copy)]
pub struct ObjectVersion<'a> {
    /// Its namespace; empty if it has none.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its resource version then.
    pub resource_version: &'a str,
}

/// The namespace and the name of an object.
fn place(object: &Value) -> (&str, &str) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}
