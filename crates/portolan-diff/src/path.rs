//! Where a field is in an object: `spec.template.spec.containers[web].image`.

use std::fmt;

use portolan_yaml::{Node, Text};

/// The way from an object's root to one of its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path(Vec<Segment>);

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A key of a map.
    Key(Text),
    /// The item of a list that has this merge key; several keys are joined by `/`.
    Item(Text),
    /// The item of a list that has no merge key. Of a removed or changed item it is the old place, of an added one the
    /// new place.
    Index(usize),
}

impl Path {
    /// The path of the whole object.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path of map keys, as lints name them: `spec.selector`.
    pub fn of_keys(dotted: &str) -> Self {
        let keys = dotted.split('.').filter(|key| !key.is_empty());
        Self(keys.map(|key| Segment::Key(Text::from(key))).collect())
    }

    /// A path of map keys, whatever is in them.
    pub fn from_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let key = |key| Segment::Key(Text::from(key));
        Self(keys.into_iter().map(key).collect())
    }

    /// What it leads to; an item of a list must be the only one with its name.
    pub fn find<'n>(&self, root: &'n Node) -> Option<&'n Node> {
        let mut segments = self.0.iter();
        segments.try_fold(root, |node, segment| segment.find(node))
    }

    /// The path that leads on from the end of this one.
    #[must_use]
    pub fn join(&self, rest: &Self) -> Self {
        Self([self.segments(), rest.segments()].concat())
    }

    /// The steps.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Whether it is the whole object.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The same path with one more step.
    #[must_use]
    pub fn then(&self, segment: Segment) -> Self {
        let mut segments = Vec::with_capacity(self.0.len() + 1);
        segments.extend(self.0.iter().cloned());
        segments.push(segment);
        Self(segments)
    }

    /// The last key of a map on the way, which names what the value is.
    pub fn last_key(&self) -> Option<&str> {
        self.0.iter().rev().find_map(Segment::as_key)
    }

    /// Whether it lies at or below a dotted path; items of lists on the way count for nothing.
    ///
    /// ```
    /// # use portolan_diff::{Path, Segment};
    /// let image = Path::of_keys("spec.containers").then(Segment::Index(0)).then(Segment::Key("image".into()));
    /// assert!(image.is_under("spec.containers.image") && image.is_under("spec"));
    /// assert!(!image.is_under("spec.volumes"));
    /// ```
    pub fn is_under(&self, dotted: &str) -> bool {
        let mut keys = self.0.iter().filter_map(Segment::as_key);
        let mut wanted = dotted.split('.').filter(|key| !key.is_empty());
        wanted.all(|wanted| keys.next() == Some(wanted))
    }
}

impl Segment {
    /// The key, when it is one of a map.
    pub fn as_key(&self) -> Option<&str> {
        match self {
            Self::Key(key) => Some(key),
            Self::Item(_) | Self::Index(_) => None,
        }
    }

    fn find<'n>(&self, node: &'n Node) -> Option<&'n Node> {
        match self {
            Self::Key(key) => node.get(key),
            Self::Index(index) => node.as_list()?.get(*index),
            Self::Item(name) => {
                let has_name = |item: &&Node| {
                    let mut entries = item.as_map().into_iter().flatten();
                    entries.any(|entry| entry.value.as_str() == Some(name.as_str()))
                };
                let mut items = node.as_list()?.iter().filter(has_name);
                items.next().filter(|_| items.next().is_none())
            }
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) => {
                    f.write_str(if index == 0 { "" } else { "." })?;
                    write_key(key, f)?;
                }
                Segment::Item(name) => write!(f, "[{name}]")?,
                Segment::Index(place) => write!(f, "[{place}]")?,
            }
        }
        Ok(())
    }
}

/// Keys that would be read as several, such as `app.kubernetes.io/name`, stand in quotes.
fn write_key(key: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '/');
    if !key.is_empty() && key.chars().all(is_word) {
        f.write_str(key)
    } else {
        write!(f, "\"{}\"", key.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_people_write_it() {
        let path = Path::of_keys("spec.containers")
            .then(Segment::Item("web".into()))
            .then(Segment::Key("args".into()))
            .then(Segment::Index(2));
        assert_eq!(path.to_string(), "spec.containers[web].args[2]");
        let label = Path::of_keys("metadata.labels").then(Segment::Key("helm.sh/chart".into()));
        assert_eq!(label.to_string(), "metadata.labels.\"helm.sh/chart\"");
    }

    #[test]
    fn a_path_leads_to_its_field_or_nowhere() {
        let text = "a: [{name: x, k: 1}, {name: y, k: 2}, {name: z}, {also: z}]";
        let root = portolan_yaml::parse_one(text, portolan_yaml::Dialect::Kustomize).unwrap();
        let list = Path::from_keys(["a"]);
        let k = Path::from_keys(["k"]);
        let find = |item: Segment| list.then(item).join(&k).find(&root)?.as_i64();
        assert_eq!(find(Segment::Item("y".into())), Some(2));
        assert_eq!(find(Segment::Index(0)), Some(1));
        assert_eq!(find(Segment::Item("w".into())), None);
        let twice = list.then(Segment::Item("z".into()));
        assert_eq!(twice.find(&root), None);
    }
}
