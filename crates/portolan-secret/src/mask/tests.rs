//! Secrets found and hidden in nodes and texts, in every form that they may be written in.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portolan_yaml::{Dialect, Map, parse_one, to_json, write_kustomize, write_v2};

use super::*;
use crate::readable_json;

fn mask(texts: &[&str]) -> Mask {
    let mut known = SecretTexts::default();
    for text in texts {
        known.add_text("", text);
    }
    Mask::new(&known)
}

fn check(texts: &[&str], text: &str, expected: &str) {
    assert_eq!(mask(texts).text(text), expected);
}

#[test]
fn a_value_is_hidden_wherever_it_was_put() {
    let url = "postgres://app:hunter22@db/app";
    check(&["hunter22"], url, "postgres://app:<hidden>@db/app");
    check(
        &["adminPassword: hunter22\nport: 80\n"],
        url,
        "postgres://app:<hidden>@db/app",
    );
    check(
        &["hunter22"],
        "HUNTER22 and Hunter22",
        "<hidden> and Hunter22",
    );
}

#[test]
fn short_values_are_hidden_as_words_only() {
    check(
        &["Hunt"],
        "Hunt, Hunter, Hunt",
        "<hidden>, Hunter, <hidden>",
    );
    check(&["80", "true"], "port 80 is true", "port 80 is true");
}

#[test]
fn everyday_words_in_a_file_of_values_are_left_but_passwords_never() {
    check(
        &["namespace: monitoring\npassword: swordfish\n"],
        "monitoring swordfish",
        "monitoring <hidden>",
    );
}

#[test]
fn base64_of_a_text_that_contains_a_value_is_found_at_every_offset() {
    for prefix in ["", "a", "ab", "user:"] {
        let encoded = STANDARD.encode(format!("{prefix}correct-horse-battery!"));
        let cleaned = mask(&["correct-horse-battery"]).text(&encoded).into_owned();
        assert!(cleaned.contains(HIDDEN), "{prefix}: {cleaned}");
    }
}

const ODD: [&str; 8] = [
    "plain-Passw0rd",
    "a&b<c>d'e\"f",
    "tab\there-and-there",
    "sep\u{2028}arated\u{2029}text",
    "emoji-😀-inside",
    "bell\u{7}-and-\u{1b}[31m",
    "back\\slash\\n-and-100%41",
    "several words, broken anywhere: yes",
];

/// Whatever prints the value, and in whatever text it stands.
#[test]
fn escaped_values_are_found_in_every_format() {
    let html = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('"', "&quot;")
    };
    let url = |text: &str| {
        let letters = text.bytes().map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        });
        letters.collect::<String>()
    };
    for value in ODD {
        let mask = mask(&[value]);
        let mut map = Map::new();
        map.insert("k", Node::string(format!("be {value} af")));
        let node = Node::new(Value::Map(map));
        let json = to_json(&node).expect("JSON");
        let texts = [
            format!("x {value} y"),
            json.clone(),
            to_json(&Node::string(json.clone())).expect("JSON"),
            write_kustomize(&node).expect("YAML"),
            write_v2(&node).expect("YAML"),
            html(value),
            html(&json),
            url(value),
            format!("{value:?}"),
            format!("'{}'", value.replace('\'', "''")),
        ];
        for text in texts {
            let shown = mask.text(&text);
            assert!(shown.contains(HIDDEN), "{value:?} in {text}: {shown}");
            let words = value.split(|letter: char| !letter.is_ascii_alphabetic());
            for word in words.filter(|word| word.len() > 3) {
                assert!(!shown.contains(word), "{value:?} in {text}: {shown}");
            }
        }
    }
}

#[test]
fn what_was_json_still_is() {
    let secrets = [
        "12345678901",
        "a\",\"b: c",
        r#"{"user":"Admin1"}"#,
        "3.14159265",
    ];
    let mask = mask(&secrets);
    for text in [
        r#"{"num":12345678901,"list":[12345678901,12345678901],"text":"a,12345678901,b"}"#,
        r#"{"x":["a","b: c"],"y":1}"#,
        r#"{"nested":{"user":"Admin1"},"pi":3.14159265}"#,
        "[\n  12345678901,\n  112345678901\n]",
        r#"{"a":{"user":"Admin1"}}"#,
    ] {
        let shown = mask.text(text);
        assert!(shown.contains(HIDDEN), "{text}");
        assert!(
            !shown.contains("12345678901") && !shown.contains("Admin1"),
            "{shown}"
        );
        assert!(
            portolan_yaml::from_json(&shown).is_ok(),
            "{text} became {shown}"
        );
    }
    assert_eq!(mask.text(r#"{"num":12345678901}"#), r#"{"num":"<hidden>"}"#);
}

#[test]
fn numbers_become_texts_in_nodes() {
    let node =
        parse_one("{a: 12345678901, b: [x-12345678901], c: 1}", Dialect::Helm).expect("YAML");
    let shown = mask(&["12345678901"]).node(&node).expect("a secret");
    assert_eq!(
        readable_json(&to_json(&shown).expect("JSON")),
        r#"{"a":"<hidden>","b":["x-<hidden>"],"c":1}"#
    );
    assert!(mask(&["something-else"]).node(&node).is_none());
}

#[test]
fn long_values_are_hidden_to_their_end() {
    let long = "0123456789abcdef".repeat(40);
    check(
        &[&long],
        &format!("<{long}> {long}x"),
        "<<hidden>> <hidden>x",
    );
}

#[test]
fn a_value_that_a_printer_broke_into_lines_is_found() {
    let value = "correct horse battery staple";
    check(
        &[value],
        "text: correct horse\n    battery\n    staple, and more",
        "text: <hidden>, and more",
    );
}

/// Numbers, quotes and escapes in any order, in the secrets and around them.
#[test]
fn any_text_can_be_masked_and_no_secret_is_left_in_it() {
    // A small generator of its own: the same cases every time.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let letters: Vec<char> = "00123456789--..e:,[]{}\"\"\\\\%&';u2 \n\tabä😀\u{2028}"
        .chars()
        .collect();
    let mut draw = |most: usize| -> String {
        let count = next(most + 1);
        (0..count).map(|_| letters[next(letters.len())]).collect()
    };
    for _ in 0..3_000 {
        // Of a text of several lines, the lines count.
        let secret = format!("7{}3912345{}", draw(4), draw(4)).replace('\n', "");
        let mask = mask(&[&secret]);
        let secret = secret.trim();
        let text = [
            draw(9),
            secret.to_owned(),
            draw(4),
            secret.to_owned(),
            draw(9),
        ]
        .concat();
        let shown = mask.text(&text);
        assert!(!shown.contains(secret), "{secret:?} in {text:?}: {shown:?}");
        let json = to_json(&Node::string(text.clone())).expect("JSON");
        let shown = mask.text(&json);
        // What ends like half an escape may become a whole one with what follows.
        let is_clear = !secret.contains(['%', '&', '\\', '\'', '"']);
        assert!(
            !is_clear || shown.contains(HIDDEN),
            "{secret:?} in {json}: {shown}"
        );
        assert!(
            portolan_yaml::from_json(&shown).is_ok(),
            "{secret:?} in {json}: {shown}"
        );
    }
    check(&["12345678"], "a: 12345678-12345678", "a: \"<hidden>\"");
}
