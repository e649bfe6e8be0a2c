//! Kubernetes' own types in one release, read from the table in `data/kubernetes.txt`.
//!
//! The table holds all releases; reading picks the lines of one. It takes about a millisecond and happens once for
//! each catalogue.

use std::borrow::Cow;
use std::collections::HashMap;

use portolan_object::KubeVersion;

use crate::schema::{Field, Record, Scalar, Schema, Shape};

const TABLE: &str = include_str!("../data/kubernetes.txt");

/// The types of one release.
#[derive(Debug)]
pub(crate) struct Kubernetes {
    pub(crate) release: KubeVersion,
    types: Vec<Record>,
    /// The type of each `apiVersion` and kind.
    kinds: HashMap<(&'static str, &'static str), usize>,
    /// Number of the type of every object's metadata.
    metadata: usize,
}

impl Kubernetes {
    /// The release asked for, or the nearest one known.
    pub(crate) fn of(version: KubeVersion) -> Self {
        Reader::new(version.nearest_known().minor).read(TABLE)
    }

    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Option<&Record> {
        self.kinds
            .get(&(api_version, kind))
            .and_then(|number| self.types.get(*number))
    }

    pub(crate) fn named(&self, number: usize) -> Option<&Record> {
        self.types.get(number)
    }

    /// The schema of `metadata`, which is the same for every kind.
    pub(crate) fn metadata(&self) -> Schema {
        Schema::of(Shape::Named(self.metadata))
    }

    /// Whether a group is Kubernetes' own, in any version or release.
    pub(crate) fn owns(group: &str) -> bool {
        let rows = TABLE.lines().filter_map(|line| line.strip_prefix("kind "));
        rows.filter_map(|row| row.split(' ').next())
            .any(|api_version| match api_version.split_once('/') {
                Some((known, _)) => known == group,
                None => group.is_empty(),
            })
    }
}

/// Reads the table for one release.
struct Reader {
    minor: u32,
    numbers: HashMap<&'static str, usize>,
    fields: Vec<Vec<Field>>,
    kinds: HashMap<(&'static str, &'static str), usize>,
}

impl Reader {
    fn new(minor: u32) -> Self {
        Self {
            minor,
            numbers: HashMap::new(),
            fields: Vec::new(),
            kinds: HashMap::new(),
        }
    }

    fn read(mut self, table: &'static str) -> Kubernetes {
        let mut current = None;
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            if let (Some(current), Some(field)) = (current, line.strip_prefix("  ")) {
                self.read_field(current, field);
            } else if let Some(name) = line.strip_prefix("type ") {
                current = Some(self.number(name));
            } else if let Some(row) = line.strip_prefix("kind ") {
                self.read_kind(row);
            }
        }
        let metadata = self.number("meta.v1.ObjectMeta");
        Kubernetes {
            release: KubeVersion::new(1, self.minor),
            types: self.fields.into_iter().map(record).collect(),
            kinds: self.kinds,
            metadata,
        }
    }

    fn read_kind(&mut self, row: &'static str) {
        let mut words = row.split(' ');
        let (Some(api_version), Some(kind), Some(name)) =
            (words.next(), words.next(), words.next())
        else {
            return;
        };
        if self.has(words.next()) {
            let number = self.number(name);
            self.kinds.insert((api_version, kind), number);
        }
    }

    fn read_field(&mut self, current: usize, line: &'static str) {
        let mut words = line.split(' ');
        let (Some(name), Some(form)) = (words.next(), words.next()) else {
            return;
        };
        if !self.has(words.next()) {
            return;
        }
        let schema = Schema::of(self.shape(form));
        let field = Field {
            name: Cow::Borrowed(name.trim_end_matches('!')),
            required: name.ends_with('!'),
            schema,
        };
        if let Some(fields) = self.fields.get_mut(current) {
            fields.push(field);
        }
    }

    /// Whether a range like `31-` or `29-33` has the release; none means all.
    fn has(&self, range: Option<&str>) -> bool {
        let Some((since, until)) = range.and_then(|range| range.split_once('-')) else {
            return true;
        };
        // An end that is not written is open.
        let is_after = |since: u32| since <= self.minor;
        let is_before = |until: u32| self.minor <= until;
        since.parse().map_or(true, is_after) && until.parse().map_or(true, is_before)
    }

    fn shape(&mut self, form: &'static str) -> Shape {
        if let Some(item) = form
            .strip_prefix('[')
            .and_then(|form| form.strip_suffix(']'))
        {
            return Shape::List {
                item: Box::new(Schema::of(self.shape(item))),
                unique: crate::schema::Unique::No,
            };
        }
        if let Some(value) = form
            .strip_prefix('{')
            .and_then(|form| form.strip_suffix('}'))
        {
            return Shape::Map(Box::new(Schema::of(self.shape(value))));
        }
        match form {
            "string" => Shape::Scalar(Scalar::String),
            "bool" => Shape::Scalar(Scalar::Bool),
            "int32" => Shape::Scalar(Scalar::Int32),
            "int64" => Shape::Scalar(Scalar::Int64),
            "number" => Shape::Scalar(Scalar::Number),
            "bytes" => Shape::Scalar(Scalar::Bytes),
            "time" => Shape::Scalar(Scalar::Time),
            "quantity" => Shape::Scalar(Scalar::Quantity),
            "int-or-string" => Shape::Scalar(Scalar::IntOrString),
            "any" => Shape::Any,
            "object" => Shape::Map(Box::new(Schema::of(Shape::Any))),
            name => Shape::Named(self.number(name)),
        }
    }

    fn number(&mut self, name: &'static str) -> usize {
        let next = self.fields.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.fields.push(Vec::new());
        }
        number
    }
}

/// A type without a line in the table has no fields of its own and takes any.
fn record(fields: Vec<Field>) -> Record {
    let open = fields.is_empty();
    Record {
        open,
        ..Record::new(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_release_has_the_common_kinds() {
        for minor in KubeVersion::OLDEST_KNOWN.minor..=KubeVersion::NEWEST_KNOWN.minor {
            let types = Kubernetes::of(KubeVersion::new(1, minor));
            let deployment = types
                .kind("apps/v1", "Deployment")
                .expect("served since 1.9");
            assert!(deployment.field("spec").is_some());
        }
    }

    #[test]
    fn a_release_has_its_own_fields() {
        let field = |minor| {
            let types = Kubernetes::of(KubeVersion::new(1, minor));
            let Shape::Named(spec) = types.kind("v1", "Pod")?.field("spec")?.schema.shape else {
                return None;
            };
            types
                .named(spec)?
                .field("resources")
                .map(|field| field.name.to_string())
        };
        assert_eq!(field(30), None);
        assert_eq!(field(36).as_deref(), Some("resources"));
    }

    #[test]
    fn the_nearest_release_stands_in_for_an_unknown_one() {
        assert_eq!(
            Kubernetes::of(KubeVersion::new(1, 20)).release,
            KubeVersion::OLDEST_KNOWN
        );
        assert_eq!(
            Kubernetes::of(KubeVersion::new(1, 99)).release,
            KubeVersion::NEWEST_KNOWN
        );
    }

    #[test]
    fn the_groups_of_kubernetes_are_known() {
        assert!(Kubernetes::owns("") && Kubernetes::owns("apps") && Kubernetes::owns("policy"));
        assert!(!Kubernetes::owns("example.com"));
    }
}
