//! What a custom definition asks for, one test for each way to ask.

use portolan_object::{KubeVersion, Object, Origin};
use portolan_schema::{Catalogue, Verdict};
use portolan_yaml::{Dialect, Node, parse_one};

/// A definition of `Widget` whose spec has this schema.
fn catalogue(spec: &str) -> Catalogue {
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.example.com}}
spec:
  group: example.com
  names: {{kind: Widget, plural: widgets}}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {spec}
"
    );
    let mut catalogue = Catalogue::of(KubeVersion::new(1, 36));
    catalogue.define(&node(&definition));
    catalogue
}

fn node(yaml: &str) -> Node {
    parse_one(yaml, Dialect::Helm).expect("YAML")
}

/// The violations of a `Widget` with this spec, one a line.
fn check(schema: &str, spec: &str) -> String {
    let widget = format!(
        "{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: w}}, spec: {spec}}}"
    );
    let object = Object::new(node(&widget), Origin::default()).expect("an object");
    let Verdict::Checked(violations) = catalogue(schema).check(&object) else {
        unreachable!("Widget is defined");
    };
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn unknown_fields_are_refused_unless_they_are_kept() {
    let closed = "{type: object, properties: {size: {type: integer}}}";
    assert_eq!(check(closed, "{size: 1}"), "");
    assert_eq!(
        check(closed, "{sise: 1}"),
        "spec.sise: unknown field `sise`, did you mean `size`?"
    );
    let kept = "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {size: {type: integer}}}";
    assert_eq!(check(kept, "{sise: 1}"), "");
    assert_eq!(
        check(kept, "{size: x}"),
        "spec.size: expected a whole number, found text"
    );
}

#[test]
fn a_required_field_may_be_left_to_its_default() {
    let schema = "{type: object, required: [a, b], properties: {a: {type: string}, b: {type: string, default: x}}}";
    assert_eq!(check(schema, "{}"), "spec: required field `a` is missing");
    assert_eq!(
        check(schema, "{a: null}"),
        "spec: required field `a` is missing"
    );
    assert_eq!(check(schema, "{a: text}"), "");
}

#[test]
fn values_are_held_to_their_limits() {
    let schema = "{type: object, properties: {
        count: {type: integer, minimum: 1, maximum: 9},
        s: {type: string, pattern: '^[a-z]+$', maxLength: 3},
        e: {type: string, enum: [A, B]},
        l: {type: array, minItems: 1, items: {type: string}}}}";
    assert_eq!(check(schema, "{count: 5, s: abc, e: A, l: [x]}"), "");
    assert_eq!(
        check(schema, "{count: 0}"),
        "spec.count: must be at least 1"
    );
    assert_eq!(
        check(schema, "{count: 10}"),
        "spec.count: must be at most 9"
    );
    assert_eq!(check(schema, "{s: A}"), "spec.s: must match `^[a-z]+$`");
    assert_eq!(
        check(schema, "{s: abcd}"),
        "spec.s: must have at most 3 characters"
    );
    assert_eq!(
        check(schema, "{e: C}"),
        r#"spec.e: must be one of "A", "B""#
    );
    assert_eq!(
        check(schema, "{l: []}"),
        "spec.l: must have at least 1 items"
    );
}

#[test]
fn one_of_two_fields_can_be_asked_for() {
    let schema = "{type: object, properties: {a: {type: string}, b: {type: string}}, \
                  oneOf: [{required: [a]}, {required: [b]}]}";
    assert_eq!(check(schema, "{a: x}"), "");
    assert_eq!(
        check(schema, "{}"),
        "spec: must have exactly one of `a`, `b`"
    );
    assert_eq!(
        check(schema, "{a: x, b: z}"),
        "spec: must have exactly one of `a`, `b`"
    );
}

#[test]
fn keys_of_a_list_may_not_repeat() {
    let schema = "{type: object, properties: {l: {type: array, x-kubernetes-list-type: map, \
                  x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}}}}}}";
    assert_eq!(check(schema, "{l: [{name: a}, {name: b}]}"), "");
    assert_eq!(
        check(schema, "{l: [{name: a}, {name: a}]}"),
        "spec.l[1]: must not repeat `name` of another item"
    );
}

#[test]
fn rules_see_defaults_and_name_the_field() {
    let schema = "{type: object, properties: {min: {type: integer, default: 2}, max: {type: integer}}, \
                  x-kubernetes-validations: [{rule: 'self.min <= self.max', message: min is above max}]}";
    assert_eq!(check(schema, "{max: 3}"), "");
    assert_eq!(
        check(schema, "{max: 1}"),
        "spec: breaks a rule of its definition: min is above max"
    );
}

#[test]
fn a_rule_that_cannot_be_judged_is_left_to_the_server_and_said() {
    let schema = "{type: object, properties: {a: {type: string}}, \
                  x-kubernetes-validations: [{rule: 'no.such.thing(self)', message: no}]}";
    assert_eq!(
        check(schema, "{a: x}"),
        "spec: rule `no.such.thing(self)` was not checked: `no` is not known here"
    );
}

/// What Kubernetes' documentation says of fields, defaults, optional values and the functions it adds.
#[test]
fn rules_are_evaluated_as_kubernetes_does() {
    let schema = |rule: &str| {
        format!(
            "{{type: object, properties: {{a: {{type: integer}}, my_field: {{type: string}}, x-y: {{type: string}}, \
             namespace: {{type: string}}, num: {{type: number}}, d: {{type: string, format: date-time}}, \
             l: {{type: array, items: {{type: object, properties: {{k: {{type: string}}, v: {{type: integer, default: 7}}}}}}}}, \
             m: {{type: object, additionalProperties: {{type: integer}}}}, o: {{type: string, default: yes it is}}}}, \
             x-kubernetes-validations: [{{rule: \"{rule}\", message: broken}}]}}"
        )
    };
    let spec = "{a: 3, my_field: é, x-y: z, namespace: ns, num: 2, d: '2026-01-31T12:00:00Z', \
                l: [{k: a}, {k: b, v: 2}], m: {a-b: 1, c: 2}, o: null}";
    for rule in [
        "self.my_field.size() == 1",
        "self.x__dash__y == 'z' && self.__namespace__ == 'ns'",
        "self.num * 1.5 == 3.0",
        "self.d > timestamp('2025-01-01T00:00:00Z')",
        "self.l[0].v == 7 && self.l.exists_one(x, x.v == 2)",
        "self.l.map(x, x.k) == ['a', 'b'] && self.l.filter(x, x.v > 5).size() == 1",
        "'a-b' in self.m && self.m['a-b'] == 1 && self.m.all(k, self.m[k] > 0)",
        "self.o == 'yes it is'",
        "!has(self.zzz) && has(self.a)",
        "self.zzz.size() > 0 || self.a == 3",
        "self.l.exists(x, x.zzz == 1 || x.k == 'b')",
        "self.?zzz.orValue(5) == 5 && self.?a.hasValue()",
        "self.my_field.matches('^.$') && 'abc123'.find('[0-9]+') == '123'",
        "'a,b'.split(',').join('-') == 'a-b' && 'x'.upperAscii() == 'X'",
        "quantity('1Gi').isGreaterThan(quantity('1M')) && isURL('https://a.b/c')",
        "[3, 1, 2].sort() == [1, 2, 3] && [1, 2].sum() == 3 && sets.contains([1, 2], [1])",
        "oldSelf.a == 1",
        "self.a == 3 ? true : false",
        "{'a': 1}.a == 1 && [1, 2] + [3] == [1, 2, 3] && 5 % 2 == 1 && -self.a == -3",
        "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
    ] {
        assert_eq!(check(&schema(rule), spec), "", "{rule}");
    }
    assert_eq!(
        check(&schema("self.a == 4"), spec),
        "spec: breaks a rule of its definition: broken"
    );
}

#[test]
fn numbers_and_texts_may_share_a_field() {
    let schema = "{type: object, properties: {port: {x-kubernetes-int-or-string: true, anyOf: \
                  [{type: integer}, {type: string}]}}}";
    assert_eq!(check(schema, "{port: 80}"), "");
    assert_eq!(check(schema, "{port: http}"), "");
    assert_eq!(
        check(schema, "{port: true}"),
        "spec.port: expected a whole number or text, found `true` or `false`"
    );
}

#[test]
fn metadata_is_checked_for_every_kind() {
    let widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, labels: {a: 1}, lables: {}}}";
    let object = Object::new(node(widget), Origin::default()).expect("an object");
    let Verdict::Checked(violations) = catalogue("{type: object}").check(&object) else {
        unreachable!("Widget is defined");
    };
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "metadata.labels.a: expected text, found a whole number",
            "metadata.lables: unknown field `lables`, did you mean `labels`?"
        ]
    );
}
