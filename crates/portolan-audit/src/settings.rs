//! Reads the two files that a user may write: rules and baselines. Both are a list of maps of plain texts.

use portolan_yaml::{Dialect, Node, Position, parse_one_bytes};

/// Why a rules or baseline file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// It is not YAML.
    #[error(transparent)]
    Yaml(#[from] portolan_yaml::Errors),
    /// The list is not there.
    #[error("there is no list `{0}`")]
    NoList(&'static str),
    /// An entry is wrong.
    #[error("line {line}: {message}")]
    Entry {
        /// The line, from 1.
        line: u32,
        /// What is wrong.
        message: String,
    },
}

/// One entry of the list.
pub(crate) struct Item<'a> {
    node: &'a Node,
}

/// The entries of the list `name`.
pub(crate) fn items<T>(
    bytes: &[u8],
    name: &'static str,
    known: &[&str],
    read: impl Fn(&Item<'_>) -> Result<T, SettingsError>,
) -> Result<Vec<T>, SettingsError> {
    let document = parse_one_bytes(bytes, Dialect::Helm)?;
    let list = document.get(name).and_then(Node::as_list);
    let list = list.ok_or(SettingsError::NoList(name))?;
    let mut items = Vec::new();
    for node in list {
        let item = Item { node };
        item.only(known)?;
        items.push(read(&item)?);
    }
    Ok(items)
}

impl Item<'_> {
    /// A field's text as it is written; numbers too, for `1.30` is a release.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        let scalar = self.node.get(key)?.as_scalar()?;
        Some(scalar.text.as_str()).filter(|text| !text.is_empty())
    }

    /// A field that must be there.
    pub(crate) fn needed(&self, key: &str) -> Result<&str, SettingsError> {
        self.text(key)
            .ok_or_else(|| self.error(self.node.at, format!("`{key}` is missing")))
    }

    /// A field read as something.
    pub(crate) fn parsed<T>(&self, key: &str) -> Result<Option<T>, SettingsError>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        let at = self.node.get(key).map_or(self.node.at, |node| node.at);
        let value = text
            .parse()
            .map_err(|error: T::Err| self.error(at, format!("`{key}`: {error}")));
        value.map(Some)
    }

    /// A misspelt field would otherwise silently mean nothing.
    fn only(&self, known: &[&str]) -> Result<(), SettingsError> {
        let Some(map) = self.node.as_map() else {
            return Err(self.error(self.node.at, "the entry is not a map".to_owned()));
        };
        let odd = map
            .iter()
            .find(|entry| !known.contains(&entry.key.as_str()));
        match odd {
            Some(entry) => {
                let message = format!("there is no field `{}`", entry.key.as_str());
                Err(self.error(entry.key.at, message))
            }
            None => Ok(()),
        }
    }

    #[expect(clippy::unused_self, reason = "errors belong to an entry")]
    fn error(&self, at: Position, message: String) -> SettingsError {
        SettingsError::Entry {
            line: at.line,
            message,
        }
    }
}
