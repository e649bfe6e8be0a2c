//! Turns `schema.txt` into static Rust tables that need no work at program start.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};

const HEADER: &str = "\
//! The schema as static tables. Written by `cargo xtask gen` from `data/schema.txt`; do not edit.

use super::builtin::{Kind, Shape};

";

/// Makes the table from the committed data.
pub(crate) fn generate() -> Result<String> {
    render(include_str!("../../portolan-kustomize/data/schema.txt"))
}

fn render(extract: &str) -> Result<String> {
    let [mut nodes, mut kinds, mut definitions, mut cluster] = [const { String::new() }; 4];
    for line in extract.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["node", _, "object", fields @ ..] => object(&mut nodes, fields)?,
            ["node", _, "list", keys, element @ ..] => list(&mut nodes, keys, element)?,
            ["kind", version, kind, node] => kind_row(&mut kinds, version, kind, node)?,
            ["definition", name, node] => writeln!(definitions, "    ({name:?}, {node}),")?,
            ["cluster", version, kind] => writeln!(cluster, "    ({version:?}, {kind:?}),")?,
            _ => bail!("cannot read the line `{line}`"),
        }
    }
    Ok(format!(
        "{HEADER}/// Every node, by number.\npub(super) static SHAPES: &[Shape] = &[\n{nodes}];\n\n\
         /// Where each type starts, sorted by version and kind.\npub(super) static KINDS: &[Kind] = &[\n{kinds}];\n\n\
         /// Where each definition starts, sorted by name.\npub(super) static DEFINITIONS: &[(&str, u16)] = &[\n{definitions}];\n\n\
         /// The types without a namespace, sorted.\npub(super) static CLUSTER: &[(&str, &str)] = &[\n{cluster}];\n"
    ))
}

fn object(out: &mut String, fields: &[&str]) -> Result<()> {
    writeln!(out, "    Shape::Object(&[")?;
    for field in fields {
        let (name, node) = field.split_once('=').context("a field has no node")?;
        writeln!(out, "        ({name:?}, {node}),")?;
    }
    Ok(writeln!(out, "    ]),")?)
}

fn list(out: &mut String, keys: &str, element: &[&str]) -> Result<()> {
    let keys: Vec<&str> = keys.split(',').filter(|key| *key != "-").collect();
    let element = match element {
        [] => "None".to_owned(),
        [node] => format!("Some({node})"),
        _ => bail!("a list has one element node"),
    };
    Ok(writeln!(out, "    Shape::List(&{keys:?}, {element}),")?)
}

fn kind_row(out: &mut String, version: &str, kind: &str, node: &str) -> Result<()> {
    writeln!(out, "    Kind {{")?;
    writeln!(
        out,
        "        version: {version:?},\n        name: {kind:?},\n        node: {node},"
    )?;
    Ok(writeln!(out, "    }},")?)
}
