//! Rules of the whole value, of texts and of numbers.

use portolan_gotmpl::Value;

use super::super::failure::{Failure, quoted};
use super::super::{format, number};
use super::{Checker, Work};
use crate::values::json;

impl Checker<'_> {
    /// `type`, `const`, `enum` and `format`: the first that fails is all that is told.
    pub(super) fn check_whole(&self, work: &Work<'_>) -> Result<(), Failure> {
        let (node, value) = (work.node, work.value);
        let got = type_of(value);
        let fits =
            |wanted: &&'static str| *wanted == got || (*wanted == "integer" && is_integer(value));
        if !node.types.is_empty() && !node.types.iter().any(fits) {
            let wanted = node.types.join(" or ");
            return Err(self.failure(work, format!("got {got}, want {wanted}")));
        }
        let json = std::cell::OnceCell::new();
        let json = || json.get_or_init(|| json::text(value)).as_str();
        if let Some(constant) = &node.constant
            && constant.json != json()
        {
            let told = match &constant.shown {
                Some(shown) => format!("value must be {shown}"),
                None => "'const' failed".to_owned(),
            };
            return Err(self.failure(work, told));
        }
        if let Some(allowed) = &node.allowed
            && !allowed.iter().any(|constant| constant.json == json())
        {
            let shown: Option<Vec<_>> = allowed.iter().map(|one| one.shown.as_deref()).collect();
            let told = match shown.as_deref() {
                Some([only]) => format!("value must be {only}"),
                Some(several) => format!("value must be one of {}", several.join(", ")),
                None => "'enum' failed".to_owned(),
            };
            return Err(self.failure(work, told));
        }
        if let (Some(name), Some(text)) = (&node.format, value.as_str())
            && let Err(reason) = format::check(name, text)
        {
            let told = format!("{} is not valid {name}: {reason}", quoted(text));
            return Err(self.failure(work, told));
        }
        Ok(())
    }

    pub(super) fn check_text(&self, work: &mut Work<'_>, text: &str) {
        let rules = &work.node.text;
        let length = text.chars().count();
        let shown = number::count;
        if let Some(min) = rules.min_length.filter(|min| length < *min) {
            let told = format!("minLength: got {}, want {}", shown(length), shown(min));
            self.fail(work, told);
        }
        if let Some(max) = rules.max_length.filter(|max| length > *max) {
            let told = format!("maxLength: got {}, want {}", shown(length), shown(max));
            self.fail(work, told);
        }
        if let Some(pattern) = &rules.pattern
            && !pattern.is_match(text)
        {
            let (text, pattern) = (quoted(text), quoted(pattern.as_str()));
            self.fail(work, format!("{text} does not match pattern {pattern}"));
        }
    }

    pub(super) fn check_number(&self, work: &mut Work<'_>, number: f64) {
        let rules = &work.node.number;
        let broken = [
            ("minimum", rules.minimum.filter(|min| number < *min)),
            ("maximum", rules.maximum.filter(|max| number > *max)),
            (
                "exclusiveMinimum",
                rules.exclusive_minimum.filter(|min| number <= *min),
            ),
            (
                "exclusiveMaximum",
                rules.exclusive_maximum.filter(|max| number >= *max),
            ),
            (
                "multipleOf",
                rules
                    .multiple_of
                    .filter(|of| !number::is_multiple(number, *of)),
            ),
        ];
        for (rule, wanted) in broken {
            if let Some(wanted) = wanted {
                let (got, wanted) = (number::display(number), number::display(wanted));
                self.fail(work, format!("{rule}: got {got}, want {wanted}"));
            }
        }
    }
}

pub(super) fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Float(_, number) => Some(*number),
        Value::Int(_, number) => Some(*number as f64),
        _ => None,
    }
}

fn is_integer(value: &Value) -> bool {
    number_of(value).is_some_and(|number| number.fract() == 0.0)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::Int(..) | Value::Float(..) => "number",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
        _ => "null",
    }
}
