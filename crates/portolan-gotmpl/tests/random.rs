//! Templates put together at random: each is refused, fails or prints, and never panics.

use std::sync::Arc;

use portolan_budget::{Budget, Stop};
use portolan_gotmpl::{
    Executor, Host, Limits, MissingKey, Options, Seeded, TemplateSet, TextParser, Value,
    helm_functions,
};

/// Pieces that reach every part of the lexer, the parser and the executor.
const PIECES: &[&str] = &[
    "{{ ",
    " }}",
    "{{- ",
    " -}}",
    "{{/* ",
    " */}}",
    "text ",
    "\n",
    " | ",
    "(",
    ")",
    " ",
    ".",
    "..",
    ",",
    "$",
    "$x",
    "$x := ",
    "$x = ",
    "$i, $x := ",
    ".a",
    ".a.b",
    ".l",
    ".s",
    ".n",
    ".missing.y",
    "$.a.b",
    "if ",
    "else",
    "else if ",
    "end",
    "range ",
    "with ",
    "else with ",
    "define \"d\"",
    "block \"d\" ",
    "template \"d\" ",
    "break",
    "continue",
    "nil",
    "true",
    "0x1F",
    "1_0",
    "'a'",
    "'\\n'",
    "1.5e3",
    "3i",
    "1+2i",
    "-7",
    "\"q\\\"\\x41\"",
    "`raw`",
    "\"{{ .s }}\"",
    "index ",
    "len ",
    "and ",
    "or ",
    "not ",
    "eq ",
    "lt ",
    "print ",
    "printf \"%v %5d %q %x %[2]*.[1]*f\" ",
    "slice ",
    "html ",
    "js ",
    "urlquery ",
    "call ",
    "include \"d\" ",
    "tpl .s ",
    "required \"m\" ",
    "fail \"m\"",
    "é",
    "\u{301}",
    "\u{0}",
    "🙂",
    "}}",
    "{{",
];

fn dot() -> Value {
    let list = Value::list(vec![Value::int(1), Value::str("x"), Value::Nil]);
    let map = Value::map([("b".into(), list.clone())].into());
    let entries = [
        ("a".into(), map),
        ("l".into(), list),
        ("s".into(), Value::str("{{ .l }}{{ include \"d\" . }}")),
        ("n".into(), Value::Nil),
    ];
    Value::map(entries.into())
}

fn pick(host: &mut Seeded, count: usize) -> usize {
    let mut bytes = [0; 8];
    host.fill_random(&mut bytes);
    (u64::from_le_bytes(bytes) % count as u64) as usize
}

/// Actions that are mostly whole, so that many of them run.
fn template(host: &mut Seeded) -> String {
    let mut text = String::new();
    for _ in 0..=pick(host, 6) {
        let whole = pick(host, 4) > 0;
        if whole {
            text.push_str("{{ ");
        }
        for _ in 0..=pick(host, 7) {
            text.push_str(PIECES[pick(host, PIECES.len())]);
        }
        if whole {
            text.push_str(" }}");
        }
    }
    for _ in 0..pick(host, 3) {
        text.push_str("{{ end }}");
    }
    text
}

#[test]
fn random_templates_print_or_fail() {
    let parser = TextParser::new(Arc::new(helm_functions()), 50);
    let limits = Limits {
        template_depth: 100,
        ..Limits::default()
    };
    let allowed = portolan_budget::Limits {
        steps: 20_000,
        bytes: 1_600_000,
        ..portolan_budget::Limits::default()
    };
    let mut random = Seeded::new("templates", 0);
    let (mut refused, mut failed, mut printed) = (0, 0, 0);
    for _ in 0..40_000 {
        let text = template(&mut random);
        let Ok(parsed) = parser.parse("t", &text) else {
            refused += 1;
            continue;
        };
        let mut set = TemplateSet::default();
        set.add(&parsed);
        let options = Options {
            missing_key: MissingKey::Zero,
            range_over_int: true,
        };
        let mut host = Seeded::new("host", 0);
        let budget = Budget::new(allowed, Stop::default());
        let mut executor =
            Executor::new(&set, &parser, options, &limits, &mut host).with_budget(budget);
        match executor.execute("t", dot()) {
            Ok(_) => printed += 1,
            Err(error) => {
                assert!(error.to_string().contains("template"), "{text:?}");
                failed += 1;
            }
        }
    }
    assert!(
        refused > 0 && failed > 100 && printed > 100,
        "{refused} {failed} {printed}"
    );
}

#[test]
fn cut_and_doubled_templates_print_or_fail() {
    let parser = TextParser::new(Arc::new(helm_functions()), 50);
    let whole = "{{- define \"d\" -}}<{{ .x | default }}>{{ end }}{{ range $k, $v := .a -}} {{ $k }}:{{ if and $v (eq 1 2) }}\
                 {{ printf \"%-5v|%+d|%#x\" $v 1 'x' }}{{ else if not $v }}{{ break }}{{ else }}{{ continue }}{{ end }}{{ end }}\
                 {{ with $y := index .l 0 }}{{ $y }}{{ else with .s }}{{ . }}{{ end }}{{ template \"d\" . }}"
        .replace(" | default", "");
    for cut in 0..=whole.len() {
        if let (Some(head), Some(tail)) = (whole.get(..cut), whole.get(cut..)) {
            for text in [
                head.to_owned(),
                tail.to_owned(),
                format!("{tail}{head}"),
                format!("{head}{{{{ {tail}"),
            ] {
                let _ = parser.parse("t", &text);
            }
        }
    }
}
