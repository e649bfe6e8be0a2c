//! The syntax of labels: qualified names as keys, short names as values, with the messages of the API server.

use crate::selection::name::{framed, is_dns_labels};

const NAME_MAX: usize = 63;
const PREFIX_MAX: usize = 253;
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                         validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const PREFIX_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                           '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex \
                           used for validation is \
                           '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
                          '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
                          'my_value',  or '12345', regex used for validation is \
                          '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Everything wrong with a label's key; empty when it is right.
pub fn key_problems(key: &str) -> Vec<String> {
    let parts: Vec<&str> = key.split('/').collect();
    match parts.as_slice() {
        [name] => name_problems(name),
        [prefix, name] => {
            let mut problems = prefix_problems(prefix);
            problems.extend(name_problems(name));
            problems
        }
        _ => vec![format!(
            "a qualified name {NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )],
    }
}

/// Everything wrong with a label's value; empty when it is right.
pub fn value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > NAME_MAX {
        problems.push(format!("must be no more than {NAME_MAX} characters"));
    }
    if !value.is_empty() && !is_name(value) {
        problems.push(VALUE_RULE.to_owned());
    }
    problems
}

fn name_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_MAX {
        problems.push(format!(
            "name part must be no more than {NAME_MAX} characters"
        ));
    }
    if !is_name(name) {
        problems.push(format!("name part {NAME_RULE}"));
    }
    problems
}

fn prefix_problems(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let mut problems = Vec::new();
    if prefix.len() > PREFIX_MAX {
        problems.push(format!(
            "prefix part must be no more than {PREFIX_MAX} characters"
        ));
    }
    if !is_dns_labels(prefix) {
        problems.push(format!("prefix part {PREFIX_RULE}"));
    }
    problems
}

fn is_name(text: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    framed(text, u8::is_ascii_alphanumeric, inner)
}
