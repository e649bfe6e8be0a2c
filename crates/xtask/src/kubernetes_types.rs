//! The types of Kubernetes' own kinds, read from the `swagger.json` documents in its Go modules.
//!
//! All releases go into one text: a field that is the same in every release is one line; a field that was added,
//! removed or changed has a line for each form, with the releases that have it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::go_module;
use crate::served::{RELEASES, runs};

/// The releases that have something, by what it is.
type Seen = BTreeMap<String, Vec<u32>>;

/// Everything the releases say, merged.
#[derive(Default)]
struct Merged {
    /// Forms of each field (`name type` with a mark when required), by type.
    types: BTreeMap<String, Seen>,
    /// `APIVERSION KIND TYPE`.
    kinds: Seen,
}

const HEADER: &str = "\
# The types of Kubernetes' own kinds. Written by `cargo xtask gen kubernetes-types` from its OpenAPI documents.
#
#   type NAME                 begins a type; its fields follow, one a line
#     FIELD[!] TYPE [RANGE]   a field, `!` when it is required, and the minor releases that have it so when not all do
#   kind APIVERSION KIND NAME [RANGE]
#
# TYPE: string bool int32 int64 number bytes time quantity int-or-string any object, a NAME, [TYPE] or {TYPE} for lists
# and maps of them.
";

/// Makes the table's text.
pub(crate) fn generate() -> Result<String> {
    let mut merged = Merged::default();
    for (minor, version) in RELEASES {
        let path = "api/openapi-spec/swagger.json";
        let document = go_module::json("k8s.io/kubernetes", version, path)?;
        let definitions = document["definitions"]
            .as_object()
            .context("no definitions")?;
        for (name, definition) in definitions {
            merged
                .add(*minor, name, definition)
                .with_context(|| format!("unexpected `{name}` in {version}"))?;
        }
    }
    Ok(merged.print())
}

impl Merged {
    fn add(&mut self, minor: u32, name: &str, definition: &Value) -> Result<()> {
        if well_known(name).is_some() {
            return Ok(());
        }
        let Some(properties) = definition["properties"].as_object() else {
            return Ok(());
        };
        let required: Vec<&str> = definition["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let name = short(name);
        let fields = self.types.entry(name.clone()).or_default();
        for (field, property) in properties {
            let mark = if required.contains(&field.as_str()) {
                "!"
            } else {
                ""
            };
            let form = format!("{field}{mark} {}", type_of(property)?);
            fields.entry(form).or_default().push(minor);
        }
        if let Some(kind) = kind_of(definition, properties) {
            let row = format!("{kind} {name}");
            self.kinds.entry(row).or_default().push(minor);
        }
        Ok(())
    }

    fn print(&self) -> String {
        let mut text = HEADER.to_owned();
        for (name, fields) in &self.types {
            let _ = writeln!(text, "type {name}");
            print_rows(&mut text, "  ", fields);
        }
        print_rows(&mut text, "kind ", &self.kinds);
        text
    }
}

fn print_rows(text: &mut String, prefix: &str, rows: &Seen) {
    for (row, minors) in rows {
        for (since, until) in runs(minors) {
            let _ = writeln!(text, "{prefix}{row}{}", range(since, until));
        }
    }
}

/// Nothing for all releases, else ` SINCE-UNTIL` with an open end for the newest.
fn range(since: u32, until: u32) -> String {
    let (first, last) = (
        RELEASES.first().map(|release| release.0),
        RELEASES.last().map(|release| release.0),
    );
    match (Some(since) == first, Some(until) == last) {
        (true, true) => String::new(),
        (_, true) => format!(" {since}-"),
        _ => format!(" {since}-{until}"),
    }
}

/// `APIVERSION KIND` of a type that is an object of its own: it has object metadata and one group-version-kind.
fn kind_of(definition: &Value, properties: &Map<String, Value>) -> Option<String> {
    let [gvk] = definition["x-kubernetes-group-version-kind"]
        .as_array()?
        .as_slice()
    else {
        return None;
    };
    let metadata = properties.get("metadata")?["$ref"].as_str()?;
    if !metadata.ends_with("ObjectMeta") {
        return None;
    }
    let (group, version) = (gvk["group"].as_str()?, gvk["version"].as_str()?);
    let slash = if group.is_empty() { "" } else { "/" };
    Some(format!("{group}{slash}{version} {}", gvk["kind"].as_str()?))
}

fn type_of(property: &Value) -> Result<String> {
    if let Some(reference) = property["$ref"].as_str() {
        let name = reference.trim_start_matches("#/definitions/");
        return Ok(well_known(name).map_or_else(|| short(name), str::to_owned));
    }
    let format = property["format"].as_str().unwrap_or("");
    Ok(match (property["type"].as_str(), format) {
        (Some("string"), "byte") => "bytes".to_owned(),
        (Some("string"), "date-time") => "time".to_owned(),
        (Some("string"), "int-or-string") => "int-or-string".to_owned(),
        (Some("string"), "") => "string".to_owned(),
        (Some("boolean"), _) => "bool".to_owned(),
        (Some("integer"), "int32") => "int32".to_owned(),
        (Some("integer"), _) => "int64".to_owned(),
        (Some("number"), _) => "number".to_owned(),
        (Some("array"), _) => format!("[{}]", type_of(&property["items"])?),
        (Some("object"), _) => match &property["additionalProperties"] {
            Value::Object(_) => format!("{{{}}}", type_of(&property["additionalProperties"])?),
            _ => "object".to_owned(),
        },
        (None, _) => "any".to_owned(),
        (Some(other), format) => bail!("no type for `{other}` with format `{format}`"),
    })
}

/// Types whose text form is not what their definition says.
fn well_known(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once(".pkg.")?.1 {
        "api.resource.Quantity" => "quantity",
        "apis.meta.v1.Time" | "apis.meta.v1.MicroTime" => "time",
        "apis.meta.v1.FieldsV1" | "apis.meta.v1.Patch" | "runtime.RawExtension" => "object",
        "util.intstr.IntOrString" => "int-or-string",
        rest => match rest.rsplit('.').next()? {
            "JSON"
            | "JSONSchemaPropsOrArray"
            | "JSONSchemaPropsOrBool"
            | "JSONSchemaPropsOrStringArray" => "any",
            _ => return None,
        },
    })
}

/// `io.k8s.api.apps.v1.Deployment` is `apps.v1.Deployment`: the last three parts tell all types apart.
fn short(name: &str) -> String {
    let mut parts: Vec<&str> = name.rsplitn(4, '.').take(3).collect();
    parts.reverse();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_named_only_when_it_is_not_all_releases() {
        assert_eq!(range(29, 36), "");
        assert_eq!(range(31, 36), " 31-");
        assert_eq!(range(29, 33), " 29-33");
    }

    #[test]
    fn lists_and_maps_name_what_they_hold() {
        let property = serde_json::json!({"type": "array", "items": {"type": "object", "additionalProperties": {
            "$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"}}});
        assert_eq!(type_of(&property).expect("a type"), "[{quantity}]");
    }
}
