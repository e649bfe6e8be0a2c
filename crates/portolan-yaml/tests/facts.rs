//! What surprises about Go's YAML, one example each.

use portolan_yaml::{
    Dialect, Emitter, Node, Number, Tag, from_json, order, parse, parse_one, to_json,
    write_kustomize, write_v2, write_v3_pretty,
};

fn helm(text: &str) -> Node {
    parse_one(text, Dialect::Helm).expect("Helm reads it")
}

fn json(text: &str) -> String {
    to_json(&helm(text)).expect("it has a JSON form")
}

fn kustomize(text: &str) -> String {
    let nodes = parse(text, Dialect::Kustomize).expect("kustomize reads it");
    let printed: Result<Vec<String>, _> = nodes.iter().map(write_kustomize).collect();
    printed.expect("kustomize prints it").join("---\n")
}

#[test]
fn the_same_word_is_a_boolean_to_helm_and_a_text_to_kustomize() {
    assert_eq!(json("a: yes\n"), r#"{"a":true}"#);
    assert_eq!(kustomize("a: yes\n"), "a: \"yes\"\n");
}

#[test]
fn helm_makes_texts_of_keys() {
    assert_eq!(
        json("y: 1\n010: 2\n1.50: 3\n"),
        r#"{"1.5":3,"8":2,"true":1}"#
    );
}

#[test]
fn kustomize_takes_other_keys_only_at_the_top() {
    assert_eq!(kustomize("010: a\n"), "\"010\": a\n");
    let node = &parse("a: {010: b}\n", Dialect::Kustomize).expect("reads")[0];
    assert!(write_kustomize(node).is_err());
}

/// Go decodes the top of an object into a map of texts, and everything below it into whatever the keys are.
#[test]
fn keys_with_a_tag_are_decoded_at_the_top_and_refused_below() {
    assert_eq!(
        kustomize("!!binary aGVsbG8=: a\nb: c\n"),
        "b: c\nhello: a\n"
    );
    assert_eq!(kustomize("!!binary YXBp: a\napi: b\n"), "api: b\n");
    assert_eq!(kustomize("api: b\n!!binary YXBp: a\n"), "api: a\n");
    for absent in ["!!null : a", "!!null '': a", "? !!null\n: a"] {
        assert_eq!(kustomize(&format!("b: c\n{absent}\n")), "b: c\n");
    }
    assert_eq!(kustomize("a: {? : v}\n"), "a:\n  \"\": v\n");
    for refused in [
        "a: {!!binary aGVsbG8=: b}\n",
        "- !!str\n-\n  !!null : a\n  b: !!str\n- !!str : !!null\n",
        "a: {!!null : b}\n",
        "!!binary hello: a\n",
    ] {
        let node = &parse(refused, Dialect::Kustomize).expect("reads")[0];
        assert!(write_kustomize(node).is_err(), "{refused}");
    }
}

#[test]
fn the_last_of_equal_keys_wins_in_helm_and_kustomize_refuses_them() {
    assert_eq!(json("a: 1\na: 2\n"), r#"{"a":2}"#);
    let errors = parse("a: 1\na: 2\n", Dialect::Kustomize).expect_err("is refused");
    assert_eq!(
        errors.first().go_message(),
        "yaml: line 2: mapping key \"a\" already defined at line 1"
    );
}

#[test]
fn helm_merges_where_the_merge_key_stands() {
    assert_eq!(json("a: {k: 1, <<: {k: 2}}\n"), r#"{"a":{"k":2}}"#);
    assert_eq!(kustomize("a: {k: 1, <<: {k: 2}}\n"), "a:\n  k: 1\n");
}

#[test]
fn numbers_are_floats_in_helm_and_exact_in_kustomize() {
    let node = helm("a: 9007199254740993\n");
    assert_eq!(write_v2(&node).expect("prints"), "a: 9007199254740992\n");
    assert_eq!(kustomize("a: 9007199254740993\n"), "a: 9007199254740993\n");
    assert_eq!(
        node.get("a").and_then(Node::as_i64),
        Some(9_007_199_254_740_993)
    );
}

#[test]
fn numbers_are_read_in_all_their_spellings() {
    for (text, number) in [
        ("0x1F", Number::Int(31)),
        ("010", Number::Int(8)),
        ("08", Number::Float(8.0)),
        ("1_000", Number::Int(1000)),
        ("0b-1", Number::Int(-1)),
        ("18446744073709551615", Number::Uint(u64::MAX)),
        (".5", Number::Float(0.5)),
    ] {
        assert_eq!(helm(text).number(), Some(number), "{text}");
    }
    for text in ["1e400", "0o8", "0x1p4", ".Nan", "1:30"] {
        assert_eq!(helm(text).as_str(), Some(text));
    }
}

#[test]
fn an_absent_value_in_braces_becomes_a_text_in_kustomize() {
    assert_eq!(json("{a: }\n"), r#"{"a":null}"#);
    assert_eq!(kustomize("{a: }\n"), "a: \"\"\n");
    assert_eq!(kustomize("a:\n"), "a: null\n");
}

#[test]
fn folded_text_with_indented_lines_gains_a_line_break_in_kustomize() {
    let text = "a: >\n  x\n    y\n  z\n";
    assert_eq!(json(text), "{\"a\":\"x\\n  y\\nz\\n\"}");
    assert_eq!(kustomize(text), "a: |\n  x\n\n    y\n  z\n");
}

#[test]
fn dates_become_times_in_kustomize() {
    assert_eq!(
        kustomize("a: 2001-12-14\n"),
        "a: \"2001-12-14T00:00:00Z\"\n"
    );
    assert_eq!(json("a: 2001-12-14\n"), r#"{"a":"2001-12-14"}"#);
}

#[test]
fn a_template_left_in_a_file_is_a_map_as_key() {
    let errors = parse_one("{{ x }}: y\n", Dialect::Helm).expect_err("is refused");
    assert_eq!(
        errors.first().go_message(),
        "yaml: invalid map key: map[interface {}]interface {}{\"x\":interface {}(nil)}"
    );
}

#[test]
fn helm_reads_the_first_document_only() {
    assert_eq!(json("a: 1\n---\n@\n"), r#"{"a":1}"#);
}

#[test]
fn kustomize_splits_at_lines_and_drops_empty_documents() {
    let text = "a: 1\n---\n# nothing\n--- # next\nb: 2\n";
    assert_eq!(kustomize(text), "a: 1\n---\nb: 2\n");
    assert!(parse("a: 1\n---x\nb: 2\n", Dialect::Kustomize).is_err());
}

#[test]
fn long_lines_are_folded_and_lists_are_not_indented() {
    let long = ["word"; 20].join(" ");
    let node = helm(&format!("a: [{long}]\n"));
    let (first, last) = long.split_at(long.len() - 20);
    let expected = format!("a:\n- {first}\n  {}\n", last.trim_start());
    assert_eq!(write_v2(&node).expect("prints"), expected);
    assert_eq!(
        write_v3_pretty(&node).expect("prints"),
        format!("a:\n  - {long}\n")
    );
}

#[test]
fn keys_come_in_natural_order() {
    let node = helm("{a10: 1, a2: 2, B: 3, a: 4}\n");
    assert_eq!(
        write_v2(&node).expect("prints"),
        "B: 3\na: 4\na2: 2\na10: 1\n"
    );
}

/// The comparison has circles: `v2` < `v10` < `v1beta1` < `v2`. Go prints any order, this crate always the same.
#[test]
fn keys_without_an_order_are_printed_the_same_every_time() {
    let mut one = ["v2", "v10", "v1beta1"];
    let mut other = ["v1beta1", "v2", "v10"];
    order::sort_keys(&mut one, |key| key);
    order::sort_keys(&mut other, |key| key);
    assert_eq!(one, other);
}

#[test]
fn texts_with_characters_that_json_keeps_and_yaml_refuses_cannot_be_printed() {
    assert!(write_v2(&Node::string("a\u{7f}")).is_err());
    assert_eq!(
        write_v2(&Node::string("a\u{85}b")).expect("prints"),
        "a b\n"
    );
}

#[test]
fn values_are_printed_without_a_tree() {
    let mut out = String::new();
    let mut emitter = Emitter::v2(&mut out);
    emitter.begin_map();
    emitter.key("empty");
    emitter.begin_map();
    emitter.end();
    emitter.key("list");
    emitter.begin_list();
    emitter.int(1);
    emitter.float(1e20);
    emitter.string("no");
    emitter.end();
    emitter.end();
    emitter.finish().expect("all of it can be printed");
    assert_eq!(out, "empty: {}\nlist:\n- 1\n- 1e+20\n- \"no\"\n");
}

#[test]
fn infinities_have_no_json() {
    assert!(to_json(&helm("a: .inf\n")).is_err());
}

#[test]
fn json_is_read_with_places() {
    let node = from_json("{\"a\":\n [1, 2.5]}").expect("is JSON");
    let list = node.get("a").and_then(Node::as_list).expect("a list");
    assert_eq!(
        list.get(1).map(|item| (item.at.line, item.at.column)),
        Some((2, 6))
    );
    assert_eq!(list.get(1).and_then(Node::as_f64), Some(2.5));
    assert!(from_json("{a: 1}").is_err());
}

#[test]
fn tags_of_other_libraries_are_dropped_by_helm() {
    let node = helm("a: !mine b\n");
    assert_eq!(node.get("a").and_then(Node::as_str), Some("b"));
    let node = parse("a: !mine b\n", Dialect::Kustomize).expect("reads");
    let tag = node[0]
        .get("a")
        .and_then(Node::as_scalar)
        .map(|scalar| scalar.tag);
    assert_eq!(tag, Some(Tag::Other));
}

/// yaml.v3 takes the place from wherever its token buffer or a comment happens to be.
#[test]
fn an_absent_value_stands_where_its_indicator_ends_or_the_text_does() {
    let places = |text: &str| {
        let lines = portolan_yaml::outline(text.as_bytes()).lines;
        let absent = lines.lines().find(|line| line.contains("!!null"));
        absent.map(|line| line.trim().to_owned())
    };
    assert_eq!(
        places("[\n  \"a\":,\n  b\n]\n").as_deref(),
        Some(r#"2:6 scalar !!null """#)
    );
    assert_eq!(places("? a\n#").as_deref(), Some(r#"3:1 scalar !!null """#));
}

/// Both are equally near to the float; Rust prints the odd one.
#[test]
fn of_two_shortest_numbers_the_even_one_is_printed() {
    let node = parse_one(
        "[1494116541415856.2, 0.3, -1494116541415856.25]",
        Dialect::Helm,
    )
    .expect("reads");
    assert_eq!(
        to_json(&node).expect("prints"),
        "[1494116541415856.2,0.3,-1494116541415856.2]"
    );
    assert_eq!(
        write_v2(&node).expect("prints"),
        "- 1.4941165414158562e+15\n- 0.3\n- -1.4941165414158562e+15\n"
    );
}

#[test]
fn an_octal_number_with_a_sign_inside_is_one_in_kustomize_only() {
    let text = "a: 0o-7\n";
    let helm = parse_one(text, Dialect::Helm).expect("reads");
    assert_eq!(to_json(&helm).expect("prints"), "{\"a\":\"0o-7\"}");
    let kustomize = parse_one(text, Dialect::Kustomize).expect("reads");
    assert_eq!(to_json(&kustomize).expect("prints"), "{\"a\":-7}");
}

/// Go reads all of a document before it looks at what it means.
#[test]
fn an_unknown_anchor_is_found_before_a_wrong_merge() {
    let error = parse_one("<<: 1\na: *b\n", Dialect::Helm).expect_err("is refused");
    assert_eq!(
        error.first().go_message(),
        "yaml: unknown anchor 'b' referenced"
    );
}

#[test]
fn kustomize_reads_crlf_as_lf_before_anything_else() {
    let nodes = parse("a: 'b\r\r\nc'\n", Dialect::Kustomize).expect("reads");
    assert_eq!(write_kustomize(&nodes[0]).expect("prints"), "a: b c\n");
}

#[test]
fn an_absent_item_of_a_list_is_an_empty_object() {
    let nodes = parse("kind: List\nitems:\n- a: 1\n-\n", Dialect::Kustomize).expect("reads");
    let printed: Vec<_> = nodes.iter().map(write_kustomize).collect();
    assert_eq!(printed, [Ok("a: 1\n".to_owned()), Ok("{}\n".to_owned())]);
}

#[test]
fn a_byte_order_mark_below_the_first_line_is_a_character() {
    let node = parse_one("\n\u{feff}", Dialect::Helm).expect("reads");
    assert_eq!(node.as_str(), Some("\u{feff}"));
}

#[test]
fn a_time_as_key_in_braces_is_a_text() {
    let nodes = parse("- {2001-12-14T21:59:43Z: a}\n", Dialect::Kustomize).expect("reads");
    let printed = write_kustomize(&nodes[0]).expect("prints");
    assert_eq!(printed, "- \"2001-12-14T21:59:43Z\": a\n");
}
