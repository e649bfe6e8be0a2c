//! `.dockerignore` beside the library that Docker uses: `ignore-oracle` (`testbed/ignore-oracle`).

use std::io::Write as _;
use std::process::{Command, Stdio};

use portolan_image::{Ignore, Matched, read_patterns};
use portolan_testbed::has_program;
use serde_json::{Value, json};

/// Random sets that are compared, and with `PORTOLAN_LONG`.
const SETS: u64 = 5_000;
const LONG_SETS: u64 = 100_000;

struct Case {
    text: String,
    paths: Vec<String>,
}

/// What stands in each file, and the rule that it shows.
const FIXED: &[&str] = &[
    "\u{feff}a\nb",            // a byte order mark is not part of the first pattern
    "a\n\u{feff}b\n\u{feff}*", // elsewhere it is, but not for an expression
    "#a\n #a\n!#a\n\\#a",      // a comment begins in the first column
    "/a\n/b/c\n//c",           // a leading slash means the root, as no slash does
    "../a\na/../b\n..\n.\n./c\na/./b", // paths are cleaned
    "a \n\tb\t\n c/ \n",       // spaces around a pattern do not count
    "**\n!a\n!**/c",           // everything, and what is taken back in
    "**/a\n**a\na/**\n**/a/**\na**b\n***", // kinds of double stars
    "a/**/c\na/*/c\n*/b",
    "[ab]\n[a-c]/b\n[^a]\n[!a]\n[a\\-c]\n[]a]",
    "[*]\n[?]\n[a*b]\n[a**b]\n[.]",
    "\\a\n\\*\n\\?\\[\na\\\\b\n\\d",
    "a\n!a/b\na/b/c\n!a/b/c/d", // the last match wins, also below a directory that is left out
    "!a\na\n!a",
    "a\n!a",
    "*\n!a/b",
    "*.go\n!x.go\n**/*.md\n!**/README.md",
    "a\\",
    "[",
    "!",
    "! a\n!  /b",
    "a^b\n^a\na$\n(a)\na|b\na+\n{a}",
    "é\n[é-ü]\n?\n??",
    "\n\n\r\na\r\n",
    "",
    "[[:alpha:]]\n[\\d]\n[a&&b]\n[a--b]",
    "a|b*\na{2}?\n{[a]", // `|` and braces are operators where an expression is made
    "a//b\na/\n/\n!/",
];

const PATHS: &[&str] = &[
    "a",
    "b",
    "c",
    "d",
    "a/b",
    "a/c",
    "a/b/c",
    "a/b/c/d",
    "b/a",
    "b/c",
    "b/a/c",
    "x.go",
    "a/x.go",
    "README.md",
    "a/README.md",
    "#a",
    "*",
    "?[",
    "a\\b",
    "[",
    "]",
    "a-b",
    "-",
    "!",
    "^a",
    "a$",
    "(a)",
    "a|b",
    "a+",
    "{a}",
    "é",
    "ö",
    "aa",
    "ab",
    "a\nb",
    "\u{feff}a",
    "\u{feff}b",
    "\u{feff}",
    "b.c",
    ".",
    ".a",
    "d1",
    "1",
    "a^b",
    "x/y/z/a",
    "aXb",
    "a]",
    "[a]",
    "/]",
    "^]b",
    "..a",
    "a b",
    " a",
    "a ",
    "&",
    "ba/ab",
];

#[test]
fn a_fixed_list_of_rules_is_as_docker_has_it() {
    let fixed = FIXED.iter().map(|text| Case {
        text: (*text).to_owned(),
        paths: PATHS.iter().map(|path| (*path).to_owned()).collect(),
    });
    compare(&fixed.collect::<Vec<_>>());
}

#[test]
fn random_sets_of_patterns_are_matched_as_docker_matches_them() {
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    let sets = if is_long { LONG_SETS } else { SETS };
    let mut compared = 0;
    while compared < sets {
        let batch = 5_000.min(sets - compared);
        let cases: Vec<Case> = (compared..compared + batch).map(random_case).collect();
        if !compare(&cases) {
            return;
        }
        compared += batch;
    }
    println!("sets of ignore patterns: {compared} of {LONG_SETS}");
}

/// Numbers that look random and are the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

fn random_case(seed: u64) -> Case {
    const PIECES: &[&str] = &[
        "a",
        "a",
        "b",
        "b",
        "c",
        "ab",
        "/",
        "/",
        "/",
        "*",
        "*",
        "**",
        "**/",
        "/**",
        "?",
        "[ab]",
        "[^a]",
        "[a-c]",
        "[*]",
        "[!b]",
        ".",
        "..",
        "./",
        "../",
        "\\",
        "\\a",
        "\\*",
        "[",
        "]",
        "-",
        "^",
        "$",
        "+",
        "(",
        ")",
        "|",
        "{",
        "}",
        " ",
        "é",
        "\t",
        "!",
        "#",
        "&&",
        "\\d",
        "\\b",
        "[:alpha:]",
        "\u{feff}",
        "\\Q",
        "\\E",
        "\\pL",
        "\\x41",
        "\\1",
    ];
    const NAMES: &[&str] = &[
        "a", "a", "b", "b", "c", "ab", "ba", "abc", "*", ".", "..a", "é", "-", "^", "[", "]", "\\",
        "a b", "!", "#", "1", "A", "/",
    ];
    let mut numbers = Numbers(seed);
    // Most sets are tame: few of the odd pieces make most patterns invalid.
    let pieces = if numbers.below(4) > 0 {
        &PIECES[..24]
    } else {
        PIECES
    };
    let mut text = String::from(if numbers.below(20) == 0 {
        "\u{feff}"
    } else {
        ""
    });
    for _ in 0..=numbers.below(7) {
        text.push_str(["", "", "!", "!", "/", " ", "#", "! "][numbers.below(8)]);
        for _ in 0..=numbers.below(5) {
            text.push_str(numbers.pick(pieces));
        }
        text.push_str(["\n", "\n", "\n", "\r\n", " \n", "\n\n"][numbers.below(6)]);
    }
    let paths = (0..16).map(|_| {
        let parts = (0..=numbers.below(4)).map(|_| {
            let mut name = String::new();
            for _ in 0..=numbers.below(2) {
                name.push_str(numbers.pick(&NAMES[..NAMES.len() - 1]));
            }
            name
        });
        parts.collect::<Vec<_>>().join("/")
    });
    Case {
        paths: paths.collect(),
        text,
    }
}

/// Compares all answers; `false` if the oracle is not there.
fn compare(cases: &[Case]) -> bool {
    if !has_program("ignore-oracle", "-h") {
        return false;
    }
    let answers = ask(cases);
    assert_eq!(answers.len(), cases.len());
    let mut wrong = Vec::new();
    for (case, theirs) in cases.iter().zip(&answers) {
        let ours = answer(case);
        let is_refused = !theirs["error"].as_str().unwrap_or_default().is_empty();
        let same = if is_refused {
            ours.is_null()
        } else {
            ours["patterns"] == theirs["patterns"] && ours["walked"] == theirs["walked"]
        };
        if !same {
            wrong.push(format!(
                "{:?}\n{:?}\nours {ours}\ntheirs {theirs}",
                case.text, case.paths
            ));
        }
    }
    let shown: Vec<_> = wrong.iter().take(5).map(String::as_str).collect();
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        cases.len(),
        shown.join("\n\n")
    );
    true
}

fn ask(cases: &[Case]) -> Vec<Value> {
    let mut oracle = Command::new("ignore-oracle")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the oracle starts");
    let mut input = oracle.stdin.take().expect("a pipe");
    let questions: Vec<String> = cases
        .iter()
        .map(|case| json!({"text": case.text, "paths": case.paths}).to_string())
        .collect();
    let writer = std::thread::spawn(move || {
        for question in questions {
            writeln!(input, "{question}").expect("the oracle reads");
        }
    });
    let output = oracle.wait_with_output().expect("the oracle ends");
    writer.join().expect("all is written");
    let text = String::from_utf8(output.stdout).expect("JSON");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Ours, in the oracle's words; null if the file is refused.
fn answer(case: &Case) -> Value {
    let Ok(patterns) = read_patterns(case.text.as_bytes()) else {
        return Value::Null;
    };
    let Ok(ignore) = Ignore::new(patterns.iter().map(String::as_str)) else {
        return Value::Null;
    };
    let walked: Vec<u8> = case
        .paths
        .iter()
        .map(|path| walked(&ignore, path))
        .collect();
    let patterns = if patterns.is_empty() {
        Value::Null
    } else {
        json!(patterns)
    };
    json!({"patterns": patterns, "walked": walked})
}

fn walked(ignore: &Ignore, path: &str) -> u8 {
    let mut above = Matched::default();
    let mut left_out = false;
    let ends = path
        .match_indices('/')
        .map(|(at, _)| at)
        .chain([path.len()]);
    for end in ends {
        match ignore.matches(&path[..end], &above) {
            Ok(answer) => (left_out, above) = answer,
            Err(_) => return 2,
        }
        // What is left out and cannot be taken in again is never walked into; the answer must be the same.
        if left_out && end < path.len() && !ignore.may_take_in_below(&path[..end]) {
            assert_ne!(ignore.is_left_out(path), Ok(false), "{path:?}");
        }
    }
    u8::from(left_out)
}
