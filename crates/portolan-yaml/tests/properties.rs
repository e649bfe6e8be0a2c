//! What holds for every input: nothing panics, places lie inside the text, printing is stable.

use portolan_yaml::{
    Dialect, Entry, Key, List, Map, Node, Position, Style, Value, from_json, outline, parse,
    parse_one, to_json, write_kustomize, write_v2, write_v3_pretty,
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

/// What stands at a place; `None` when the place is not in the text, whose end and line ends count.
fn rest_at(text: &str, at: Position) -> Option<&str> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    for _ in 1..at.line {
        let line_end = rest.find(BREAKS);
        // At the end of the text a line more may begin.
        let Some(line_end) = line_end else {
            return (at.column == 1).then_some("");
        };
        let after = &rest[line_end..];
        let width = if after.starts_with("\r\n") {
            2
        } else {
            after.chars().next().map_or(0, char::len_utf8)
        };
        rest = &after[width..];
    }
    let line = rest.split(BREAKS).next().unwrap_or_default();
    let before = line.chars().take(at.column as usize - 1);
    let known = before.clone().count() == at.column as usize - 1;
    known.then(|| &rest[before.map(char::len_utf8).sum::<usize>()..])
}

const BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// Checks that all places of a tree lie inside a text, and that a plain text stands at its place.
fn check_places(node: &Node, text: &str) -> Result<(), TestCaseError> {
    let rest = rest_at(text, node.at);
    prop_assert!(rest.is_some(), "{:?} is outside of {text:?}", node.at);
    let rest = rest.unwrap_or_default();
    match &node.value {
        Value::Scalar(scalar) => {
            let first = scalar
                .text
                .chars()
                .next()
                .filter(|_| scalar.style == Style::Plain);
            let stands = first.is_none_or(|first| rest.starts_with([first, '&', '!']));
            prop_assert!(
                stands,
                "{:?} is not at {:?} in {text:?}",
                scalar.text,
                node.at
            );
        }
        Value::List(list) => {
            for item in list {
                check_places(item, text)?;
            }
        }
        Value::Map(map) => {
            for entry in map {
                prop_assert!(rest_at(text, entry.key.at).is_some(), "{:?}", entry.key);
                check_places(&entry.value, text)?;
            }
        }
    }
    Ok(())
}

/// kyaml reads a text with fewer line breaks where a CR stands before a CRLF.
fn as_read(text: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Kustomize if text.contains("\r\r\n") => text.replace("\r\n", "\n"),
        _ => text.to_owned(),
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
                        check_places(node, &as_read(&text, dialect))?;
                        let _ = (to_json(node), write_v2(node), write_kustomize(node));
                    }
                }
                Err(errors) => {
                    prop_assert!(errors.iter().count() > 0);
                    for error in errors.iter().filter(|error| error.at.line > 0) {
                        let inside = rest_at(&text, error.at)
                            .or(rest_at(&as_read(&text, dialect), error.at))
                            .is_some();
                        prop_assert!(inside, "{error} in {text:?}");
                    }
                }
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
