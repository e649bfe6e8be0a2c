//! An object as a user names it: `NAME`, `NAMESPACE/NAME`, `KIND/NAME` or `KIND/NAMESPACE/NAME`.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::gvk::Gvk;
use crate::kind::kind_names::{KindNames, is_built_in};

/// What one object or several are called.
///
/// In `a/b` the first part is a namespace or a kind, whichever fits an object. The spelling of messages,
/// `Deployment shop/web`, is taken too.
///
/// ```
/// use portolan_object::{KindNames, ObjectName};
///
/// let name: ObjectName = "deploy/web".parse()?;
/// let gvk = "apps/v1/Deployment".parse()?;
/// assert!(name.matches(&KindNames::default(), &gvk, "shop", "web"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    text: String,
    /// The text with a slash between all parts.
    path: String,
}

impl FromStr for ObjectName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self {
            path: text.trim().replacen(' ', "/", 1),
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl ObjectName {
    /// Whether an object of this kind, namespace and name is meant.
    pub fn matches(&self, kinds: &KindNames, gvk: &Gvk, namespace: &str, name: &str) -> bool {
        let parts: Vec<&str> = self.path.split('/').collect();
        match parts.as_slice() {
            [only] => *only == name,
            [first, last] => *last == name && (*first == namespace || kinds.is(first, gvk)),
            [kind, place, last] => *last == name && *place == namespace && kinds.is(kind, gvk),
            _ => false,
        }
    }

    /// The name alone.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The first of two or three parts: in two a kind or a namespace, in three a kind.
    pub fn kind_word(&self) -> Option<&str> {
        self.path.split_once('/').map(|(kind, _)| kind)
    }

    /// The namespace, if it can be told from a kind: that of three parts, or of two whose first is no kind that
    /// Kubernetes or Flux have.
    pub fn namespace(&self) -> Option<&str> {
        let (first, rest) = self.path.split_once('/')?;
        match rest.split_once('/') {
            Some((namespace, _)) => Some(namespace),
            None => (!is_built_in(first)).then_some(first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: bool) {
        let name: ObjectName = text.parse().unwrap();
        let gvk: Gvk = "helm.toolkit.fluxcd.io/v2/HelmRelease".parse().unwrap();
        let matches = name.matches(&KindNames::default(), &gvk, "apps", "web");
        assert_eq!(matches, expected, "`{text}`");
    }

    #[test]
    fn every_spelling_of_a_name_names_the_object() {
        for text in [
            "web",
            "apps/web",
            "hr/web",
            "HelmRelease/web",
            "helmreleases.helm.toolkit.fluxcd.io/web",
            "hr/apps/web",
            "HelmRelease apps/web",
        ] {
            check(text, true);
        }
    }

    #[test]
    fn another_kind_namespace_or_name_is_another_object() {
        for text in [
            "api",
            "shop/web",
            "ks/web",
            "hr/shop/web",
            "a/hr/apps/web",
            "",
        ] {
            check(text, false);
        }
    }
}
