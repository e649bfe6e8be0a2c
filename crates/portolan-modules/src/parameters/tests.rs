//! Tests of the parameters of modules: types, what is missing, what is unknown, and what is advised.

use serde_json::json;

use super::*;
use crate::definition::{Effect, ParameterDefinition, RootSupport};

const fn parameter(name: &'static str, kind: ParameterType) -> ParameterDefinition {
    ParameterDefinition {
        name,
        kind,
        is_required: false,
        summary: "",
    }
}

static MODULE: ModuleDefinition = ModuleDefinition {
    name: "sample",
    summary: "",
    parameters: &[
        ParameterDefinition {
            name: "path",
            kind: ParameterType::Path,
            is_required: true,
            summary: "",
        },
        parameter("mode", ParameterType::Mode),
        parameter("state", ParameterType::Word(&["present", "absent"])),
        parameter("count", ParameterType::Integer),
        parameter("timeout", ParameterType::Duration),
        parameter("force", ParameterType::Boolean),
        parameter("names", ParameterType::TextList),
        parameter("values", ParameterType::TextMap),
        parameter("content", ParameterType::Text),
        parameter("source", ParameterType::Text),
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse: |_| None,
};

/// Reads parameters and gives what was noted.
fn faults(values: &Value, read: impl FnOnce(&mut Parameters<'_>)) -> Vec<String> {
    let values = values.as_object().unwrap();
    let mut parameters = Parameters::new(&MODULE, values);
    read(&mut parameters);
    let faults = parameters.into_faults();
    faults
        .iter()
        .map(|fault| match &fault.hint {
            Some(hint) => format!("{fault}; {hint}"),
            None => fault.to_string(),
        })
        .collect()
}

#[test]
fn unknown_and_missing_names_are_told_with_the_nearest_one() {
    let found = faults(&json!({"pth": "/x", "zzz": 1}), |parameters| {
        parameters.check_names();
    });
    assert_eq!(
        found,
        [
            "`pth` is no parameter of the module `sample`; did you mean `path`?",
            "`zzz` is no parameter of the module `sample`; it has path, mode, state, count, timeout, force, names, values, content, source",
            "`path` is missing",
        ]
    );
}

#[test]
fn a_mode_is_a_quoted_octal_number() {
    let read = |value: Value| {
        let values = json!({ "mode": value });
        let mut parameters = Parameters::new(&MODULE, values.as_object().unwrap());
        let mode = parameters.mode("mode");
        assert_eq!(mode.is_none(), !parameters.into_faults().is_empty());
        mode
    };
    assert_eq!(read(json!("0640")), Some(0o640));
    assert_eq!(read(json!("755")), Some(0o755));
    assert_eq!(read(json!("4755")), Some(0o4755));
    for wrong in [
        json!(640),
        json!("u=rw"),
        json!("0888"),
        json!("64"),
        json!("00644"),
    ] {
        assert_eq!(read(wrong), None);
    }
    let found = faults(&json!({"mode": 416}), |parameters| {
        parameters.mode("mode");
    });
    assert_eq!(
        found,
        ["`mode` must be a quoted octal number; quote it: mode: \"0640\""]
    );
}

#[test]
fn each_reader_tells_what_it_takes() {
    let found = faults(
        &json!({
            "path": "../x", "state": "presnt", "count": 11, "timeout": 30, "force": "yes", "names": [1], "values": {"a": []},
            "content": 5
        }),
        |parameters| {
            parameters.path("path");
            parameters.word("state");
            parameters.integer("count", 0..=10);
            parameters.duration("timeout");
            parameters.boolean("force", false);
            parameters.text_list("names");
            parameters.text_map("values");
            parameters.text("content");
        },
    );
    assert_eq!(
        found,
        [
            "`path` must be a path that begins with `/` and has no `..`",
            "`state` must be one of present, absent; did you mean `present`?",
            "`count` must be a whole number from 0 to 10",
            "`timeout` must be a duration such as `90s`, `10m` or `1h30m`; say the unit: timeout: 30s",
            "`force` must be true or false; write it without quotes: true or false",
            "`names` must be a list of texts",
            "`values` must be a map of texts",
            "`content` must be a text; quote it: content: \"5\"",
        ]
    );
}

#[test]
fn parameters_that_exclude_each_other_are_told() {
    let one = |parameters: &mut Parameters<'_>| {
        parameters.exactly_one(&["content", "source"]);
    };
    let check = |values: Value, expected: &[&str]| assert_eq!(faults(&values, one), expected);
    check(json!({"content": "x"}), &[]);
    check(json!({}), &["needs one of `content`, `source`"]);
    check(
        json!({"content": "x", "source": "y"}),
        &["`source` cannot stand beside `content`"],
    );
}

#[test]
fn a_path_is_read_in_its_shortest_form() {
    let values = json!({"path": "/etc//web/./x/"});
    let mut parameters = Parameters::new(&MODULE, values.as_object().unwrap());
    assert_eq!(parameters.path("path").unwrap(), "/etc/web/x");
}
