//! Selectors of series, as text, and the placeholders of queries that users write.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A selector of series that grows by matchers.
#[derive(Debug, Clone)]
pub(crate) struct Selector {
    metric: &'static str,
    matchers: Vec<String>,
}

impl Selector {
    pub(crate) fn new(metric: &'static str) -> Self {
        Self {
            metric,
            matchers: Vec::new(),
        }
    }

    /// Wants a label to have exactly this value.
    pub(crate) fn equal(mut self, label: &str, value: &str) -> Self {
        self.matchers.push(format!("{label}={}", quoted(value)));
        self
    }

    /// Wants a label to have one of these values.
    pub(crate) fn one_of<'a>(
        mut self,
        label: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let values: Vec<String> = values.into_iter().map(literal).collect();
        let pattern = quoted(&values.join("|"));
        self.matchers.push(format!("{label}=~{pattern}"));
        self
    }

    pub(crate) fn all(self, labels: &BTreeMap<String, String>) -> Self {
        let labels = labels.iter();
        labels.fold(self, |selector, (label, value)| {
            selector.equal(label, value)
        })
    }

    /// Returns the selector as it is written.
    pub(crate) fn text(&self) -> String {
        format!("{}{{{}}}", self.metric, self.matchers.join(","))
    }
}

/// Returns a range of raw samples that ends at the moment of the query.
pub(crate) fn range(selector: &str, milliseconds: i64) -> String {
    format!("{selector}[{}ms]", milliseconds.max(1))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                let _ = write!(quoted, "\\{letter}");
            }
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// An expression that matches this text only.
fn literal(text: &str) -> String {
    let mut literal = String::new();
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$".contains(letter) {
            literal.push('\\');
        }
        literal.push(letter);
    }
    literal
}

/// Fills the placeholders of a text in: `$(slot)` and its like. An error names the placeholders that there are.
pub(crate) fn fill_in(text: &str, values: &[(&str, &str)]) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("$(") {
        let (before, after) = rest.split_at(start);
        filled.push_str(before);
        let after = &after[2..];
        let end = after.find(')').unwrap_or(after.len());
        let name = &after[..end];
        let Some((_, value)) = values.iter().find(|(known, _)| *known == name) else {
            let known: Vec<String> = values
                .iter()
                .map(|(known, _)| format!("$({known})"))
                .collect();
            return Err(format!(
                "`$({name})` is no placeholder; there are {}",
                known.join(", ")
            ));
        };
        filled.push_str(value);
        rest = after.get(end + 1..).unwrap_or_default();
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_for_themselves_whatever_is_in_them() {
        let selector = Selector::new("m")
            .equal("a", "x\"\\y")
            .one_of("b", ["a.b", "c"]);
        assert_eq!(selector.text(), r#"m{a="x\"\\y",b=~"a\\.b|c"}"#);
        assert_eq!(range("m", 2_500), "m[2500ms]");
    }

    #[test]
    fn placeholders_are_filled_in_and_unknown_ones_are_refused() {
        let values = [("slot", "web-b"), ("arm", "canary")];
        assert_eq!(
            fill_in("m{s=\"$(slot)\"} $x $(arm)", &values).as_deref(),
            Ok("m{s=\"web-b\"} $x canary")
        );
        assert_eq!(
            fill_in("$(pod)", &values),
            Err("`$(pod)` is no placeholder; there are $(slot), $(arm)".to_owned())
        );
        assert!(fill_in("$(slot", &values).is_ok_and(|text| text == "web-b"));
    }
}
