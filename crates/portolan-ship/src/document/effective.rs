//! The document as it is understood: variables put in, defaults filled in, each value with where it comes from.

use std::fmt::Write as _;

use portolan_yaml::{Node, Value};

use super::adjust::{adjust, parts};
use super::{Adjustments, DocumentError, Ship, find};

/// The document as it is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    tree: Tree,
    /// Every value, in the document's order.
    pub values: Vec<EffectiveValue>,
}

/// One value of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveValue {
    /// `spec.artifacts[0].image`
    pub path: String,
    /// What it is.
    pub text: String,
    /// `portolan.yaml:12`, the same with the text that variables were put into, or `default`.
    pub from: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Tree {
    Map(Vec<(String, Self)>),
    List(Vec<Self>),
    Value { text: String, from: String },
}

/// Where a value comes from that nobody wrote.
const DEFAULT: &str = "default";

/// What holds for each way to build if nothing is said; lists are separated by spaces.
const DEFAULTS: &[(&str, &[(&str, &str)])] = &[
    (
        "oci",
        &[
            ("context", "."),
            ("base", "scratch"),
            ("platforms", "[linux/amd64]"),
            ("compression", "gzip"),
            ("buckets", "8"),
            ("mtime", "epoch"),
        ],
    ),
    (
        "command",
        &[
            ("dir", "."),
            ("timeout", "30m"),
            ("hermetic", "false"),
            ("output", "image"),
        ],
    ),
    (
        "dockerfile",
        &[
            ("context", "."),
            ("file", "Dockerfile"),
            ("engine", "auto"),
            ("timeout", "30m"),
        ],
    ),
];

/// Reads a document and says what is understood of it.
pub fn effective(
    text: &str,
    file: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    asked: &Adjustments,
) -> Result<Effective, DocumentError> {
    let written = adjust(&find(text)?, asked).map_err(DocumentError::Faults)?;
    let (ship, filled) = Ship::read_document(&written, variable, asked)?;
    let mut tree = tree(&written, &filled, file);
    for (path, _) in &asked.set {
        let parts = parts(path).unwrap_or_default();
        if let Some(spec) = tree.get("spec") {
            spec.mark(&parts, &format!("--set {path}"));
        }
    }
    if let Some(spec) = tree.get("spec") {
        mark_placement(spec, &ship, asked);
    }
    add_defaults(&mut tree);
    let mut values = Vec::new();
    list(&tree, String::new(), &mut values);
    Ok(Effective { tree, values })
}

/// Says what the command line sends elsewhere, and what the document said before.
fn mark_placement(spec: &mut Tree, ship: &Ship, asked: &Adjustments) {
    if let Some(prefix) = &asked.registry {
        let artifacts = spec.get("artifacts").map(Tree::items).unwrap_or_default();
        for (tree, artifact) in artifacts.iter_mut().zip(&ship.artifacts) {
            if let Some(Tree::Value { text, from }) = tree.get("image") {
                *from = format!("--registry {prefix}, {from} `{text}`");
                text.clone_from(&artifact.image);
            }
        }
    }
    if asked.namespace.is_some() {
        let mark = |items: Option<&mut Tree>| {
            for item in items.map(Tree::items).unwrap_or_default() {
                item.mark(&["namespace".to_owned()], "--namespace");
            }
        };
        mark(spec.get("deploy"));
        mark(spec.get("verify"));
        mark(spec.get("dev").and_then(|dev| dev.get("forward")));
    }
}

impl Effective {
    /// The document as YAML, with a comment after each value.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        write_tree(&self.tree, 0, false, &mut text);
        text
    }
}

impl Tree {
    /// Says of everything below a path that it comes from elsewhere.
    fn mark(&mut self, path: &[String], origin: &str) {
        match (self, path) {
            (Self::Value { from, .. }, []) => origin.clone_into(from),
            (Self::Map(entries), []) => {
                let values = entries.iter_mut().map(|(_, value)| value);
                values.for_each(|value| value.mark(&[], origin));
            }
            (Self::List(items), []) => items.iter_mut().for_each(|item| item.mark(&[], origin)),
            (Self::Map(entries), [part, rest @ ..]) => {
                let found = entries.iter_mut().find(|(key, _)| key == part);
                if let Some((_, value)) = found {
                    value.mark(rest, origin);
                }
            }
            (Self::List(items), [part, rest @ ..]) => {
                let by_name = items.iter().position(|item| item.has_name(part));
                let at = by_name.or_else(|| part.parse().ok());
                if let Some(item) = at.and_then(|at| items.get_mut(at)) {
                    item.mark(rest, origin);
                }
            }
            (Self::Value { .. }, _) => {}
        }
    }

    fn has_name(&self, name: &str) -> bool {
        let Self::Map(entries) = self else {
            return false;
        };
        let is_name = |(key, value): &(String, Self)| {
            key == "name" && matches!(value, Self::Value { text, .. } if text == name)
        };
        entries.iter().any(is_name)
    }
}

/// Both have the same shape: variables are put into texts only.
fn tree(written: &Node, filled: &Node, file: &str) -> Tree {
    match (&written.value, &filled.value) {
        (Value::Map(written), Value::Map(filled)) => {
            let entries = written.iter().zip(filled.iter());
            let entries = entries.map(|(written, filled)| {
                let key = filled.key.as_str().to_owned();
                (key, tree(&written.value, &filled.value, file))
            });
            Tree::Map(entries.collect())
        }
        (Value::List(written), Value::List(filled)) => {
            let items = written.iter().zip(filled.iter());
            Tree::List(
                items
                    .map(|(written, filled)| tree(written, filled, file))
                    .collect(),
            )
        }
        (_, Value::Scalar(scalar)) => {
            let line = filled.at.line;
            let before = written
                .as_scalar()
                .map_or("", |scalar| scalar.text.as_str());
            let from = if before == scalar.text.as_str() {
                format!("{file}:{line}")
            } else {
                format!("{file}:{line} `{before}`")
            };
            Tree::Value {
                text: scalar.text.to_string(),
                from,
            }
        }
        _ => Tree::Map(Vec::new()),
    }
}

fn add_defaults(document: &mut Tree) {
    let Some(Tree::List(artifacts)) = document.get("spec").and_then(|spec| spec.get("artifacts"))
    else {
        return;
    };
    for artifact in artifacts {
        for (kind, defaults) in DEFAULTS {
            let Some(fields) = artifact.get(kind) else {
                continue;
            };
            fill_in(fields, defaults);
            let makes_files =
                matches!(fields.get("output"), Some(Tree::Value { text, .. }) if text == "files");
            if makes_files {
                if fields.get("oci").is_none() {
                    fields.push("oci", Tree::Map(Vec::new()));
                }
                if let (Some(oci), Some((_, defaults))) = (fields.get("oci"), DEFAULTS.first()) {
                    fill_in(oci, defaults);
                }
            }
        }
    }
}

fn fill_in(fields: &mut Tree, defaults: &[(&str, &str)]) {
    // `oci:` with nothing after it has all defaults.
    if matches!(fields, Tree::Value { .. }) {
        *fields = Tree::Map(Vec::new());
    }
    for (name, text) in defaults {
        if fields.get(name).is_some() {
            continue;
        }
        let value = |text: &str| Tree::Value {
            text: text.to_owned(),
            from: DEFAULT.to_owned(),
        };
        let list = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        fields.push(
            name,
            match list {
                Some(items) => Tree::List(items.split(' ').map(value).collect()),
                None => value(text),
            },
        );
    }
}

impl Tree {
    fn get(&mut self, key: &str) -> Option<&mut Self> {
        match self {
            Self::Map(entries) => {
                let found = entries.iter_mut().find(|(name, _)| name == key);
                found.map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The items of a list; none of what is no list.
    fn items(&mut self) -> &mut [Self] {
        match self {
            Self::List(items) => items,
            _ => &mut [],
        }
    }

    fn push(&mut self, key: &str, value: Self) {
        if let Self::Map(entries) = self {
            entries.push((key.to_owned(), value));
        }
    }
}

fn list(tree: &Tree, path: String, values: &mut Vec<EffectiveValue>) {
    match tree {
        Tree::Map(entries) => {
            for (key, value) in entries {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                list(value, path, values);
            }
        }
        Tree::List(items) => {
            for (at, item) in items.iter().enumerate() {
                list(item, format!("{path}[{at}]"), values);
            }
        }
        Tree::Value { text, from } => values.push(EffectiveValue {
            path,
            text: text.clone(),
            from: from.clone(),
        }),
    }
}

/// Writes a value; `inline` if it begins behind the dash of a list.
fn write_tree(tree: &Tree, indent: usize, inline: bool, out: &mut String) {
    let pad = " ".repeat(indent);
    match tree {
        Tree::Map(entries) if entries.is_empty() => out.push_str("{}\n"),
        Tree::List(items) if items.is_empty() => out.push_str("[]\n"),
        Tree::Map(entries) => {
            for (at, (key, value)) in entries.iter().enumerate() {
                if at > 0 || !inline {
                    out.push_str(&pad);
                }
                let _ = write!(out, "{}:", scalar(key));
                match value {
                    Tree::Map(entries) if !entries.is_empty() => out.push('\n'),
                    Tree::List(items) if !items.is_empty() => out.push('\n'),
                    _ => out.push(' '),
                }
                let deeper = indent + if matches!(value, Tree::List(_)) { 0 } else { 2 };
                write_tree(value, deeper, false, out);
            }
        }
        Tree::List(items) => {
            for item in items {
                let _ = write!(out, "{pad}- ");
                write_tree(item, indent + 2, true, out);
            }
        }
        Tree::Value { text, from } => {
            let _ = writeln!(out, "{} # {}", scalar(text), from.replace('\n', " "));
        }
    }
}

/// A text as YAML that is read back as the same text.
fn scalar(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./-".contains(letter);
    let is_word = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    let is_number = text.len() < 10
        && !text.starts_with('0')
        && !text.is_empty()
        && text.chars().all(|digit| digit.is_ascii_digit());
    let is_other = ["y", "n", "yes", "no", "on", "off", "null", "nan"]
        .contains(&text.to_ascii_lowercase().as_str());
    if (is_word && text.chars().all(is_plain) && !is_other) || is_number {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}
