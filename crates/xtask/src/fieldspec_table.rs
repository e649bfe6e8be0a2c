//! Turns `fieldspecs.txt` into static Rust tables: which fields the built-in transformers change.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};

const HEADER: &str = "\
//! The built-in field specs as static tables. Written by `cargo xtask gen` from `data/fieldspecs.txt`; do not edit.

use super::builtin::{Reference, Spec};

";

/// Makes the table from the committed data.
pub(crate) fn generate() -> Result<String> {
    render(include_str!("../../portolan-kustomize/data/fieldspecs.txt"))
}

fn render(text: &str) -> Result<String> {
    let mut sections: BTreeMap<&str, String> = BTreeMap::new();
    let mut references: Vec<(Row, String)> = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let (section, rest) = line
            .split_once(' ')
            .context("a line has a section and a spec")?;
        if section == "target" {
            references.push((Row::read(rest)?, String::new()));
        } else if section == "nameReference" {
            let (_, specs) = references
                .last_mut()
                .context("a reference follows its target")?;
            Row::read(rest)?.write(specs, "            ")?;
        } else {
            Row::read(rest)?.write(sections.entry(section).or_default(), "    ")?;
        }
    }
    let mut out = String::from(HEADER);
    for (section, rows) in sections {
        let name = constant(section);
        writeln!(
            out,
            "/// `{section}`\npub(super) static {name}: &[Spec] = &[\n{rows}];\n"
        )?;
    }
    writeln!(
        out,
        "/// `nameReference`\npub(super) static NAME_REFERENCE: &[Reference] = &["
    )?;
    for (target, rows) in references {
        let Row {
            group,
            version,
            kind,
            ..
        } = target;
        writeln!(
            out,
            "    Reference {{\n        group: {group:?},\n        version: {version:?},\n        kind: {kind:?},"
        )?;
        writeln!(out, "        referrers: &[\n{rows}        ],\n    }},")?;
    }
    Ok(out + "];\n")
}

/// `GROUP VERSION KIND PATH create?`, `-` for an empty word.
struct Row<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    path: &'a str,
    create: bool,
}

impl<'a> Row<'a> {
    fn read(rest: &'a str) -> Result<Self> {
        let mut words = rest
            .split(' ')
            .map(|word| if word == "-" { "" } else { word });
        let mut next = || words.next().context("a spec has four words");
        let (group, version, kind, path) = (next()?, next()?, next()?, next()?);
        Ok(Self {
            group,
            version,
            kind,
            path,
            create: words.next() == Some("create"),
        })
    }

    fn write(&self, out: &mut String, indent: &str) -> Result<()> {
        let Self {
            group,
            version,
            kind,
            path,
            create,
        } = self;
        writeln!(out, "{indent}Spec {{")?;
        writeln!(out, "{indent}    group: {group:?},")?;
        writeln!(out, "{indent}    version: {version:?},")?;
        writeln!(out, "{indent}    kind: {kind:?},")?;
        writeln!(out, "{indent}    path: {path:?},")?;
        writeln!(out, "{indent}    create: {create},")?;
        Ok(writeln!(out, "{indent}}},")?)
    }
}

fn constant(section: &str) -> String {
    let mut name = String::new();
    for letter in section.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}
