//! Where objects are in the store.
//!
//! ```text
//! /portolan/v1/object/<plural>/<namespace or _>/<name>/spec     what its author wishes for
//! /portolan/v1/object/<plural>/<namespace or _>/<name>/status   what was observed
//! /portolan/v1/object-event/<shard>/<second>-<server>-<number>   events that were written together
//! /portolan/v1/object-tick/<server>                             written every two seconds, so that watches get on
//! /portolan/v1/gate/<namespace>                                 exists as long as objects can be created in it
//! /portolan/v1/blob/<namespace>/<digest>                        which servers have the content of a digest
//! /portolan/v1/blob/@run-<uuid>/<digest>                        the same for large results of a run
//! /portolan/v1/token/<id>
//! /portolan/v1/join-token/<id>
//! /portolan/v1/enrolment/<digest of the key>
//! /portolan/v1/server/<server>                                  a server that is alive
//! /portolan/v1/meta/audit/<server>                              the newest entry of its audit log
//! /portolan/v1/meta/secret-key                                  the key that seals secrets, by its name
//! ```

use std::borrow::Borrow;

use portolan_kinds::{KINDS, KindDefinition};
use portolan_store::keys::{META, ROOT};

/// What stands for the namespace of global objects; no namespace can be called so.
const GLOBAL: &str = "_";

/// The prefix of all objects.
pub(crate) fn all_objects() -> String {
    format!("{ROOT}object/")
}

/// The prefix of all events.
pub(crate) fn all_events() -> String {
    format!("{ROOT}object-event/")
}

/// The prefix of the events of a shard.
pub(crate) fn events(shard: u32) -> String {
    format!("{ROOT}object-event/{shard}/")
}

/// What the keys of events begin with that were written in a second. They sort by time.
pub(crate) fn events_from(shard: u32, second: u64) -> String {
    format!("{}{second:011}-", events(shard))
}

/// The prefix of everything that the cache follows: objects, events and ticks.
pub(crate) fn followed() -> String {
    format!("{ROOT}object")
}

/// The tick of a server.
pub(crate) fn tick(server: &str) -> String {
    format!("{ROOT}object-tick/{server}")
}

/// The prefix of the servers that are alive.
pub(crate) fn servers() -> String {
    format!("{ROOT}server/")
}

/// A server that is alive.
pub(crate) fn server(server: &str) -> String {
    format!("{ROOT}server/{server}")
}

/// The prefix of what is known of the audit logs of all servers.
pub(crate) fn audit_anchors() -> String {
    format!("{META}audit/")
}

/// The newest entry of a server's audit log that the store knows of.
pub(crate) fn audit_anchor(server: &str) -> String {
    format!("{META}audit/{server}")
}

/// The name of the key that seals secrets.
pub(crate) fn secret_key() -> String {
    format!("{META}secret-key")
}

/// The prefix of the objects of a kind, in one namespace or all.
pub(crate) fn collection(kind: &KindDefinition, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("{ROOT}object/{}/{namespace}/", kind.plural),
        None => format!("{ROOT}object/{}/", kind.plural),
    }
}

/// The prefix of what a list of a kind reads.
pub(crate) fn listed(kind: &KindDefinition, namespace: Option<&str>) -> String {
    if is_event(kind) {
        return all_events();
    }
    collection(kind, namespace)
}

/// Whether objects of a kind are stored many in one record.
pub(crate) fn is_event(kind: &KindDefinition) -> bool {
    kind.name == "Event"
}

/// Names an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
    /// `…/<name>/`
    prefix: String,
}

/// Keys sort as their texts, so they are found by what they begin with.
impl Borrow<str> for ObjectKey {
    fn borrow(&self) -> &str {
        &self.prefix
    }
}

/// Which part of an object a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Spec,
    Status,
}

impl ObjectKey {
    pub(crate) fn new(kind: &KindDefinition, namespace: Option<&str>, name: &str) -> Self {
        let namespace = namespace.filter(|_| kind.is_namespaced).unwrap_or(GLOBAL);
        Self {
            prefix: format!("{}{name}/", collection(kind, Some(namespace))),
        }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn spec(&self) -> String {
        format!("{}spec", self.prefix)
    }

    pub(crate) fn status(&self) -> String {
        format!("{}status", self.prefix)
    }

    /// The object and part of a key; `None` for other keys.
    pub(crate) fn parse(key: &[u8]) -> Option<(Self, Part)> {
        let key = std::str::from_utf8(key).ok()?;
        let (prefix, part) = key.rsplit_once('/')?;
        let part = match part {
            "spec" => Part::Spec,
            "status" => Part::Status,
            _ => return None,
        };
        let prefix = format!("{prefix}/");
        let parsed = Self { prefix };
        parsed.kind()?;
        Some((parsed, part))
    }

    /// The namespace of the object, if its kind has one.
    pub(crate) fn namespace(&self) -> Option<&str> {
        let rest = self.prefix.strip_prefix(ROOT)?.strip_prefix("object/")?;
        rest.split('/').nth(1).filter(|part| *part != GLOBAL)
    }

    /// The kind of the object.
    pub(crate) fn kind(&self) -> Option<&'static KindDefinition> {
        let rest = self.prefix.strip_prefix(ROOT)?.strip_prefix("object/")?;
        let plural = rest.split('/').next()?;
        KINDS.into_iter().find(|kind| kind.plural == plural)
    }
}

/// The key that objects can be created in a namespace by.
pub(crate) fn gate(namespace: &str) -> String {
    format!("{ROOT}gate/{namespace}")
}

/// The prefix of all blobs.
pub(crate) fn blobs() -> String {
    format!("{ROOT}blob/")
}

/// The prefix of the blobs of a namespace.
pub(crate) fn blobs_in(namespace: &str) -> String {
    format!("{ROOT}blob/{namespace}/")
}

/// What stands in place of a namespace for the blobs of a run. No namespace has such a name.
pub(crate) fn blobs_of_run(uuid: &str) -> String {
    format!("@run-{uuid}")
}

/// The run whose blob this is, by its key.
pub(crate) fn run_of_blob(key: &[u8]) -> Option<&str> {
    let key = std::str::from_utf8(key).ok()?;
    let scope = key.strip_prefix(ROOT)?.strip_prefix("blob/@run-")?;
    scope.split('/').next()
}

/// A blob of a namespace.
pub(crate) fn blob(namespace: &str, digest: &str) -> String {
    format!("{ROOT}blob/{namespace}/{digest}")
}

/// The prefix of tokens.
pub(crate) fn tokens() -> String {
    format!("{ROOT}token/")
}

/// A token.
pub(crate) fn token(id: &str) -> String {
    format!("{ROOT}token/{id}")
}

/// The prefix of join tokens.
pub(crate) fn join_tokens() -> String {
    format!("{ROOT}join-token/")
}

/// A join token.
pub(crate) fn join_token(id: &str) -> String {
    format!("{ROOT}join-token/{id}")
}

/// The prefix of enrolments.
pub(crate) fn enrolments() -> String {
    format!("{ROOT}enrolment/")
}

/// An enrolment by the digest of its key.
pub(crate) fn enrolment(digest: &str) -> String {
    format!("{ROOT}enrolment/{digest}")
}
