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

/// Cases that are counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// What holds for all of its cases, by name.
    pub properties: Vec<(String, String)>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// A document of suites.
pub fn junit(suites: &[Suite]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for suite in suites {
        write_suite(suite, &mut text);
    }
    text.push_str("</testsuites>\n");
    text
}

fn write_suite(suite: &Suite, text: &mut String) {
    let cases = &suite.cases;
    let count =
        |wanted: fn(&Outcome) -> bool| cases.iter().filter(|case| wanted(&case.outcome)).count();
    let _ = writeln!(
        text,
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">",
        escape(&suite.name),
        cases.len(),
        count(|outcome| matches!(outcome, Outcome::Failed { .. })),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
    );
    write_properties(&suite.properties, text);
    for case in cases {
        write_case(case, text);
    }
    text.push_str("</testsuite>\n");
}

fn write_properties(properties: &[(String, String)], text: &mut String) {
    if properties.is_empty() {
        return;
    }
    text.push_str("<properties>\n");
    for (name, value) in properties {
        let (name, value) = (escape(name), escape(value));
        let _ = writeln!(text, "<property name=\"{name}\" value=\"{value}\"/>");
    }
    text.push_str("</properties>\n");
}

fn write_case(case: &Case, text: &mut String) {
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
        let suite = Suite {
            name: "audit".to_owned(),
            properties: vec![("kubernetes".to_owned(), "1.36".to_owned())],
            cases,
        };
        let text = junit(&[suite]);
        assert!(
            text.contains("<property name=\"kubernetes\" value=\"1.36\"/>"),
            "{text}"
        );
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
