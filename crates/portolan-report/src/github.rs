//! Workflow commands of GitHub Actions: lines that the pull request shows beside the code.

use std::fmt::Write as _;

use portolan_object::{Finding, Severity};

/// One command a line; accepted findings are left out.
pub fn github(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings.iter().filter(|finding| finding.accepted.is_none()) {
        let command = match finding.severity {
            Severity::Note => "notice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let mut properties = Vec::new();
        if let Some(file) = finding.file() {
            properties.push(format!("file={}", property(file)));
        }
        if let Some(line) = finding.line() {
            properties.push(format!("line={line}"));
        }
        if let Some(column) = finding.column() {
            properties.push(format!("col={column}"));
        }
        let title = [finding.rule.id, &finding.subject()].join(" ");
        properties.push(format!("title={}", property(title.trim_end())));
        let _ = writeln!(
            text,
            "::{command} {}::{}",
            properties.join(","),
            data(&finding.message())
        );
    }
    text
}

fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use portolan_object::{Place, Rule};

    use super::*;

    #[test]
    fn what_would_end_a_property_is_escaped() {
        static RULE: Rule = Rule {
            id: "removed",
            severity: Severity::Error,
            summary: "",
            help: "",
        };
        let finding = Finding {
            object: "networking.k8s.io/v1/Ingress/shop/web".parse().ok(),
            place: Some(Place::line("a,b:c.yaml", 3)),
            ..Finding::new(&RULE, "100%\ngone")
        };
        assert_eq!(
            github(&[finding]),
            "::error file=a%2Cb%3Ac.yaml,line=3,col=1,title=removed Ingress shop/web::100%25%0Agone\n"
        );
    }
}
