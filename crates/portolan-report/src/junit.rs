//! `JUnit`'s XML, as continuous integration reads it.

use std::fmt::Write as _;

/// One check with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What was checked.
    pub name: String,
    /// Where it stands: a file, a unit.
    pub class: String,
    /// How it went.
    pub outcome: Outcome,
}

/// How a check went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Well.
    Passed,
    /// Not well: the kind of failure and what is wrong.
    Failed {
        /// A word for the kind of failure.
        kind: String,
        /// What is wrong.
        message: String,
    },
    /// Not checked or accepted, with the reason.
    Skipped(String),
}

/// One suite of cases.
pub fn junit(suite: &str, cases: &[Case]) -> String {
    let count =
        |wanted: fn(&Outcome) -> bool| cases.iter().filter(|case| wanted(&case.outcome)).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n",
        escape(suite),
        cases.len(),
        count(|outcome| matches!(outcome, Outcome::Failed { .. })),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
    );
    for case in cases {
        let head = format!(
            "<testcase name=\"{}\" classname=\"{}\"",
            escape(&case.name),
            escape(&case.class)
        );
        let _ = match &case.outcome {
            Outcome::Passed => writeln!(text, "{head}/>"),
            Outcome::Failed { kind, message } => writeln!(
                text,
                "{head}><failure type=\"{}\" message=\"{}\"/></testcase>",
                escape(kind),
                escape(message)
            ),
            Outcome::Skipped(reason) => {
                writeln!(
                    text,
                    "{head}><skipped message=\"{}\"/></testcase>",
                    escape(reason)
                )
            }
        };
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

/// XML knows no control characters, not even escaped.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_counts_its_cases() {
        let failed = Outcome::Failed {
            kind: "removed".into(),
            message: "a < b & \"c\"\u{1}".into(),
        };
        let cases = [
            ("one", Outcome::Passed),
            ("two", failed),
            ("three", Outcome::Skipped("later".into())),
        ];
        let cases: Vec<Case> = cases
            .into_iter()
            .map(|(name, outcome)| Case {
                name: name.into(),
                class: "a.yaml".into(),
                outcome,
            })
            .collect();
        let text = junit("audit", &cases);
        assert!(
            text.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""),
            "{text}"
        );
        assert!(
            text.contains("message=\"a &lt; b &amp; &quot;c&quot;\u{fffd}\""),
            "{text}"
        );
    }
}
