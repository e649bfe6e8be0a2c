//! ConfigMaps and Secrets: their keys, and what a type of Secret must have.

use portolan_object::NameRule;

use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};

const PARTS: [&str; 3] = ["data", "binaryData", "stringData"];

pub(crate) fn check(root: &Spot<'_>, out: &mut Refusals) {
    for part in PARTS {
        let Some(map) = root.field(part) else {
            continue;
        };
        for (key, value) in map.entries() {
            if !NameRule::Key.fits(key) {
                out.add(Fault::Name, &value, format!("the key {}", NameRule::Key));
            }
        }
    }
    if let (Some(text), Some(bytes)) = (root.field("data"), root.field("binaryData")) {
        for (key, value) in bytes.entries() {
            if text.field(key).is_some() {
                out.add(Fault::Duplicate, &value, "`data` has this key too");
            }
        }
    }
    if root.text("kind") == Some("Secret") {
        of_type(root, out);
    }
}

/// The Flux operator puts the content of another object in before it applies one with this annotation.
const COPY_FROM: &str = "fluxcd.controlplane.io/copyFrom";

/// The keys that the server asks of some types of Secrets.
fn of_type(root: &Spot<'_>, out: &mut Refusals) {
    let annotations = root.node.at_path(&["metadata", "annotations"]);
    if annotations.is_some_and(|annotations| annotations.get(COPY_FROM).is_some()) {
        return;
    }
    let needed: &[&str] = match root.text("type") {
        Some("kubernetes.io/tls") => &["tls.crt", "tls.key"],
        Some("kubernetes.io/dockerconfigjson") => &[".dockerconfigjson"],
        Some("kubernetes.io/dockercfg") => &[".dockercfg"],
        Some("kubernetes.io/ssh-auth") => &["ssh-privatekey"],
        _ => &[],
    };
    for key in needed {
        let has = |part: &&str| {
            root.node
                .get(part)
                .is_some_and(|map| map.get(key).is_some())
        };
        if !PARTS.iter().any(has) {
            let at = root.field("data").or_else(|| root.field("stringData"));
            let message = format!("a Secret of this type needs the key `{key}`");
            out.add(Fault::Missing, &at.unwrap_or(*root), message);
        }
    }
}
