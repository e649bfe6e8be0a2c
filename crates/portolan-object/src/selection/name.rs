//! The syntax of names: the few grammars that Kubernetes uses for names.

use std::fmt;

/// The longest name of one part, as in a container or a Namespace.
const LABEL_MAX: usize = 63;
/// The longest name of several parts, which most objects have.
const SUBDOMAIN_MAX: usize = 253;
/// The longest name of a port.
const PORT_MAX: usize = 15;

/// A grammar of names; what it prints says what a name must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// Most objects: parts of lower-case letters, digits and hyphens, with dots between them.
    Subdomain,
    /// One such part: containers, volumes, Namespaces.
    Label,
    /// A segment of a path, which may have any other character: roles.
    Segment,
    /// A port's name.
    Port,
    /// A key of a ConfigMap or Secret.
    Key,
}

impl NameRule {
    /// Whether a name follows the rule.
    pub fn fits(self, name: &str) -> bool {
        match self {
            Self::Subdomain => name.len() <= SUBDOMAIN_MAX && is_dns_labels(name),
            Self::Label => name.len() <= LABEL_MAX && is_dns_label(name),
            Self::Segment => {
                !name.is_empty() && !matches!(name, "." | "..") && !name.contains(['/', '%'])
            }
            Self::Port => {
                name.len() <= PORT_MAX
                    && is_dns_label(name)
                    && !name.contains("--")
                    && name.bytes().any(|byte| byte.is_ascii_lowercase())
            }
            Self::Key => {
                let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
                (1..=SUBDOMAIN_MAX).contains(&name.len())
                    && name.bytes().all(inner)
                    && name != "."
                    && !name.starts_with("..")
            }
        }
    }
}

impl fmt::Display for NameRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Subdomain => {
                "must be lower-case letters, digits, `-` or `.`, each part beginning and ending with a letter or \
                 digit, at most 253 characters"
            }
            Self::Label => {
                "must be lower-case letters, digits or `-`, beginning and ending with a letter or digit, at most 63 \
                 characters"
            }
            Self::Segment => "must not be empty, `.` or `..`, nor contain `/` or `%`",
            Self::Port => {
                "must be lower-case letters, digits and single `-` between them, with at least one letter, at most \
                 15 characters"
            }
            Self::Key => "must be letters, digits, `-`, `_` or `.`, at most 253 characters",
        })
    }
}

pub(crate) fn is_dns_labels(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

fn is_dns_label(text: &str) -> bool {
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    framed(text, edge, |byte| edge(byte) || *byte == b'-')
}

/// Whether the first and last byte are `edge` and all are `inner`.
pub(crate) fn framed(text: &str, edge: impl Fn(&u8) -> bool, inner: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&edge) && bytes.last().is_some_and(&edge) && bytes.iter().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_name_has_its_grammar() {
        let fitting = [
            (NameRule::Subdomain, "a.b-c.0"),
            (NameRule::Label, "0-a"),
            (NameRule::Segment, "system:admin {x}"),
            (NameRule::Port, "http-2"),
            (NameRule::Key, ".a_b.Crt"),
        ];
        for (rule, name) in fitting {
            assert!(rule.fits(name), "{rule:?} {name}");
        }
        let unfitting = [
            (NameRule::Subdomain, "a..b"),
            (NameRule::Subdomain, "Web"),
            (NameRule::Label, "a.b"),
            (NameRule::Label, "a-"),
            (NameRule::Segment, "a/b"),
            (NameRule::Port, "8080"),
            (NameRule::Port, "a--b"),
            (NameRule::Port, "sixteen-letters-"),
            (NameRule::Key, "a/b"),
            (NameRule::Key, ".."),
            (NameRule::Key, ""),
        ];
        for (rule, name) in unfitting {
            assert!(!rule.fits(name), "{rule:?} {name}");
        }
    }
}
