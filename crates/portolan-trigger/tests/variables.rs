//! Variables: which value counts and where it came from, and values that are computed from others.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use portolan_trigger::{
    ComputedValue, GraphFault, MergeRule, SourceRole, StaleRule, StaleVariable, VariableDefinition,
    VariableGraph, VariableProducer, VariableScope, VariableSource, resolve,
};
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

fn source(name: &str, scope: VariableScope, values: Json) -> VariableSource {
    let Json::Object(values) = values else {
        unreachable!("values are a map");
    };
    VariableSource {
        name: name.to_owned(),
        scope,
        is_own: true,
        priority: 0,
        position: 0,
        merge: MergeRule::Replace,
        is_sensitive: false,
        values,
    }
}

fn now() -> Timestamp {
    "2026-11-18T09:00:00Z".parse().expect("a time")
}

fn later(seconds: i64) -> Timestamp {
    now()
        .checked_add(SignedDuration::from_secs(seconds))
        .expect("a time")
}

#[test]
fn the_narrower_scope_stands_above_the_wider() {
    let scopes = [
        VariableScope::Run,
        VariableScope::Book,
        VariableScope::Node,
        VariableScope::All,
        VariableScope::Group,
    ];
    let sources: Vec<VariableSource> = scopes
        .iter()
        .map(|scope| {
            source(
                &scope.to_string(),
                *scope,
                json!({"port": scope.to_string()}),
            )
        })
        .collect();
    let resolved = resolve(&sources).expect("no conflict");
    assert_eq!(resolved.values()["port"], "run input");
    let explained = resolved.explain("port").expect("a variable");
    let order: Vec<&str> = explained
        .candidates
        .iter()
        .map(|candidate| candidate.source.as_str())
        .collect();
    assert_eq!(order, ["book", "all nodes", "group", "node", "run input"]);
    assert_eq!(explained.candidates[4].role, SourceRole::Used);
    assert_eq!(explained.candidates[3].role, SourceRole::Overridden);
}

#[test]
fn in_one_scope_a_namespaces_own_value_then_priority_then_place_decides() {
    let shared = |name: &str, priority, position, value: i32| VariableSource {
        is_own: false,
        priority,
        position,
        ..source(name, VariableScope::All, json!({ "a": value }))
    };
    let own = source("own", VariableScope::All, json!({"a": 1}));
    let resolved = resolve(&[shared("s", 100, 9, 2), own]).expect("no conflict");
    assert_eq!(resolved.values()["a"], 1);
    let resolved = resolve(&[shared("low", 1, 9, 2), shared("high", 2, 0, 3)]);
    assert_eq!(resolved.expect("no conflict").values()["a"], 3);
    let resolved = resolve(&[shared("first", 0, 0, 2), shared("second", 0, 1, 3)]);
    assert_eq!(resolved.expect("no conflict").values()["a"], 3);
}

#[test]
fn equal_rank_with_different_values_names_both() {
    let one = source(
        "Variable a",
        VariableScope::Group,
        json!({"port": 1, "same": 7}),
    );
    let other = source(
        "Variable b",
        VariableScope::Group,
        json!({"port": 2, "same": 7}),
    );
    let conflicts = resolve(&[one.clone(), other.clone()]).expect_err("a conflict");
    assert_eq!(
        conflicts[0].to_string(),
        "variable `port` has two values of the same rank: in Variable a and in Variable b"
    );
    assert_eq!(conflicts.len(), 1, "equal values are no conflict");
    let node = source("Variable node", VariableScope::Node, json!({"port": 3}));
    let resolved = resolve(&[one, other, node]).expect("the node decides");
    assert_eq!(resolved.values()["port"], 3);
}

#[test]
fn maps_take_each_others_place_unless_they_are_merged() {
    let all = source(
        "all",
        VariableScope::All,
        json!({"web": {"port": 80, "tls": {"on": false, "cert": "a"}}}),
    );
    let node = source(
        "node",
        VariableScope::Node,
        json!({"web": {"tls": {"on": true}}}),
    );
    let resolved = resolve(&[all.clone(), node.clone()]).expect("no conflict");
    assert_eq!(resolved.values()["web"], json!({"tls": {"on": true}}));
    let node = VariableSource {
        merge: MergeRule::Deep,
        ..node
    };
    let resolved = resolve(&[all, node]).expect("no conflict");
    assert_eq!(
        resolved.values()["web"],
        json!({"port": 80, "tls": {"on": true, "cert": "a"}})
    );
    let explained = resolved.explain("web").expect("a variable");
    let origins: Vec<(&str, &str)> = explained
        .origins
        .iter()
        .map(|(path, name)| (path.as_str(), name.as_str()))
        .collect();
    assert_eq!(
        origins,
        [("port", "all"), ("tls.cert", "all"), ("tls.on", "node")]
    );
    assert_eq!(explained.candidates[0].role, SourceRole::Merged);
}

#[test]
fn a_secret_value_is_not_in_its_explanation() {
    let secret = VariableSource {
        is_sensitive: true,
        ..source(
            "Variable token",
            VariableScope::All,
            json!({"token": "hunter22"}),
        )
    };
    let resolved = resolve(&[secret]).expect("no conflict");
    assert!(resolved.is_sensitive("token"));
    let text = resolved.explain("token").expect("a variable").to_string();
    assert!(
        text.contains("[redacted]") && !text.contains("hunter22"),
        "{text}"
    );
}

fn definition(producer: VariableProducer) -> VariableDefinition {
    VariableDefinition {
        producer,
        refresh: None,
        ttl: None,
        when_stale: StaleRule::Fail,
        is_sensitive: false,
    }
}

fn expression(text: &str) -> VariableDefinition {
    definition(VariableProducer::Expression(text.to_owned()))
}

fn fixed(value: Json) -> VariableDefinition {
    definition(VariableProducer::Fixed(value))
}

fn step(reads: &[&str]) -> VariableDefinition {
    let reads = reads.iter().map(|name| (*name).to_owned()).collect();
    definition(VariableProducer::Step { reads })
}

fn graph(definitions: Vec<(&str, VariableDefinition)>) -> Result<VariableGraph, GraphFault> {
    let named = definitions.into_iter();
    VariableGraph::new(named.map(|(name, definition)| (name.to_owned(), definition)))
}

type Values = BTreeMap<String, ComputedValue>;

#[test]
fn variables_are_computed_after_those_that_they_read() {
    let graph = graph(vec![
        (
            "url",
            expression("'http://' + vars.host + ':' + string(vars.port)"),
        ),
        ("host", expression("vars.name + '.example'")),
        ("name", fixed(json!("web"))),
        ("port", fixed(json!(8080))),
    ])
    .expect("no circle");
    assert_eq!(graph.order(), ["name", "host", "port", "url"]);
    let mut known: Values = graph.advance(&Values::new(), now()).changed;
    assert_eq!(known["url"].value, Some(json!("http://web.example:8080")));
    assert_eq!(known["url"].version, 1);
    assert!(
        graph.advance(&known, later(3600)).changed.is_empty(),
        "nothing changed"
    );
    known.extend(graph.advance(&known, later(3601)).changed);
    assert_eq!(known["url"].version, 1);
}

#[test]
fn a_change_reaches_what_reads_it_and_versions_rise_with_values_only() {
    let make = |port: i32| {
        graph(vec![
            ("port", fixed(json!(port))),
            ("is_high", expression("vars.port > 1024")),
            ("next", expression("vars.port + 1")),
        ])
        .expect("no circle")
    };
    let mut known = make(8080).advance(&Values::new(), now()).changed;
    let step = make(8081).advance(&known, later(1));
    known.extend(step.changed);
    let version = |name: &str| (known[name].value.clone(), known[name].version);
    assert_eq!(version("next"), (Some(json!(8082)), 2));
    assert_eq!(version("is_high"), (Some(json!(true)), 1), "the same value");
}

#[test]
fn circles_and_unknown_names_are_refused_and_named() {
    let circle = graph(vec![
        ("a", expression("vars.b")),
        ("b", expression("vars['c'] + 1")),
        ("c", step(&["a"])),
        ("d", expression("vars.a")),
    ]);
    let Err(GraphFault::Cycle(names)) = circle else {
        panic!("a circle");
    };
    assert_eq!(names, ["a", "b", "c", "a"]);
    let unknown = graph(vec![
        ("port", fixed(json!(1))),
        ("b", expression("vars.prot")),
    ]);
    assert_eq!(
        unknown.expect_err("unknown").to_string(),
        "variable `b` reads `prot`, which does not exist; did you mean `port`?"
    );
    let hidden = graph(vec![("a", expression("vars.map(name, vars[name])"))]);
    assert!(matches!(hidden, Err(GraphFault::Expression { .. })));
}

#[test]
fn a_step_runs_again_when_its_time_has_come_or_what_it_reads_changed() {
    let make = |zone: &str| {
        let leader = VariableDefinition {
            refresh: Some(Duration::from_mins(10)),
            ..step(&["zone"])
        };
        graph(vec![("zone", fixed(json!(zone))), ("leader", leader)]).expect("no circle")
    };
    let graph = make("a");
    let first = graph.advance(&Values::new(), now());
    assert_eq!(first.work.len(), 1);
    let mut known = first.changed;
    let done = graph.finished(&first.work[0], None, Ok(json!("node-1")), now());
    known.insert("leader".to_owned(), done);
    assert!(graph.advance(&known, later(599)).work.is_empty());
    assert_eq!(graph.advance(&known, later(600)).work.len(), 1);
    assert_eq!(make("b").advance(&known, later(1)).work.len(), 1);
}

#[test]
fn a_value_that_is_too_old_fails_or_is_used_as_its_policy_says() {
    for (policy, is_used) in [(StaleRule::Fail, false), (StaleRule::UseLast, true)] {
        let leader = VariableDefinition {
            ttl: Some(Duration::from_hours(1)),
            when_stale: policy,
            ..step(&[])
        };
        let graph = graph(vec![("leader", leader)]).expect("no circle");
        let work = graph.advance(&Values::new(), now()).work;
        let none = Values::new();
        let missing = graph.value("leader", &none, now());
        assert!(matches!(missing, Err(StaleVariable::Missing { .. })));
        let made = graph.finished(&work[0], None, Ok(json!("node-1")), now());
        let mut known = Values::from([("leader".to_owned(), made.clone())]);
        let used = graph
            .value("leader", &known, later(3_600))
            .expect("in time");
        assert!(!used.is_stale);
        let old = graph.value("leader", &known, later(3_661));
        assert_eq!(old.is_ok(), is_used);
        if let Err(error) = old {
            assert_eq!(
                error.to_string(),
                "variable `leader` is 1h1m1s old, and may be used for 1h"
            );
        }
        let failed = graph.finished(
            &work[0],
            Some(&made),
            Err("no such file".to_owned()),
            later(10),
        );
        assert_eq!(
            failed.value,
            Some(json!("node-1")),
            "the last value is kept"
        );
        known.insert("leader".to_owned(), failed);
        assert_eq!(graph.value("leader", &known, later(11)).is_ok(), is_used);
    }
}

#[test]
fn what_reads_a_secret_is_secret() {
    let secret = VariableDefinition {
        is_sensitive: true,
        ..fixed(json!("hunter22"))
    };
    let graph = graph(vec![
        ("password", secret),
        ("dsn", expression("'db://' + vars.password")),
        ("name", fixed(json!("db"))),
    ])
    .expect("no circle");
    assert!(graph.is_sensitive("dsn") && !graph.is_sensitive("name"));
}

#[test]
fn an_expression_without_a_value_keeps_the_last_and_says_why() {
    let make = |list: Json| {
        graph(vec![
            ("nodes", fixed(list)),
            ("first", expression("vars.nodes[0]")),
        ])
        .expect("no circle")
    };
    let mut known = make(json!(["a"])).advance(&Values::new(), now()).changed;
    let graph = make(json!([]));
    known.extend(graph.advance(&known, later(1)).changed);
    assert_eq!(known["first"].value, Some(json!("a")));
    let error = graph
        .value("first", &known, later(1))
        .expect_err("no value");
    assert!(matches!(error, StaleVariable::Failed { .. }), "{error}");
}

fn any_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(json!(1)),
        Just(json!(2)),
        Just(json!("x")),
        Just(json!([1]))
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        proptest::collection::btree_map("[ab]", inner, 1..3)
            .prop_map(|map| Json::Object(map.into_iter().collect()))
    })
}

fn any_source() -> impl Strategy<Value = VariableSource> {
    const SCOPES: [VariableScope; 4] = [
        VariableScope::Book,
        VariableScope::All,
        VariableScope::Group,
        VariableScope::Node,
    ];
    (
        proptest::sample::select(&SCOPES[..]),
        any::<bool>(),
        0_i32..3,
        any::<bool>(),
        proptest::collection::btree_map("[kl]", any_value(), 1..3),
        0_u32..1_000,
    )
        .prop_map(
            |(scope, is_own, priority, is_deep, values, number)| VariableSource {
                is_own,
                priority,
                merge: if is_deep {
                    MergeRule::Deep
                } else {
                    MergeRule::Replace
                },
                ..source(
                    &format!("source-{number}"),
                    scope,
                    Json::Object(values.into_iter().collect::<Map<_, _>>()),
                )
            },
        )
}

proptest! {
    /// The order in which sources are found does not matter, and each part of a value is where its origin says.
    #[test]
    fn the_order_of_sources_does_not_matter(
        sources in proptest::collection::vec(any_source(), 1..6),
        turn in 0_usize..6,
    ) {
        let mut turned = sources.clone();
        let places = turn % turned.len();
        turned.rotate_left(places);
        let (one, other) = (resolve(&sources), resolve(&turned));
        prop_assert_eq!(one.is_ok(), other.is_ok());
        if let (Ok(one), Ok(other)) = (one, other) {
            prop_assert_eq!(one.values(), other.values());
            for key in one.values().keys() {
                let explained = one.explain(key).expect("every variable is explained");
                for (path, name) in &explained.origins {
                    let part = |value: &Json| path.split('.').filter(|part| !part.is_empty())
                        .try_fold(value.clone(), |value, part| value.get(part).cloned());
                    let gave = sources.iter().filter(|source| source.name == *name)
                        .any(|source| source.values.get(key).and_then(part) == part(&one.values()[key]));
                    prop_assert!(gave, "{key}.{path} from {name}");
                }
            }
        }
    }

    /// Any graph is put in order, or has a circle whose links exist.
    #[test]
    fn a_graph_has_an_order_or_a_circle(
        links in proptest::collection::vec(proptest::collection::btree_set(0_usize..12, 0..3), 12),
    ) {
        let names: Vec<String> = (0..12).map(|number| format!("v{number}")).collect();
        let definitions = links.iter().enumerate().map(|(index, reads)| {
            let reads: Vec<&str> = reads.iter().map(|read| names[*read].as_str()).collect();
            (names[index].clone(), step(&reads))
        });
        let number = |name: &String| names.iter().position(|known| known == name).expect("a name");
        match VariableGraph::new(definitions) {
            Ok(graph) => {
                for (place, name) in graph.order().iter().enumerate() {
                    for read in &links[number(name)] {
                        let before = graph.order().iter().position(|known| *known == names[*read]);
                        prop_assert!(before.is_some_and(|before| before < place));
                    }
                }
            }
            Err(GraphFault::Cycle(circle)) => {
                prop_assert_eq!(circle.first(), circle.last());
                for pair in circle.windows(2) {
                    prop_assert!(links[number(&pair[0])].contains(&number(&pair[1])));
                }
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
