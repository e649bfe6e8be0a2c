//! The report for programs. The names of its keys are stable.

use portolan_object::{API_VERSION, Finding, ObjectId, Owner, Severity};
use portolan_yaml::{Node, Text, to_json};
use serde::Serialize;
use serde_json::Value;

use crate::failure::{Failure, InputChange};
use crate::field::{Difference, Field, Shown};
use crate::image::ImageChange;
use crate::report::{Cause, Change, Report};

#[derive(Serialize)]
struct ReportWire {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    kind: &'static str,
    changes: Vec<ChangeWire>,
    images: Vec<ImageWire>,
    dangers: Vec<DangerWire>,
    failures: Vec<FailureWire>,
    /// How many releases were not rendered because their inputs are equal.
    #[serde(rename = "equalInputs")]
    equal_inputs: usize,
    /// How many objects differ only in labels and annotations that are left out.
    stripped: usize,
    #[serde(rename = "notCovered")]
    not_covered: Vec<NotCoveredWire>,
}

/// What was not looked at.
#[derive(Serialize)]
struct NotCoveredWire {
    rule: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// What could not be rendered on a side.
#[derive(Serialize)]
struct FailureWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    owner: String,
    /// `before`, `after` or `both`.
    side: &'static str,
    /// `added`, `removed` or `changed`, with unknown content; `none` when the inputs are equal.
    change: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<String>,
    inputs: Vec<InputWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct InputWire {
    input: String,
    from: Option<String>,
    to: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangeWire {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    change: &'static str,
    /// The cluster, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    owner: String,
    fields: Vec<FieldWire>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    because: Vec<CauseWire>,
}

#[derive(Serialize)]
struct CauseWire {
    file: String,
    line: u32,
    /// The value or variable that is set there.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Serialize)]
struct FieldWire {
    path: String,
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Value>,
    /// The values are secret.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
    /// The change replaces pods.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    restarts: bool,
    /// The generated object whose new name this field took over.
    #[serde(skip_serializing_if = "Option::is_none")]
    follows: Option<String>,
}

#[derive(Serialize)]
struct ImageWire {
    image: String,
    from: Option<String>,
    to: Option<String>,
    objects: Vec<ObjectWire>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectWire {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
}

#[derive(Serialize)]
struct DangerWire {
    id: &'static str,
    level: Severity,
    #[serde(flatten)]
    object: Option<ObjectWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

fn not_covered(finding: &Finding) -> NotCoveredWire {
    NotCoveredWire {
        rule: finding.rule.id,
        message: finding.message(),
        file: finding.file().map(str::to_owned),
        line: finding.line(),
    }
}

/// The report as a JSON document, indented.
pub fn json(report: &Report) -> String {
    let wire = ReportWire {
        api_version: API_VERSION,
        kind: "DiffReport",
        changes: report.changes.iter().map(change).collect(),
        images: report.images.iter().map(image).collect(),
        dangers: report.dangers.iter().map(danger).collect(),
        failures: report.failures.iter().map(failure).collect(),
        equal_inputs: report.equal_inputs,
        stripped: report.stripped,
        not_covered: report.not_covered.iter().map(not_covered).collect(),
    };
    let text = serde_json::to_string_pretty(&wire);
    text.expect("a tree of texts can be written") + "\n"
}

fn change(change: &Change) -> ChangeWire {
    let object = object(&change.id);
    ChangeWire {
        api_version: object.api_version,
        kind: object.kind,
        namespace: object.namespace,
        name: object.name,
        change: change.kind.as_str(),
        cluster: cluster(&change.owner),
        owner: change.owner.to_string(),
        fields: change.fields.iter().map(field).collect(),
        because: change.causes.iter().map(cause).collect(),
    }
}

/// The cluster of an owner, where there are several.
fn cluster(owner: &Owner) -> Option<String> {
    (!owner.cluster.is_empty()).then(|| owner.cluster.to_string())
}

fn failure(failure: &Failure) -> FailureWire {
    let place = failure.place.as_ref();
    FailureWire {
        cluster: cluster(&failure.owner),
        owner: failure.owner.to_string(),
        side: failure.side.as_str(),
        change: failure.effect.as_str(),
        message: failure.reason.clone(),
        causes: failure.causes.clone(),
        inputs: failure.inputs.iter().map(input).collect(),
        file: place.map(|place| place.file.trim_start_matches('/').to_owned()),
        line: place.map(|place| place.at.line).filter(|line| *line > 0),
    }
}

fn input(change: &InputChange) -> InputWire {
    InputWire {
        input: change.input.clone(),
        from: change.from.as_ref().map(ToString::to_string),
        to: change.to.as_ref().map(ToString::to_string),
        hidden: change.hidden,
    }
}

fn cause(cause: &Cause) -> CauseWire {
    CauseWire {
        file: cause.place.file.trim_start_matches('/').to_owned(),
        line: cause.place.at.line,
        name: (!cause.name.is_empty()).then(|| cause.name.to_string()),
    }
}

fn field(field: &Field) -> FieldWire {
    let (word, from, to) = match &field.difference {
        Difference::Added(new) => ("added", None, value(new)),
        Difference::Removed(old) => ("removed", value(old), None),
        Difference::Changed(old, new) => ("changed", value(old), value(new)),
        Difference::Reordered(old, new) => ("reordered", Some(names(old)), Some(names(new))),
    };
    FieldWire {
        path: field.path.dotted().to_string(),
        change: word,
        hidden: from.is_none() && to.is_none(),
        from,
        to,
        restarts: field.restarts,
        follows: field.follows.as_ref().map(ToString::to_string),
    }
}

fn value(shown: &Shown) -> Option<Value> {
    shown.node().map(tree)
}

/// A tree as JSON; one that JSON cannot say, such as an infinite number, as text.
fn tree(node: &Node) -> Value {
    let text = to_json(node).ok();
    let value = text.and_then(|text| serde_json::from_str(&text).ok());
    value.unwrap_or_else(|| Value::String("(cannot be written as JSON)".to_owned()))
}

fn names(keys: &[Text]) -> Value {
    keys.iter()
        .map(|key| Value::String(key.to_string()))
        .collect()
}

fn object(id: &ObjectId) -> ObjectWire {
    ObjectWire {
        api_version: id.gvk.api_version(),
        kind: id.gvk.kind.to_string(),
        namespace: id.namespace.to_string(),
        name: id.name.to_string(),
    }
}

fn image(image: &ImageChange) -> ImageWire {
    ImageWire {
        image: image.name.to_string(),
        from: image.from.as_ref().map(ToString::to_string),
        to: image.to.as_ref().map(ToString::to_string),
        objects: image.objects.iter().map(object).collect(),
    }
}

fn danger(danger: &Finding) -> DangerWire {
    let owner = danger.owner.as_ref();
    DangerWire {
        id: danger.rule.id,
        level: danger.severity,
        object: danger.object.as_ref().map(object),
        cluster: owner.and_then(cluster),
        owner: owner.map(ToString::to_string),
        path: danger.field.clone(),
        message: danger.message(),
        hint: danger.hints.first().cloned(),
        file: danger.file().map(str::to_owned),
        line: danger.line(),
    }
}
