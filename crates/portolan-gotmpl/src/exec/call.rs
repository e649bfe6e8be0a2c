//! Calls of functions, and of templates as functions.

use std::rc::Rc;

use portolan_budget::Exceeded;
use portolan_yaml::Text;

use super::frame::FrameKind;
use super::member::failed_call;
use super::{Executor, Failure, Machine};
use crate::fmt::{quote, raw};
use crate::function::{Args, Ctx, FuncError, Function, Special};
use crate::meter::map_bytes;
use crate::set::ParsedText;
use crate::value::Value;

/// What Go prints for no value, and what Helm takes out again.
pub(crate) const NO_VALUE: &str = "<no value>";

/// How many texts of `tpl` are kept parsed, and how long they may be together.
const MAX_TEXTS: usize = 10_000;
const MAX_TEXT_BYTES: usize = 16 << 20;

/// What a parsed text takes for each of its bytes, at most: programs, constants and places.
const PROGRAM_BYTES_PER_BYTE: usize = 16;

/// What a text takes beside its bytes.
const TEXT_BYTES: usize = 32;

/// What Go's reflection says when a value is none.
const TYPE_OF_NOTHING: &str = "reflect: call of reflect.Value.Type on zero Value";

/// What a call did.
pub(super) enum Called {
    /// It is done, the result is on the stack.
    Done,
    /// A template runs now and will leave the result.
    Entered,
}

impl Executor<'_> {
    /// Calls a function on the topmost values.
    pub(super) fn call(
        &mut self,
        function: &Function,
        args: usize,
        piped: bool,
    ) -> Result<Called, Failure> {
        let count = args + usize::from(piped);
        let base = self.machine.stack.len() - count;
        if piped {
            // What came through the pipeline was there first, and is the last argument.
            self.machine.stack[base..].rotate_left(1);
        }
        match function.special {
            Some(Special::Include) => return self.include(base),
            Some(Special::Tpl) => return self.tpl(base),
            Some(Special::Len) if self.machine.stack.last().is_some_and(Value::is_nil) => {
                let boxed = self.machine.boxed && !piped;
                let message = if boxed {
                    "len of nil pointer"
                } else {
                    TYPE_OF_NOTHING
                };
                return Err(failed_call("len", FuncError::new(message)));
            }
            _ => {}
        }
        let arguments = Args::new(&self.machine.stack[base..]);
        let is_raw = charge_arguments(&self.ctx, function, arguments)
            .map_err(|error| failed_call(function.name, error.into()))?;
        let mut value = (function.call)(&mut self.ctx, arguments)
            .map_err(|error| failed_call(function.name, error))?;
        if is_raw {
            value = raw::restore(value);
        }
        if !(function.shallow && value.as_bytes().is_some()) {
            charge(&self.ctx, &value).map_err(|error| failed_call(function.name, error.into()))?;
        }
        self.finish(base, value);
        Ok(Called::Done)
    }

    fn finish(&mut self, base: usize, value: Value) {
        self.machine.stack.truncate(base);
        self.machine.stack.push(value);
        self.machine.boxed = false;
    }

    fn name_and_dot(&mut self, base: usize) -> (Text, Value) {
        let Machine {
            stack, is_marked, ..
        } = &mut self.machine;
        let mut arguments = stack.drain(base..);
        let text = match arguments.next() {
            Some(Value::Str(text)) => text,
            Some(Value::RawStr(bytes)) => {
                *is_marked = true;
                Text::from(raw::mark(&bytes).into_owned())
            }
            Some(other) => Text::from(crate::fmt::display(&other)),
            None => Text::default(),
        };
        (text, arguments.next().unwrap_or_default())
    }

    fn include(&mut self, base: usize) -> Result<Called, Failure> {
        let (name, dot) = self.name_and_dot(base);
        let steps = self.machine.reach() + self.machine.counting_steps();
        self.ctx.meter.step(steps)?;
        let failed = |message: String| failed_call("include", FuncError::new(message));
        if self.machine.inclusions(&name) > self.ctx.limits.include_depth {
            return Err(failed(format!(
                "rendering template has a nested reference name: {name}: unable to execute template"
            )));
        }
        let Some(program) = self.machine.find(self.set, &name).cloned() else {
            let name = quote(name.as_bytes(), false);
            return Err(failed(format!(
                "template: no template {name} associated with template \"gotpl\""
            )));
        };
        self.check_depth()?;
        let start = self.machine.out.len();
        self.machine
            .enter(&program, dot, FrameKind::Include { name, start });
        Ok(Called::Entered)
    }

    fn tpl(&mut self, base: usize) -> Result<Called, Failure> {
        let (text, dot) = self.name_and_dot(base);
        if self.parser.is_plain(&text) {
            let text = self.machine.text(without_no_value(text));
            self.finish(base, text);
            return Ok(Called::Done);
        }
        let parsed = self.parse_text(&text)?;
        let Some(program) = parsed.main() else {
            self.finish(base, Value::Str(Text::default()));
            return Ok(Called::Done);
        };
        self.check_depth()?;
        let outer = self.machine.push_scope(&parsed);
        let start = self.machine.out.len();
        self.machine
            .enter(program, dot, FrameKind::Tpl { text, start, outer });
        Ok(Called::Entered)
    }

    fn parse_text(&mut self, text: &Text) -> Result<ParsedText, Failure> {
        if let Some(parsed) = self.texts.get(text) {
            return Ok(parsed.clone());
        }
        let exceeded = |error: Exceeded| failed_call("tpl", error.into());
        let meter = &self.ctx.meter;
        meter.step(text.len() as u64).map_err(exceeded)?;
        meter
            .allocate(text.len().saturating_mul(PROGRAM_BYTES_PER_BYTE))
            .map_err(exceeded)?;
        let parsed = self.parser.parse("gotpl", text).map_err(|error| {
            let text = quote(text.as_bytes(), false);
            failed_call(
                "tpl",
                FuncError::new(format!("cannot parse template {text}: {error}")),
            )
        })?;
        self.text_bytes += text.len();
        if self.texts.len() >= MAX_TEXTS || self.text_bytes > MAX_TEXT_BYTES {
            self.texts.clear();
            self.text_bytes = text.len();
        }
        self.texts.insert(text.clone(), parsed.clone());
        Ok(parsed)
    }

    /// Ends the running template; false when it was the first one.
    pub(super) fn leave(&mut self) -> Result<bool, Failure> {
        let machine = &mut self.machine;
        let (start, strip) = match machine.leave() {
            None | Some(FrameKind::Root) => return Ok(false),
            Some(FrameKind::Template) => return Ok(true),
            Some(FrameKind::Include { start, .. }) => (start, false),
            Some(FrameKind::Tpl { start, outer, .. }) => {
                machine.scope = outer;
                (start, true)
            }
        };
        let text = Text::from(machine.out.get(start..).unwrap_or_default());
        machine.out.truncate(start);
        let text = if strip { without_no_value(text) } else { text };
        let value = machine.text(text);
        charge(&self.ctx, &value)?;
        self.machine.stack.push(value);
        self.machine.boxed = false;
        Ok(true)
    }

    pub(super) fn check_depth(&self) -> Result<(), Failure> {
        let limit = self.ctx.limits.template_depth;
        if self.machine.frames.len() > limit {
            return Err(format!("exceeded maximum template depth ({limit})").into());
        }
        Ok(())
    }
}

/// Charges what every function does with its arguments: it reads texts to their end, and walks over all other values
/// unless it is known not to. Returns whether one of them is not UTF-8.
fn charge_arguments(
    ctx: &Ctx<'_>,
    function: &Function,
    arguments: Args<'_>,
) -> Result<bool, Exceeded> {
    let mut is_raw = false;
    let mut bytes = 0;
    for value in arguments.all() {
        match value {
            Value::Str(text) => bytes += text.len(),
            Value::RawStr(text) => {
                is_raw = true;
                bytes += text.len();
            }
            Value::List(_) | Value::Map(_) | Value::Object(_) if !function.shallow => {
                ctx.meter.weigh(value)?;
            }
            _ => {}
        }
    }
    if !function.shallow {
        // Functions that join their arguments make no less than this.
        ctx.meter.check_value(bytes)?;
        ctx.meter.copy(bytes)?;
    }
    Ok(is_raw)
}

/// Charges the memory of a value that a function made. What others hold too was there before.
pub(super) fn charge(ctx: &Ctx<'_>, value: &Value) -> Result<(), Exceeded> {
    let size = match value {
        Value::Str(text) => text.len() + TEXT_BYTES,
        Value::Bytes(bytes) | Value::RawStr(bytes) if Rc::strong_count(bytes) == 1 => {
            bytes.len() + TEXT_BYTES
        }
        Value::List(list) if Rc::strong_count(list) == 1 => {
            list.len() * size_of::<Value>() + TEXT_BYTES
        }
        Value::Map(map) if Rc::strong_count(map) == 1 => map_bytes(map.own_len()),
        _ => return Ok(()),
    };
    ctx.meter.check_value(size)?;
    ctx.meter.allocate(size)
}

/// Whether Go's mark for a missing value is in a text, which may be as long as a chart's output.
pub(crate) fn has_no_value(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), NO_VALUE.as_bytes()).is_some()
}

impl Machine {
    /// A text of the output as a value.
    fn text(&self, text: Text) -> Value {
        if self.is_marked {
            raw::value(text.as_str().to_owned())
        } else {
            Value::Str(text)
        }
    }
}

/// Helm takes Go's mark for a missing value out of what it renders.
pub(crate) fn without_no_value(text: Text) -> Text {
    if has_no_value(&text) {
        Text::from(text.replace(NO_VALUE, ""))
    } else {
        text
    }
}
