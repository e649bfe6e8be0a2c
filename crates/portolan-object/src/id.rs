//! Which object: its kind, namespace and name.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use portolan_yaml::Text;
use thiserror::Error;

use crate::gvk::Gvk;

/// What names one object in a cluster.
///
/// Written as its [`Gvk`], the namespace where there is one, and the name: `apps/v1/Deployment/shop/web`,
/// `v1/Namespace/shop`. Sorts by group, kind, namespace, name and only then by version, so that two versions of one
/// object are neighbours.
///
/// ```
/// use portolan_object::ObjectId;
///
/// let id: ObjectId = "apps/v1/Deployment/shop/web".parse()?;
/// assert_eq!(id.short().to_string(), "Deployment/shop/web");
/// # Ok::<(), portolan_object::IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectId {
    /// What it is.
    pub gvk: Gvk,
    /// Its namespace; empty when it has none.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
}

/// Why a text is not an object's id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not an object id like `apps/v1/Deployment/NAMESPACE/NAME` or `v1/Namespace/NAME`"
)]
pub struct IdError(String);

/// An id for people, without group and version; see [`ObjectId::short`].
#[derive(Debug, Clone, Copy)]
pub struct Short<'a>(&'a ObjectId);

impl ObjectId {
    /// The id of a kind's object; an empty namespace is none.
    pub fn new(gvk: Gvk, namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self {
            gvk,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Moves the texts of ids to one text of their own, each once: they may be parts of long ones, which they keep in
    /// memory.
    pub fn detach_all(ids: Vec<&mut Self>) {
        let mut all = String::new();
        let mut begins: HashMap<Text, usize> = HashMap::new();
        for part in ids.iter().flat_map(|id| id.parts()) {
            begins.entry(part.clone()).or_insert_with(|| {
                all.push_str(part);
                all.len() - part.len()
            });
        }
        let all: Arc<str> = Arc::from(all);
        for part in ids.into_iter().flat_map(Self::parts_mut) {
            let own = begins.get(part).copied();
            let own = own.and_then(|begin| Text::slice(&all, begin, begin + part.len()));
            if let Some(own) = own {
                *part = own;
            }
        }
    }

    /// Whether both name the same object, perhaps through different API versions.
    pub fn same_object(&self, other: &Self) -> bool {
        self.sort_key() == other.sort_key()
    }

    /// The form for people: `Deployment/shop/web`, `Namespace/shop`.
    pub fn short(&self) -> Short<'_> {
        Short(self)
    }

    /// The form for sentences: `Deployment shop/web`, `Namespace shop`.
    pub fn title(&self) -> String {
        let separator = if self.namespace.is_empty() { "" } else { "/" };
        let kind = &self.gvk.kind;
        let text = format!("{kind} {}{separator}{}", self.namespace, self.name);
        text.trim().to_owned()
    }

    fn parts(&self) -> [&Text; 5] {
        let Gvk {
            group,
            version,
            kind,
        } = &self.gvk;
        [group, version, kind, &self.namespace, &self.name]
    }

    fn parts_mut(&mut self) -> [&mut Text; 5] {
        let Gvk {
            group,
            version,
            kind,
        } = &mut self.gvk;
        [group, version, kind, &mut self.namespace, &mut self.name]
    }

    fn sort_key(&self) -> (&str, &str, &str, &str) {
        (&self.gvk.group, &self.gvk.kind, &self.namespace, &self.name)
    }

    fn write_place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "/{}", self.namespace)?;
        }
        write!(f, "/{}", self.name)
    }
}

impl Ord for ObjectId {
    fn cmp(&self, other: &Self) -> Ordering {
        let version = || self.gvk.version.cmp(&other.gvk.version);
        self.sort_key().cmp(&other.sort_key()).then_with(version)
    }
}

impl PartialOrd for ObjectId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.gvk)?;
        self.write_place(f)
    }
}

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.gvk.kind)?;
        self.0.write_place(f)
    }
}

impl FromStr for ObjectId {
    type Err = IdError;

    /// The first part is a version, and the group the core group, when it looks like one (`v1`, `v2beta1`): no group
    /// does.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let error = || IdError(text.to_owned());
        let parts: Vec<&str> = text.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(error());
        }
        let (group, rest) = match parts.as_slice() {
            [first, ..] if looks_like_version(first) => ("", parts.as_slice()),
            [group, rest @ ..] => (*group, rest),
            [] => return Err(error()),
        };
        match *rest {
            [version, kind, name] => Ok(Self::new(Gvk::new(group, version, kind), "", name)),
            [version, kind, namespace, name] => {
                Ok(Self::new(Gvk::new(group, version, kind), namespace, name))
            }
            _ => Err(error()),
        }
    }
}

/// Whether it has the shape of a Kubernetes version: `v1`, `v2alpha1`, `v1beta3`.
pub(crate) fn looks_like_version(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else {
        return false;
    };
    let pair = rest.split_once("alpha").or_else(|| rest.split_once("beta"));
    pair.map_or_else(
        || digits(rest),
        |(major, minor)| digits(major) && digits(minor),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_it_is_written() {
        for text in [
            "v1/Namespace/shop",
            "v1/ConfigMap/shop/settings",
            "apps/v1/Deployment/shop/web",
            "rbac.authorization.k8s.io/v1/ClusterRole/admin",
            "example.com/stable/Widget/shop/one",
        ] {
            let id: ObjectId = text.parse().expect(text);
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn another_version_is_the_same_object() {
        let old: ObjectId = "batch/v1beta1/CronJob/shop/report".parse().expect("an id");
        let new: ObjectId = "batch/v1/CronJob/shop/report".parse().expect("an id");
        assert!(old.same_object(&new) && old != new && new < old);
    }

    #[test]
    fn empty_and_missing_parts_are_refused() {
        for text in [
            "",
            "v1",
            "v1/Pod",
            "apps/v1/Deployment",
            "v1//x",
            "v1/Pod/a/b/c",
        ] {
            assert!(text.parse::<ObjectId>().is_err(), "{text}");
        }
    }
}
