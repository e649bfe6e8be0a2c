//! Objects as text: names, ages, cells of tables, YAML.

use std::time::{SystemTime, UNIX_EPOCH};

use portolan_kinds::{KindDefinition, field_text};
use portolan_yaml::{from_json, write_kustomize};
use serde_json::Value;

use crate::error::CommandError;
use crate::table::{Cell, Tone};

/// `variable/region`
pub(crate) fn name(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    format!("{kind}/{}", text(object, "metadata.name"))
}

/// A field as text; lists joined by commas. `*` stands for every item of a list, a number for one.
pub(crate) fn text(object: &Value, path: &str) -> String {
    at(object, &path.split('.').collect::<Vec<_>>())
}

fn at(value: &Value, steps: &[&str]) -> String {
    let Some((step, rest)) = steps.split_first() else {
        return field_text(value);
    };
    match (*step, value) {
        ("*", Value::Array(items)) => {
            let texts: Vec<String> = items.iter().map(|item| at(item, rest)).collect();
            texts.join(",")
        }
        (step, Value::Array(items)) => {
            let item = step
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get(index));
            item.map_or_else(String::new, |item| at(item, rest))
        }
        (step, value) => value
            .get(step)
            .map_or_else(String::new, |value| at(value, rest)),
    }
}

/// The cells of an object's row: namespace if wanted, name, columns of the kind, age.
pub(crate) fn row(
    kind: &KindDefinition,
    object: &Value,
    is_wide: bool,
    with_namespace: bool,
) -> Vec<Cell> {
    let mut cells = Vec::new();
    if with_namespace {
        cells.push(Cell::whole(text(object, "metadata.namespace")));
    }
    cells.push(Cell::name(text(object, "metadata.name")));
    for column in kind
        .columns
        .iter()
        .filter(|column| is_wide || !column.is_wide)
    {
        let text = text(object, column.path);
        let tone = tone_of(column.title, &text);
        cells.push(Cell::new(
            if text.is_empty() {
                "-".to_owned()
            } else {
                text
            },
            tone,
        ));
    }
    cells.push(Cell::from(age(&text(object, "metadata.creationTimestamp"))));
    cells
}

/// The titles of the same row.
pub(crate) fn titles(
    kind: &KindDefinition,
    is_wide: bool,
    with_namespace: bool,
) -> Vec<&'static str> {
    let mut titles = Vec::new();
    if with_namespace {
        titles.push("NAMESPACE");
    }
    titles.push("NAME");
    let columns = kind
        .columns
        .iter()
        .filter(|column| is_wide || !column.is_wide);
    titles.extend(columns.map(|column| column.title));
    titles.push("AGE");
    titles
}

fn tone_of(title: &str, text: &str) -> Tone {
    match (title, text) {
        (_, "ready" | "active") => Tone::Good,
        (_, "terminating" | "warning" | "suspect" | "link-lost") => Tone::Warning,
        ("ERROR", text) if !text.is_empty() => Tone::Bad,
        (_, "down" | "error") => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// How long ago a time was: `5s`, `3m`, `2h`, `9d`.
pub(crate) fn age(time: &str) -> String {
    let Some(passed) = seconds_since(time) else {
        return "-".to_owned();
    };
    match passed.max(0) {
        seconds @ 0..=119 => format!("{seconds}s"),
        seconds @ 120..=7_199 => format!("{}m", seconds / 60),
        seconds @ 7_200..=172_799 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// How many seconds ago a time was by this machine's clock; negative for one that is to come.
pub(crate) fn seconds_since(time: &str) -> Option<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs());
    i64::try_from(now)
        .ok()?
        .checked_sub(i64::try_from(seconds(time)?).ok()?)
}

/// The seconds since 1970 of a time such as `2026-11-17T19:00:00Z`.
fn seconds(time: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| time.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    // Days before the year and month, with March as the first month so that leap days come last.
    let (shifted, months) = if month > 2 {
        (year, month - 3)
    } else {
        (year.checked_sub(1)?, month + 9)
    };
    let days =
        shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + (months * 153 + 2) / 5 + day;
    let days = days.checked_sub(719_469)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// An answer as YAML.
pub(crate) fn yaml(value: &Value) -> Result<String, CommandError> {
    let node = from_json(&value.to_string()).map_err(|error| CommandError::usage(error.message))?;
    write_kustomize(&node).map_err(CommandError::user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2000-03-01T00:00:00Z"), Some(951_868_800));
        assert_eq!(seconds("2026-11-17T19:00:00Z"), Some(1_794_942_000));
        assert_eq!(seconds(""), None);
    }

    #[test]
    fn fields_are_found_in_lists() {
        let object = serde_json::json!({"spec": {"subjects": [{"name": "a"}, {"name": "b"}], "rules": [{"verbs": ["x", "y"]}]}});
        assert_eq!(text(&object, "spec.subjects.*.name"), "a,b");
        assert_eq!(text(&object, "spec.rules.0.verbs"), "x,y");
        assert_eq!(text(&object, "spec.none"), "");
    }
}
