//! Flags as in Go programs: a boolean flag may have a value (`--no-hooks=false`), and if a flag is given twice, the
//! last one is used.

use clap::{Arg, ArgAction};

/// Lets a switch take a value.
pub(crate) fn with_value(arg: Arg) -> Arg {
    if !matches!(arg.get_action(), ArgAction::SetTrue) {
        return arg;
    }
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .value_name("BOOL")
        .value_parser(parse_bool)
        .default_value("false")
        .default_missing_value("true")
        .hide_default_value(true)
}

/// A truth value in Go's spellings.
fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("`{text}` is neither true nor false")),
    }
}
