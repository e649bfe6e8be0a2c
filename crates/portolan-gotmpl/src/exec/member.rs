//! Fields of maps and objects, and their methods.

use portolan_yaml::Text;

use super::call::charge;
use super::check::check;
use super::{Executor, Failure, Slot};
use crate::fmt::{quote, raw};
use crate::function::{Args, Ctx, FuncError, Param};
use crate::object::{Kind, Signature};
use crate::options::{MissingKey, Options};
use crate::program::Literal;
use crate::value::{ElementType, Map, MapType, Value};

/// What a path of fields leads to, from a value.
pub(super) fn follow(
    ctx: &mut Ctx<'_>,
    options: &Options,
    from: &Slot,
    path: &[Text],
) -> Result<Slot, Failure> {
    let Some((first, rest)) = path.split_first() else {
        return Ok(from.clone());
    };
    let mut slot = field(ctx, options, from, first)?;
    for name in rest {
        slot = field(ctx, options, &slot, name)?;
    }
    Ok(slot)
}

fn field(
    ctx: &mut Ctx<'_>,
    options: &Options,
    receiver: &Slot,
    name: &str,
) -> Result<Slot, Failure> {
    match &receiver.value {
        Value::Map(map) if map.map_type() == MapType::Any => map_field(options, map, name),
        Value::Nil => missing_receiver(options, receiver.boxed, name),
        value => {
            if let Some(signature) = method(value, name) {
                return call_without_args(ctx, value, name, signature);
            }
            plain_field(options, receiver, name)
        }
    }
}

fn call_without_args(
    ctx: &mut Ctx<'_>,
    value: &Value,
    name: &str,
    signature: Signature,
) -> Result<Slot, Failure> {
    signature.check_count(name, 0, false)?;
    let result = call_method(ctx, value, name, Args::new(&[]));
    let value = result.map_err(|error| failed_call(name, error))?;
    charge(ctx, &value)?;
    Ok(Slot {
        value,
        boxed: false,
    })
}

fn plain_field(options: &Options, receiver: &Slot, name: &str) -> Result<Slot, Failure> {
    let object = match &receiver.value {
        Value::Map(map) => return map_field(options, map, name),
        Value::Object(object) => object,
        _ => return Err(no_field(receiver, name)),
    };
    if let Some(value) = object.field(name) {
        return Ok(Slot {
            value,
            boxed: false,
        });
    }
    match object.data() {
        Some(Value::Map(map)) if object.kind() == Kind::Map => map_field(options, &map, name),
        _ => Err(no_field(receiver, name)),
    }
}

/// A field of nil: nothing when it came through a pipeline, an error when it is a nil in the data.
fn missing_receiver(options: &Options, boxed: bool, name: &str) -> Result<Slot, Failure> {
    if boxed {
        return Err(format!("nil pointer evaluating interface {{}}.{name}").into());
    }
    if options.missing_key == MissingKey::Error {
        let name = quote(name.as_bytes(), false);
        return Err(format!("nil data; no entry for key {name}").into());
    }
    Ok(Slot::default())
}

fn map_field(options: &Options, map: &Map, name: &str) -> Result<Slot, Failure> {
    let boxed = map.map_type().is_boxed();
    if let Some(value) = map.get(name) {
        return Ok(Slot { value, boxed });
    }
    match options.missing_key {
        MissingKey::Invalid => Ok(Slot::default()),
        MissingKey::Zero => Ok(Slot {
            value: map.map_type().zero(),
            boxed,
        }),
        MissingKey::Error => {
            let name = quote(name.as_bytes(), false);
            Err(format!("map has no entry for key {name}").into())
        }
    }
}

fn no_field(receiver: &Slot, name: &str) -> Failure {
    let type_name = if receiver.boxed {
        "interface {}".into()
    } else {
        receiver.value.type_name()
    };
    format!("can't evaluate field {name} in type {type_name}").into()
}

/// What a method of a value takes; none when there is no such method.
fn method(value: &Value, name: &str) -> Option<Signature> {
    match value {
        Value::Object(object) => object.method(name),
        Value::Map(map) if matches!(map.map_type(), MapType::Values(_)) => {
            crate::values::method(name)
        }
        _ => None,
    }
}

fn call_method(
    ctx: &mut Ctx<'_>,
    value: &Value,
    name: &str,
    args: Args<'_>,
) -> Result<Value, FuncError> {
    match value {
        Value::Object(object) => object.call(ctx, name, args),
        Value::Map(map) => crate::values::call(ctx, map, name, args),
        _ => Ok(Value::Nil),
    }
}

/// `error calling NAME: ` and what the function said.
pub(super) fn failed_call(name: &str, error: FuncError) -> Failure {
    let prefix = format!("error calling {name}: ");
    if let Some(exceeded) = error.exceeded {
        return Failure::Exceeded { prefix, exceeded };
    }
    let message = raw::lossy(error.message.into_owned());
    if error.authored {
        Failure::Authored { prefix, message }
    } else {
        Failure::Message(prefix + &message)
    }
}

/// Whether elements of a list are declared as `interface {}`.
pub(super) fn is_boxed(element: ElementType) -> bool {
    element == ElementType::Any
}

impl Executor<'_> {
    /// Looks for a method of the top value; false when there is nothing to ask, and the answer is nil.
    pub(super) fn find_method(
        &mut self,
        name: &str,
        args: usize,
        piped: bool,
    ) -> Result<bool, Failure> {
        let value = self.machine.stack.last().cloned().unwrap_or_default();
        let receiver = Slot {
            value,
            boxed: self.machine.boxed,
        };
        if receiver.value.is_nil() {
            let slot = missing_receiver(&self.options, receiver.boxed, name)?;
            let keep = self.machine.stack.len() - 1 - usize::from(piped);
            self.machine.stack.truncate(keep);
            self.machine.stack.push(slot.value);
            self.machine.boxed = false;
            return Ok(false);
        }
        if let Some(signature) = method(&receiver.value, name) {
            signature.check_count(name, args + usize::from(piped), piped)?;
            return Ok(true);
        }
        Err(match &receiver.value {
            Value::Map(_) => format!("{name} is not a method but has arguments").into(),
            Value::Object(object) if object.field(name).is_some() => {
                format!("{name} has arguments but cannot be invoked as function").into()
            }
            Value::Object(object) if object.kind() == Kind::Map => {
                format!("{name} is not a method but has arguments").into()
            }
            _ => no_field(&receiver, name),
        })
    }

    /// What a method's parameter is, the receiver being so many values below the top.
    pub(super) fn method_param(&self, name: &str, below: usize, index: usize) -> Param {
        let position = self.machine.stack.len().checked_sub(1 + below);
        let receiver = position.and_then(|position| self.machine.stack.get(position));
        receiver
            .and_then(|receiver| method(receiver, name))
            .map_or(Param::Any, |signature| signature.param(index))
    }

    pub(super) fn method_arg(&mut self, name: &str, index: usize) -> Result<(), Failure> {
        let param = self.method_param(name, index + 1, index);
        let boxed = self.machine.boxed;
        if let Some(value) = self.machine.stack.last_mut() {
            check(value, boxed, param)?;
        }
        Ok(())
    }

    pub(super) fn method_literal(
        &mut self,
        name: &str,
        index: usize,
        literal: &Literal,
    ) -> Result<(), Failure> {
        let param = self.method_param(name, index, index);
        let constant = literal.convert(param)?;
        self.machine.stack.push(constant.value());
        self.machine.boxed = false;
        Ok(())
    }

    pub(super) fn method_nil(&mut self, name: &str, index: usize) -> Result<(), Failure> {
        let param = self.method_param(name, index, index);
        if !param.can_be_nil() {
            return Err(format!("cannot assign nil to {}", param.name()).into());
        }
        self.machine.stack.push(Value::Nil);
        self.machine.boxed = false;
        Ok(())
    }

    /// Calls a method: the stack holds what came through the pipeline, the receiver, the arguments.
    pub(super) fn call_method(
        &mut self,
        name: &str,
        args: usize,
        piped: bool,
    ) -> Result<(), Failure> {
        let param = self.method_param(name, args, args);
        let mut arguments = self
            .machine
            .stack
            .split_off(self.machine.stack.len() - args);
        let receiver = self.machine.stack.pop().unwrap_or_default();
        if piped {
            let mut last = self.machine.stack.pop().unwrap_or_default();
            check(&mut last, false, param)?;
            arguments.push(last);
        }
        let value = call_method(&mut self.ctx, &receiver, name, Args::new(&arguments))
            .map_err(|error| failed_call(name, error))?;
        charge(&self.ctx, &value)?;
        self.machine.stack.push(value);
        self.machine.boxed = false;
        Ok(())
    }
}
