//! Definitions that are written to overflow the stack, to fill the memory or to run for ever: each is told and ends soon.

use std::time::{Duration, Instant};

use portolan_object::{KubeVersion, Object, Origin};
use portolan_schema::{Catalogue, Verdict};
use portolan_yaml::{Dialect, Node, parse_one};

/// Longer than any of these may take, on a machine that is busy with other things.
const SOON: Duration = Duration::from_secs(20);

fn node(yaml: &str) -> Node {
    parse_one(yaml, Dialect::Helm).expect("YAML")
}

/// A definition of `Widget` with this schema for its spec.
fn definition(spec: &str) -> Node {
    node(&format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: widgets.example.com}}, \
         spec: {{group: example.com, names: {{kind: Widget, plural: widgets}}, scope: Namespaced, versions: [{{name: v1, \
         served: true, storage: true, schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {spec}}}}}}}}}]}}}}"
    ))
}

/// The problems of a `Widget`, one a line; fails if they are not found soon.
fn check(schema: &str, spec: &str) -> String {
    let widget = format!(
        "{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: w}}, spec: {spec}}}"
    );
    let object = Object::new(node(&widget), Origin::default()).expect("an object");
    let start = Instant::now();
    let mut catalogue = Catalogue::of(KubeVersion::new(1, 36));
    catalogue.define(&definition(schema));
    // The stack of a worker.
    let worker = std::thread::Builder::new().stack_size(2 << 20);
    let verdict = worker
        .spawn(move || catalogue.check(&object))
        .expect("a thread")
        .join()
        .expect("no panic");
    assert!(start.elapsed() < SOON, "took {:?}", start.elapsed());
    let Verdict::Checked(violations) = verdict else {
        unreachable!("Widget is defined");
    };
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A schema with one rule.
fn ruled(rule: &str) -> String {
    let rule = rule.replace('\'', "''");
    format!(
        "{{type: object, x-kubernetes-preserve-unknown-fields: true, \
         x-kubernetes-validations: [{{rule: '{rule}', message: broken}}]}}"
    )
}

/// Asserts that a rule is not judged, for a reason that has these words.
fn unjudged(rule: &str, spec: &str, reason: &str) {
    let told = check(&ruled(rule), spec);
    let shown: String = rule.chars().take(60).collect();
    assert!(
        told.contains(" was not checked: ") && told.contains(reason),
        "{shown}: {told}"
    );
}

/// A spec with a list of numbers.
fn numbers(count: usize) -> String {
    let numbers: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    format!("{{items: [{}]}}", numbers.join(","))
}

#[test]
fn expressions_that_nest_too_deeply_are_not_parsed() {
    let long = "longer than ";
    let deep = "nested more than 250 levels";
    for terms in [300, 5_000, 20_000, 200_000] {
        let reason = |length: usize| if length > 32 << 10 { long } else { deep };
        for rule in [
            vec!["1"; terms].join("+") + " > 0",
            format!("self{} == 1", ".l".repeat(terms)),
            format!("self{} == 1", "[0]".repeat(terms)),
            format!("{}1{} == 1", "(".repeat(terms), ")".repeat(terms)),
            format!("{}1{} == []", "[".repeat(terms), "]".repeat(terms)),
            format!("{}true", "!".repeat(terms)),
            format!("{}true", "true ? true : ".repeat(terms)),
            "(".repeat(terms),
        ] {
            unjudged(&rule, "{}", reason(rule.len()));
        }
    }
}

#[test]
fn the_deepest_expressions_that_are_read_fit_the_stack() {
    for rule in [
        vec!["1"; 240].join("+") + " > 0",
        vec!["true"; 4_000].join(" && "),
        format!("{}true{}", "(".repeat(90), ")".repeat(90)),
        format!("{}true{}", "[".repeat(60), "]".repeat(60)) + " != []",
        vec!["true ? true : "; 80].join("") + "true",
    ] {
        let told = check(&ruled(&rule), "{}");
        assert!(
            told.is_empty() || told.contains("cannot be read as CEL"),
            "{told}"
        );
    }
    assert_eq!(
        check(&ruled(&(vec!["1"; 240].join("+") + " > 0")), "{}"),
        ""
    );
    assert_eq!(check(&ruled(&vec!["true"; 4_000].join(" && ")), "{}"), "");
}

#[test]
fn loops_inside_loops_are_counted() {
    let steps = "needs more than 1000000 steps";
    let spec = numbers(1_000);
    unjudged(
        "self.items.all(a, self.items.all(b, self.items.all(c, self.items.all(d, a+b+c+d >= 0))))",
        &spec,
        steps,
    );
    unjudged(
        "self.items.map(a, self.items.map(b, self.items.map(c, self.items.map(d, [a,b,c,d])))).size() > 0",
        &spec,
        steps,
    );
    unjudged("self.items.all(a, self.items == self.items)", &spec, steps);
    unjudged(
        "self.items.all(a, self.items.exists(b, b in self.items && a < 0))",
        &spec,
        steps,
    );
    assert_eq!(
        check(&ruled("self.items.all(a, a >= 0)"), &numbers(50_000)),
        ""
    );
    assert_eq!(
        check(
            &ruled("self.items.map(a, a + 1).filter(a, a > 0).size() == 20000"),
            &numbers(20_000)
        ),
        ""
    );
}

#[test]
fn values_that_double_are_bounded_before_they_are_made() {
    let steps = "needs more than 1000000 steps";
    unjudged("lists.range(1000000000).size() > 0", "{}", steps);
    unjudged("lists.range(9223372036854775807).size() > 0", "{}", steps);
    let doubled = |link: &str, times| format!("{}{}", "[[1]]", link.repeat(times));
    unjudged(&(doubled(".map(x, [x, x])", 60) + " == []"), "{}", steps);
    unjudged(
        &(doubled(".map(x, [x, x])", 60) + ".flatten().size() > 0"),
        "{}",
        steps,
    );
    unjudged(
        &(doubled(".map(x, x + x)", 60) + ".size() > 5"),
        "{}",
        steps,
    );
    let text = format!(
        "['aaaaaaaaaaaaaaaa']{}.size() > 5",
        ".map(x, x + x)".repeat(60)
    );
    unjudged(&text, "{}", steps);
    let text = format!(
        "'a'{}.size() > 5",
        ".replace('a', 'aaaaaaaaaaaaaaaaaaaa')".repeat(20)
    );
    unjudged(&text, "{}", steps);
    unjudged(
        "lists.range(30000).map(x, 'a').join('{}').size() > 0"
            .replace("{}", &"b".repeat(9_000))
            .as_str(),
        "{}",
        steps,
    );
    unjudged(
        "'%.999999999f'.format([1.0]) == ''",
        "{}",
        "more than 999 digits",
    );
    unjudged(
        "quantity('1e999999999').isGreaterThan(quantity('1'))",
        "{}",
        "too many digits",
    );
    unjudged(
        "lists.range(2000).map(x, string(x)).distinct().size() > 0",
        "{}",
        steps,
    );
}

#[test]
fn patterns_of_rules_are_bounded() {
    let spec = numbers(500);
    let hostile = r"'(\\w{999}){99}'";
    unjudged(
        &format!("'x'.matches({hostile})"),
        "{}",
        "a pattern cannot be read here",
    );
    unjudged(
        &format!("self.items.all(a, 'x'.matches({hostile} + string(a)))"),
        &spec,
        "needs more than 1000000 steps",
    );
    unjudged(
        r"self.items.all(a, 'x'.matches('\\w' + string(a)) || true)",
        &spec,
        "needs more than 1000000 steps",
    );
}

#[test]
fn what_the_library_would_panic_on_is_told() {
    unjudged("Widget{a: 1} == 1", "{}", "messages cannot be made here");
    unjudged(
        "'a'.contains() == true",
        "{}",
        "`contains` is not known here",
    );
    unjudged("size() == 1", "{}", "`size` is not known here");
    unjudged("math.abs(-9223372036854775807 - 1) > 0", "{}", "math.abs");
    unjudged("-(-9223372036854775807 - 1) > 0", "{}", "not of the type");
    unjudged("1 / 0 > 0", "{}", "not of the type");
    unjudged("'é'.substring(0, 99) == 'a'", "{}", "substring");
    unjudged("[1].slice(-5, 99) == []", "{}", "slice");
    unjudged("'abc'.charAt(-1) == 'a'", "{}", "charAt");
}

#[test]
fn one_rule_that_is_not_judged_hides_no_other() {
    let schema = "{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [\
        {rule: 'lists.range(1000000000).size() > 0'}, {rule: 'self.a > 1', message: a is small}]}";
    assert_eq!(
        check(schema, "{a: 1}"),
        "spec: rule `lists.range(1000000000).size() > 0` was not checked: needs more than 1000000 steps\n\
         spec: breaks a rule of its definition: a is small"
    );
}

#[test]
fn all_rules_of_an_object_share_a_limit() {
    let rule = "{rule: 'lists.range(190000).size() > 0'}";
    let rules = vec![rule; 90].join(",");
    let schema = format!("{{type: object, x-kubernetes-validations: [{rules}]}}");
    let told = check(&schema, "{}");
    assert!(told.contains("needs more than 10000000 steps"), "{told}");
}

#[test]
fn schemas_are_bounded() {
    let mut deep = "{type: string}".to_owned();
    for _ in 0..300 {
        deep = format!("{{type: object, properties: {{a: {deep}}}}}");
    }
    assert_eq!(check(&deep, "{a: {a: {}}}"), "");

    let any: Vec<String> = (0..2_000)
        .map(|n| format!("{{type: string, enum: [x{n}]}}"))
        .collect();
    let schema = format!("{{type: array, items: {{anyOf: [{}]}}}}", any.join(","));
    let values: Vec<&str> = vec!["no"; 20_000];
    let told = check(&schema, &format!("[{}]", values.join(",")));
    assert!(
        told.contains("the rest of the object was not checked"),
        "{}",
        told.len()
    );

    let fields: Vec<String> = (0..500)
        .map(|n| format!("f{n}: {{type: string, pattern: '(\\w{{900}}){{{n}}}'}}"))
        .collect();
    let schema = format!("{{type: object, properties: {{{}}}}}", fields.join(","));
    let values: Vec<String> = (0..500).map(|n| format!("f{n}: a")).collect();
    check(&schema, &format!("{{{}}}", values.join(",")));

    let huge = format!("{{type: string, enum: [{}]}}", vec!["a"; 600_000].join(","));
    assert_eq!(
        check(&huge, "a"),
        "the object was not checked: its definition has more than 500000 values"
    );
}
