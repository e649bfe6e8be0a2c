//! Calls of functions, and of templates as functions.

use portolan_yaml::Text;

use super::frame::FrameKind;
use super::member::failed_call;
use super::{Executor, Failure, Machine};
use crate::fmt::{quote, raw};
use crate::function::{Args, FuncError, Function, Special};
use crate::set::ParsedText;
use crate::value::Value;

/// What Go prints for no value, and what Helm takes out again.
pub(crate) const NO_VALUE: &str = "<no value>";

/// How many texts of `tpl` are kept parsed.
const MAX_TEXTS: usize = 10_000;

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
        let is_raw = arguments
            .all()
            .iter()
            .any(|value| matches!(value, Value::RawStr(_)));
        let mut value = (function.call)(&mut self.ctx, arguments)
            .map_err(|error| failed_call(function.name, error))?;
        if is_raw {
            value = raw::restore(value);
        }
        self.charge(&value)?;
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
        let parsed = self.parser.parse("gotpl", text).map_err(|error| {
            let text = quote(text.as_bytes(), false);
            failed_call(
                "tpl",
                FuncError::new(format!("cannot parse template {text}: {error}")),
            )
        })?;
        if self.texts.len() >= MAX_TEXTS {
            self.texts.clear();
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
        self.charge(&value)?;
        self.machine.stack.push(value);
        self.machine.boxed = false;
        Ok(true)
    }

    /// Counts what a function made against the limits.
    fn charge(&mut self, value: &Value) -> Result<(), Failure> {
        let size = match value {
            Value::Str(text) => text.len(),
            Value::List(list) => list.len() * size_of::<Value>(),
            Value::Bytes(bytes) | Value::RawStr(bytes) => bytes.len(),
            _ => return Ok(()),
        };
        let limits = self.ctx.limits;
        if size > limits.value_size {
            return Err(format!(
                "value exceeds the limit of {} bytes (value_size)",
                limits.value_size
            )
            .into());
        }
        self.machine.produced = self.machine.produced.saturating_add(size);
        if self.machine.produced > limits.produced_bytes {
            let limit = limits.produced_bytes;
            return Err(
                format!("values exceed the limit of {limit} bytes (produced_bytes)").into(),
            );
        }
        Ok(())
    }

    pub(super) fn check_depth(&self) -> Result<(), Failure> {
        let limit = self.ctx.limits.template_depth;
        if self.machine.frames.len() > limit {
            return Err(format!("exceeded maximum template depth ({limit})").into());
        }
        Ok(())
    }
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
