//! The known secret texts, in every form that is searched for.

use std::collections::BTreeMap;

use portolan_object::{Object, OwnerKind, holds_placeholder, with_exponent};
use portolan_yaml::Node;

use crate::needle::{Reach, decode_base64, forms, names_secret, reach};
use crate::object::{is_secret, value_maps};
use crate::parts::parts;

/// Values without blanks from this length on, of letters and digits, are taken for made by chance.
const RANDOM: usize = 16;

/// What every value begins with that sops encrypted.
pub(crate) const SEALED: &str = "ENC[AES256_GCM,";

/// The texts that are looked for.
#[derive(Default, Clone)]
pub struct SecretTexts(BTreeMap<String, Reach>);

impl SecretTexts {
    /// Takes in a secret text with all the values in it; `key` is what it is called.
    pub fn add_text(&mut self, key: &str, text: &str) {
        parts(key, text, &mut |key, value| self.add_value(key, value));
    }

    /// Takes in the values of a Secret; other objects have none.
    ///
    /// A declared Secret may be a file of values for a release, and any of them may turn up elsewhere. What a release
    /// makes of its own values goes nowhere else: of its Secrets only what looks secret counts, or else the host that a
    /// chart puts into a Secret would be hidden in its Ingress too.
    pub fn add_secret(&mut self, secret: &Object, owner: OwnerKind) {
        if !is_secret(secret.gvk()) {
            return;
        }
        for (key, text) in secret_values(secret.node()) {
            let is_random = text.len() >= RANDOM && looks_random(&text);
            if owner != OwnerKind::Release || names_secret(&key) || is_random {
                self.add_text(&key, &text);
            }
        }
    }

    /// Takes in a number that stands for one that is not known.
    pub(crate) fn add_placeholder_number(&mut self, number: u64) {
        for form in [number.to_string(), with_exponent(number)] {
            self.0.insert(form, Reach::Anywhere);
        }
    }

    /// How many texts are looked for.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Reach)> {
        self.0.iter().map(|(text, reach)| (text.as_str(), *reach))
    }

    fn add_value(&mut self, key: &str, value: &str) {
        // What stands for an unknown value, or is encrypted, tells nothing.
        if holds_placeholder(value) || value.starts_with(SEALED) {
            return;
        }
        let Some(reach) = reach(value, key) else {
            return;
        };
        for (form, reach) in forms(value, reach) {
            let known = self.0.entry(form).or_insert(reach);
            *known = (*known).max(reach);
        }
    }
}

/// The keys and plain texts of a Secret; text that is not base64, such as an encrypted value, is taken as it is.
fn secret_values(secret: &Node) -> Vec<(String, String)> {
    let mut values = Vec::new();
    for (field, map) in value_maps(secret) {
        for entry in map {
            let Some(scalar) = entry.value.as_scalar() else {
                continue;
            };
            let bytes = match field {
                "data" => decode_base64(&scalar.text),
                _ => None,
            };
            let text = match bytes {
                Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                None => scalar.text.to_string(),
            };
            values.push((entry.key.as_str().to_owned(), text));
        }
    }
    values
}

fn looks_random(text: &str) -> bool {
    let has = |is: fn(&char) -> bool| text.chars().any(|letter| is(&letter));
    !text.contains(|letter: char| letter.is_whitespace())
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
        && !text.contains('.')
}

impl std::fmt::Debug for SecretTexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretTexts({} [redacted])", self.0.len())
    }
}
