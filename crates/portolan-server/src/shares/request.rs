//! Who may publish and who may have a share, from what the cache knows.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan_agent::wire::ShareRecipient;
use portolan_kinds::{KindObject, find_kind};
use serde_json::{Map, Value, json};

use crate::cache::Cache;
use crate::keys::ObjectKey;
use crate::node_access::NodeIdentity;
use crate::node_choice::{Grants, NodeChoice};

/// The most nodes of a share.
const MAX_CONSUMERS: usize = 1_000;

/// The namespace of a run that a node takes part in.
pub(super) fn namespace_of(
    cache: &Cache,
    run: &str,
    node: &NodeIdentity,
) -> Result<String, String> {
    let run = run_of(cache, run, node)?;
    let namespace = run.namespace().map(str::to_owned);
    namespace.ok_or_else(|| "the run has no namespace".to_owned())
}

/// A run that a node takes part in.
pub(super) fn run_of(
    cache: &Cache,
    run: &str,
    node: &NodeIdentity,
) -> Result<Arc<KindObject>, String> {
    let runs = find_kind("Run").map_or_else(Vec::new, |kind| cache.objects(kind, None));
    let found = runs.into_iter().find(|one| one.metadata.uuid() == run);
    let takes_part = |run: &Arc<KindObject>| {
        let nodes = run.spec.get("nodes").and_then(Value::as_array);
        let mut nodes = nodes.into_iter().flatten();
        nodes.any(|one| one["uuid"].as_str() == Some(node.uid.as_str()))
    };
    let found = found.filter(takes_part);
    found.ok_or_else(|| "the node takes no part in this run".to_owned())
}

/// A Share by its name.
pub(super) fn find(cache: &Cache, namespace: &str, name: &str) -> Option<Arc<KindObject>> {
    let kind = find_kind("Share")?;
    cache.object(&ObjectKey::new(kind, Some(namespace), name))
}

/// What `to` of a step says, as the spec of a Share has it; what the Share has without one.
pub(super) fn consumers(to: &[u8], share: Option<&KindObject>) -> Result<Value, String> {
    let written: Value = serde_json::from_slice(to).unwrap_or_default();
    let Value::Object(mut written) = written else {
        let stored = share.and_then(|share| share.spec.get("consumers").cloned());
        return stored.ok_or_else(|| {
            "there is no such Share yet, so the step must say `to` whom it goes".to_owned()
        });
    };
    if let Some(group) = written.remove("group") {
        let mut groups = written.remove("groups").unwrap_or_else(|| json!([]));
        if let Value::Array(groups) = &mut groups {
            groups.push(group);
        }
        written.insert("groups".to_owned(), groups);
    }
    checked(&written)?;
    Ok(Value::Object(written))
}

/// Looks whether the consumers are as a Share must have them.
fn checked(consumers: &Map<String, Value>) -> Result<(), String> {
    let document = json!({
        "apiVersion": portolan_kinds::VERSION, "kind": "Share",
        "metadata": {"name": "share", "namespace": "default"}, "spec": {"consumers": consumers},
    });
    let read = KindObject::read_text(&document.to_string());
    read.map(|_| ()).map_err(|faults| {
        let faults = faults
            .iter()
            .map(|fault| format!("`{}` {}", fault.path, fault.message));
        faults.collect::<Vec<String>>().join("; ")
    })
}

/// The nodes that may have a share and have a key, the publisher first.
pub(super) fn recipients(
    cache: &Cache,
    namespace: &str,
    consumers: &Value,
    publisher: Option<&NodeIdentity>,
) -> Vec<ShareRecipient> {
    let mut chosen = consumers_of(cache, namespace, consumers);
    if let Some(publisher) = publisher
        && !chosen
            .iter()
            .any(|node| node.metadata.uuid() == publisher.uid)
    {
        let all = consumers_of(cache, namespace, &json!({"all": true}));
        chosen.extend(
            all.into_iter()
                .filter(|node| node.metadata.uuid() == publisher.uid),
        );
    }
    let mut recipients: Vec<ShareRecipient> = chosen
        .iter()
        .filter_map(|node| recipient_of(node))
        .collect();
    recipients.sort_by_key(|one| publisher.is_none_or(|node| node.uid != one.node));
    recipients.truncate(MAX_CONSUMERS);
    recipients
}

/// The nodes that may have a share, whether they have a key or not.
pub(super) fn consumers_of(
    cache: &Cache,
    namespace: &str,
    consumers: &Value,
) -> Vec<Arc<KindObject>> {
    let grants = Grants::new(cache);
    let choice = NodeChoice::read(consumers);
    let nodes = find_kind("Node").map_or_else(Vec::new, |kind| cache.objects(kind, None));
    let chosen = nodes.into_iter().filter(|node| {
        let place = grants.place_of(node);
        place.is_granted(namespace) && choice.has(node, &place)
    });
    chosen.collect()
}

/// A node with its key, as its agent has signed it; `None` without a key.
pub(super) fn recipient_of(node: &KindObject) -> Option<ShareRecipient> {
    let text = |field: &str| node.status.get(field).and_then(Value::as_str);
    let bytes = |field: &str| {
        let bytes = text(field).and_then(|text| STANDARD.decode(text).ok());
        bytes.unwrap_or_default().into()
    };
    Some(ShareRecipient {
        node: node.metadata.uuid().to_owned(),
        name: node.name().to_owned(),
        key: text("shareKey")?.to_owned(),
        signature: bytes("shareKeySignature"),
        certificate: bytes("shareKeyCertificate"),
    })
}

/// All nodes of a run that have a key, for a result that only they may read.
pub(super) fn recipients_of_run(
    cache: &Cache,
    run: &KindObject,
) -> Result<Vec<ShareRecipient>, String> {
    let nodes = run.spec.get("nodes").and_then(Value::as_array);
    let of_run: BTreeSet<&str> = nodes
        .into_iter()
        .flatten()
        .filter_map(|one| one["uuid"].as_str())
        .collect();
    if of_run.len() > MAX_CONSUMERS {
        return Err(format!(
            "the result of a sensitive step can be given to at most {MAX_CONSUMERS} nodes"
        ));
    }
    let nodes = find_kind("Node").map_or_else(Vec::new, |kind| cache.objects(kind, None));
    Ok(nodes
        .iter()
        .filter(|node| of_run.contains(node.metadata.uuid()))
        .filter_map(|node| recipient_of(node))
        .collect())
}
