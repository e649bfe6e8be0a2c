//! CRDs and the rules in them.

use std::sync::LazyLock;

use portolan_object::{KubeVersion, Object, Origin};
use portolan_schema::{Catalogue, Verdict};
use portolan_yaml::{Dialect, List, Map, Node, Value, parse_bytes, parse_one};

use crate::{Target, pieces, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "schema-object",
        about: "objects, checked against the types of a Kubernetes release",
        run: objects,
        seeds: || {
            texts(&[
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, labels: {b: c}}\nspec: {replicas: 1, selector: {matchLabels: {b: c}}, template: {metadata: {labels: {b: c}}, spec: {containers: [{name: c, image: i, ports: [{containerPort: 80}], resources: {limits: {cpu: 100m}}}]}}}\n",
                "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: h}\nspec: {interval: 1h, chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}}\n",
            ])
        },
    },
    Target {
        name: "schema-definition",
        about: "the schema of a kind's spec, then a spec to hold against it",
        run: definition,
        seeds: || {
            texts(&[
                "{type: object, required: [a], properties: {a: {type: integer, minimum: 1}, b: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string, pattern: '^(x+)+$', maxLength: 9}}}}}, additionalProperties: {x-kubernetes-int-or-string: true}}\n%%\n{a: 0, b: [{k: x}, {k: x}], c: d}",
                "{type: object, properties: {a: {type: integer}}}\n%%\n{a: 1}",
                "{type: object, allOf: [{anyOf: [{not: {required: [x]}}, {oneOf: []}]}], nullable: true, enum: [1, {a: b}], x-kubernetes-preserve-unknown-fields: true}\n%%\n{x: null}",
            ])
        },
    },
    Target {
        name: "schema-rule",
        about: "a rule in CEL, then the spec that it judges",
        run: rule,
        seeds: || {
            texts(&[
                "self.a.all(x, x.startsWith('b') && size(x) < 10) || has(self.c) ? self.n >= 1.5 : !(self.m['k'] in [1, 2u])\n%%\n{a: [b, bb], n: 2, m: {k: 1}}",
                "self.l.map(x, x * 2).filter(y, y > 2).exists_one(z, z == 4) && duration('1h') < duration('90m') && timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026\n%%\n{l: [1, 2, 3]}",
                "self.s.matches('^(a*)*$') && quantity('1Gi').isGreaterThan(quantity('1M')) && ip('::1').family() == 6 && url(self.s).getHost() == '' && format.dns1123Label().validate(self.s).hasValue()\n%%\n{s: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}",
                "lists.range(1000000000).size() > 0\n%%\n{}",
                "self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, a + b + c + d > 0))))\n%%\n{l: [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}",
                "b'\\xff\\u00e9' + r\"raw\" == \"\"\"long\"\"\" || {1: 'a', true: 2.5e3}.size() == -9223372036854775808 % 0\n%%\n{}",
            ])
        },
    },
];

static KUBERNETES: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::of(KubeVersion::new(1, 36)));

fn objects(bytes: &[u8]) -> bool {
    let nodes = parse_bytes(bytes, Dialect::Helm).unwrap_or_default();
    let verdicts = nodes.into_iter().filter_map(|node| {
        let object = Object::new(node, Origin::default()).ok()?;
        Some(KUBERNETES.check(&object))
    });
    verdicts.fold(false, |any, verdict| any | is_met(&verdict))
}

fn definition(bytes: &[u8]) -> bool {
    let Some(mut parts) = pieces(bytes) else {
        return false;
    };
    let mut next = || parse_one(parts.next().unwrap_or_default(), Dialect::Helm);
    let (Ok(schema), Ok(spec)) = (next(), next()) else {
        return false;
    };
    check(schema, spec)
}

fn rule(bytes: &[u8]) -> bool {
    let Some(mut parts) = pieces(bytes) else {
        return false;
    };
    let rule = parts.next().unwrap_or_default();
    let Ok(spec) = parse_one(parts.next().unwrap_or_default(), Dialect::Helm) else {
        return false;
    };
    let mut validation = Map::new();
    validation.insert("rule", Node::string(rule));
    let validations = List::from_items(vec![Node::new(Value::Map(validation))]);
    let mut schema = Map::new();
    schema.insert("type", Node::string("object"));
    schema.insert("x-kubernetes-preserve-unknown-fields", Node::bool(true));
    schema.insert(
        "x-kubernetes-validations",
        Node::new(Value::List(validations)),
    );
    check(Node::new(Value::Map(schema)), spec)
}

/// Checks an object of a kind that is defined by this schema of its spec.
fn check(schema: Node, spec: Node) -> bool {
    let path = ["spec", "validation", "openAPIV3Schema", "properties"];
    let mut definition = node(
        "{kind: CustomResourceDefinition, spec: {group: example.com, version: v1, names: {kind: Widget}, \
         validation: {openAPIV3Schema: {type: object, properties: {}}}}}",
    );
    let mut object = node("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}");
    set(&mut definition, &path, schema);
    set(&mut object, &[], spec);
    let Ok(object) = Object::new(object, Origin::default()) else {
        return false;
    };
    let mut catalogue = Catalogue::of(KubeVersion::new(1, 36));
    catalogue.define(&definition);
    is_met(&catalogue.check(&object))
}

/// Whether an object was checked and is as its type says.
fn is_met(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Checked(violations) if violations.is_empty())
}

/// Sets the field `spec` of the map at a path.
fn set(root: &mut Node, path: &[&str], value: Node) {
    let parent = path.iter().try_fold(root, |node, key| node.get_mut(key));
    let map = parent
        .and_then(Node::as_map_mut)
        .expect("a map of a text of this file");
    map.insert("spec", value);
}

fn node(text: &str) -> Node {
    parse_one(text, Dialect::Helm).expect("a text of this file")
}
