//! The functions that Go's `text/template` defines itself.

mod compare;
mod escape;
mod index;

use crate::fmt::{raw, sprint, sprintf, sprintln};
use crate::function::{Args, Ctx, FuncError, Function, Param, Special};
use crate::object::Signature;
use crate::value::Value;

type Answer = Result<Value, FuncError>;

const ONE_OR_MORE: Signature = Signature::variadic(&[Param::Value], Param::Value);

/// The table of them.
pub(crate) const BUILTINS: &[Function] = &[
    Function::special("and", ONE_OR_MORE, Special::And),
    Function::special("or", ONE_OR_MORE, Special::Or),
    Function::new("not", &[Param::Value], |_, args| {
        Ok(Value::Bool(!args.get(0).truth()))
    })
    .shallow(),
    Function {
        call,
        ..Function::special("call", ONE_OR_MORE, Special::Call)
    },
    Function::variadic("html", &[], Param::Any, escape::html),
    Function::variadic("js", &[], Param::Any, escape::js),
    Function::variadic("urlquery", &[], Param::Any, escape::urlquery),
    Function::variadic("index", &[Param::Value], Param::Value, index::index).shallow(),
    Function::variadic("slice", &[Param::Value], Param::Value, index::slice).shallow(),
    Function {
        special: Some(Special::Len),
        ..Function::new("len", &[Param::Value], index::len).shallow()
    },
    Function::variadic("print", &[], Param::Any, |_, args| Ok(sprint(args.all()))),
    Function::variadic("printf", &[Param::Str], Param::Any, printf),
    Function::variadic("println", &[], Param::Any, |_, args| {
        Ok(sprintln(args.all()))
    }),
    Function::variadic("eq", &[Param::Value], Param::Value, compare::eq),
    Function::new("ne", &[Param::Value, Param::Value], compare::ne),
    Function::new("lt", &[Param::Value, Param::Value], compare::lt),
    Function::new("le", &[Param::Value, Param::Value], compare::le),
    Function::new("gt", &[Param::Value, Param::Value], compare::gt),
    Function::new("ge", &[Param::Value, Param::Value], compare::ge),
];

fn printf(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let format = raw::mark(args.bytes(0));
    sprintf(&format, args.rest(1), ctx.meter.value_limit()).ok_or_else(|| {
        let larger = ctx.meter.check_value(usize::MAX);
        larger
            .err()
            .map_or_else(|| FuncError::new("text is too large"), FuncError::from)
    })
}

/// The first argument is the text of what is called; no function is a value here.
fn call(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let callee = args.get(1);
    Err(FuncError::new(if callee.is_nil() {
        "call of nil".to_owned()
    } else {
        format!(
            "non-function {} of type {}",
            args.str(0),
            callee.type_name()
        )
    }))
}
