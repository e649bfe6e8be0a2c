//! SARIF 2.1.0, as code scanning reads it.

use std::fmt::Write as _;

use portolan_object::{Finding, Rule};
use serde_json::{Value, json};

/// The tool that found them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
}

/// A log with one run.
pub fn sarif(tool: Tool<'_>, rules: &[&Rule], findings: &[Finding]) -> String {
    let rules: Vec<Value> = rules
        .iter()
        .map(|rule| json!({"id": rule.id, "shortDescription": {"text": rule.summary}}))
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": tool.name, "version": tool.version, "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    });
    format!("{log:#}\n")
}

fn result(finding: &Finding) -> Value {
    let mut result = json!({
        "ruleId": finding.rule.id,
        "level": finding.severity,
        "message": {"text": message(finding)},
        "partialFingerprints": {"portolan/v1": finding.fingerprint()},
    });
    if let Some(file) = finding.file() {
        result["locations"] = json!([{"physicalLocation": location(finding, file)}]);
    }
    if let Some(reason) = &finding.accepted {
        result["suppressions"] = json!([{"kind": "external", "justification": reason}]);
    }
    result
}

fn message(finding: &Finding) -> String {
    match finding.subject().as_str() {
        "" => finding.message(),
        subject => format!("{subject}: {}", finding.message()),
    }
}

fn location(finding: &Finding, file: &str) -> Value {
    let mut location = json!({"artifactLocation": {"uri": uri(file)}});
    if let Some(line) = finding.line() {
        let mut region = json!({"startLine": line});
        if let Some(column) = finding.column() {
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
    use portolan_object::{Place, Severity};

    use super::*;

    #[test]
    fn a_result_has_its_place_and_fingerprint() {
        static RULE: Rule = Rule {
            id: "removed",
            severity: Severity::Error,
            summary: "",
            help: "",
        };
        let finding = Finding {
            object: "networking.k8s.io/v1/Ingress/shop/web".parse().ok(),
            place: Some(Place::line("my apps/web.yaml", 3)),
            accepted: Some("later".into()),
            known_fingerprint: Some("0a1b".into()),
            ..Finding::new(&RULE, "is gone")
        };
        let tool = Tool {
            name: "portolan",
            version: "0.1.0",
        };
        let log: Value = serde_json::from_str(&sarif(tool, &[&RULE], &[finding])).unwrap();
        let result = &log["runs"][0]["results"][0];
        assert_eq!(result["level"], "error");
        assert_eq!(result["partialFingerprints"]["portolan/v1"], "0a1b");
        assert_eq!(result["message"]["text"], "Ingress shop/web: is gone");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "my%20apps/web.yaml");
        assert_eq!(place["region"]["startLine"], 3);
        assert_eq!(result["suppressions"][0]["justification"], "later");
    }
}
