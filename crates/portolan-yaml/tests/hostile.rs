//! Input made to hurt is refused quickly and in bounded memory.

use std::fmt::Write;
use std::time::{Duration, Instant};

use portolan_yaml::limits::{MAX_DEPTH, MAX_INPUT_BYTES};
use portolan_yaml::{
    Dialect, Map, from_json, parse, parse_bytes, parse_one, to_json, write_kustomize, write_v2,
};

const BOTH: [Dialect; 2] = [Dialect::Helm, Dialect::Kustomize];

/// Generous, since tests run unoptimised on busy machines; Go's own refusals take longer.
const QUICKLY: Duration = Duration::from_secs(3);

fn refused(text: &str, words: &str) {
    for dialect in BOTH {
        let start = Instant::now();
        let error = parse(text, dialect)
            .expect_err("must be refused")
            .to_string();
        assert!(error.contains(words), "{dialect:?}: {error}");
        assert!(
            start.elapsed() < QUICKLY,
            "{dialect:?}: {:?}",
            start.elapsed()
        );
    }
}

#[test]
fn ten_megabytes_of_open_brackets_are_refused() {
    refused(&"[".repeat(10 << 20), "exceeded max depth");
    refused(&"{a: ".repeat(3 << 20), "exceeded max depth");
    refused(&"a: {".repeat(3 << 20), "exceeded max depth");
}

#[test]
fn ten_megabytes_of_dashes_are_refused() {
    refused(&"- ".repeat(5 << 20), "exceeded max depth");
    refused(&"? ".repeat(5 << 20), "exceeded max depth");
}

#[test]
fn json_of_open_brackets_is_refused() {
    let error = from_json(&"[".repeat(10 << 20)).expect_err("must be refused");
    assert!(error.to_string().contains("exceeded max depth"));
}

#[test]
fn the_deepest_allowed_nesting_is_read_printed_and_released() {
    let depth = MAX_DEPTH - 1;
    let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for dialect in BOTH {
        let node = parse_one(text.as_str(), dialect).expect("is not too deep");
        assert_eq!(to_json(&node).expect("prints"), text);
        assert!(write_v2(&node).is_ok());
        assert!(write_kustomize(&node).is_ok());
    }
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let before = vec![format!("*a{}", level - 1); 9].join(", ");
        let _ = writeln!(bomb, "a{level}: &a{level} [{before}]");
    }
    refused(&bomb, "excessive aliasing");
}

/// Few nodes, but a terabyte of text once it is written out.
#[test]
fn aliases_of_a_long_text_are_refused_by_its_length() {
    let long = "x".repeat(1 << 20);
    let aliases = vec!["*a"; 50_000].join(", ");
    refused(
        &format!("a: &a {long}\nb: [{aliases}]\n"),
        "excessive aliasing",
    );
    let levels = (1..12).map(|level| {
        let before = level - 1;
        format!("a{level}: &a{level} {{x: *a{before}, y: *a{before}}}\n")
    });
    let levels = levels.collect::<Vec<_>>().concat();
    refused(&format!("a0: &a0 {long}\n{levels}"), "excessive aliasing");
}

#[test]
fn aliases_cannot_nest_deeper_than_the_limit() {
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(600), "]".repeat(600));
    refused(
        &format!("a: &a {}\nb: {}\n", deep("x"), deep("*a")),
        "exceeded max depth",
    );
}

#[test]
fn an_alias_inside_its_own_anchor_is_refused() {
    refused("a: &a [*a]\n", "value contains itself");
}

#[test]
fn control_characters_are_refused_with_their_place() {
    for dialect in BOTH {
        let error = parse("a: b\nc: \0d\n", dialect).expect_err("must be refused");
        assert_eq!(
            error.to_string(),
            "line 2, column 4: control characters are not allowed"
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    for bytes in [
        &b"a: \xff"[..],
        b"a: \xc3",
        b"a: \xed\xa0\x80",
        b"\xff\xfea",
    ] {
        for dialect in BOTH {
            assert!(parse_bytes(bytes, dialect).is_err(), "{bytes:?}");
        }
    }
}

#[test]
fn input_over_the_limit_is_refused_unseen() {
    let zeros = vec![0; MAX_INPUT_BYTES + 1];
    for dialect in BOTH {
        let error = parse_bytes(&zeros, dialect).expect_err("must be refused");
        assert_eq!(error.to_string(), "input is larger than 256 MiB");
    }
}

#[test]
fn a_scalar_of_many_megabytes_is_read_in_one_piece() {
    let long = "x".repeat(20 << 20);
    let node = parse_one(format!("a: {long}\n"), Dialect::Helm).expect("is a map");
    assert_eq!(
        node.get("a").and_then(|node| node.as_str()),
        Some(long.as_str())
    );
}

#[test]
fn maps_with_very_many_keys_take_linear_time() {
    let mut text = String::new();
    for number in 0..100_000 {
        let _ = writeln!(text, "key-{number}: {number}");
    }
    for dialect in BOTH {
        let start = Instant::now();
        let nodes = parse(text.as_str(), dialect).expect("is a map");
        assert_eq!(nodes[0].as_map().map(Map::len), Some(100_000));
        assert!(write_v2(&nodes[0]).is_ok());
        assert!(start.elapsed() < QUICKLY, "{:?}", start.elapsed());
    }
}

#[test]
fn all_errors_of_a_file_are_found() {
    let text = "a: [\n---\nb: 1\n---\nc: 'x\n---\nd: @\n";
    let helm = parse(text, Dialect::Helm).expect_err("is broken");
    let lines: Vec<u32> = helm.iter().map(|error| error.at.line).collect();
    assert_eq!(lines, [2, 6, 7]);
    let kustomize = parse("a: [\n---\nb: 1\n---\nd: @\n", Dialect::Kustomize);
    let kustomize = kustomize.expect_err("is broken");
    let lines: Vec<u32> = kustomize.iter().map(|error| error.at.line).collect();
    assert_eq!(lines, [2, 5]);
}
