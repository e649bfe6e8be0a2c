//! Properties of selectors; the grammar is checked against Kubernetes' own answers in `tests/oracle.rs`.

use proptest::prelude::*;

use super::*;

fn label() -> impl Strategy<Value = String> {
    "[a-z]([-a-z0-9_.]{0,5}[a-z0-9])?"
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let values = proptest::collection::vec(label(), 1..4);
    (label(), 0..9_u8, values, any::<i32>()).prop_map(|(key, operator, values, number)| {
        let number = number.unsigned_abs().to_string();
        let first = values.first().cloned();
        let (operator, values) = match operator {
            0 => (Operator::Equals, first.into_iter().collect()),
            1 => (Operator::DoubleEquals, first.into_iter().collect()),
            2 => (Operator::NotEquals, first.into_iter().collect()),
            3 => (Operator::In, values),
            4 => (Operator::NotIn, values),
            5 => (Operator::Exists, vec![]),
            6 => (Operator::DoesNotExist, vec![]),
            7 => (Operator::GreaterThan, vec![number]),
            _ => (Operator::LessThan, vec![number]),
        };
        Requirement::new(&key, operator, values).expect("made to be right")
    })
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_as_the_same_selector(
        requirements in proptest::collection::vec(requirement(), 0..5),
    ) {
        let selector = Selector::new(requirements);
        prop_assert_eq!(selector.to_string().parse::<Selector>(), Ok(selector));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,40}") {
        let _ = text.parse::<Selector>();
    }

    #[test]
    fn nor_do_texts_of_its_own_symbols(text in "[a!=<>(), in\\x00]{0,30}") {
        let _ = text.parse::<Selector>();
    }

    #[test]
    fn a_requirement_and_its_opposite_never_agree(
        key in label(),
        values in proptest::collection::vec(label(), 1..4),
        actual in proptest::option::of(label()),
    ) {
        let holds = |operator| {
            let requirement = Requirement::new(&key, operator, values.clone()).expect("right");
            Selector::new(vec![requirement]).matches(|_| actual.as_deref())
        };
        prop_assert_ne!(holds(Operator::In), holds(Operator::NotIn));
    }
}

fn selector_node(operator: &str, values: &[&str]) -> Node {
    let list = values
        .iter()
        .map(|value| Node::string((*value).to_owned()))
        .collect();
    let mut expression = Node::map();
    let mut node = Node::map();
    let map = expression.as_map_mut().expect("a map");
    map.insert("key", Node::string("tier"));
    map.insert("operator", Node::string(operator.to_owned()));
    map.insert(
        "values",
        Node::new(portolan_yaml::Value::List(portolan_yaml::List::from_items(
            list,
        ))),
    );
    let expressions = portolan_yaml::List::from_items(vec![expression]);
    let mut labels = Node::map();
    labels
        .as_map_mut()
        .expect("a map")
        .insert("app", Node::string("web"));
    let map = node.as_map_mut().expect("a map");
    map.insert("matchLabels", labels);
    map.insert(
        "matchExpressions",
        Node::new(portolan_yaml::Value::List(expressions)),
    );
    node
}

#[test]
fn match_labels_and_expressions_are_read() {
    let selector = Selector::from_node(&selector_node("NotIn", &["b", "a"])).expect("a selector");
    assert_eq!(selector.to_string(), "app=web,tier notin (a,b)");
}

#[test]
fn an_unknown_operator_and_missing_values_are_refused() {
    let error = |operator, values| {
        Selector::from_node(&selector_node(operator, values))
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(
        error("Equals", &["a"]),
        "\"Equals\" is not a valid label selector operator"
    );
    assert_eq!(
        error("In", &[]),
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    );
}

#[test]
fn an_empty_selector_selects_everything() {
    let selector = Selector::from_node(&Node::map()).expect("a selector");
    assert!(selector.is_everything() && selector.matches(|_| None));
}
