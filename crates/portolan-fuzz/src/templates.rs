//! Go's template language and the functions that parse their arguments.

use std::sync::{Arc, LazyLock};

use portolan_budget::{Budget, Stop};
use portolan_gotmpl::functions::all;
use portolan_gotmpl::{
    Args, Ctx, Executor, Function, Limits, MissingKey, Options, Param, Seeded, TemplateSet,
    TextParser, Value, builtin_functions, helm_functions,
};

use crate::{Target, pieces, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "template-lexer",
        about: "a left delimiter, a right one and what stands between them",
        run: lexer,
        seeds: || {
            texts(&[
                "{{\n%%\n}}\n%%\n .a | printf \"%v\" `raw` 'c' -0x1p-2 /* no */",
                "<<\n%%\n>>\n%%\n- if $x := .y -",
                "\u{e9}\n%%\n\u{1f980}\n%%\n/* comment */",
            ])
        },
    },
    Target {
        name: "template-parser",
        about: "a template",
        run: parser,
        seeds: templates,
    },
    Target {
        name: "template-executor",
        about: "a template, executed over a value of every kind within limits",
        run: executor,
        seeds: templates,
    },
    Target {
        name: "template-formats",
        about: "readers of YAML, JSON, TOML, base 64, base 32 and URLs: the number of a function, then its arguments",
        run: |bytes| call_one_of(FORMATS, bytes),
        seeds: || {
            texts(&[
                "0\n%%\na: [1, {b: c}]",
                "2\n%%\n{\"a\":[1,2.5e300,null,\"\\ud83d\"]}",
                "5\n%%\na = 1\n[b.c]\nd = [1979-05-27T07:32:00Z, 0xff, '''x''']\n[[e]]\nf = {g = 1}\n",
                "6\n%%\naGVsbG8=",
                "8\n%%\nhttps://u:p@[::1]:80/a%2fb?c=d&e#f",
            ])
        },
    },
    Target {
        name: "template-times",
        about: "layouts, times and durations: the number of a function, then its arguments",
        run: |bytes| call_one_of(TIMES, bytes),
        seeds: || {
            texts(&[
                "0\n%%\n2006-01-02 15:04:05 -0700 MST\n%%\n1999-12-31 23:59:58 +0200 EET",
                "1\n%%\nJan _2 03:04PM .000000000\n%%\nFeb 30 11:59AM .5",
                "3\n%%\n9223372036854775807",
                "4\n%%\n-1.5h10ms\n%%\n",
            ])
        },
    },
    Target {
        name: "template-texts",
        about: "functions that cut, wrap and spell: the number of a function, then its arguments",
        run: |bytes| call_one_of(TEXTS, bytes),
        seeds: || {
            texts(&[
                "0\n%%\nsome_snake-kebab Case9",
                "10\n%%\n7\n%%\na long text \u{65}\u{301} to wrap",
                "13\n%%\n-1\n%%\n\u{1f980}\u{1f980}",
                "19\n%%\n9223372036854775808",
            ])
        },
    },
    Target {
        name: "template-patterns",
        about: "regular expressions and versions: the number of a function, then its arguments",
        run: |bytes| call_one_of(PATTERNS, bytes),
        seeds: || {
            texts(&[
                "0\n%%\n^(?i)[a-z\\p{Greek}]+?(?P<n>\\d{2,3}|x*)$\n%%\nabc123",
                "3\n%%\n(a*)*b\n%%\naaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "4\n%%\n(\\w+)@(\\w+)\n%%\n${2}.$1x$$",
                "5\n%%\n>=1.2-0 || ~3\n%%\n1.2.3",
            ])
        },
    },
];

const FORMATS: &[&str] = &[
    "fromYaml",
    "fromYamlArray",
    "fromJson",
    "fromJsonArray",
    "mustFromJson",
    "fromToml",
    "b64dec",
    "b32dec",
    "urlParse",
];

const TIMES: &[&str] = &[
    "mustToDate",
    "toDate",
    "dateInZone",
    "durationRound",
    "mustDateModify",
];

const TEXTS: &[&str] = &[
    "camelcase",
    "snakecase",
    "kebabcase",
    "swapcase",
    "title",
    "untitle",
    "initials",
    "nospace",
    "abbrev",
    "abbrevboth",
    "wrap",
    "wrapWith",
    "trunc",
    "substr",
    "splitn",
    "replace",
    "quote",
    "dir",
    "base",
    "clean",
    "int",
    "float64",
    "toDecimal",
];

const PATTERNS: &[&str] = &[
    "mustRegexMatch",
    "mustRegexFind",
    "mustRegexSplit",
    "mustRegexFindAll",
    "mustRegexReplaceAll",
    "semverCompare",
    "semver",
];

/// The deepest nesting that a parser follows.
const DEPTH: usize = 200;

fn templates() -> Vec<Vec<u8>> {
    texts(&[
        "{{- if and .m.a (gt (len .l) 2) }}{{ range $i, $x := .l }}{{ $i }}={{ $x | quote }}{{ else }}-{{ end }}{{ end -}}",
        "{{ define \"t\" }}{{ .s | upper | trunc 5 | nindent 2 }}{{ end }}{{ template \"t\" . }}{{ include \"t\" $ }}",
        "{{ $d := dict \"a\" 1 \"b\" (list 1 2) }}{{ set $d \"c\" $d.b | toJson }}{{ toYaml $d }}{{ tpl .s . }}",
        "{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ $l | toJson }}",
        "{{ printf \"%08.3f|%-10q|%+v|%x|%T|%[2]*[1]d\" 3.14159 \"x\" .m .b .n }}",
        "{{ range 3 }}{{ break }}{{ end }}{{ with $y := .s }}{{ $y }}{{ else with .n }}{{ . }}{{ end }}",
        "{{ regexReplaceAll \"(a+)+\" (repeat 50 \"a\") \"b\" }}{{ splitList \"\" .s }}{{ until 60000000 }}",
        "{{ fromYaml \"a: *x\" }}{{ fromJson \"[\" }}{{ semver \"1.2.3\" | toString }}{{ required \"x\" .n }}",
    ])
}

static BUILT_IN: LazyLock<TextParser> =
    LazyLock::new(|| TextParser::new(Arc::new(builtin_functions()), DEPTH));
static HELM: LazyLock<TextParser> =
    LazyLock::new(|| TextParser::new(Arc::new(helm_functions()), DEPTH));

fn lexer(bytes: &[u8]) -> bool {
    let Some(mut parts) = pieces(bytes) else {
        return false;
    };
    let mut next = || parts.next().unwrap_or_default();
    let (left, right, action) = (next(), next(), next());
    let parser = BUILT_IN.clone().with_delimiters(left, right);
    let text = format!("text {left}{action}{right} text {left}- {action} -{right}");
    parser.parse("fuzz", &text).is_ok()
}

fn parser(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| HELM.parse("fuzz", text).is_ok())
}

fn executor(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let Ok(parsed) = HELM.parse("fuzz", text) else {
        return false;
    };
    let mut set = TemplateSet::default();
    set.add(&parsed);
    let limits = Limits {
        template_depth: 500,
        ..Limits::default()
    };
    let allowed = portolan_budget::Limits {
        steps: 200_000,
        bytes: 16 << 20,
        ..Default::default()
    };
    let options = Options {
        missing_key: MissingKey::Zero,
        range_over_int: true,
    };
    let mut host = Seeded::new("fuzz", 0);
    let result = Executor::new(&set, &HELM, options, &limits, &mut host)
        .with_budget(Budget::new(allowed, Stop::default()))
        .execute("fuzz", dot(text));
    result.inspect_err(|error| drop(error.to_string())).is_ok()
}

/// A value of every kind.
fn dot(text: &str) -> Value {
    let items = vec![
        Value::int(1),
        Value::str("x"),
        Value::Nil,
        Value::float(2.5),
    ];
    let list = Value::list(items);
    let map = Value::map([("a".into(), list.clone()), ("b".into(), Value::Bool(true))].into());
    let entries = [
        ("l".into(), list),
        ("m".into(), map),
        ("s".into(), Value::str(text)),
        ("b".into(), Value::bytes(b"\xff\x00")),
        ("n".into(), Value::Nil),
    ];
    Value::map(entries.into())
}

/// Calls one function of a family with arguments of the types that it takes.
fn call_one_of(names: &[&str], bytes: &[u8]) -> bool {
    let Some(mut parts) = pieces(bytes) else {
        return false;
    };
    let choice: usize = parts.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let function = function(names[choice % names.len()]);
    let texts: Vec<&str> = parts.collect();
    let texts = texts.iter().copied().chain(std::iter::repeat(""));
    let arguments: Vec<Value> = function
        .signature
        .params
        .iter()
        .zip(texts)
        .map(|(param, text)| argument(*param, text))
        .collect();
    let limits = Limits::default();
    let mut host = Seeded::new("fuzz", 0);
    let mut ctx = Ctx::new(&mut host, &limits, Budget::default());
    (function.call)(&mut ctx, Args::new(&arguments)).is_ok()
}

fn function(name: &str) -> &'static Function {
    let found = all().iter().find(|function| function.name == name);
    found.expect("every name is in the table")
}

/// An argument of the type that a parameter has.
fn argument(param: Param, text: &str) -> Value {
    match param {
        Param::Int | Param::Int64 => Value::int(text.parse().unwrap_or(-1)),
        Param::Float => Value::float(text.parse().unwrap_or(-0.5)),
        _ => Value::str(text),
    }
}
