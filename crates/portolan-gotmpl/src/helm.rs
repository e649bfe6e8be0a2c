//! What Helm adds to a template engine: functions that need the engine, and its error messages.

use crate::builtins::BUILTINS;
use crate::error::{ExecError, ParseError};
use crate::function::{Args, Ctx, FuncError, Function, Param, Special};
use crate::functions::{self, FunctionTable};
use crate::host::LookupQuery;
use crate::object::Signature;
use crate::value::Value;

const TEXT_AND_DOT: Signature = Signature::new(&[Param::Str, Param::Any]);

/// Functions that reach beyond their arguments.
const ENGINE: &[Function] = &[
    Function::special("include", TEXT_AND_DOT, Special::Include),
    Function::special("tpl", TEXT_AND_DOT, Special::Tpl),
    Function::new("required", &[Param::Str, Param::Any], required).shallow(),
    Function::new("fail", &[Param::Str], |_, args| {
        Err(FuncError::authored(&args.str(0)))
    }),
    Function::new(
        "lookup",
        &[Param::Str, Param::Str, Param::Str, Param::Str],
        lookup,
    ),
];

/// Go's own functions and nothing else.
pub fn builtin_functions() -> FunctionTable {
    FunctionTable::default().with(BUILTINS)
}

/// Every function a Helm chart may call.
pub fn helm_functions() -> FunctionTable {
    builtin_functions()
        .with(functions::all())
        .without(&["env", "expandenv"])
        .with(ENGINE)
}

/// The value, unless it is nil or an empty string.
fn required(_: &mut Ctx<'_>, args: Args<'_>) -> Result<Value, FuncError> {
    let value = args.get(1);
    if value.is_nil() || value.as_str() == Some("") {
        return Err(FuncError::authored(&args.str(0)));
    }
    Ok(value.clone())
}

fn lookup(ctx: &mut Ctx<'_>, args: Args<'_>) -> Result<Value, FuncError> {
    let (api_version, kind, namespace, name) = (args.str(0), args.str(1), args.str(2), args.str(3));
    let query = LookupQuery {
        api_version: &api_version,
        kind: &kind,
        namespace: &namespace,
        name: &name,
    };
    let found = ctx.host.lookup(&query);
    // What is found is copied for the template, however large it is.
    ctx.weigh(&found)?;
    Ok(found)
}

/// A parse error as Helm prints it: the place and the end of the message.
pub fn parse_message(error: &ParseError) -> String {
    let text = error.to_string();
    let mut parts = text.split(": ");
    let place = parts.nth(1).unwrap_or_default();
    format!(
        "parse error at ({place}): {}",
        parts.last().unwrap_or_default()
    )
}

/// An error of a running template as Helm prints it: a chart author's own words stand alone.
pub fn exec_message(error: &ExecError) -> String {
    match (error.authored(), &error.place) {
        (Some(message), Some(place)) => {
            format!("execution error at ({}): {message}", place.location())
        }
        _ => error.to_string(),
    }
}

/// What Helm makes of a template's output: Go's mark for a missing value disappears.
pub fn clean_output(output: String) -> String {
    if crate::exec::has_no_value(&output) {
        output.replace(crate::exec::NO_VALUE, "")
    } else {
        output
    }
}
