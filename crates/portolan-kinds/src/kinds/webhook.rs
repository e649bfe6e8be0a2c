//! `Webhook`: makes events of requests that come from outside.

use portolan_object::{FieldPath, NameRule};
use portolan_trigger::{WebhookMapping, WebhookMappingSpec};
use serde_json::Value;

use super::trigger::add;
use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule, FixedValue};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Webhook",
    plural: "webhooks",
    short_names: &["hook"],
    is_namespaced: true,
    spec: "WebhookSpec",
    status: None,
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "format",
            demand: FieldDemand::Default(FixedValue::Text("json")),
        },
        FieldRule {
            path: "keys",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "keys.secret",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "keys.secret",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "keys.values",
            demand: FieldDemand::Items(10),
        },
        FieldRule {
            path: "replayWindow",
            demand: FieldDemand::Default(FixedValue::Text("5m")),
        },
        FieldRule {
            path: "replayWindow",
            demand: FieldDemand::Span(10, 3600),
        },
        FieldRule {
            path: "maxBytes",
            demand: FieldDemand::Default(FixedValue::Count(256 << 10)),
        },
        FieldRule {
            path: "maxBytes",
            demand: FieldDemand::Between(1_024, 1 << 20),
        },
        FieldRule {
            path: "allowBearer",
            demand: FieldDemand::Default(FixedValue::Flag(false)),
        },
        FieldRule {
            path: "suspend",
            demand: FieldDemand::Default(FixedValue::Flag(false)),
        },
    ],
    check,
    columns: &[
        Column::new("FORMAT", "spec.format"),
        Column::new("SECRET", "spec.keys.secret"),
        Column::new("BEARER", "spec.allowBearer"),
        Column::new("SUSPENDED", "spec.suspend"),
    ],
    selectable: &["spec.format"],
};

fn check(spec: &Value, faults: &mut Faults<'_>) {
    let path = FieldPath::top("spec").key("mapping");
    let is_json = spec.get("format").and_then(Value::as_str) == Some("json");
    match spec.get("mapping") {
        None if is_json => faults.add(&path, "must be there for the format `json`"),
        Some(_) if !is_json => faults.add(&path, "is for the format `json` only"),
        None => {}
        Some(mapping) => match serde_json::from_value::<WebhookMappingSpec>(mapping.clone()) {
            Ok(mapping) => {
                let found = WebhookMapping::new(&mapping).err().unwrap_or_default();
                add(&path, found, faults);
            }
            Err(error) => faults.add(&path, error.to_string()),
        },
    }
}
