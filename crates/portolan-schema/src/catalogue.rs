//! Every type that an object can be checked against: those of one Kubernetes release, of Flux, and of the
//! repository's own CRDs.

use std::collections::HashMap;
use std::sync::OnceLock;

use portolan_object::{FieldPath, FieldSegment, Gvk, KubeVersion, Object, first_served};
use portolan_yaml::{Node, Value};

use crate::flux;
use crate::kubernetes::Kubernetes;
use crate::rules::Rules;
use crate::schema::{Schema, Shape};
use crate::structural;
use crate::trail::Trail;
use crate::validate::Walk;
use crate::violation::{Problem, Violation};

/// The types known, to check objects against from many threads.
///
/// ```
/// use portolan_object::{KubeVersion, Object, Origin};
/// use portolan_schema::{Catalogue, Verdict};
/// use portolan_yaml::{Dialect, parse_one};
///
/// let catalogue = Catalogue::of(KubeVersion::new(1, 36));
/// let node = parse_one("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {port: 80}}", Dialect::Helm)?;
/// let verdict = catalogue.check(&Object::new(node, Origin::default())?);
/// assert!(matches!(verdict, Verdict::Checked(violations)
///     if violations[0].to_string() == "spec.port: unknown field `port`, did you mean `ports`?"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Catalogue {
    asked: KubeVersion,
    is_assumed: bool,
    kubernetes: Kubernetes,
    defined: HashMap<Gvk, Defined>,
}

/// What came of checking an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Its type is known; these are its faults.
    Checked(Vec<Violation>),
    /// Its group can only be Kubernetes' own, but the release does not serve the kind.
    NotServed {
        /// The first release after it that does, of those known.
        since: Option<KubeVersion>,
    },
    /// Nothing describes its kind.
    Unknown,
}

/// One version of a definition; its schema is read when the first object needs it.
#[derive(Debug)]
struct Defined {
    node: Node,
    /// Old definitions keep what they do not know.
    keeps_unknown: bool,
    read: OnceLock<Read>,
}

#[derive(Debug)]
struct Read {
    schema: Schema,
    rules: Option<Rules>,
    is_too_large: bool,
}

/// The values that a definition may consist of, aliases written out; the largest public ones have 60,000.
const MAX_DEFINITION_NODES: usize = 500_000;

impl Catalogue {
    /// The types of a Kubernetes release, or of the nearest known one, and Flux's.
    pub fn of(version: KubeVersion) -> Self {
        let mut catalogue = Self {
            asked: version,
            is_assumed: false,
            kubernetes: Kubernetes::of(version),
            defined: HashMap::new(),
        };
        for definition in flux::definitions() {
            catalogue.define(&definition);
        }
        catalogue
    }

    /// The types of the default release, which nobody chose.
    pub fn assumed() -> Self {
        Self {
            is_assumed: true,
            ..Self::of(KubeVersion::DEFAULT)
        }
    }

    /// Whether nobody chose the release.
    pub fn is_assumed(&self) -> bool {
        self.is_assumed
    }

    /// The release that was asked for, known or not.
    pub fn asked(&self) -> KubeVersion {
        self.asked
    }

    /// The release whose types are used.
    pub fn release(&self) -> KubeVersion {
        self.kubernetes.release
    }

    /// Adds the kinds of a `CustomResourceDefinition`; anything else adds nothing.
    pub fn define(&mut self, definition: &Node) {
        let is_definition =
            definition.get("kind").and_then(Node::as_str) == Some("CustomResourceDefinition");
        let Some(spec) = definition.get("spec").filter(|_| is_definition) else {
            return;
        };
        let text = |path: &[&str]| spec.at_path(path).and_then(Node::as_str);
        let (Some(group), Some(kind)) = (text(&["group"]), text(&["names", "kind"])) else {
            return;
        };
        for (version, schema) in versions(spec) {
            let defined = Defined {
                node: schema.clone(),
                keeps_unknown: keeps_unknown(definition, spec),
                read: OnceLock::new(),
            };
            self.defined.insert(Gvk::new(group, version, kind), defined);
        }
    }

    /// Checks one object.
    pub fn check(&self, object: &Object) -> Verdict {
        let (gvk, node) = (object.gvk(), object.node());
        if let Some(defined) = self.defined.get(gvk) {
            return Verdict::Checked(self.check_defined(defined, node));
        }
        let api_version = gvk.api_version();
        match self.kubernetes.kind(&api_version, &gvk.kind) {
            Some(record) => {
                let mut walk = Walk::new(&self.kubernetes);
                if let Value::Map(map) = &node.value {
                    walk.record(record, map, node.at, Trail::Root);
                }
                Verdict::Checked(without_status(walk.finish()))
            }
            None if is_kubernetes(&gvk.group) => Verdict::NotServed {
                since: first_served(gvk).filter(|since| *since > self.kubernetes.release),
            },
            None => Verdict::Unknown,
        }
    }

    fn check_defined(&self, defined: &Defined, node: &Node) -> Vec<Violation> {
        let read = defined.read();
        let mut walk = Walk::new(&self.kubernetes);
        let root = Trail::Root;
        let metadata = Trail::Key(&root, "metadata");
        if let Some(value) = node.get("metadata") {
            walk.value(&self.kubernetes.metadata(), value, metadata);
        }
        walk.value(&read.schema, node, root);
        let mut violations = without_status(walk.finish());
        if read.is_too_large {
            violations.push(too_large(node));
        }
        // Rules may take a well-formed object for granted.
        if violations.is_empty() {
            violations = read
                .rules
                .as_ref()
                .map(|rules| rules.broken_by(node))
                .unwrap_or_default();
        }
        violations
    }
}

impl Defined {
    fn read(&self) -> &Read {
        self.read.get_or_init(|| {
            if count(&self.node, MAX_DEFINITION_NODES) == 0 {
                return Read {
                    schema: Schema::of(Shape::Any),
                    rules: None,
                    is_too_large: true,
                };
            }
            let mut schema = structural::read(&self.node);
            if let Shape::Record(record) = &mut schema.shape {
                // The three fields of every object are checked by themselves and need not be named.
                record.fields.retain(|field| !is_common(&field.name));
                record.required.retain(|field| !is_common(field));
                record.fields.extend(structural::common_fields());
                record.fields.sort_by(|a, b| a.name.cmp(&b.name));
                record.open |= self.keeps_unknown;
            }
            Read {
                schema,
                rules: Rules::read(&self.node),
                is_too_large: false,
            }
        })
    }
}

/// Returns how many of so many values are left after those of a node were counted.
fn count(node: &Node, left: usize) -> usize {
    let left = left.saturating_sub(1);
    if left == 0 {
        return 0;
    }
    if let Some(map) = node.as_map() {
        return map
            .iter()
            .fold(left, |left, entry| count(&entry.value, left));
    }
    let list = node.as_list();
    list.map_or(left, |list| {
        list.iter().fold(left, |left, item| count(item, left))
    })
}

fn too_large(node: &Node) -> Violation {
    Violation {
        path: FieldPath::default(),
        at: node.at,
        problem: Problem::NotJudged {
            what: "the object".to_owned(),
            reason: format!("its definition has more than {MAX_DEFINITION_NODES} values"),
        },
    }
}

/// Whether no definition could add kinds to a group: those need a name with a dot.
fn is_kubernetes(group: &str) -> bool {
    Kubernetes::owns(group) || !group.contains('.')
}

fn is_common(field: &str) -> bool {
    matches!(field, "apiVersion" | "kind" | "metadata")
}

/// The server ignores the status that a manifest brings along.
fn without_status(mut violations: Vec<Violation>) -> Vec<Violation> {
    let in_status = |violation: &Violation| {
        let first = violation.path.segments().first();
        first.and_then(FieldSegment::as_key) == Some("status")
    };
    violations.retain(|violation| !in_status(violation));
    violations
}

/// Name and schema of each version that a definition serves; one without a schema allows everything.
fn versions(spec: &Node) -> Vec<(&str, &Node)> {
    let shared = spec.at_path(&["validation", "openAPIV3Schema"]);
    let Some(list) = spec.get("versions").and_then(Node::as_list) else {
        let version = spec.get("version").and_then(Node::as_str);
        return version.zip(shared).into_iter().collect();
    };
    let served = list
        .iter()
        .filter(|version| version.get("served").and_then(Node::as_bool) != Some(false));
    served
        .filter_map(|version| {
            let name = version.get("name")?.as_str()?;
            let schema = version.at_path(&["schema", "openAPIV3Schema"]).or(shared)?;
            Some((name, schema))
        })
        .collect()
}

fn keeps_unknown(definition: &Node, spec: &Node) -> bool {
    let said = spec.get("preserveUnknownFields").and_then(Node::as_bool);
    let old =
        definition.get("apiVersion").and_then(Node::as_str) == Some("apiextensions.k8s.io/v1beta1");
    said.unwrap_or(old)
}
