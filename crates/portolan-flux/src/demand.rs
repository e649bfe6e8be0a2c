//! What a caller wants rendered: everything, or named Kustomizations and releases with only what they need.

use portolan_yaml::Text;

use crate::api::NamespacedName;

/// How far a cluster is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Kustomizations only.
    Kustomizations,
    /// Releases too.
    Releases,
}

/// What is asked for.
///
/// A Kustomization is made of the one that emits it, its source, and the data its variables come from; a release of
/// the Kustomization that emits it, its chart and the data its values come from. `dependsOn` adds nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// Which Kustomizations.
    pub kustomizations: Wanted,
    /// Which releases.
    pub releases: Wanted,
}

/// Which objects of one kind are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// None.
    None,
    /// All.
    All,
    /// Those in a namespace: all of the kind have to be found for that.
    In(Text),
    /// Those with one of these names.
    Named(Vec<Name>),
}

/// A name as a user gives it: in one namespace, or in whichever has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The namespace, when given.
    pub namespace: Option<Text>,
    /// The name.
    pub name: Text,
}

impl From<Depth> for Demand {
    fn from(depth: Depth) -> Self {
        Self {
            kustomizations: Wanted::All,
            releases: match depth {
                Depth::Kustomizations => Wanted::None,
                Depth::Releases => Wanted::All,
            },
        }
    }
}

impl Demand {
    /// Whether every Kustomization must be built: to have them all, or to find every release.
    pub(crate) fn is_everything(&self) -> bool {
        [&self.kustomizations, &self.releases]
            .iter()
            .any(|wanted| matches!(wanted, Wanted::All | Wanted::In(_)))
    }
}

impl Wanted {
    /// Whether an object is asked for.
    pub fn includes(&self, id: &NamespacedName) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::In(namespace) => id.namespace == *namespace,
            Self::Named(names) => names.iter().any(|name| name.matches(id)),
        }
    }

    /// The names that are asked for one by one.
    pub(crate) fn names(&self) -> &[Name] {
        match self {
            Self::Named(names) => names,
            Self::None | Self::All | Self::In(_) => &[],
        }
    }
}

impl Name {
    /// Whether an object has this name.
    pub fn matches(&self, id: &NamespacedName) -> bool {
        self.name == id.name && self.namespace.as_ref().is_none_or(|ns| *ns == id.namespace)
    }
}

/// `namespace/name`, or a name in whichever namespace has it.
impl From<&str> for Name {
    fn from(text: &str) -> Self {
        match text.split_once('/') {
            Some((namespace, name)) => Self {
                namespace: Some(Text::from(namespace)),
                name: Text::from(name),
            },
            None => Self {
                namespace: None,
                name: Text::from(text),
            },
        }
    }
}
