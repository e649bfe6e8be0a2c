//! `Repository`: a Git repository or a directory whose objects are applied.

use portolan_object::{FieldPath, NameRule};
use serde_json::Value;

use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule, FixedValue};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Repository",
    plural: "repositories",
    short_names: &["repo"],
    is_namespaced: false,
    spec: "RepositorySpec",
    status: Some("RepositoryStatus"),
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "url",
            demand: FieldDemand::Length(2_000),
        },
        FieldRule {
            path: "dir",
            demand: FieldDemand::Length(2_000),
        },
        FieldRule {
            path: "ref",
            demand: FieldDemand::Length(500),
        },
        FieldRule {
            path: "path",
            demand: FieldDemand::Default(FixedValue::Text(".")),
        },
        FieldRule {
            path: "namespace",
            demand: FieldDemand::Name(NameRule::Label),
        },
        FieldRule {
            path: "serviceAccount",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "serviceAccount",
            demand: FieldDemand::Name(NameRule::Segment),
        },
        FieldRule {
            path: "prune",
            demand: FieldDemand::Default(FixedValue::Flag(true)),
        },
        FieldRule {
            path: "interval",
            demand: FieldDemand::Default(FixedValue::Text("5m")),
        },
        FieldRule {
            path: "interval",
            demand: FieldDemand::Span(1, 24 * 3600),
        },
        FieldRule {
            path: "suspend",
            demand: FieldDemand::Default(FixedValue::Flag(false)),
        },
    ],
    check,
    columns: &[
        Column::new("COMMIT", "status.commit"),
        Column::new("OBJECTS", "status.objects"),
        Column::new("ERROR", "status.error"),
        Column::wide("URL", "spec.url"),
        Column::wide("DIRECTORY", "spec.dir"),
        Column::wide("REF", "spec.ref"),
    ],
    selectable: &["spec.url"],
};

fn check(spec: &Value, faults: &mut Faults<'_>) {
    let path = FieldPath::top("spec");
    if spec.get("url").is_some() == spec.get("dir").is_some() {
        faults.add(&path, "must have either `url` or `dir`");
    }
    let directory = spec.get("path").and_then(Value::as_str).unwrap_or_default();
    if directory.starts_with('/') || directory.split('/').any(|part| part == "..") {
        faults.add(&path.key("path"), "must be a path inside the repository");
    }
}
