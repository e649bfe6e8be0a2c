//! The query of a request: known parameters only.

use portolan_object::similar;

use crate::error::ApiError;

/// What the query of a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) watch: bool,
    pub(super) initial: bool,
    pub(super) apply: bool,
    pub(super) dry_run: bool,
    pub(super) reveal: bool,
    pub(super) history: bool,
    pub(super) labels: String,
    pub(super) fields: String,
    pub(super) limit: Option<usize>,
    pub(super) resume: Option<String>,
    pub(super) version: Option<String>,
    pub(super) uuid: Option<String>,
}

const KNOWN: [&str; 12] = [
    "apply",
    "continue",
    "dryRun",
    "fieldSelector",
    "history",
    "initial",
    "labelSelector",
    "limit",
    "resourceVersion",
    "reveal",
    "uuid",
    "watch",
];

impl Wanted {
    /// Reads a query. A misspelt parameter would otherwise silently do nothing.
    pub(super) fn read(query: &str) -> Result<Self, ApiError> {
        let mut wanted = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (decoded(key)?, decoded(value)?);
            match key.as_str() {
                "watch" => wanted.watch = flag(&key, &value)?,
                "initial" => wanted.initial = flag(&key, &value)?,
                "apply" => wanted.apply = flag(&key, &value)?,
                "dryRun" => wanted.dry_run = flag(&key, &value)?,
                "reveal" => wanted.reveal = flag(&key, &value)?,
                "history" => wanted.history = flag(&key, &value)?,
                "labelSelector" => wanted.labels = value,
                "fieldSelector" => wanted.fields = value,
                "continue" => wanted.resume = Some(value),
                "resourceVersion" => wanted.version = Some(value),
                "uuid" => wanted.uuid = Some(value),
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| *limit > 0);
                    let wrong = || ApiError::bad_request("`limit` must be a whole number above 0");
                    wanted.limit = Some(limit.ok_or_else(wrong)?);
                }
                _ => return Err(unknown(&key)),
            }
        }
        Ok(wanted)
    }
}

fn unknown(key: &str) -> ApiError {
    let error = ApiError::bad_request(format!("there is no parameter `{key}`"));
    match similar(key, KNOWN, |name| name) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("there are {}", KNOWN.join(", "))),
    }
}

fn flag(key: &str, value: &str) -> Result<bool, ApiError> {
    match value {
        "true" | "" => Ok(true),
        "false" => Ok(false),
        _ => Err(ApiError::bad_request(format!(
            "`{key}` must be true or false"
        ))),
    }
}

/// A part of a path or query with `%XX` resolved.
pub(super) fn decoded(text: &str) -> Result<String, ApiError> {
    let wrong = || {
        ApiError::bad_request("the address has a `%` that no two digits follow, or is not UTF-8")
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let (digits, after) = rest.split_at_checked(2).ok_or_else(wrong)?;
                let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
                if digits.starts_with('+') {
                    return Err(wrong());
                }
                bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
                rest = after;
            }
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_and_a_misspelt_parameter_is_told() {
        let wanted = Wanted::read("watch=true&labelSelector=role%3Dweb&limit=5").expect("a query");
        assert!(wanted.watch);
        assert_eq!(
            (wanted.labels.as_str(), wanted.limit),
            ("role=web", Some(5))
        );
        let wrong = Wanted::read("labelselector=x").expect_err("misspelt");
        assert_eq!(wrong.hint.as_deref(), Some("did you mean `labelSelector`?"));
        for query in ["limit=0", "watch=maybe", "a=%4", "uuid=%ff"] {
            assert!(Wanted::read(query).is_err(), "{query}");
        }
    }
}
