//! One problem or remark, as every check reports it and every format prints it.

pub(crate) mod owner;
pub(crate) mod rule;
pub(crate) mod severity;

use std::fmt::{self, Write as _};

use portolan_yaml::Text;
use sha2::{Digest as _, Sha256};

use crate::finding::owner::Owner;
use crate::finding::rule::Rule;
use crate::finding::severity::Severity;
use crate::id::ObjectId;
use crate::origin::Place;

/// What several findings have in common: one reason, to be told once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cause {
    /// What is wrong with all of them, after their number: `charts cannot be fetched`.
    pub many: &'static str,
    /// Why, as in `no connection to ghcr.io`; empty if `many` says it all.
    pub why: String,
}

/// One thing that is wrong or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule that it is an instance of.
    pub rule: &'static Rule,
    /// How much it matters here; never more than the rule says.
    pub severity: Severity,
    /// What applies the object, or what it is about if there is no object; `None` if nothing applies it.
    pub owner: Option<Owner>,
    /// The object that it is about; `None` if it is about the owner itself or about a file.
    pub object: Option<ObjectId>,
    /// The field that it is about, as paths are written.
    pub field: Option<String>,
    /// What is wrong, then why; one sentence each, without a full stop.
    pub messages: Vec<String>,
    /// What it has in common with others, if that is known.
    pub cause: Option<Cause>,
    /// The line that caused it.
    pub place: Option<Place>,
    /// What to do.
    pub hints: Vec<String>,
    /// The clusters that it was seen in; empty where clusters have no names.
    pub clusters: Vec<Text>,
    /// Why it is accepted, if it is.
    pub accepted: Option<String>,
    /// A fingerprint that is kept elsewhere too, such as in a baseline; without it, the fields make one.
    pub known_fingerprint: Option<String>,
}

impl Finding {
    /// A finding about nothing in particular yet, as grave as its rule.
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity,
            owner: None,
            object: None,
            field: None,
            messages: vec![message.into()],
            cause: None,
            place: None,
            hints: Vec::new(),
            clusters: Vec::new(),
            accepted: None,
            known_fingerprint: None,
        }
    }

    /// The same finding, seen in a cluster.
    #[must_use]
    pub fn in_cluster(mut self, cluster: &Text) -> Self {
        self.clusters = vec![cluster.clone()];
        self.owner = self.owner.map(|owner| owner.in_cluster(cluster.clone()));
        self
    }

    /// What it is about: `Deployment shop/web`, or the owner; empty for a file.
    pub fn subject(&self) -> String {
        match (&self.object, &self.owner) {
            (Some(id), _) => id.title(),
            (None, Some(owner)) => owner.to_string(),
            (None, None) => String::new(),
        }
    }

    /// What is wrong and why, in one line.
    pub fn message(&self) -> String {
        self.messages.join(": ")
    }

    /// Names the finding as long as it is about the same: the line may move without changing it.
    ///
    /// Made of the fields that say what it is about and what is wrong, in hexadecimal.
    pub fn fingerprint(&self) -> String {
        if let Some(known) = &self.known_fingerprint {
            return known.clone();
        }
        let mut fields: Vec<&str> = vec![self.rule.id];
        fields.extend(self.clusters.iter().map(Text::as_str));
        // Each part begins with a word of its own, so that two of them never run into one another.
        if let Some(owner) = &self.owner {
            fields.extend(["owner", owner.kind.as_str(), &owner.namespace, &owner.name]);
        }
        if let Some(ObjectId {
            gvk,
            namespace,
            name,
        }) = &self.object
        {
            fields.extend(["object", &gvk.group, &gvk.kind, namespace, name]);
        }
        fields.extend(self.field.iter().flat_map(|field| ["field", field]));
        fields.push("message");
        fields.extend(self.messages.iter().map(String::as_str));
        let mut hash = Sha256::new();
        for field in fields {
            hash.update((field.len() as u64).to_le_bytes());
            hash.update(field.as_bytes());
        }
        hexadecimal(&hash.finalize())
    }

    /// The file that caused it, relative to the repository.
    pub fn file(&self) -> Option<&str> {
        let place = self.place.as_ref()?;
        Some(place.file.trim_start_matches('/'))
    }

    /// The line in that file, from 1.
    pub fn line(&self) -> Option<u32> {
        let place = self.place.as_ref()?;
        Some(place.at.line).filter(|line| *line > 0)
    }

    /// The column in that line, from 1.
    pub fn column(&self) -> Option<u32> {
        let place = self.place.as_ref()?;
        Some(place.at.column).filter(|column| *column > 0)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.why.is_empty() { "" } else { ": " };
        write!(f, "{}{separator}{}", self.many, self.why)
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::owner::OwnerKind;

    static RULE: Rule = Rule {
        id: "schema/unknown-field",
        severity: Severity::Error,
        summary: "the type has no field of this name",
        help: "",
    };

    fn finding() -> Finding {
        Finding {
            object: Some("apps/v1/Deployment/shop/web".parse().unwrap()),
            owner: Some(Owner::new(OwnerKind::Kustomization, "flux-system", "apps")),
            place: Some(Place::line("/apps/web.yaml", 3)),
            ..Finding::new(&RULE, "unknown field `spec.replica`")
        }
    }

    #[test]
    fn the_object_is_the_subject_and_else_the_owner() {
        let mut finding = finding();
        assert_eq!(finding.subject(), "Deployment shop/web");
        finding.object = None;
        assert_eq!(finding.subject(), "Kustomization flux-system/apps");
        finding.owner = None;
        assert_eq!(finding.subject(), "");
    }

    #[test]
    fn a_fingerprint_outlives_a_moved_line_and_tells_clusters_apart() {
        let moved = Finding {
            place: Some(Place::line("/apps/web.yaml", 30)),
            hints: vec!["fix it".to_owned()],
            ..finding()
        };
        assert_eq!(finding().fingerprint(), moved.fingerprint());
        let production = finding().in_cluster(&"production".into());
        let staging = finding().in_cluster(&"staging".into());
        assert_ne!(production.fingerprint(), staging.fingerprint());
        let other = Finding {
            object: None,
            ..finding()
        };
        assert_ne!(finding().fingerprint(), other.fingerprint());
    }

    #[test]
    fn a_place_without_a_line_is_its_file() {
        let finding = Finding {
            place: Some(Place::line("/apps/web.yaml", 0)),
            ..finding()
        };
        assert_eq!(
            (finding.file(), finding.line()),
            (Some("apps/web.yaml"), None)
        );
    }
}
