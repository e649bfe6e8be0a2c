//! The language itself, with Go's own functions and no chart around it.

use std::sync::Arc;

use portolan_gotmpl::{
    Executor, Limits, MissingKey, Options, Seeded, TemplateSet, TextParser, Value,
    builtin_functions,
};

fn render(template: &str, dot: Value) -> Result<String, String> {
    let parser = TextParser::new(Arc::new(builtin_functions()), 200);
    let mut set = TemplateSet::default();
    set.add(
        &parser
            .parse("t", template)
            .map_err(|error| error.to_string())?,
    );
    let limits = Limits::default();
    let mut host = Seeded::new("seed", 0);
    let options = Options {
        missing_key: MissingKey::Zero,
        range_over_int: true,
    };
    Executor::new(&set, &parser, options, &limits, &mut host)
        .execute("t", dot)
        .map_err(|error| error.to_string())
}

fn dot() -> Value {
    let inner = Value::map([("b".into(), Value::str("deep"))].into());
    let list = Value::list(vec![Value::int(1), Value::str("x"), Value::Nil]);
    Value::map(
        [
            ("a".into(), inner),
            ("l".into(), list),
            ("s".into(), Value::str("text")),
            ("f".into(), Value::float(1e6)),
            ("n".into(), Value::Nil),
        ]
        .into(),
    )
}

#[track_caller]
fn check(template: &str, expected: &str) {
    let output = render(template, dot()).unwrap_or_else(|error| format!("error: {error}"));
    assert_eq!(output, expected, "{template}");
}

#[test]
fn fields_variables_and_pipelines() {
    check("{{ .a.b }}", "deep");
    check(
        "{{ .f }} {{ .missing }} {{ .l }}",
        "1e+06 <no value> [1 x <nil>]",
    );
    check(
        "{{ $x := .a }}{{ $x.b | printf \"%s-%s\" \"pre\" }}",
        "pre-deep",
    );
    check("{{ $x := 1 }}{{ $x = 2 }}{{ $x }}", "2");
    check(
        "{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}",
        "1",
    );
    check("{{ (index .l 1) }}{{ len .s }}", "x4");
    check("a {{- 1 -}} b", "a1b");
    check(
        "{{ and 1 0 2 }}{{ or 0 \"\" 3 }}{{ 5 | and 1 }}{{ 5 | or 1 }}",
        "0351",
    );
}

#[test]
fn control_flow() {
    check(
        "{{ range $i, $e := .l }}{{ $i }}={{ $e }};{{ end }}",
        "0=1;1=x;2=<no value>;",
    );
    check(
        "{{ range $k, $v := .a }}{{ $k }}={{ $v }}{{ end }}",
        "b=deep",
    );
    check("{{ range 3 }}{{ . }}{{ end }}", "012");
    check(
        "{{ range .l }}{{ if eq . \"x\" }}{{ break }}{{ end }}{{ . }}{{ end }}",
        "error: template: t:1:20: executing \"t\" at <eq . \"x\">: error calling eq: incompatible types for comparison",
    );
    check(
        "{{ range $i, $_ := .l }}{{ if eq $i 1 }}{{ continue }}{{ end }}{{ $i }}{{ end }}",
        "02",
    );
    check("{{ range .missing }}x{{ else }}none{{ end }}", "none");
    check("{{ with .n }}x{{ else with .s }}{{ . }}{{ end }}", "text");
    check("{{ if .n }}a{{ else if .s }}b{{ else }}c{{ end }}", "b");
    check(
        "{{ range .l }}{{ with 1 }}{{ break }}{{ end }}{{ end }}{{ .s }}",
        "text",
    );
    check(
        "{{ define \"d\" }}<{{ . }}{{ $ }}>{{ end }}{{ template \"d\" 1 }}",
        "<11>",
    );
    check("{{ block \"d\" .s }}{{ . }}!{{ end }}", "text!");
}

#[test]
fn errors_have_gos_words_and_places() {
    check(
        "{{ .a.c.d }}",
        "error: template: t:1:5: executing \"t\" at <.a.c.d>: nil pointer evaluating interface {}.d",
    );
    check(
        "{{ .s.x }}",
        "error: template: t:1:5: executing \"t\" at <.s.x>: can't evaluate field x in type interface {}",
    );
    check(
        "\n {{ template \"no\"   .s }}",
        "error: template: t:2:13: executing \"t\" at <{{template \"no\" .s}}>: template \"no\" not defined",
    );
    check(
        "{{ printf 3 }}",
        "error: template: t:1:10: executing \"t\" at <3>: expected string; found 3",
    );
    check(
        "{{ 5 | printf }}",
        "error: template: t:1:7: executing \"t\" at <printf>: wrong type for value; expected string; got int",
    );
    check(
        "{{ len }}",
        "error: template: t:1:3: executing \"t\" at <len>: wrong number of args for len: want 1 got 0",
    );
    check(
        "{{ nope }}",
        "error: template: t:1: function \"nope\" not defined",
    );
    check(
        "{{ $x }}",
        "error: template: t:1: undefined variable \"$x\"",
    );
    check("{{ if 1 }}", "error: template: t:1: unexpected EOF");
    check(
        "{{ index   .l  (len .s)|len }}",
        "error: template: t:1:3: executing \"t\" at <index .l (len .s)>: error calling index: index out of range: 4",
    );
}

/// What the template suite does not reach, as Go 1.23.7 answers it.
#[test]
fn printf_flags_reach_every_verb() {
    check("{{ printf \"%#x\" 1.5 }}", "0x1.8000p+00");
    check("{{ printf \"%#o\" 1.0 }}", "%!o(float64=1.00000)");
    check("{{ printf \"%.2f\" 1 }}", "%!f(int=01)");
    check("{{ printf \"%#q\" \"a\\tb\" }}", "`a\tb`");
    check("{{ printf \"%#U\" 31 }}", "U+001F");
    check("{{ printf \"%010d\" true }}", "%!d(bool=000000true)");
    check(
        "{{ printf \"%+v %#v\" 7 .l }}",
        "7 []interface {}{1, \"x\", interface {}(nil)}",
    );
    check("{{ printf \"%[2]*[1]d|\" 7 3 }}", "  7|");
}

#[test]
fn and_and_or_forget_the_declared_type_of_their_operands() {
    check("{{ (or .n).x }}", "<no value>");
    check(
        "{{ (or .s).x }}",
        "error: template: t:1:7: executing \"t\" at <.s>: can't evaluate field x in type string",
    );
}

/// Strings are bytes: what was cut inside a character is whole again when the rest is added.
#[test]
fn bytes_that_are_no_characters_stay_as_they_are() {
    check(
        r#"{{ $half := slice "é" 0 1 }}{{ printf "%q %d" $half (len $half) }}"#,
        r#""\xc3" 1"#,
    );
    check(
        r#"{{ $both := print (slice "é" 0 1) (slice "é" 1 2) }}{{ $both }} {{ len $both }}"#,
        "é 2",
    );
    check(r#"{{ html (slice "é" 0 1) | len }}"#, "1");
    check(r#"{{ slice "é" 0 1 }}"#, "\u{fffd}");
}
