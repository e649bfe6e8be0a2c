//! The version used for a cluster, and where it was chosen.

use std::fmt;

use portolan_object::Place;

/// A value and who chose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen<T> {
    /// The value.
    pub value: T,
    /// Who chose it.
    pub by: ChosenBy,
}

/// Who chose a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenBy {
    /// The user, with this option.
    Option(&'static str),
    /// The settings file, at this place.
    Settings(Place),
    /// Another file of the repository, at this place.
    Repository(Place),
    /// Nobody.
    Default,
}

impl<T> Chosen<T> {
    /// What counts when nobody chose.
    pub fn default_of(value: T) -> Self {
        Self {
            value,
            by: ChosenBy::Default,
        }
    }

    /// What was chosen with an option.
    pub fn with_option(value: T, option: &'static str) -> Self {
        Self {
            value,
            by: ChosenBy::Option(option),
        }
    }

    /// Whether somebody chose it.
    pub fn is_chosen(&self) -> bool {
        self.by != ChosenBy::Default
    }
}

impl ChosenBy {
    /// The word for it: `option`, `settings`, `repository` or `default`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Option(_) => "option",
            Self::Settings(_) => "settings",
            Self::Repository(_) => "repository",
            Self::Default => "default",
        }
    }

    /// The line that says it, if a file does.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Settings(place) | Self::Repository(place) => Some(place),
            Self::Option(_) | Self::Default => None,
        }
    }
}

impl fmt::Display for ChosenBy {
    /// `--kube-version`, `talos/talconfig.yaml:3` or `default`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(option) => f.write_str(option),
            Self::Settings(place) | Self::Repository(place) => {
                let file = place.file.trim_start_matches('/');
                write!(f, "{file}:{}", place.at.line)
            }
            Self::Default => f.write_str("default"),
        }
    }
}
