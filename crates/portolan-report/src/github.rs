//! Workflow commands of GitHub Actions: lines that the pull request shows beside the code.

use std::fmt::Write as _;

use crate::entry::{Entry, Severity};

/// One command a line; accepted entries are left out.
pub fn github(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries.iter().filter(|entry| entry.accepted.is_none()) {
        let command = match entry.severity {
            Severity::Note => "notice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let mut properties = Vec::new();
        if let Some(file) = &entry.file {
            properties.push(format!("file={}", property(file)));
        }
        if let Some(line) = entry.line {
            properties.push(format!("line={line}"));
        }
        if let Some(column) = entry.column {
            properties.push(format!("col={column}"));
        }
        let title = [entry.rule, &entry.subject].join(" ");
        properties.push(format!("title={}", property(title.trim_end())));
        let _ = writeln!(
            text,
            "::{command} {}::{}",
            properties.join(","),
            data(&entry.message)
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
    use super::*;

    #[test]
    fn what_would_end_a_property_is_escaped() {
        let entry = Entry {
            id: "1".into(),
            rule: "removed",
            severity: Severity::Error,
            subject: "Ingress shop/web".into(),
            message: "100%\ngone".into(),
            file: Some("a,b:c.yaml".into()),
            line: Some(3),
            column: Some(1),
            accepted: None,
        };
        assert_eq!(
            github(&[entry]),
            "::error file=a%2Cb%3Ac.yaml,line=3,col=1,title=removed Ingress shop/web::100%25%0Agone\n"
        );
    }
}
