//! What was decrypted, kept so that nothing of it reaches a screen, a log or a file by accident.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use portolan_yaml::{Dialect, Node, Value, parse};
use regex::{Regex, RegexBuilder};

/// What is printed instead of a secret; it may stand anywhere in YAML or JSON.
const MASK: &str = "hidden";

/// Shorter texts are in every output by chance: hiding them would hide the output, and they are no secrets.
const SHORTEST: usize = 6;

/// Plain words up to this length (`postgres`, `admin`) are names far oftener than secrets. A Secret's own values are
/// hidden whatever they are; this is about what variables carried elsewhere.
const LONGEST_WORD: usize = 11;

/// What every sealed value begins with.
const SEAL: &str = "ENC[AES256_GCM,";

/// How large the expression may grow that finds all values: thousands of certificates fit.
const MAX_FINDER_BYTES: usize = 256 * 1024 * 1024;

/// How deep trees are compared; decryption refuses deeper ones before.
const MAX_DEPTH: usize = 256;

/// The decrypted values of a run.
#[derive(Default)]
pub struct Vault {
    values: Mutex<BTreeSet<String>>,
    /// Finds any of the values; made when it is needed, and again when there are new ones.
    finder: Mutex<Option<(usize, Arc<Regex>)>>,
}

impl Vault {
    /// Whether a text is, or is made of, something that was decrypted.
    pub fn holds(&self, text: &str) -> bool {
        self.finder().is_some_and(|finder| finder.is_match(text))
    }

    /// A text with everything hidden that was decrypted, in base64 too.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.finder() {
            Some(finder) => finder.replace_all(text, MASK),
            None => Cow::Borrowed(text),
        }
    }

    fn finder(&self) -> Option<Arc<Regex>> {
        let values = self.values.lock();
        let mut made = self.finder.lock();
        if let Some((count, finder)) = &*made
            && *count == values.len()
        {
            return Some(Arc::clone(finder));
        }
        let finder = Arc::new(any_of(&values)?);
        *made = Some((values.len(), Arc::clone(&finder)));
        Some(finder)
    }

    /// Takes in what of a document was sealed.
    pub(crate) fn take_opened(&self, sealed: &Node, plain: &Node) {
        self.walk(sealed, plain, MAX_DEPTH);
    }

    /// Takes in a whole file that was sealed: the values of a document, or else its lines.
    pub(crate) fn take_text(&self, text: &str) {
        let documents = parse(text.to_owned(), Dialect::Helm).unwrap_or_default();
        let is_document = |node: &Node| !matches!(node.value, Value::Scalar(_));
        if !documents.is_empty() && documents.iter().all(is_document) {
            for node in &documents {
                self.take_leaves(node, MAX_DEPTH);
            }
            return;
        }
        for line in text.lines() {
            match line.split_once('=') {
                Some((name, value)) if is_variable(name) => self.take(value),
                _ => self.take(line),
            }
        }
    }

    fn take_leaves(&self, node: &Node, depth: usize) {
        match &node.value {
            Value::Scalar(scalar) => scalar.text.lines().for_each(|line| self.take(line)),
            _ if depth == 0 => {}
            Value::List(list) => list
                .iter()
                .for_each(|item| self.take_leaves(item, depth - 1)),
            Value::Map(map) => {
                for entry in map {
                    self.take_leaves(&entry.value, depth - 1);
                }
            }
        }
    }

    fn walk(&self, sealed: &Node, plain: &Node, depth: usize) {
        if depth == 0 {
            return;
        }
        match (&sealed.value, &plain.value) {
            (Value::Map(sealed), Value::Map(plain)) => {
                for entry in plain {
                    if let Some(sealed) = sealed.get(entry.key.as_str()) {
                        self.walk(sealed, &entry.value, depth - 1);
                    }
                }
            }
            (Value::List(sealed), Value::List(plain)) => {
                for (sealed, plain) in sealed.iter().zip(plain) {
                    self.walk(sealed, plain, depth - 1);
                }
            }
            (Value::Scalar(sealed), Value::Scalar(plain)) if sealed.text.starts_with(SEAL) => {
                self.take_value(&plain.text);
            }
            _ => {}
        }
    }

    /// A value, or what it is made of, and what it is the base64 of.
    fn take_value(&self, value: &str) {
        if value.contains('\n') {
            self.take_text(value);
        } else {
            self.take(value);
        }
        let decoded = STANDARD.decode(value.trim()).ok();
        if let Some(text) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
            self.take_text(&text);
        }
    }

    fn take(&self, value: &str) {
        let value = value.trim();
        if is_telling(value) {
            let mut values = self.values.lock();
            values.insert(STANDARD.encode(value));
            values.insert(value.replace('\\', "\\\\").replace('"', "\\\""));
            values.insert(value.to_owned());
        }
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Whether seeing a text anywhere means that a secret is seen.
fn is_telling(text: &str) -> bool {
    let is_word = text.chars().all(|letter| letter.is_ascii_lowercase());
    text.len() >= SHORTEST && (!is_word || text.len() > LONGEST_WORD)
}

/// Finds a text even where a printer broke it into lines.
fn expression(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(regex::escape).collect();
    words.join(r"\s+")
}

/// An expression that finds any of the texts, the longest first, so that one that contains another is hidden whole.
fn any_of(values: &BTreeSet<String>) -> Option<Regex> {
    let mut values: Vec<&String> = values.iter().collect();
    values.sort_by_key(|value| Reverse(value.len()));
    let escaped: Vec<String> = values.iter().map(|value| expression(value)).collect();
    if escaped.is_empty() {
        return None;
    }
    let expression = RegexBuilder::new(&escaped.join("|"))
        .size_limit(MAX_FINDER_BYTES)
        .build();
    // What is too large to find as a whole is found by its beginnings.
    expression
        .or_else(|_| {
            let short = values
                .iter()
                .map(|value| value.chars().take(SHORTEST).collect());
            let short: Vec<String> = short.map(|text: String| regex::escape(&text)).collect();
            RegexBuilder::new(&format!("(?:{})[^\\s\"']*", short.join("|")))
                .size_limit(MAX_FINDER_BYTES)
                .build()
        })
        .ok()
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vault({} [redacted])", self.values.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use portolan_yaml::parse_one;

    use super::*;

    fn vault() -> Vault {
        let read = |text: &str| parse_one(text.to_owned(), Dialect::Kustomize).unwrap();
        let vault = Vault::default();
        vault.take_opened(
            &read("kind: Secret\ndata: {a: 'ENC[AES256_GCM,x]', b: 'ENC[AES256_GCM,y]'}\n"),
            &read("kind: Secret\ndata: {a: aHVudGVyMg==, b: on}\n"),
        );
        vault
    }

    #[test]
    fn what_was_sealed_is_hidden_in_either_form() {
        let text = "cannot log in with hunter2 (aHVudGVyMg==) to Secret on a host";
        assert_eq!(
            vault().hide(text),
            "cannot log in with hidden (hidden) to Secret on a host"
        );
    }

    #[test]
    fn of_a_sealed_file_the_values_are_hidden_and_not_its_keys() {
        let vault = Vault::default();
        vault.take_text("password: hunter2-hunter2\nnested: {list: [s3cr3t-s3cr3t]}\n");
        vault.take_text("-----BEGIN KEY-----\nAAAAbbbbCCCC1234\n");
        vault.take_text("TOKEN=t0k3n-t0k3n\n");
        let text = "password: hunter2-hunter2, s3cr3t-s3cr3t, AAAAbbbbCCCC1234, TOKEN=t0k3n-t0k3n";
        assert_eq!(
            vault.hide(text),
            "password: hidden, hidden, hidden, TOKEN=hidden"
        );
    }

    #[test]
    fn a_vault_does_not_print_what_it_holds() {
        assert!(!format!("{:?}", vault()).contains("hunter"));
    }
}
