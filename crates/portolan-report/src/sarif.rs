//! SARIF 2.1.0, as code scanning reads it.

use std::fmt::Write as _;

use portolan_object::{Finding, Rule};
use portolan_yaml::Text;
use serde_json::{Value, json};

/// The tool that found them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
}

/// What holds for all findings of a run.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// The tool that found them.
    pub tool: Tool<'a>,
    /// The rules that they may name.
    pub rules: &'a [&'a Rule],
    /// Whether messages name clusters: there are several.
    pub names_clusters: bool,
    /// What else is to be known of the run; an object, or null for nothing.
    pub properties: Value,
}

/// A log with one run.
pub fn sarif(run: &Run<'_>, findings: &[Finding]) -> String {
    let tool = run.tool;
    let rules: Vec<Value> = run
        .rules
        .iter()
        .map(|rule| json!({"id": rule.id, "shortDescription": {"text": rule.summary}}))
        .collect();
    let results = findings.iter().map(|finding| result(run, finding));
    let mut log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": tool.name, "version": tool.version, "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    });
    if !run.properties.is_null() {
        log["runs"][0]["properties"] = run.properties.clone();
    }
    format!("{log:#}\n")
}

fn result(run: &Run<'_>, finding: &Finding) -> Value {
    let mut result = json!({
        "ruleId": finding.rule.id,
        "level": finding.severity,
        "message": {"text": message(run, finding)},
        "partialFingerprints": {"portolan/v1": finding.fingerprint()},
    });
    if let Some(file) = finding.file() {
        result["locations"] = json!([{"physicalLocation": location(finding, file)}]);
    }
    if !finding.clusters.is_empty() {
        let clusters: Vec<&str> = finding.clusters.iter().map(Text::as_str).collect();
        result["properties"] = json!({"clusters": clusters});
    }
    if let Some(reason) = &finding.accepted {
        result["suppressions"] = json!([{"kind": "external", "justification": reason}]);
    }
    result
}

fn message(run: &Run<'_>, finding: &Finding) -> String {
    let message = match finding.subject().as_str() {
        "" => finding.message(),
        subject => format!("{subject}: {}", finding.message()),
    };
    if !run.names_clusters || finding.clusters.is_empty() {
        return message;
    }
    let clusters: Vec<&str> = finding.clusters.iter().map(Text::as_str).collect();
    format!("{message} [{}]", clusters.join(", "))
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
        let run = Run {
            tool,
            rules: &[&RULE],
            names_clusters: true,
            properties: json!({"kubernetes": "1.36"}),
        };
        let finding = finding.in_cluster(&"production".into());
        let log: Value = serde_json::from_str(&sarif(&run, &[finding])).unwrap();
        assert_eq!(log["runs"][0]["properties"]["kubernetes"], "1.36");
        let result = &log["runs"][0]["results"][0];
        assert_eq!(result["level"], "error");
        assert_eq!(result["partialFingerprints"]["portolan/v1"], "0a1b");
        assert_eq!(
            result["message"]["text"],
            "Ingress shop/web: is gone [production]"
        );
        assert_eq!(result["properties"]["clusters"], json!(["production"]));
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "my%20apps/web.yaml");
        assert_eq!(place["region"]["startLine"], 3);
        assert_eq!(result["suppressions"][0]["justification"], "later");
    }
}
