//! `Secret`: secret texts, given directly or read from Vault.

use portolan_object::{FieldPath, NameRule};
use serde_json::Value;

use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Secret",
    plural: "secrets",
    short_names: &[],
    is_namespaced: true,
    spec: "SecretSpec",
    status: Some("SecretStatus"),
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "type",
            demand: FieldDemand::Length(100),
        },
        FieldRule {
            path: "values",
            demand: FieldDemand::Items(100),
        },
        FieldRule {
            path: "vault.path",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "vault.path",
            demand: FieldDemand::Length(500),
        },
        FieldRule {
            path: "vault.keys",
            demand: FieldDemand::Items(100),
        },
        FieldRule {
            path: "for.node",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "for.groups[]",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "for.groups",
            demand: FieldDemand::Items(100),
        },
    ],
    check,
    columns: &[
        Column::new("TYPE", "spec.type"),
        Column::new("KEYS", "status.keys"),
        Column::wide("VAULT", "spec.vault.path"),
    ],
    selectable: &["spec.type"],
};

/// No message repeats a value.
fn check(spec: &Value, faults: &mut Faults<'_>) {
    let path = FieldPath::top("spec");
    super::variable::check_target(spec, faults);
    if spec.get("values").is_some() && spec.get("vault").is_some() {
        faults.add(&path, "must have either `values` or `vault`");
    }
    let values = spec.get("values").and_then(Value::as_object);
    for key in values.into_iter().flat_map(|values| values.keys()) {
        if !NameRule::Key.fits(key) {
            faults.add(&path.key("values").key(key), NameRule::Key.to_string());
        }
    }
    let vault = spec.get("vault").and_then(|vault| vault.get("path"));
    let vault = vault.and_then(Value::as_str).unwrap_or_default();
    let is_inside = vault.split('/').all(|part| !matches!(part, ".." | "."));
    if vault.starts_with('/') || !is_inside || vault.contains(['?', '#', '%', '\\']) {
        let message = "must be a plain path below the prefix of the namespace";
        faults.add(&path.key("vault").key("path"), message);
    }
}
