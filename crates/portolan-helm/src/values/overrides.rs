//! The values a user gives: files first, then the `--set` families in Helm's fixed order.

use super::strvals::{SetError, SetKind, set};
use super::tree::Tree;

/// Everything a command line says about values, already read from disk.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// The files of `-f`, each with its name for errors, later ones over earlier ones.
    pub files: Vec<(String, Vec<u8>)>,
    /// `--set-json`
    pub json: Vec<String>,
    /// `--set`
    pub typed: Vec<String>,
    /// `--set-string`
    pub strings: Vec<String>,
    /// `--set-file`
    pub set_files: Vec<String>,
    /// `--set-literal`
    pub literals: Vec<String>,
}

/// Which source of values could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverridesError {
    /// A file of `-f`.
    #[error("failed to parse {name}: {reason}")]
    File {
        /// The file's name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A text of `--set-json`.
    #[error("failed parsing --set-json data {0}")]
    Json(String),
    /// A text of another flag.
    #[error("failed parsing {flag} data: {reason}")]
    Set {
        /// The flag.
        flag: &'static str,
        /// What is wrong with it.
        reason: SetError,
    },
}

impl Overrides {
    /// Merges everything into one table; `read` gives the content of a file that `--set-file` names.
    pub fn merge(
        &self,
        read: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Tree, OverridesError> {
        let mut values = Tree::empty_table();
        for (name, content) in &self.files {
            let upper = Tree::read_table(content).map_err(|reason| OverridesError::File {
                name: name.clone(),
                reason,
            })?;
            values = values.overlay(&upper);
        }
        for text in &self.json {
            set(&mut values, text, SetKind::Json)
                .map_err(|_| OverridesError::Json(text.clone()))?;
        }
        let failed = |flag| move |reason| OverridesError::Set { flag, reason };
        for text in &self.typed {
            set(&mut values, text, SetKind::Typed).map_err(failed("--set"))?;
        }
        for text in &self.strings {
            set(&mut values, text, SetKind::Strings).map_err(failed("--set-string"))?;
        }
        for text in &self.set_files {
            set(&mut values, text, SetKind::Files(read)).map_err(failed("--set-file"))?;
        }
        for text in &self.literals {
            set(&mut values, text, SetKind::Literal).map_err(failed("--set-literal"))?;
        }
        Ok(values)
    }
}
