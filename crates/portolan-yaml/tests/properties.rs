//! What holds for every input: nothing panics, places lie inside the text, printing is stable.

use portolan_yaml::{
    Dialect, Entry, Key, List, Map, Node, Position, Value, from_json, outline, parse, parse_one,
    to_json, write_kustomize, write_v2, write_v3_pretty,
};
use proptest::prelude::*;

/// Pieces that texts which go wrong are made of.
const PIECES: [&str; 48] = [
    "a",
    "key: ",
    "- ",
    "? ",
    ": ",
    ":",
    "\n",
    "\n  ",
    "\n\n",
    " ",
    "\t",
    "#",
    " # c\n",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a ",
    "*a",
    "!!int ",
    "! ",
    "|\n",
    ">-\n  ",
    "|2+\n",
    "<<: ",
    "---\n",
    "...\n",
    "~",
    "1",
    "0x1",
    ".5",
    "2001-01-01",
    "yes",
    "\r\n",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "é",
    "😀",
    "\\n",
    "%TAG ! x\n",
    "@",
    "x: y\n",
    "\u{0}",
    "\u{7f}",
];

fn awkward_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => proptest::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn tree() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        awkward_text().prop_map(Node::string),
        "[ -~]{0,100}".prop_map(Node::string),
        any::<i32>().prop_map(|value| Node::int(value.into())),
        (-1e9..1e9).prop_map(Node::float),
        any::<bool>().prop_map(Node::bool),
        Just(Node::null()),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5)
                .prop_map(|items| Node::new(Value::List(List::from_items(items)))),
            proptest::collection::btree_map(awkward_text(), inner, 0..5).prop_map(|entries| {
                let entries = entries.into_iter().map(|(key, value)| Entry {
                    key: Key::from(key),
                    value,
                });
                Node::new(Value::Map(Map::from_entries(entries.collect())))
            }),
        ]
    })
}

/// Whether all places of a tree lie inside a text.
fn places_inside(node: &Node, text: &str) -> bool {
    let lines = text
        .split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
        .count() as u32
        + 1;
    let inside = |at: Position| {
        (1..=lines).contains(&at.line) && (1..=text.len() as u32 + 1).contains(&at.column)
    };
    inside(node.at)
        && match &node.value {
            Value::Scalar(_) => true,
            Value::List(list) => list.iter().all(|item| places_inside(item, text)),
            Value::Map(map) => map
                .iter()
                .all(|entry| inside(entry.key.at) && places_inside(&entry.value, text)),
        }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_text_is_read_or_refused(text in awkward_text()) {
        for dialect in [Dialect::Helm, Dialect::Kustomize] {
            match parse(text.as_str(), dialect) {
                Ok(nodes) => {
                    for node in &nodes {
                        prop_assert!(places_inside(node, &text), "{node:?}");
                        let _ = (to_json(node), write_v2(node), write_kustomize(node));
                    }
                }
                Err(errors) => prop_assert!(errors.iter().count() > 0),
            }
        }
        let _ = outline(text.as_bytes());
    }

    #[test]
    fn what_is_printed_for_helm_is_read_and_printed_the_same(node in tree()) {
        if let Ok(printed) = write_v2(&node) {
            let read = parse_one(printed.as_str(), Dialect::Helm).expect("reads its own text");
            prop_assert_eq!(write_v2(&read).expect("prints again"), printed);
        }
    }

    #[test]
    fn pretty_text_means_the_same_as_the_other(node in tree()) {
        if let (Ok(pretty), Ok(json)) = (write_v3_pretty(&node), to_json(&node)) {
            // go-yaml v3 quotes what v3 reads as something else; that Helm reads more is its own affair.
            if let Ok(read) = parse_one(pretty.as_str(), Dialect::Kustomize) {
                prop_assert_eq!(to_json(&read).expect("prints"), json);
            }
        }
    }

    #[test]
    fn json_is_read_back_as_it_was(node in tree()) {
        let json = to_json(&node).expect("prints");
        let read = from_json(&json).expect("reads its own text");
        prop_assert_eq!(to_json(&read).expect("prints again"), json);
    }
}
