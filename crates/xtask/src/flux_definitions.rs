//! The CRDs of Flux's kinds, read from the manifests in its controllers' Go modules.
//!
//! Descriptions, examples and the status are left out: nothing uses them, and they are most of the text.

use anyhow::{Context, Result};
use portolan_yaml::{Dialect, Map, Node, Value, parse_one, to_json};

use crate::go_module;

/// The controllers of one Flux release.
const MODULES: &[(&str, &str)] = &[
    ("helm-controller", "v1.6.4"),
    ("image-automation-controller", "v1.2.4"),
    ("image-reflector-controller", "v1.2.4"),
    ("kustomize-controller", "v1.9.5"),
    ("notification-controller", "v1.9.3"),
    ("source-controller", "v1.9.5"),
];

/// Makes the table: one definition a line.
pub(crate) fn generate() -> Result<String> {
    let mut text = String::new();
    for (controller, version) in MODULES {
        let module = format!("github.com/fluxcd/{controller}");
        let directory = go_module::directory(&module, version)?.join("config/crd/bases");
        let entries = std::fs::read_dir(&directory)
            .with_context(|| format!("cannot list `{}`", directory.display()))?;
        let mut files: Vec<_> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        files.sort();
        for file in files {
            let source = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read `{}`", file.display()))?;
            let mut definition = parse_one(source, Dialect::Helm)
                .with_context(|| format!("cannot parse `{}`", file.display()))?;
            strip(&mut definition, Inside::Keywords);
            text.push_str(&to_json(&definition)?);
            text.push('\n');
        }
    }
    Ok(text)
}

/// Whether a map's keys are names of fields or words of the schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Keywords,
    Names,
}

fn strip(node: &mut Node, inside: Inside) {
    match &mut node.value {
        Value::Map(map) => strip_map(map, inside),
        Value::List(list) => {
            for item in list.items_mut() {
                strip(item, Inside::Keywords);
            }
        }
        Value::Scalar(_) => {}
    }
}

fn strip_map(map: &mut Map, inside: Inside) {
    if inside == Inside::Keywords {
        for unused in [
            "additionalPrinterColumns",
            "annotations",
            "description",
            "example",
        ] {
            map.remove(unused);
        }
    } else {
        if let Some(status) = map.get_mut("status") {
            *status = Node::new(Value::Map(Map::new()));
        }
        // Which kinds a reference may name is widened by whoever installs more of Flux.
        if let Some(kind) = map.get_mut("kind").and_then(Node::as_map_mut) {
            kind.remove("enum");
        }
    }
    for entry in map.entries_mut() {
        let names = inside == Inside::Keywords && entry.key.as_str() == "properties";
        let below = if names {
            Inside::Names
        } else {
            Inside::Keywords
        };
        strip(&mut entry.value, below);
    }
}
