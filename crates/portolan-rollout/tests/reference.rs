//! The reference in the documentation names every field of the definition.

use portolan_rollout::crd_yaml;
use portolan_yaml::{Dialect, Node, parse_one};

const REFERENCE: &str = include_str!("../../../docs/rollout.md");

/// The names of the fields below a path of the definition.
fn fields(definition: &Node, path: &[&str]) -> Vec<String> {
    let versions = definition
        .at_path(&["spec", "versions"])
        .and_then(Node::as_list);
    let version = versions.and_then(|versions| versions.get(0));
    let mut node = version.and_then(|version| version.at_path(&["schema", "openAPIV3Schema"]));
    for key in path {
        node = node.and_then(|node| node.at_path(&["properties", key]));
    }
    let properties = node.and_then(|node| node.get("properties")?.as_map());
    properties
        .map(|map| map.keys().map(str::to_owned).collect())
        .unwrap_or_default()
}

#[test]
fn every_field_of_the_definition_is_in_the_reference() {
    let definition = parse_one(crd_yaml(), Dialect::Helm).expect("YAML");
    let (_, reference) = REFERENCE
        .split_once("## Reference of the kind")
        .expect("the section");
    for path in [
        ["spec"].as_slice(),
        &["spec", "service"],
        &["spec", "strategy"],
        &["spec", "analysis"],
    ] {
        let names = fields(&definition, path);
        assert!(!names.is_empty(), "{path:?}");
        for name in names {
            assert!(reference.contains(&format!("`{name}`")), "{path:?} {name}");
        }
    }
}
