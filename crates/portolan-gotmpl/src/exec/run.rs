//! The loop over instructions.

use std::sync::Arc;

use super::call::{Called, NO_VALUE};
use super::check::check;
use super::frame::FrameKind;
use super::member::follow;
use super::{Executor, Failure, Machine, Slot};
use crate::fmt::raw;
use crate::program::{Constant, Op, Program, Span};
use crate::value::Value;

impl Executor<'_> {
    /// Runs until the first template ends.
    pub(super) fn run(&mut self) -> Result<(), Failure> {
        while let Some(frame) = self.machine.frames.last() {
            let program = Arc::clone(&frame.program);
            let next = frame.next;
            self.run_frame(&program, next)?;
            if self.machine.frames.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Runs a template until it ends or another one must run first.
    fn run_frame(&mut self, program: &Program, mut next: usize) -> Result<(), Failure> {
        loop {
            let op = program.code.get(next).copied().unwrap_or(Op::Return);
            let at = next;
            next += 1;
            self.count_step(at)?;
            match op {
                Op::Text { start, end } => {
                    let text = program.source.text.get(start as usize..end as usize);
                    self.machine.out.push_str(text.unwrap_or_default());
                    self.check_output(at)?;
                }
                Op::Print => {
                    self.print().inspect_err(|_| self.machine.remember(at))?;
                    self.check_output(at)?;
                }
                Op::Drop => {
                    self.machine.stack.pop();
                }
                Op::Nip => {
                    let below = self.machine.stack.len().wrapping_sub(2);
                    if below < self.machine.stack.len() {
                        self.machine.stack.swap_remove(below);
                    }
                }
                Op::At => self.machine.remember(at),
                Op::Dot => {
                    self.machine.remember(at);
                    let dot = self.machine.dot.clone();
                    self.machine.push(dot);
                }
                Op::Variable(slot) => {
                    self.machine.remember(at);
                    let value = self.machine.variable(slot).clone();
                    self.machine.push(value);
                }
                Op::Constant(index) => {
                    self.machine.remember(at);
                    let value = program.constants.get(index as usize).map(Constant::value);
                    self.machine.push(Slot {
                        value: value.unwrap_or_default(),
                        boxed: false,
                    });
                }
                Op::Nil => {
                    self.machine.remember(at);
                    self.machine.push(Slot::default());
                }
                Op::DotPath(path) => {
                    self.machine.remember(at);
                    let slot = follow(
                        &mut self.ctx,
                        &self.options,
                        &self.machine.dot,
                        program.path(path),
                    )?;
                    self.machine.push(slot);
                }
                Op::VariablePath { slot, path } => {
                    self.machine.remember(at);
                    let from = self.machine.variable(slot);
                    let slot = follow(&mut self.ctx, &self.options, from, program.path(path))?;
                    self.machine.push(slot);
                }
                Op::Path(path) => {
                    let from = self.machine.pop();
                    let slot = follow(&mut self.ctx, &self.options, &from, program.path(path))?;
                    self.machine.push(slot);
                }
                Op::Unbox => self.machine.boxed = false,
                Op::Check(param) => {
                    let boxed = self.machine.boxed;
                    if let (Some(value), Some(param)) = (
                        self.machine.stack.last_mut(),
                        program.params.get(param as usize),
                    ) {
                        check(value, boxed, *param)?;
                    }
                }
                Op::CheckPiped { param, args } => {
                    let below = self.machine.stack.len().wrapping_sub(1 + args as usize);
                    if let (Some(value), Some(param)) = (
                        self.machine.stack.get_mut(below),
                        program.params.get(param as usize),
                    ) {
                        check(value, false, *param)?;
                    }
                }
                Op::Call {
                    function,
                    args,
                    piped,
                } => {
                    let Some(function) = program.functions.get(function as usize) else {
                        continue;
                    };
                    match self.call(function, args as usize, piped) {
                        Ok(Called::Done) => {}
                        Ok(Called::Entered) => {
                            self.machine.suspend(next, at);
                            return Ok(());
                        }
                        Err(failure) => {
                            self.machine.remember(at);
                            return Err(failure);
                        }
                    }
                }
                Op::Method { name, args, piped } => {
                    let name = program.name(name);
                    if self.find_method(name, args as usize, piped)? {
                        next += 1;
                    }
                }
                Op::MethodEnd(to) | Op::Jump(to) => next = to as usize,
                Op::MethodArg { name, index } => {
                    self.method_arg(program.name(name), index as usize)?;
                }
                Op::MethodLiteral {
                    name,
                    index,
                    literal,
                } => {
                    self.machine.remember(at);
                    if let Some(literal) = program.literals.get(literal as usize) {
                        self.method_literal(program.name(name), index as usize, literal)?;
                    }
                }
                Op::MethodNil { name, index } => {
                    self.machine.remember(at);
                    self.method_nil(program.name(name), index as usize)?;
                }
                Op::CallMethod { name, args, piped } => {
                    let name = program.name(name);
                    self.call_method(name, args as usize, piped)
                        .inspect_err(|_| self.machine.remember(at))?;
                }
                Op::SetVariable(slot) => {
                    let value = self.machine.stack.last().cloned().unwrap_or_default();
                    self.machine.set_variable(
                        slot,
                        Slot {
                            value,
                            boxed: false,
                        },
                    );
                }
                Op::JumpIfFalse(to) => {
                    if !self.machine.pop().value.truth() {
                        next = to as usize;
                    }
                }
                Op::AndElse(to) => {
                    if self.machine.stack.last().is_some_and(Value::truth) {
                        self.machine.stack.pop();
                    } else {
                        next = to as usize;
                    }
                }
                Op::OrElse(to) => {
                    if self.machine.stack.last().is_some_and(Value::truth) {
                        next = to as usize;
                    } else {
                        self.machine.stack.pop();
                    }
                }
                Op::EnterWith(to) => {
                    let value = self.machine.pop().value;
                    if value.truth() {
                        let dot = Slot {
                            value,
                            boxed: false,
                        };
                        let outer = std::mem::replace(&mut self.machine.dot, dot);
                        self.machine.dots.push(outer);
                    } else {
                        next = to as usize;
                    }
                }
                Op::LeaveWith => {
                    if let Some(dot) = self.machine.dots.pop() {
                        self.machine.dot = dot;
                    }
                }
                Op::RangeStart { otherwise, pair } => {
                    let value = self.machine.pop().value;
                    let meter = &self.ctx.meter;
                    if !self.machine.start_loop(value, &self.options, pair, meter)? {
                        next = otherwise as usize;
                    }
                }
                Op::RangeNext { exit, targets } => {
                    let targets = program
                        .targets
                        .get(targets as usize)
                        .copied()
                        .unwrap_or_default();
                    if !self.machine.next_round(targets, &self.ctx.meter) {
                        next = exit as usize;
                    }
                }
                Op::RangeBreak(to) => {
                    self.machine.end_loop(&self.ctx.meter);
                    next = to as usize;
                }
                Op::FindTemplate(name) => {
                    self.machine.remember(at);
                    self.ctx.meter.step(self.machine.reach())?;
                    let name = program.name(name);
                    if self.machine.find(self.set, name).is_none() {
                        return Err(undefined(name));
                    }
                }
                Op::Template(name) => {
                    self.enter_template(program.name(name), at)?;
                    self.machine.suspend(next, at);
                    return Ok(());
                }
                Op::Fail(message) => {
                    self.machine.remember(at);
                    return Err(program.message(message).into());
                }
                Op::FailHere(message) => return Err(program.message(message).into()),
                Op::Return => {
                    self.leave()?;
                    return Ok(());
                }
            }
        }
    }

    fn print(&mut self) -> Result<(), Failure> {
        let value = self.machine.stack.pop();
        if let Some(nested @ (Value::List(_) | Value::Map(_) | Value::Object(_))) = &value {
            self.ctx.meter.weigh(nested)?;
        }
        match value {
            Some(Value::Str(text)) => self.machine.out.push_str(&text),
            None | Some(Value::Nil) => self.machine.out.push_str(NO_VALUE),
            Some(Value::Object(object)) => object.print(&mut self.machine.out),
            Some(value) => {
                let start = self.machine.out.len();
                crate::fmt::write_value(&mut self.machine.out, &value);
                let written = self.machine.out.get(start..).unwrap_or_default();
                self.machine.is_marked |= raw::is_marked(written);
            }
        }
        Ok(())
    }

    fn enter_template(&mut self, name: &str, at: usize) -> Result<(), Failure> {
        self.ctx.meter.step(self.machine.reach())?;
        let Some(program) = self.machine.find(self.set, name).cloned() else {
            self.machine.remember(at);
            return Err(undefined(name));
        };
        self.check_depth()
            .inspect_err(|_| self.machine.remember(at))?;
        let dot = self.machine.pop().value;
        self.machine.enter(&program, dot, FrameKind::Template);
        Ok(())
    }

    fn count_step(&mut self, at: usize) -> Result<(), Failure> {
        match self.ctx.meter.step(1) {
            Ok(()) => Ok(()),
            Err(exceeded) => {
                self.machine.remember_near(at);
                Err(exceeded.into())
            }
        }
    }

    fn check_output(&mut self, at: usize) -> Result<(), Failure> {
        match self.ctx.meter.check_output(self.machine.out.len()) {
            Ok(()) => Ok(()),
            Err(exceeded) => {
                self.machine.remember_near(at);
                Err(exceeded.into())
            }
        }
    }
}

fn undefined(name: &str) -> Failure {
    let name = crate::fmt::quote(name.as_bytes(), false);
    format!("template {name} not defined").into()
}

impl Machine {
    fn push(&mut self, slot: Slot) {
        self.stack.push(slot.value);
        self.boxed = slot.boxed;
    }

    fn pop(&mut self) -> Slot {
        Slot {
            value: self.stack.pop().unwrap_or_default(),
            boxed: self.boxed,
        }
    }

    /// The place that errors name from now on.
    fn remember(&mut self, at: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at = at;
        }
    }

    /// The same for an instruction that stands for no expression, such as the end of a loop: the last one before it that
    /// does.
    fn remember_near(&mut self, at: usize) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let spans = frame.program.spans.get(..=at).unwrap_or_default();
        let known = spans.iter().rposition(|span| *span != Span::default());
        frame.at = known.unwrap_or(at);
    }

    /// Notes in the calling template, now second, where to go on and what called.
    fn suspend(&mut self, next: usize, call: usize) {
        let caller = self.frames.len().wrapping_sub(2);
        if let Some(frame) = self.frames.get_mut(caller) {
            frame.next = next;
            frame.call = call;
        }
    }

    fn variable(&self, slot: u32) -> &Slot {
        let base = self.frames.last().map_or(0, |frame| frame.variables);
        self.variables
            .get(base + slot as usize)
            .unwrap_or(&self.nothing)
    }
}
