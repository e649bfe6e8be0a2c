//! The values inside a secret text: those of a YAML or JSON document, of `KEY=value` lines, of a URL or a login, and
//! decoded base64.

use portolan_yaml::{Dialect, Node, Value, parse};

use crate::needle::decode_base64;

/// How many texts are taken to lie in each other: a login in base64 in a JSON document in the `data` of a Secret is four.
const MAX_NESTING: usize = 6;

/// How deep a document is looked into.
const MAX_DEPTH: usize = 256;

/// Lines without blanks from this length on are looked for by themselves: those of keys and certificates.
const SHORTEST_LINE: usize = 16;

/// Calls `found` with the key and the text of every value in a secret text, the text itself among them if it is one line.
pub(crate) fn parts(key: &str, text: &str, found: &mut dyn FnMut(&str, &str)) {
    Parts { found }.text(key, text, MAX_NESTING);
}

struct Parts<'a> {
    found: &'a mut dyn FnMut(&str, &str),
}

impl Parts<'_> {
    fn text(&mut self, key: &str, text: &str, nesting: usize) {
        let text = text.trim();
        if text.is_empty() || nesting == 0 {
            return;
        }
        if text.contains('\n') {
            self.lines(text);
        } else {
            (self.found)(key, text);
            self.login(key, text, nesting);
        }
        if let Some(decoded) = decoded_text(text) {
            self.text(key, &decoded, nesting - 1);
        }
        match documents(text) {
            Some(documents) => {
                for document in &documents {
                    self.leaves(key, document, nesting - 1, MAX_DEPTH);
                }
            }
            None => self.settings(key, text, nesting),
        }
    }

    /// The lines of a key or certificate, which may be put together anew.
    fn lines(&mut self, text: &str) {
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| line.len() >= SHORTEST_LINE && !line.contains(' ')) {
            (self.found)("", line);
        }
    }

    fn leaves(&mut self, key: &str, node: &Node, nesting: usize, depth: usize) {
        match &node.value {
            _ if depth == 0 => {}
            Value::Scalar(scalar) => self.text(key, &scalar.text, nesting),
            Value::List(list) => {
                for item in list {
                    self.leaves(key, item, nesting, depth - 1);
                }
            }
            Value::Map(map) => {
                for entry in map {
                    self.leaves(entry.key.as_str(), &entry.value, nesting, depth - 1);
                }
            }
        }
    }

    /// `KEY=value`, `key: value`, `key = "value" ; remark` and lines that are none of these.
    fn settings(&mut self, key: &str, text: &str, nesting: usize) {
        let is_one_line = !text.contains('\n');
        for line in text.lines().map(str::trim) {
            let setting = line.strip_prefix("export ").unwrap_or(line);
            match setting.split_once('=').or_else(|| setting.split_once(": ")) {
                Some((name, value)) if is_name(name.trim()) => {
                    self.setting(name.trim(), value.trim(), nesting);
                }
                _ if is_one_line => {}
                _ => {
                    (self.found)(key, line);
                    self.login(key, line, nesting);
                }
            }
        }
        self.netrc(text);
    }

    fn setting(&mut self, name: &str, value: &str, nesting: usize) {
        let before_remark = [" ;", " #"]
            .iter()
            .filter_map(|mark| value.find(mark))
            .min()
            .map_or(value, |end| &value[..end]);
        for value in [value, before_remark] {
            self.text(name, unquoted(value.trim()), nesting - 1);
        }
    }

    /// What stands behind the word `password` in a `.netrc`.
    fn netrc(&mut self, text: &str) {
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            if word == "password"
                && let Some(password) = words.next()
            {
                (self.found)("password", password);
            }
        }
    }

    /// The password of `user:password`, alone or in an address.
    fn login(&mut self, key: &str, text: &str, nesting: usize) {
        let authority = text.split_once("://").map(|(_, rest)| rest);
        let Some(rest) = authority else {
            if let Some((user, password)) = text.split_once(':')
                && is_name(user)
                && !password.starts_with(' ')
            {
                self.text("password", password, nesting - 1);
            }
            return;
        };
        let Some((login, _)) = rest.rsplit_once('@') else {
            return;
        };
        match login.split_once(':') {
            Some((_, password)) => self.text("password", password, nesting - 1),
            None => self.text(key, login, nesting - 1),
        }
    }
}

/// The documents of a text that is YAML or JSON, and not just one value.
fn documents(text: &str) -> Option<Vec<Node>> {
    let documents = parse(text.to_owned(), Dialect::Helm).ok()?;
    let is_one = |node: &Node| !matches!(node.value, Value::Scalar(_));
    (!documents.is_empty() && documents.iter().all(is_one)).then_some(documents)
}

/// The text that a text is the base64 of, if people could have written it.
fn decoded_text(text: &str) -> Option<String> {
    let decoded = String::from_utf8(decode_base64(text)?).ok()?;
    let is_written = |letter: char| !letter.is_control() || letter.is_whitespace();
    decoded.chars().all(is_written).then_some(decoded)
}

fn is_name(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_-.@".contains(letter);
    !text.is_empty() && text.chars().all(is_part)
}

fn unquoted(text: &str) -> &str {
    ['"', '\'']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn found_in(text: &str) -> Vec<String> {
        let mut values = Vec::new();
        parts("", text, &mut |_, value| values.push(value.to_owned()));
        values
    }

    #[test]
    fn values_are_found_in_whatever_form_a_secret_text_has() {
        for text in [
            "PLANT",
            "pw: {p: PLANT}",
            "pw:\n  p: PLANT\n",
            r#"{"a":[{"b":"PLANT"}]}"#,
            "A=1\nTOKEN=PLANT\n",
            "export TOKEN='PLANT'",
            "[section]\nkey = PLANT ; remark\n",
            "a.b.c: PLANT\nnot yaml: [\n",
            "https://user:PLANT@host/path",
            "user:PLANT",
            "machine host login me password PLANT\n",
            "config: |\n  nested: 'deep: PLANT'\n",
        ] {
            let found = found_in(text);
            assert!(
                found.iter().any(|value| value == "PLANT"),
                "{text}: {found:?}"
            );
            let encoded = found_in(&STANDARD.encode(text));
            assert!(
                encoded.iter().any(|value| value == "PLANT"),
                "{text}: {encoded:?}"
            );
        }
    }

    #[test]
    fn a_login_of_a_registry_is_found() {
        let auth = STANDARD.encode("me:PLANT");
        let found = found_in(&format!(r#"{{"auths":{{"ghcr.io":{{"auth":"{auth}"}}}}}}"#));
        assert!(found.contains(&"PLANT".to_owned()), "{found:?}");
    }

    #[test]
    fn every_line_of_a_key_is_found() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n";
        for text in [
            key.to_owned(),
            format!("tls:\n  key: |\n    {}", key.replace('\n', "\n    ")),
        ] {
            let found = found_in(&text);
            assert!(found.contains(&"hkiG9w0BAQEFAASC".to_owned()), "{found:?}");
        }
    }
}
