//! Live objects of a cluster: who wrote each object in which API version, and which other APIs some objects name.
//!
//! ```text
//! served resources ──▶ list of metadata ───────────────────────▶ written, last applied ─┐
//!                  └─▶ whole objects, where the contents matter ▶ references, versions ─┴▶ findings by object
//! ```

use portolan_audit::{Checker, Finding};
use portolan_cluster::{Cluster, ClusterError, ErrorKind, Metadata, Resource};
use serde_json::Value;

use super::knowledge::{Knowledge, Live};
use super::{ScanError, ScanOptions, contents, requests, written};

pub(super) async fn scan(
    cluster: &Cluster,
    checker: &Checker,
    options: &ScanOptions,
    knowledge: &mut Knowledge,
) -> Result<(), ScanError> {
    let (resources, troubles) = cluster.resources().await?;
    knowledge.warnings.extend(troubles);
    let namespace = options.namespace.as_deref();
    for resource in &resources {
        // Events are many, short-lived and nobody's to change.
        if resource.name == "events" || !(resource.namespaced || namespace.is_none()) {
            continue;
        }
        let live = list(cluster, checker, resource, namespace, knowledge.room()).await;
        match live {
            Ok(live) => knowledge.put_live(live),
            // Least privilege: what may not be listed is told, and the rest is still looked at.
            Err(error) if matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::Other) => {
                let warning = format!("{} cannot be listed: {error}", resource.id());
                knowledge.warnings.push(warning);
            }
            Err(error) => return Err(error.into()),
        }
    }
    // These belong to no namespace.
    if namespace.is_none() {
        requests::scan(cluster, checker, &resources, knowledge).await?;
    }
    Ok(())
}

/// Every object of a resource; no more than `room` findings are kept.
pub(crate) async fn list(
    cluster: &Cluster,
    checker: &Checker,
    resource: &Resource,
    namespace: Option<&str>,
    room: usize,
) -> Result<Live, ClusterError> {
    let mut live = Live::new(resource.clone());
    let query = resource.query(namespace);
    match contents::reading(resource) {
        contents::Reading::Metadata => {
            let take = |metadata: Metadata| {
                let findings = written::check(checker, resource, &metadata);
                live.objects += 1;
                live.put(metadata.key(), findings, room);
            };
            live.resume = cluster.list(&query, take).await?;
        }
        contents::Reading::Whole => {
            let take = |object: Value| {
                let (metadata, findings) = contents::check(checker, resource, object);
                live.objects += 1;
                live.put(metadata.key(), findings, room);
            };
            live.resume = cluster.list_whole(&query, take).await?;
        }
        contents::Reading::OneByOne => {
            let mut names = Vec::new();
            let take = |metadata: Metadata| names.push(metadata.name);
            live.resume = cluster.list(&query, take).await?;
            for name in names {
                let findings = read(cluster, checker, resource, "", &name).await?;
                live.objects += 1;
                live.put(name, findings, room);
            }
        }
    }
    Ok(live)
}

/// What is wrong with one object, all of it read; nothing when it is gone.
pub(crate) async fn read(
    cluster: &Cluster,
    checker: &Checker,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Vec<Finding>, ClusterError> {
    let object = cluster.object(resource, namespace, name).await?;
    let object = object.and_then(|text| serde_json::from_slice(&text).ok());
    Ok(object.map_or_else(Vec::new, |object| {
        contents::check(checker, resource, object).1
    }))
}
