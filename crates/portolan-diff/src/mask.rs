//! What must not be shown: the content of Secrets, and that content wherever it was put.
//!
//! A Secret's own values are hidden as a whole. But Flux also puts them into other objects, through `substituteFrom` and
//! `valuesFrom`; so the values of all Secrets of both sides are collected, and every text that may be shown is searched
//! for them, also in base64.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portolan_object::{Gvk, Object, OwnerKind};
use portolan_yaml::{Dialect, Map, Node, Text, Value};

use crate::field::{Difference, Field, Shown};
use crate::path::{Path, Segment};
use crate::side::Batch;

/// What stands in place of a secret.
pub const HIDDEN: &str = "[hidden]";

/// The shortest value that is searched for: shorter ones are in everything.
const MIN_LETTERS: usize = 4;

/// From this length on a value is found inside of words too.
const MIN_INSIDE_WORDS: usize = 8;

/// How deep the values of a Secret are searched, and changed values are cleaned.
const MAX_DEPTH: usize = 100;

/// Searches texts for secrets.
pub(crate) struct Mask {
    searcher: Option<AhoCorasick>,
    needles: Vec<String>,
}

/// Whether an object's values are secret by its kind.
pub(crate) fn is_secret(gvk: &Gvk) -> bool {
    gvk.is("", "Secret")
}

impl Mask {
    /// Collects the secrets of both sides.
    pub(crate) fn new<'a>(batches: impl Iterator<Item = &'a Batch>) -> Self {
        let mut needles = Needles::default();
        for batch in batches {
            let secrets = batch
                .objects
                .iter()
                .filter(|object| is_secret(object.gvk()));
            for secret in secrets {
                needles.add_secret(secret, batch.owner.kind);
            }
        }
        let needles: Vec<String> = needles.0.into_iter().collect();
        let searcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&needles);
        Self {
            // A set of texts too large to be searched for does not happen below gigabytes of secrets.
            searcher: searcher.ok().filter(|_| !needles.is_empty()),
            needles,
        }
    }

    /// Hides what is secret in a field of an object.
    pub(crate) fn hide(&self, gvk: &Gvk, field: &mut Field) {
        let secret = is_secret(gvk) && holds_values(&field.path);
        let show = |shown: &Shown| match shown {
            Shown::Value(_) if secret => Shown::Hidden,
            Shown::Value(node) if is_secret(gvk) && field.path.is_root() => {
                Shown::Value(self.clean(&without_values(node), MAX_DEPTH))
            }
            Shown::Value(node) => Shown::Value(self.clean(node, MAX_DEPTH)),
            Shown::Hidden => Shown::Hidden,
        };
        field.difference = match &field.difference {
            Difference::Added(new) => Difference::Added(show(new)),
            Difference::Removed(old) => Difference::Removed(show(old)),
            Difference::Changed(old, new) => self.changed(show(old), show(new)),
            Difference::Reordered(old, new) => {
                let clean = |keys: &[Text]| keys.iter().map(|key| self.text(key)).collect();
                Difference::Reordered(clean(old), clean(new))
            }
        };
        field.path = self.path(&field.path);
    }

    /// Two values that look the same once cleaned differ in a secret alone.
    fn changed(&self, old: Shown, new: Shown) -> Difference {
        match (&old, &new) {
            (Shown::Value(a), Shown::Value(b)) if a == b && self.searcher.is_some() => {
                Difference::Changed(Shown::Hidden, Shown::Hidden)
            }
            _ => Difference::Changed(old, new),
        }
    }

    fn path(&self, path: &Path) -> Path {
        let steps = path.segments().iter().map(|segment| match segment {
            Segment::Key(key) => Segment::Key(self.text(key)),
            Segment::Item(name) => Segment::Item(self.text(name)),
            Segment::Index(place) => Segment::Index(*place),
        });
        steps.fold(Path::root(), |path, segment| path.then(segment))
    }

    /// A text with the secrets in it replaced.
    pub(crate) fn text(&self, text: &Text) -> Text {
        let Some(searcher) = &self.searcher else {
            return text.clone();
        };
        let mut cleaned = String::new();
        let mut from = 0;
        for found in searcher.find_iter(text.as_str()) {
            if self.counts(text, found.pattern().as_usize(), found.start(), found.end()) {
                cleaned.push_str(&text[from..found.start()]);
                cleaned.push_str(HIDDEN);
                from = found.end();
            }
        }
        if from == 0 {
            return text.clone();
        }
        cleaned.push_str(&text[from..]);
        Text::from(cleaned)
    }

    /// A short value counts as a word of its own only.
    fn counts(&self, text: &str, needle: usize, start: usize, end: usize) -> bool {
        let is_long = self
            .needles
            .get(needle)
            .is_some_and(|needle| needle.len() >= MIN_INSIDE_WORDS);
        let ends_word =
            |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric());
        is_long
            || (ends_word(text[..start].chars().next_back())
                && ends_word(text[end..].chars().next()))
    }

    fn clean(&self, node: &Node, depth: usize) -> Node {
        if self.searcher.is_none() {
            return node.clone();
        }
        let mut cleaned = node.clone();
        match &mut cleaned.value {
            Value::Scalar(scalar) => scalar.text = self.text(&scalar.text),
            _ if depth == 0 => return Node::string(HIDDEN),
            Value::List(list) => {
                for item in list.items_mut() {
                    *item = self.clean(item, depth - 1);
                }
            }
            Value::Map(map) => {
                for entry in map.entries_mut() {
                    entry.key.scalar.text = self.text(&entry.key.scalar.text);
                    entry.value = self.clean(&entry.value, depth - 1);
                }
            }
        }
        cleaned
    }
}

/// The fields of a Secret that hold its values, and whatever a tool may have copied them to.
const VALUE_FIELDS: [&str; 2] = ["data", "stringData"];

/// Annotations may hold the whole object again, as `kubectl apply` leaves it.
const COPY: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn holds_values(path: &Path) -> bool {
    VALUE_FIELDS.iter().any(|field| path.is_under(field)) || path.last_key() == Some(COPY)
}

/// A Secret with its values hidden one by one: which keys there are is no secret.
fn without_values(secret: &Node) -> Node {
    let mut shown = secret.clone();
    for field in VALUE_FIELDS {
        let Some(node) = shown.get_mut(field) else {
            continue;
        };
        match node.as_map_mut() {
            Some(values) => hide_values(values),
            None => *node = Node::string(HIDDEN),
        }
    }
    let annotations = shown
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(copy) = annotations.and_then(|annotations| annotations.get_mut(COPY)) {
        *copy = Node::string(HIDDEN);
    }
    shown
}

fn hide_values(values: &mut Map) {
    for entry in values.entries_mut() {
        entry.value = Node::string(HIDDEN);
    }
}

/// The texts that are searched for.
#[derive(Default)]
struct Needles(BTreeSet<String>);

impl Needles {
    fn add_secret(&mut self, secret: &Object, owner: OwnerKind) {
        for field in VALUE_FIELDS {
            let Some(values) = secret.node().get(field).and_then(Node::as_map) else {
                continue;
            };
            for scalar in values.iter().filter_map(|entry| entry.value.as_scalar()) {
                let value = if field == "data" {
                    decoded(&scalar.text)
                } else {
                    Some(scalar.text.to_string())
                };
                if let Some(value) = value {
                    self.add_value(value.trim(), owner);
                }
            }
        }
    }

    /// A declared Secret may be a file of values for a release, and any of them may turn up elsewhere. What a release
    /// makes of its own values goes nowhere else, but for single values.
    fn add_value(&mut self, value: &str, owner: OwnerKind) {
        if !value.contains('\n') {
            self.add(value);
        }
        if owner == OwnerKind::Release {
            return;
        }
        for line in value.lines() {
            let line = line.trim();
            if line.len() >= 16 && !line.contains(' ') {
                self.add(line);
            }
        }
        if let Ok(documents) = portolan_yaml::parse(value, Dialect::Helm) {
            for document in &documents {
                self.add_leaves(document, None, MAX_DEPTH);
            }
        }
    }

    fn add_leaves(&mut self, node: &Node, key: Option<&str>, depth: usize) {
        match &node.value {
            _ if depth == 0 => {}
            Value::Scalar(scalar)
                if is_plain_word(&scalar.text) && !key.is_some_and(names_secret) => {}
            Value::Scalar(scalar) if key.is_some() => self.add(scalar.text.trim()),
            Value::Scalar(_) => {}
            Value::List(list) => {
                for item in list {
                    self.add_leaves(item, key.or(Some("")), depth - 1);
                }
            }
            Value::Map(map) => {
                for entry in map {
                    self.add_leaves(&entry.value, Some(entry.key.as_str()), depth - 1);
                }
            }
        }
    }

    fn add(&mut self, value: &str) {
        let is_number = value.len() < 6 && value.parse::<f64>().is_ok();
        if value.len() < MIN_LETTERS || is_number || matches!(value, "true" | "false" | "null") {
            return;
        }
        self.0.insert(value.to_owned());
        self.0.extend(base64_forms(value.as_bytes()));
    }
}

/// Words such as `monitoring` that say nothing, unless their key says that they do.
fn is_plain_word(text: &str) -> bool {
    text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn names_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["pass", "secret", "token", "key", "cred", "auth"]
        .iter()
        .any(|word| key.contains(word))
}

/// Base64 decoded; text that is none, such as an encrypted value, is taken as it is.
fn decoded(text: &str) -> Option<String> {
    let compact: String = text.split_ascii_whitespace().collect();
    match STANDARD.decode(&compact) {
        Ok(bytes) => String::from_utf8(bytes).ok(),
        Err(_) => Some(text.to_owned()),
    }
}

/// What the bytes look like in the base64 of a text that contains them, at each of the three ways they can fall.
fn base64_forms(bytes: &[u8]) -> Vec<String> {
    let form = |shift: usize| {
        let mut padded = vec![0; shift];
        padded.extend_from_slice(bytes);
        let encoded = STANDARD.encode(&padded);
        // The letters that depend on what stands before and after are left out.
        let start = (shift * 8).div_ceil(6);
        let end = padded.len() * 8 / 6;
        encoded.get(start..end).unwrap_or_default().to_owned()
    };
    let forms = (0..3).map(form);
    forms
        .filter(|form| form.len() >= MIN_INSIDE_WORDS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(values: &[&str]) -> Mask {
        let mut needles = Needles::default();
        for value in values {
            needles.add_value(value, OwnerKind::Kustomization);
        }
        let needles: Vec<String> = needles.0.into_iter().collect();
        let searcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&needles)
            .ok();
        Mask { searcher, needles }
    }

    fn hidden(values: &[&str], text: &str) -> String {
        mask(values).text(&Text::from(text)).to_string()
    }

    #[test]
    fn a_value_is_hidden_wherever_it_was_put() {
        let url = "postgres://app:hunter22@db/app";
        assert_eq!(hidden(&["hunter22"], url), "postgres://app:[hidden]@db/app");
        assert_eq!(
            hidden(&["adminPassword: hunter22\nport: 80\n"], url),
            "postgres://app:[hidden]@db/app"
        );
    }

    #[test]
    fn short_values_are_hidden_as_words_only() {
        assert_eq!(
            hidden(&["hunt"], "hunt, hunter, hunt"),
            "[hidden], hunter, [hidden]"
        );
        assert_eq!(
            hidden(&["80", "true"], "port 80 is true"),
            "port 80 is true"
        );
    }

    #[test]
    fn base64_of_a_text_that_contains_a_value_is_found_at_every_offset() {
        for prefix in ["", "a", "ab", "user:"] {
            let encoded = STANDARD.encode(format!("{prefix}correct-horse-battery!"));
            let cleaned = hidden(&["correct-horse-battery"], &encoded);
            assert!(cleaned.contains(HIDDEN), "{prefix}: {cleaned}");
        }
    }

    #[test]
    fn everyday_words_in_a_file_of_values_are_left_but_passwords_never() {
        let values = ["namespace: monitoring\npassword: swordfish\n"];
        assert_eq!(
            hidden(&values, "monitoring swordfish"),
            "monitoring [hidden]"
        );
    }
}
