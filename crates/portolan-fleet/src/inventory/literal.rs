//! Values of an inventory: Ansible takes them for literals of Python where they are some, and for text otherwise.

use serde_json::{Map, Value};

/// How deep lists and maps may be in each other.
const MAX_DEPTH: usize = 16;

/// The value that a text stands for.
pub(super) fn value(text: &str) -> Value {
    let text = text.trim();
    let mut reader = Reader { rest: text };
    let read = reader.value(MAX_DEPTH);
    match read {
        Some(value) if reader.is_at_end() => value,
        _ => Value::String(text.to_owned()),
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Nothing but a comment is left.
    fn is_at_end(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.is_empty() || self.rest.starts_with('#')
    }

    fn take(&mut self, start: &str) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(start);
        if let Some(after) = after {
            self.rest = after;
        }
        after.is_some()
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        if self.take("[") {
            return self.list("]", depth);
        }
        if self.take("(") {
            return self.list(")", depth);
        }
        if self.take("{") {
            return self.map(depth);
        }
        if self.rest.starts_with(['"', '\'']) {
            return self.text().map(Value::String);
        }
        self.word()
    }

    fn list(&mut self, end: &str, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        while !self.take(end) {
            items.push(self.value(depth)?);
            if !self.take(",") {
                return self.take(end).then_some(Value::Array(items));
            }
        }
        Some(Value::Array(items))
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        let mut map = Map::new();
        while !self.take("}") {
            let Value::String(key) = self.value(depth)? else {
                return None;
            };
            if !self.take(":") {
                return None;
            }
            map.insert(key, self.value(depth)?);
            if !self.take(",") {
                return self.take("}").then_some(Value::Object(map));
            }
        }
        Some(Value::Object(map))
    }

    fn text(&mut self) -> Option<String> {
        let mut chars = self.rest.chars();
        let quote = chars.next()?;
        let mut text = String::new();
        loop {
            match chars.next()? {
                '\\' => match chars.next()? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    escaped @ ('\\' | '\'' | '"') => text.push(escaped),
                    other => text.extend(['\\', other]),
                },
                end if end == quote => break,
                other => text.push(other),
            }
        }
        self.rest = chars.as_str();
        Some(text)
    }

    fn word(&mut self) -> Option<Value> {
        let is_part = |one: char| one.is_ascii_alphanumeric() || "+-._".contains(one);
        let end = self.rest.find(|one| !is_part(one));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        match word {
            "True" => return Some(true.into()),
            "False" => return Some(false.into()),
            "None" => return Some(Value::Null),
            _ => {}
        }
        // `0644` is no number to Python.
        let digits = word.trim_start_matches(['+', '-']);
        let is_number = digits.starts_with(|one: char| one.is_ascii_digit());
        if !is_number || (digits.len() > 1 && digits.starts_with('0') && !digits.contains('.')) {
            return None;
        }
        if let Ok(number) = word.parse::<i64>() {
            return Some(number.into());
        }
        let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
        number.map(Value::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn literals_of_python_are_values_and_the_rest_is_text() {
        let cases = [
            ("80", json!(80)),
            ("-1.5", json!(-1.5)),
            ("True", json!(true)),
            ("true", json!("true")),
            ("None", json!(null)),
            ("0644", json!("0644")),
            ("1.2.3", json!("1.2.3")),
            ("'80'", json!("80")),
            ("\"it's\"", json!("it's")),
            ("['a', 2, [True]]", json!(["a", 2, [true]])),
            ("{'a': 1, 'b': ('c',)}", json!({"a": 1, "b": ["c"]})),
            ("80  # the port", json!(80)),
            ("two words # no comment", json!("two words # no comment")),
            ("[1, ", json!("[1,")),
            ("10.0.0.1", json!("10.0.0.1")),
            ("", json!("")),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), expected, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(value(&deep), json!(deep));
    }
}
