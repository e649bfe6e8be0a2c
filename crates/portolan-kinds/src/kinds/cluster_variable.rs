//! `ClusterVariable`: values for the namespaces and groups that a binding names.

use portolan_object::{FieldPath, NameRule};
use serde_json::Value;

use super::variable::{VALUE_RULES, check_values};
use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "ClusterVariable",
    plural: "clustervariables",
    short_names: &["cvar"],
    is_namespaced: false,
    spec: "ClusterVariableSpec",
    status: None,
    names: NameRule::Subdomain,
    rules: &VALUE_RULES,
    check,
    columns: &[
        Column::new("VALUES", "spec.values"),
        Column::wide("COMPUTED", "spec.dynamic.expressions"),
    ],
    selectable: &[],
};

fn check(spec: &Value, faults: &mut Faults<'_>) {
    check_values(spec, &["values", "dynamic"], faults);
    let dynamic = spec.get("dynamic");
    if dynamic.is_some_and(|dynamic| dynamic.get("taskBook").is_some()) {
        let message = "needs a namespace, whose book it is: use a Variable";
        let path = FieldPath::top("spec").key("dynamic").key("taskBook");
        faults.add(&path, message);
    }
}
