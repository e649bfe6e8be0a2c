//! What was decrypted, kept so that nothing of it reaches a screen, a log or a file by accident.

use std::borrow::Cow;
use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use portolan_yaml::{Node, Value};

/// What is printed instead of a secret.
const MASK: &str = "**SECRET**";

/// Shorter texts are in every output by chance: hiding them would hide the output, and they are no secrets.
const SHORTEST: usize = 4;

/// What every sealed value begins with.
const SEAL: &str = "ENC[AES256_GCM,";

/// How deep trees are compared; decryption refuses deeper ones before.
const MAX_DEPTH: usize = 256;

/// The decrypted values of a run.
#[derive(Default)]
pub struct Vault {
    /// Longest first, so that a value that contains another is hidden whole.
    values: Mutex<BTreeSet<Longest>>,
}

#[derive(PartialEq, Eq)]
struct Longest(String);

impl Ord for Longest {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_length = other.0.len().cmp(&self.0.len());
        by_length.then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Longest {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Vault {
    /// Whether a text is, or is made of, something that was decrypted.
    pub fn holds(&self, text: &str) -> bool {
        let values = self.values.lock();
        values.iter().any(|value| text.contains(&value.0))
    }

    /// A text with everything hidden that was decrypted, in base64 too.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut hidden = Cow::Borrowed(text);
        for Longest(value) in &*self.values.lock() {
            if hidden.contains(value.as_str()) {
                hidden = Cow::Owned(hidden.replace(value.as_str(), MASK));
            }
        }
        hidden
    }

    /// Takes in what of a document was sealed.
    pub(crate) fn take_opened(&self, sealed: &Node, plain: &Node) {
        self.walk(sealed, plain, MAX_DEPTH);
    }

    /// Takes in a whole file that was sealed: its lines, and the values of `KEY=value` lines.
    pub(crate) fn take_text(&self, text: &str) {
        self.take(text.trim_end());
        for line in text.lines() {
            self.take(line);
            if let Some((_, value)) = line.split_once('=') {
                self.take(value);
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

    /// A value, what it is the base64 of, and its lines.
    fn take_value(&self, value: &str) {
        self.take(value);
        let decoded = STANDARD.decode(value.trim()).ok();
        if let Some(text) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
            self.take_text(&text);
        }
        if value.contains('\n') {
            self.take_text(value);
        }
    }

    fn take(&self, value: &str) {
        let value = value.trim();
        if value.len() < SHORTEST || matches!(value, "true" | "false" | "null") {
            return;
        }
        let mut values = self.values.lock();
        values.insert(Longest(STANDARD.encode(value)));
        values.insert(Longest(value.to_owned()));
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vault({} [redacted])", self.values.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one};

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
            "cannot log in with **SECRET** (**SECRET**) to Secret on a host"
        );
    }

    #[test]
    fn a_vault_does_not_print_what_it_holds() {
        assert!(!format!("{:?}", vault()).contains("hunter"));
    }
}
