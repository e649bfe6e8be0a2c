//! Queries with the placeholders of other tools.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Replaces `{{ NAME }}` by what a function says; returns the names that it does not know.
pub(super) fn replace_variables(
    query: &str,
    mut value: impl FnMut(&str) -> Option<String>,
) -> (String, Vec<String>) {
    let mut text = String::with_capacity(query.len());
    let mut unknown = Vec::new();
    let mut rest = query;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let Some((name, after)) = after.split_once("}}") else {
            text.push_str("{{");
            rest = after;
            continue;
        };
        match value(name.trim()) {
            Some(value) => text.push_str(&value),
            None => {
                unknown.push(name.trim().to_owned());
                let _ = write!(text, "{{{{{name}}}}}");
            }
        }
        rest = after;
    }
    text.push_str(rest);
    (text, unknown)
}

/// Reads a condition such as `result[0] >= 0.95` as the range of a number; `None` for anything richer.
pub(super) fn range_of(condition: &str, is_success: bool) -> Option<(&'static str, Value)> {
    let condition = condition.trim();
    let rest = condition
        .strip_prefix("result[0]")
        .or_else(|| condition.strip_prefix("result"))?
        .trim();
    let (is_least, number) =
        if let Some(number) = rest.strip_prefix(">=").or_else(|| rest.strip_prefix('>')) {
            (true, number)
        } else {
            let number = rest.strip_prefix("<=").or_else(|| rest.strip_prefix('<'))?;
            (false, number)
        };
    let number: f64 = number
        .trim()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())?;
    let bound = if is_least == is_success { "min" } else { "max" };
    Some((bound, json!(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_and_unknown_ones_named() {
        let (text, unknown) = replace_variables("a{n=\"{{ namespace }}\",x=\"{{y}}\"}", |name| {
            (name == "namespace").then(|| "$(namespace)".to_owned())
        });
        assert_eq!(text, "a{n=\"$(namespace)\",x=\"{{y}}\"}");
        assert_eq!(unknown, ["y"]);
    }

    #[test]
    fn simple_conditions_are_ranges() {
        assert_eq!(
            range_of("result[0] >= 0.95", true),
            Some(("min", json!(0.95)))
        );
        assert_eq!(range_of("result < 5", true), Some(("max", json!(5.0))));
        assert_eq!(range_of("result[0] > 5", false), Some(("max", json!(5.0))));
        assert_eq!(range_of("len(result) == 0 || result[0] > 1", true), None);
        assert_eq!(range_of("result[0] > NaN", true), None);
    }
}
