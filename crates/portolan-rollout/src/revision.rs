//! What makes one revision of an application different from another.
//!
//! A revision is named by a hash of what the user wrote: the pod template as canonical JSON, and the content of tracked
//! `ConfigMaps` and Secrets. It is not made of typed structs, so a newer version of a library, of Kubernetes or of the
//! operator changes no hash. The scheme that a hash was made by is part of its name; content is compared by the scheme
//! of the recorded revision, so that even a new scheme starts nothing. What was recorded by a newer operator is believed once.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::config::ConfigVersion;

/// The name of a revision: its scheme and a hash, `r1-` and sixteen hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(String);

/// The scheme of new revisions.
const SCHEME: &str = "r1";

/// So many digits of the hash make a name: enough to tell any two templates apart, and short enough for a label.
const DIGITS: usize = 16;

impl Revision {
    /// Returns the revision of a pod template and the configuration that it uses.
    pub fn of(template: &Value, config: &[ConfigVersion]) -> Self {
        let mut config: Vec<Value> = config
            .iter()
            .map(|version| {
                let of = &version.config;
                json!({"kind": of.kind, "name": of.name, "hash": version.hash})
            })
            .collect();
        config.sort_by_cached_key(canonical_json);
        let content = canonical_json(&json!({"template": template, "config": config}));
        let digits: String = sha256(content.as_bytes()).chars().take(DIGITS).collect();
        Self(format!("{SCHEME}-{digits}"))
    }

    /// Returns whether a template and its configuration are this revision. `None` if it is of a scheme that is not known
    /// here: a newer operator recorded it.
    pub fn is_of(&self, template: &Value, config: &[ConfigVersion]) -> Option<bool> {
        let (scheme, _) = self.0.split_once('-')?;
        (scheme == SCHEME).then(|| *self == Self::of(template, config))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Writes a value so that equal meaning gives equal text: keys in order, no field that is null, no whole number with a
/// fraction.
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().filter(|(_, value)| !value.is_null()).collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (at, (key, value)) in entries.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(list) => {
            text.push('[');
            for (at, value) in list.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_canonical(value, text);
            }
            text.push(']');
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) if float.fract() == 0.0 && float.abs() < EXACT => {
                text.push_str(&(float as i64).to_string());
            }
            // Not as the JSON library prints it: that may change with its version.
            Some(float) => {
                let _ = write!(text, "{float:?}");
            }
            None => text.push_str(&number.to_string()),
        },
        other => text.push_str(&other.to_string()),
    }
}

/// Whole numbers below this one are exact as floating-point numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns the SHA-256 of some bytes in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigKind, ConfigRef};

    fn template() -> Value {
        json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1", "resources": {"limits": {"cpu": 1}}}]},
        })
    }

    fn config(name: &str, hash: &str, resource_version: &str) -> ConfigVersion {
        ConfigVersion {
            config: ConfigRef {
                kind: ConfigKind::Secret,
                name: name.to_owned(),
            },
            resource_version: resource_version.to_owned(),
            hash: hash.to_owned(),
        }
    }

    /// These names are in the labels of running pods. A change here would restart every application of every user.
    #[test]
    fn names_of_revisions_never_change() {
        assert_eq!(
            Revision::of(&json!({}), &[]).as_str(),
            "r1-815380dfb71aadde"
        );
        let with_config =
            Revision::of(&template(), &[config("b", "2", "8"), config("a", "1", "9")]);
        assert_eq!(with_config.as_str(), "r1-a1b6c889c320d7c4");
        assert_eq!(
            Revision::of(&template(), &[]).as_str(),
            "r1-b76b15dc50fae3cc"
        );
        let numbers = json!({"a": 1.5, "b": 1e30, "c": -0.25, "d": u64::MAX, "e": "\u{1f600}\u{7}\"", "f": [[], {}, true]});
        assert_eq!(Revision::of(&numbers, &[]).as_str(), "r1-29f17759993e4265");
    }

    #[test]
    fn order_nulls_and_spelling_of_numbers_do_not_matter() {
        let same: Value = serde_json::from_str(
            r#"{"spec": {"containers": [{"resources": {"limits": {"cpu": 1.0}}, "image": "web:1", "command": null, "name": "web"}]},
                "metadata": {"creationTimestamp": null, "labels": {"app": "web"}}}"#,
        )
        .expect("JSON");
        assert_eq!(Revision::of(&same, &[]), Revision::of(&template(), &[]));
    }

    #[test]
    fn resource_versions_and_the_order_of_configuration_do_not_matter() {
        let one = Revision::of(&template(), &[config("a", "1", "1"), config("b", "2", "1")]);
        let same = Revision::of(&template(), &[config("b", "2", "7"), config("a", "1", "7")]);
        assert_eq!(one, same);
    }

    #[test]
    fn content_matters() {
        let revision = Revision::of(&template(), &[config("a", "1", "1")]);
        assert_eq!(
            revision.is_of(&template(), &[config("a", "1", "2")]),
            Some(true)
        );
        assert_eq!(
            revision.is_of(&template(), &[config("a", "2", "1")]),
            Some(false)
        );
        let mut other = template();
        other["spec"]["containers"][0]["image"] = json!("web:2");
        assert_eq!(
            revision.is_of(&other, &[config("a", "1", "1")]),
            Some(false)
        );
    }

    #[test]
    fn a_revision_of_an_unknown_scheme_cannot_be_compared() {
        let newer = Revision("r9-0123456789abcdef".to_owned());
        assert_eq!(newer.is_of(&template(), &[]), None);
    }

    #[test]
    fn text_that_looks_like_json_is_escaped() {
        let one = json!({"a\":1,\"b": 2});
        let other = json!({"a": 1, "b": 2});
        assert_ne!(canonical_json(&one), canonical_json(&other));
    }
}
