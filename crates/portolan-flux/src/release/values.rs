//! The values of a HelmRelease: first those from other objects, in order, then its own `values`.
//!
//! Go's maps are shared by reference, and Flux's result depends on it: a reference with a `targetPath` is set in a
//! merge of what was read so far and the release's own `values`. If the map where it is set is the same map as in the
//! own `values`, the setting survives the last merge; if the merge had to make a new map, the own value wins.

use std::sync::Arc;

use portolan_helm::values::{SetKind, Tree, set};
use portolan_object::placeholder;
use portolan_yaml::Text;

use crate::api::{DataKind, HelmRelease, ValuesReference};
use crate::kustomization::variables::Data;

/// Why values cannot be composed.
#[derive(Debug, thiserror::Error)]
pub enum ValuesError {
    /// The object is there, but not the key.
    #[error("{kind} `{name}` has no key `{key}`")]
    MissingKey {
        /// `ConfigMap` or `Secret`.
        kind: &'static str,
        /// The object's name.
        name: Text,
        /// The key that was asked for.
        key: Text,
    },
    /// The text under the key is not YAML.
    #[error("cannot read key `{key}` of {kind} `{name}` as values: {reason}")]
    NotValues {
        /// `ConfigMap` or `Secret`.
        kind: &'static str,
        /// The object's name.
        name: Text,
        /// The key that was asked for.
        key: Text,
        /// What is wrong with it.
        reason: String,
    },
    /// `targetPath` cannot be set.
    #[error("cannot set `{path}` from {kind} `{name}`: {reason}")]
    TargetPath {
        /// `ConfigMap` or `Secret`.
        kind: &'static str,
        /// The object's name.
        name: Text,
        /// The path as written.
        path: Text,
        /// What is wrong with it.
        reason: String,
    },
}

impl ValuesError {
    /// The object that is to blame.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::MissingKey { name, .. }
            | Self::NotValues { name, .. }
            | Self::TargetPath { name, .. } => name,
        }
    }
}

/// How a text begins that sops encrypted and nobody opened: there may be values in it, but nobody can tell which.
const SEALED: &[u8] = b"ENC[AES256_GCM,";

/// What was composed, and what was not to be had.
#[derive(Debug, Default)]
pub struct Composed {
    /// The values: a table.
    pub values: Tree,
    /// References that are not optional and that nothing answers.
    pub missing: Vec<ValuesReference>,
    /// References to whole values that are sealed or made in the cluster: which keys they have is not known here.
    pub whole_unknown: Vec<ValuesReference>,
    /// References that could not be read; they are left out.
    pub errors: Vec<ValuesError>,
}

/// What a reference leads to.
pub(crate) enum Referenced {
    /// An object with this content.
    Known(Arc<Data>),
    /// An object that something makes in the cluster: nobody knows its content here.
    Unknown,
    /// Nothing.
    Nothing,
}

/// Composes the values of a release; `data` finds an object's content.
///
/// For a value of an object that is not here, and that the cluster must or will have, a placeholder is set at the
/// reference's `targetPath`: charts often refuse to be rendered without it.
pub(crate) fn compose(
    release: &HelmRelease,
    mut data: impl FnMut(DataKind, &str) -> Referenced,
) -> Composed {
    let given = release
        .values
        .as_ref()
        .map_or_else(Tree::empty_table, Tree::from_node);
    let mut layers = Layers {
        read: Tree::empty_table(),
        given,
    };
    let mut composed = Composed::default();
    for reference in &release.values_from {
        let object = match data(reference.kind, &reference.name) {
            Referenced::Known(object) => object,
            Referenced::Nothing if reference.optional => continue,
            Referenced::Unknown | Referenced::Nothing => {
                if !reference.optional {
                    composed.missing.push(reference.clone());
                }
                if reference.target_path.is_none() {
                    composed.whole_unknown.push(reference.clone());
                }
                composed
                    .errors
                    .extend(layers.take_unknown(release, reference).err());
                continue;
            }
        };
        match object.get(reference.key.as_str()) {
            Some(text) if reference.target_path.is_none() && text.starts_with(SEALED) => {
                composed.whole_unknown.push(reference.clone());
            }
            Some(text) => composed
                .errors
                .extend(layers.take_in(reference, text).err()),
            None if reference.optional => {}
            None => composed.errors.push(ValuesError::MissingKey {
                kind: reference.kind.as_str(),
                name: reference.name.clone(),
                key: reference.key.clone(),
            }),
        }
    }
    composed.values = layers.read.overlay(&layers.given);
    composed
}

struct Layers {
    /// What was read from references so far.
    read: Tree,
    /// What is given in place.
    given: Tree,
}

impl Layers {
    /// Sets a placeholder where the value of a reference belongs; which keys whole values have, nobody knows.
    fn take_unknown(
        &mut self,
        release: &HelmRelease,
        reference: &ValuesReference,
    ) -> Result<(), ValuesError> {
        if reference.target_path.is_none() {
            return Ok(());
        }
        let ValuesReference {
            kind, name, key, ..
        } = reference;
        let kind = kind.as_str();
        let namespace = &release.id.namespace;
        let unknown = placeholder(&format!("{kind}/{namespace}/{name}/{key}"));
        self.take_in(reference, unknown.as_bytes())
    }

    fn take_in(&mut self, reference: &ValuesReference, text: &[u8]) -> Result<(), ValuesError> {
        let Some(path) = &reference.target_path else {
            let values = Tree::read_table(text).map_err(|reason| ValuesError::NotValues {
                kind: reference.kind.as_str(),
                name: reference.name.clone(),
                key: reference.key.clone(),
                reason,
            })?;
            self.read = self.read.overlay(&values);
            return Ok(());
        };
        self.set_path(path, &String::from_utf8_lossy(text), reference.literal)
            .map_err(|reason| ValuesError::TargetPath {
                kind: reference.kind.as_str(),
                name: reference.name.clone(),
                path: path.clone(),
                reason,
            })
    }

    fn set_path(&mut self, path: &str, text: &str, literal: bool) -> Result<(), String> {
        let shared = lands_in_given(path, &self.read, &self.given);
        let (text, kind) = match unquoted(text) {
            _ if literal => (text, (|| SetKind::Literal) as fn() -> SetKind<'static>),
            Some(inner) => (inner, (|| SetKind::Strings) as fn() -> SetKind<'static>),
            None => (text, (|| SetKind::Typed) as fn() -> SetKind<'static>),
        };
        let assignment = format!("{path}={text}");
        self.read = self.read.overlay(&self.given);
        set(&mut self.read, &assignment, kind()).map_err(|error| error.to_string())?;
        if shared {
            set(&mut self.given, &assignment, kind()).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Whether the map that a path ends in, after the merge, is one of the maps given in place.
///
/// Walking down, a key whose value is a map on both sides gets a new map; one that only the given side has keeps it.
fn lands_in_given(path: &str, read: &Tree, given: &Tree) -> bool {
    let (mut read, mut given) = (Some(read), given);
    let keys = map_keys(path);
    for key in &keys {
        let below_given = given.as_table().and_then(|table| table.get(key.as_str()));
        let Some(below_given) = below_given.filter(|tree| tree.as_table().is_some()) else {
            return false;
        };
        let below_read = read
            .and_then(Tree::as_table)
            .and_then(|table| table.get(key.as_str()));
        match below_read.filter(|tree| tree.as_table().is_some()) {
            Some(below) => read = Some(below),
            None => return true,
        }
        given = below_given;
    }
    false
}

/// The keys of a `--set` path that lead to maps: all but the last, up to the first index.
fn map_keys(path: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut key = String::new();
    let mut letters = path.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => key.extend(letters.next()),
            '.' => keys.push(std::mem::take(&mut key)),
            '[' => return keys,
            _ => key.push(letter),
        }
    }
    keys
}

/// The inside of a text that is quoted as a whole: such a text stays a text.
fn unquoted(text: &str) -> Option<&str> {
    let quoted = |quote| text.len() >= 2 && text.starts_with(quote) && text.ends_with(quote);
    (quoted('\'') || quoted('"')).then(|| text.trim_matches(['\'', '"']))
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one};

    use super::*;

    /// Composes a release's `spec` with one ConfigMap `c` that holds the given keys.
    fn composed(spec: &str, data: &[(&str, &str)]) -> Tree {
        let head = "metadata: {name: r, namespace: apps}\nspec:\n  chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: s}}}\n";
        let release =
            HelmRelease::read(&parse_one(format!("{head}{spec}"), Dialect::Helm).unwrap()).unwrap();
        let data = data.iter();
        let data = data.map(|(key, text)| (Text::from(*key), text.as_bytes().to_vec()));
        let data: Arc<Data> = Arc::new(data.collect());
        let composed = compose(&release, |_, name| match name {
            "c" => Referenced::Known(Arc::clone(&data)),
            "made-in-the-cluster" => Referenced::Unknown,
            _ => Referenced::Nothing,
        });
        assert!(
            composed.missing.is_empty() && composed.errors.is_empty(),
            "{composed:?}"
        );
        composed.values
    }

    fn table(text: &str) -> Tree {
        Tree::read_table(text.as_bytes()).unwrap()
    }

    #[test]
    fn values_in_place_win_over_references_and_later_references_over_earlier_ones() {
        let spec = "  valuesFrom:\n  - {kind: ConfigMap, name: c, valuesKey: a}\n  - {kind: ConfigMap, name: c, valuesKey: b}\n  values: {z: 3}\n";
        assert_eq!(
            composed(spec, &[("a", "x: 1\ny: 1\nz: 1"), ("b", "y: 2\nz: 2")]),
            table("x: 1\ny: 2\nz: 3")
        );
    }

    #[test]
    fn a_target_path_into_a_map_given_in_place_wins() {
        let spec = "  valuesFrom:\n  - {kind: ConfigMap, name: c, valuesKey: k, targetPath: auth.password}\n  values: {auth: {password: weak, user: u}}\n";
        assert_eq!(
            composed(spec, &[("k", "'123'")]),
            table("auth: {password: '123', user: u}")
        );
    }

    #[test]
    fn a_target_path_below_a_key_that_an_earlier_reference_made_loses() {
        let spec = "  valuesFrom:\n  - {kind: ConfigMap, name: c, valuesKey: a}\n  - {kind: ConfigMap, name: c, valuesKey: k, targetPath: auth.password}\n  values: {auth: {password: weak}}\n";
        assert_eq!(
            composed(spec, &[("a", "auth: {user: u}"), ("k", "strong")]),
            table("auth: {password: weak, user: u}")
        );
    }

    #[test]
    fn a_target_path_at_the_top_loses_to_a_value_in_place() {
        let spec = "  valuesFrom:\n  - {kind: ConfigMap, name: c, valuesKey: k, targetPath: password}\n  values: {password: weak}\n";
        assert_eq!(composed(spec, &[("k", "strong")]), table("password: weak"));
    }

    #[test]
    fn a_placeholder_stands_for_a_value_that_only_the_cluster_knows() {
        let spec = "  valuesFrom:\n  - {kind: Secret, name: made-in-the-cluster, valuesKey: token, targetPath: auth.token, optional: true}\n  - {kind: Secret, name: nowhere, valuesKey: token, targetPath: other, optional: true}\n";
        let token = placeholder("Secret/apps/made-in-the-cluster/token");
        assert_eq!(
            composed(spec, &[]),
            table(&format!("auth: {{token: {token}}}"))
        );
    }
}
