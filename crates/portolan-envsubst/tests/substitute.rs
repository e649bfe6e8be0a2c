//! Examples of substitution beyond the shared suite: places, limits and departures.

use portolan_envsubst::{Error, ErrorKind, MAX_DEPTH, Unset, substitute};

fn lookup(name: &str) -> Option<&'static str> {
    match name {
        "v" => Some("hello"),
        "u" => Some("héllo"),
        "empty" => Some(""),
        _ => None,
    }
}

fn check(input: &str, expected: &str) {
    assert_eq!(
        substitute(input, Unset::Empty, lookup).as_deref(),
        Ok(expected)
    );
}

fn check_error(input: &str, kind: ErrorKind, offset: usize) {
    assert_eq!(
        substitute(input, Unset::Refused, lookup),
        Err(Error { kind, offset })
    );
}

#[test]
fn an_unset_variable_may_be_filled_unless_it_has_a_default() {
    let fill = |name: &str| format!("<{name}>");
    let text = substitute("${w}-${w:-d}-${v}-${W,,}", Unset::Filled(&fill), lookup);
    assert_eq!(text.as_deref(), Ok("<w>-d-hello-<w>"));
}

#[test]
fn an_unset_variable_is_reported_where_its_expression_begins() {
    check_error("a: ${v}\nb: ${w}\n", ErrorKind::NotSet("w".into()), 11);
}

#[test]
fn a_syntax_error_is_reported_where_the_parser_stopped() {
    check_error("x ${v-d}", ErrorKind::MissingClosingBrace, 5);
    check_error("x ${", ErrorKind::VariableName, 4);
}

#[test]
fn a_length_beyond_every_number_takes_the_rest() {
    check("${v:2:9223372036854775807}", "llo");
    check("${v:9223372036854775807:9223372036854775807}", "");
}

#[test]
fn a_cut_character_is_an_error_at_its_expression() {
    check_error("${v} ${u:0:2}", ErrorKind::NotUtf8, 5);
    check("${u:0:2}${u:2}", "héllo");
}

#[test]
fn an_empty_pattern_stands_before_every_character() {
    check("${u//${empty}/-}", "-h-é-l-l-o-");
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| "${w:-".repeat(depth) + &"}".repeat(depth);
    check(&nested(MAX_DEPTH), "");
    let offset = MAX_DEPTH * "${w:-".len();
    check_error(&nested(MAX_DEPTH + 1), ErrorKind::TooDeep, offset);
}

#[test]
fn replacements_in_replacements_stop_at_the_output_limit() {
    let long = "x".repeat(2000);
    let input = "${v//x/${v//x/${v//x/${v}}}}";
    let error = substitute(input, Unset::Empty, |_| Some(long.as_str())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLong);
}

#[test]
fn trims_of_long_values_stop_at_the_work_limit() {
    let long = "ab".repeat(100_000);
    let error = substitute("${v%%*c*c*}", Unset::Empty, |_| Some(long.as_str())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooMuchWork);
}
