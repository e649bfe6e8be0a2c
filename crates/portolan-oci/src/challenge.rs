//! The `WWW-Authenticate` header, with which a registry asks for a login.

use std::collections::BTreeMap;

/// The way in that a registry offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// User name and password with every request.
    Basic,
    /// A token from the service at `realm`.
    Bearer {
        /// Where tokens are given out.
        realm: String,
        /// What the token is for.
        service: Option<String>,
        /// What it allows.
        scope: Option<String>,
    },
}

impl Challenge {
    /// Reads a header, `None` when it offers nothing we know.
    pub fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header, ""));
        if scheme.trim().eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let mut fields = fields(rest);
        Some(Self::Bearer {
            realm: fields.remove("realm")?,
            service: fields.remove("service"),
            scope: fields.remove("scope"),
        })
    }
}

/// Reads `key="value",key=value`; a backslash in quotes keeps the next character.
fn fields(text: &str) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let mut rest = text;
    while let Some((key, after)) = rest.split_once('=') {
        let (value, after) = value(after);
        let key = key.trim_matches(|c: char| c == ',' || c.is_whitespace());
        fields.insert(key.to_ascii_lowercase(), value);
        rest = after;
    }
    fields
}

fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        return (text[..end].trim().to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, kept)| kept)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_challenge_names_its_token_service() {
        let header = r#"Bearer realm="https://auth.example/token",service="reg,1",scope="repository:a/b:pull,push""#;
        let expected = Challenge::Bearer {
            realm: "https://auth.example/token".to_owned(),
            service: Some("reg,1".to_owned()),
            scope: Some("repository:a/b:pull,push".to_owned()),
        };
        assert_eq!(Challenge::parse(header), Some(expected));
    }

    #[test]
    fn basic_and_unknown_challenges_are_told_apart() {
        assert_eq!(Challenge::parse("basic realm=x"), Some(Challenge::Basic));
        assert_eq!(Challenge::parse("Negotiate"), None);
        assert_eq!(Challenge::parse("Bearer service=\"no realm"), None);
    }
}
