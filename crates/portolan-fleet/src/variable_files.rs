//! Files of variables: a map of values by name, each with the line that it is in.

use portolan_yaml::{Dialect, Node, parse_bytes};
use serde_json::Value;

use crate::book::json;

/// The largest file of variables, in bytes.
pub const MAX_VARIABLE_FILE_BYTES: usize = 256 << 10;

/// The most variables of a file.
const MAX_VARIABLES: usize = 1_000;

/// A variable of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileVariable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// The line that it begins in, from 1.
    pub line: u32,
}

/// Whether a file that was read is an object of the fleet, and so no file of variables.
pub fn is_fleet_object(node: &Node) -> bool {
    node.get("apiVersion").is_some() && node.get("kind").is_some()
}

/// Reads a file of variables; one without any is empty.
///
/// # Errors
/// What is wrong with it, with file and line.
pub fn read_variable_file(file: &str, content: &[u8]) -> Result<Vec<FileVariable>, String> {
    if content.len() > MAX_VARIABLE_FILE_BYTES {
        let most = MAX_VARIABLE_FILE_BYTES >> 10;
        return Err(format!(
            "{file}: a file of variables has at most {most} KiB"
        ));
    }
    let documents = parse_bytes(content, Dialect::Kustomize).map_err(|errors| {
        let first = errors.first();
        format!(
            "{file}:{}:{}: {}",
            first.at.line, first.at.column, first.message
        )
    })?;
    let mut documents = documents.into_iter().filter(|document| !document.is_null());
    let Some(document) = documents.next() else {
        return Ok(Vec::new());
    };
    let at = |node: &Node| format!("{file}:{}:{}", node.at.line, node.at.column);
    if let Some(second) = documents.next() {
        return Err(format!(
            "{}: a file of variables is one document",
            at(&second)
        ));
    }
    let Some(map) = document.as_map() else {
        return Err(format!(
            "{}: a file of variables is a map of values by name",
            at(&document)
        ));
    };
    if is_fleet_object(&document) {
        return Err(format!(
            "{}: this is an object, not a file of variables",
            at(&document)
        ));
    }
    if map.len() > MAX_VARIABLES {
        return Err(format!(
            "{file}: a file of variables has at most {MAX_VARIABLES} of them"
        ));
    }
    let variables = map.iter().map(|entry| {
        let (name, key) = (entry.key.as_str(), entry.key.at);
        let place = format!("{file}:{}:{}", key.line, key.column);
        if !is_name(name) {
            return Err(format!(
                "{place}: `{}` must be a name of letters, digits and `_` that begins with a letter",
                name.escape_debug()
            ));
        }
        let value = json(&entry.value);
        let value = value.ok_or_else(|| format!("{place}: `{name}` is nothing that JSON has"))?;
        Ok(FileVariable {
            name: name.to_owned(),
            value,
            line: key.line,
        })
    });
    variables.collect()
}

/// Whether expressions can spell a name.
fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    let first = letters.next();
    first.is_some_and(|letter| letter.is_ascii_alphabetic() || letter == b'_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
        && name.len() <= 253
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_the_line_that_they_are_in() {
        let text = "# for all\nport: 8080\n\nlimits:\n  files: 10\n";
        let read = read_variable_file("vars/all.yaml", text.as_bytes()).expect("variables");
        let shown: Vec<(&str, Value, u32)> = read
            .iter()
            .map(|one| (one.name.as_str(), one.value.clone(), one.line))
            .collect();
        assert_eq!(
            shown,
            [
                ("port", json!(8080), 2),
                ("limits", json!({"files": 10}), 4)
            ]
        );
        assert_eq!(
            read_variable_file("empty.yaml", b"# nothing\n"),
            Ok(Vec::new())
        );
    }

    #[test]
    fn what_is_no_file_of_variables_is_told_with_its_line() {
        let many: Vec<String> = (0..=MAX_VARIABLES).map(|n| format!("v{n}: 1")).collect();
        let many = many.join("\n");
        let large = "#".repeat(MAX_VARIABLE_FILE_BYTES + 1);
        for (text, expected) in [
            ("a: 1\na: 2\n", "f.yaml:2"),
            ("a: [1\n", "f.yaml:"),
            ("- a\n", "f.yaml:1:1: a file of variables is a map"),
            ("a: 1\n---\nb: 2\n", "is one document"),
            ("a: 1\nb-c: 2\n", "f.yaml:2:1: `b-c` must be a name"),
            ("apiVersion: v1alpha\nkind: Variable\n", "this is an object"),
            (many.as_str(), "at most 1000 of them"),
            (large.as_str(), "at most 256 KiB"),
        ] {
            let why = read_variable_file("f.yaml", text.as_bytes()).expect_err(expected);
            assert!(why.contains(expected), "{why}");
        }
    }
}
