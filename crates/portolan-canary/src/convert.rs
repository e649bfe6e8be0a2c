//! Canaries of other tools as `IstioCanaryDeployment`s, with what has no counterpart.

mod argo;
mod flagger;
mod query;

use std::collections::BTreeMap;

use portolan_rollout::{API_VERSION, KIND};
use serde_json::{Map, Value, json};

/// What became of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// What it was, as in `Canary shop/web`.
    pub from: String,
    /// What it is now.
    pub object: Value,
    /// What has no counterpart or needs a look, one sentence each.
    pub notes: Vec<String>,
}

/// Converts every `Canary` of Flagger and every `Rollout` of Argo among some objects. The others are what those refer to:
/// Deployments, Services, autoscalers and templates of metrics.
pub fn convert(objects: &[Value]) -> Vec<Conversion> {
    let known = Known::of(objects);
    let converted = objects.iter().filter_map(|object| {
        let group = group(object);
        let mut draft = Draft::new(object);
        match (group, text(&object["kind"])) {
            ("flagger.app", "Canary") => flagger::fill(&mut draft, &object["spec"], &known),
            ("argoproj.io", "Rollout") => argo::fill(&mut draft, &object["spec"], &known),
            _ => return None,
        }
        Some(draft.finish())
    });
    converted.collect()
}

/// The objects that canaries refer to, by kind, namespace and name.
struct Known<'a>(BTreeMap<(&'a str, &'a str, &'a str), &'a Value>);

impl<'a> Known<'a> {
    fn of(objects: &'a [Value]) -> Self {
        let named = objects.iter().map(|object| {
            let metadata = &object["metadata"];
            (
                (
                    text(&object["kind"]),
                    text(&metadata["namespace"]),
                    text(&metadata["name"]),
                ),
                object,
            )
        });
        Self(named.collect())
    }

    /// Returns an object; files often leave the namespace to whoever applies them.
    fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<&'a Value> {
        let exact = self.0.get(&(kind, namespace, name));
        exact.or_else(|| self.0.get(&(kind, "", name))).copied()
    }
}

/// An object in the making.
struct Draft {
    from: String,
    namespace: String,
    name: String,
    spec: Map<String, Value>,
    notes: Vec<String>,
}

impl Draft {
    fn new(object: &Value) -> Self {
        let (namespace, name) = (
            text(&object["metadata"]["namespace"]),
            text(&object["metadata"]["name"]),
        );
        let place = if namespace.is_empty() {
            String::new()
        } else {
            format!("{namespace}/")
        };
        Self {
            from: format!("{} {place}{name}", text(&object["kind"])),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            spec: Map::new(),
            notes: Vec::new(),
        }
    }

    /// Sets a field below the spec, by its path.
    fn set(&mut self, path: &[&str], value: Value) {
        let Some((last, above)) = path.split_last() else {
            return;
        };
        let mut fields = &mut self.spec;
        for key in above {
            let below = fields.entry(*key).or_insert_with(|| json!({}));
            if !below.is_object() {
                *below = json!({});
            }
            let Value::Object(inner) = below else {
                return;
            };
            fields = inner;
        }
        fields.insert((*last).to_owned(), value);
    }

    /// Sets a field if there is a value.
    fn set_some(&mut self, path: &[&str], value: &Value) {
        if !value.is_null() {
            self.set(path, value.clone());
        }
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Notes fields that have no counterpart, with why.
    fn note_fields(&mut self, of: &Value, above: &str, fields: &[(&str, &str)]) {
        for (field, why) in fields {
            let value = &of[*field];
            let is_set = !value.is_null() && value != &json!(false);
            if is_set {
                self.note(format!("`{above}{field}` has no counterpart: {why}"));
            }
        }
    }

    /// Takes the pods of a Deployment over, or refers to it.
    fn take_workload(&mut self, known: &Known<'_>, name: &str) {
        match known.get("Deployment", &self.namespace, name) {
            Some(deployment) => {
                self.set(&["template"], deployment["spec"]["template"].clone());
                if self.spec.get("autoscaling").is_none() {
                    self.set_some(&["replicas"], &deployment["spec"]["replicas"]);
                }
                if self.name == name {
                    self.set(&["adopt"], json!(true));
                    self.note(format!("the Deployment `{name}` is replaced by `{name}-a` and `{name}-b`; `portolan rollout adopt deployment/{name}` tells the steps without an outage"));
                }
            }
            None => {
                self.set(
                    &["workloadRef"],
                    json!({"kind": "Deployment", "name": name}),
                );
                self.note(format!("the Deployment `{name}` was not given; it is referred to and held at 0 replicas"));
            }
        }
    }

    /// Takes the settings of an autoscaler over.
    fn take_autoscaler(&mut self, known: &Known<'_>, kind: &str, name: &str) {
        let Some(scaler) = known.get(kind, &self.namespace, name) else {
            self.note(format!(
                "the {kind} `{name}` was not given: write its settings into `spec.autoscaling`"
            ));
            return;
        };
        let spec = &scaler["spec"];
        let keda = kind == "ScaledObject";
        let fields = if keda {
            [
                ("minReplicas", "minReplicaCount"),
                ("maxReplicas", "maxReplicaCount"),
                ("triggers", "triggers"),
            ]
            .as_slice()
        } else {
            &[
                ("minReplicas", "minReplicas"),
                ("maxReplicas", "maxReplicas"),
                ("metrics", "metrics"),
                ("behavior", "behavior"),
            ]
        };
        for (ours, theirs) in fields {
            self.set_some(&["autoscaling", ours], &spec[*theirs]);
        }
        if spec[if keda {
            "maxReplicaCount"
        } else {
            "maxReplicas"
        }]
        .is_null()
        {
            // KEDA's default.
            self.set(&["autoscaling", "maxReplicas"], json!(100));
        }
        self.note(format!(
            "delete the {kind} `{name}`: each slot gets one of its own"
        ));
    }

    fn finish(mut self) -> Conversion {
        if self.spec.contains_key("autoscaling") {
            self.spec.remove("replicas");
        }
        let mut metadata = json!({"name": self.name});
        if !self.namespace.is_empty() {
            metadata["namespace"] = json!(self.namespace);
        }
        Conversion {
            from: self.from,
            object: json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": self.spec}),
            notes: self.notes,
        }
    }
}

/// The group of an object's `apiVersion`.
fn group(object: &Value) -> &str {
    let version = text(&object["apiVersion"]);
    version.split_once('/').map_or("", |(group, _)| group)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
