//! What a job tells a fleet server, and the Event that becomes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use portolan_digest::Digest;
use portolan_kinds::VERSION;
use portolan_secret::{Mask, without_passwords};
use serde_json::{Map, Value, json};

/// How long a job that starts again repeats what happened before. The server knows it by its name for as long as it keeps
/// events, which is longer unless somebody says otherwise.
pub const MAX_EVENT_AGE: Duration = Duration::from_hours(1);

/// The most bytes of an event's data; the server refuses more.
const MAX_DATA: usize = 8 << 10;

/// The most letters of a summary.
const MAX_SUMMARY: usize = 1_000;

/// The most letters of one text of the data.
const MAX_TEXT: usize = 2_000;

/// Something that happened in a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEvent {
    kind: &'static str,
    id: String,
    severity: &'static str,
    summary: String,
    time: Timestamp,
    subject: Option<(String, String)>,
    data: Map<String, Value>,
}

impl JobEvent {
    /// An event of a type such as `rollout.promoted`, with a sentence. `id` tells it from all others of its type: the same
    /// id is the same event, however often and by whichever process it is published.
    pub fn new(kind: &'static str, id: &str, time: Timestamp, summary: impl Into<String>) -> Self {
        Self {
            kind,
            id: id.to_owned(),
            severity: "info",
            summary: summary.into(),
            time,
            subject: None,
            data: Map::new(),
        }
    }

    /// Somebody should look.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = "warning";
        self
    }

    /// Something is broken.
    #[must_use]
    pub fn error(mut self) -> Self {
        self.severity = "error";
        self
    }

    /// The object that it is about.
    #[must_use]
    pub fn about(mut self, kind: impl Into<String>, name: impl Into<String>) -> Self {
        self.subject = Some((kind.into(), name.into()));
        self
    }

    /// More about it. Data that are too large in all are left out, with their size in their place.
    #[must_use]
    pub fn data(mut self, data: Map<String, Value>) -> Self {
        self.data = data;
        self
    }

    /// Its type.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The object of the server, as JSON.
    pub(crate) fn object(
        &self,
        namespace: &str,
        labels: &BTreeMap<String, String>,
        mask: &Mask,
    ) -> Value {
        let mut data = Value::Object(self.data.clone());
        hide(&mut data, mask);
        let bytes = data.to_string().len();
        if bytes > MAX_DATA {
            data = json!({ "leftOutBytes": bytes });
        }
        let mut spec = json!({
            "type": self.kind, "severity": self.severity, "summary": clean(&self.summary, mask, MAX_SUMMARY),
            "time": self.time.to_string(), "occurrences": 1, "data": data,
        });
        if let Some((kind, name)) = &self.subject {
            spec["source"] = json!({ "kind": kind, "name": name });
        }
        let name = self.name(labels);
        json!({
            "apiVersion": VERSION, "kind": "Event",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": spec,
        })
    }

    /// The name of its Event. Jobs with other labels, such as those of two clusters, tell of other things.
    fn name(&self, labels: &BTreeMap<String, String>) -> String {
        let digest = Digest::of(json!([self.kind, labels, self.id]).to_string().as_bytes()).hex();
        let digest = digest.get(..32).unwrap_or_default();
        format!("{}-{digest}", self.kind.replace('.', "-"))
    }
}

/// Hides secrets in all texts, and cuts those that are too long.
fn hide(value: &mut Value, mask: &Mask) {
    match value {
        Value::String(text) => *text = clean(text, mask, MAX_TEXT),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, mask)),
        Value::Object(fields) => fields.values_mut().for_each(|field| hide(field, mask)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text without secrets, and without passwords in addresses.
fn clean(text: &str, mask: &Mask, most: usize) -> String {
    shortened(&without_passwords(&mask.text(text)), most)
}

/// The first letters of a text, with a sign where it was cut.
fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let kept = text.char_indices().nth(most - 1).map_or(0, |(at, _)| at);
            format!("{}…", text.get(..kept).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use portolan_secret::SecretTexts;

    use super::*;

    fn labels(cluster: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("cluster".to_owned(), cluster.to_owned())])
    }

    fn event(id: &str) -> JobEvent {
        JobEvent::new("ship.failed", id, Timestamp::UNIX_EPOCH, "it failed")
    }

    fn data(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn the_same_id_is_the_same_event_and_another_label_another_one() {
        let name = event("a").name(&labels("x"));
        assert_eq!(name, event("a").warning().name(&labels("x")));
        assert_ne!(name, event("b").name(&labels("x")));
        assert_ne!(name, event("a").name(&labels("y")));
        assert!(name.starts_with("ship-failed-"), "{name}");
    }

    #[test]
    fn secrets_are_hidden_and_large_data_are_left_out() {
        let mut texts = SecretTexts::default();
        texts.add_text("password", "correct-horse-battery");
        let mask = Mask::new(&texts);
        let told = JobEvent::new(
            "ship.failed",
            "a",
            Timestamp::UNIX_EPOCH,
            "login correct-horse-battery refused",
        )
        .data(data(&json!({"failed": [{"why": "correct-horse-battery"}]})));
        let object = told.object("shop", &labels("x"), &mask);
        assert!(
            !object.to_string().contains("correct-horse-battery"),
            "{object}"
        );
        assert_eq!(object["metadata"]["labels"]["cluster"], "x");
        let items: Vec<Value> = (0..1_000)
            .map(|number| json!(format!("{number:09}")))
            .collect();
        let large = event("a").data(data(&json!({ "items": items })));
        let object = large.object("shop", &labels("x"), &mask);
        assert_eq!(object["spec"]["data"], json!({"leftOutBytes": 12_011}));
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }
}
