//! SARIF 2.1.0, as code scanning reads it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::entry::{Entry, Rule, Severity};

/// The tool that found the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
}

/// A log with one run.
pub fn sarif(tool: Tool<'_>, rules: &[Rule], entries: &[Entry]) -> String {
    let rules: Vec<Value> = rules
        .iter()
        .map(|rule| json!({"id": rule.name, "shortDescription": {"text": rule.meaning}}))
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": tool.name, "version": tool.version, "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": entries.iter().map(result).collect::<Vec<_>>(),
        }],
    });
    format!("{log:#}\n")
}

fn result(entry: &Entry) -> Value {
    let level = match entry.severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let mut result = json!({
        "ruleId": entry.rule,
        "level": level,
        "message": {"text": message(entry)},
        "partialFingerprints": {"portolan/v1": entry.id},
    });
    if let Some(file) = &entry.file {
        result["locations"] = json!([{"physicalLocation": location(entry, file)}]);
    }
    if let Some(reason) = &entry.accepted {
        result["suppressions"] = json!([{"kind": "external", "justification": reason}]);
    }
    result
}

fn message(entry: &Entry) -> String {
    match entry.subject.as_str() {
        "" => entry.message.clone(),
        subject => format!("{subject}: {}", entry.message),
    }
}

fn location(entry: &Entry, file: &str) -> Value {
    let mut location = json!({"artifactLocation": {"uri": uri(file)}});
    if let Some(line) = entry.line {
        let mut region = json!({"startLine": line});
        if let Some(column) = entry.column {
            region["startColumn"] = column.into();
        }
        location["region"] = region;
    }
    location
}

/// A path as a relative URI.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            other => {
                let _ = write!(uri, "%{other:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_its_place_and_fingerprint() {
        let entry = Entry {
            id: "0a1b".into(),
            rule: "removed",
            severity: Severity::Error,
            subject: "Ingress shop/web".into(),
            message: "is gone".into(),
            file: Some("my apps/web.yaml".into()),
            line: Some(3),
            column: None,
            accepted: Some("later".into()),
        };
        let tool = Tool {
            name: "portolan",
            version: "0.1.0",
        };
        let log: Value = serde_json::from_str(&sarif(tool, &[], &[entry])).unwrap();
        let result = &log["runs"][0]["results"][0];
        assert_eq!(result["message"]["text"], "Ingress shop/web: is gone");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "my%20apps/web.yaml");
        assert_eq!(place["region"]["startLine"], 3);
        assert_eq!(result["suppressions"][0]["justification"], "later");
    }
}
