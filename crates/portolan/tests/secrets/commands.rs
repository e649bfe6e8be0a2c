//! Every command and output format that the program has, by its own help.

use std::collections::BTreeSet;

use crate::portolan::portolan;

/// A command with the values of the options that choose a format, and of its first argument.
#[derive(Debug)]
pub(crate) struct Command {
    /// `audit files`
    pub(crate) name: String,
    /// The values of `-o`.
    pub(crate) formats: BTreeSet<String>,
    /// The values of `--graph`.
    pub(crate) graphs: BTreeSet<String>,
    /// The values of `WHAT`.
    pub(crate) subjects: BTreeSet<String>,
}

/// All commands that do something, those below others too.
pub(crate) fn commands() -> Vec<Command> {
    let mut commands = Vec::new();
    collect(&[], &mut commands);
    assert!(commands.len() > 20, "{commands:?}");
    commands
}

fn collect(path: &[&str], commands: &mut Vec<Command>) {
    let answer = portolan(&[path, &["-h"]].concat());
    assert_eq!(answer.code, 0, "{answer}");
    let below = names_below(&answer.stdout);
    for name in &below {
        collect(&[path, &[name]].concat(), commands);
    }
    if below.is_empty() {
        let values = |heading: &str| values_of(&answer.stdout, heading);
        commands.push(Command {
            name: path.join(" "),
            formats: values("-o, --output <"),
            graphs: values("--graph <"),
            subjects: &values("<WHAT>") | &values("[WHAT]"),
        });
    }
}

fn names_below(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// What `[possible values: …]` says of an option or argument.
fn values_of(help: &str, heading: &str) -> BTreeSet<String> {
    let is_heading = |line: &&str| line.trim_start().starts_with(heading);
    let mut lines = help.lines().skip_while(|line| !is_heading(line));
    let first = lines.next().unwrap_or_default();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let rest = lines.take_while(|line| indent(line) > indent(first));
    let text: Vec<&str> = std::iter::once(first)
        .chain(rest)
        .flat_map(str::split_whitespace)
        .collect();
    let text = text.join(" ");
    let values = text
        .split_once("[possible values: ")
        .and_then(|(_, rest)| rest.split_once(']'));
    let values = values.map_or("", |(values, _)| values);
    let values = values.split(", ").filter(|value| !value.is_empty());
    values.map(str::to_owned).collect()
}
