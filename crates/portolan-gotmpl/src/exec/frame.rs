//! The stack of running templates, and the error that lists them.

use std::rc::Rc;
use std::sync::Arc;

use portolan_yaml::Text;

use super::{Failure, Machine, Slot};
use crate::error::{Cause, ExecError, Place};
use crate::program::{Op, Program};
use crate::set::{ParsedText, TemplateSet};
use crate::value::Value;

/// How many running templates an error lists.
const MAX_STACK: usize = 100;

/// Looking at so many frames costs about as much as one instruction.
const FRAMES_PER_STEP: u64 = 16;

/// How much of a text that `tpl` evaluates an error shows: nested texts can be long, and each is shown.
const MAX_SHOWN_TEXT: usize = 32 << 10;

/// A running template. What it saves belongs to its caller.
pub(super) struct Frame {
    pub(super) program: Arc<Program>,
    /// The next instruction, while another template runs.
    pub(super) next: usize,
    /// The instruction whose place an error names.
    pub(super) at: usize,
    /// The instruction that called the template above this one.
    pub(super) call: usize,
    pub(super) kind: FrameKind,
    pub(super) variables: usize,
    pub(super) dots: usize,
    pub(super) loops: usize,
    pub(super) outer_dot: Slot,
}

/// Who called a template, and what its output is for.
pub(super) enum FrameKind {
    /// The caller of the executor.
    Root,
    /// `{{template}}`: output goes on.
    Template,
    /// `include`: output from this offset on is the result.
    Include { name: Text, start: usize },
    /// `tpl`: the same, and the definitions of the text are seen only inside.
    Tpl {
        text: Text,
        start: usize,
        outer: Option<Rc<Scope>>,
    },
}

/// What a `tpl` text defines, over what was defined around it.
pub(super) struct Scope {
    text: ParsedText,
    /// How many templates a look through this and all outer texts passes.
    reach: u64,
    outer: Option<Rc<Self>>,
}

impl Machine {
    /// Makes a template the running one.
    pub(super) fn enter(&mut self, program: &Arc<Program>, dot: Value, kind: FrameKind) {
        let dot = Slot {
            value: dot,
            boxed: false,
        };
        let variables = self.variables.len();
        self.variables.push(dot.clone());
        self.variables
            .resize_with(variables + program.slots, Slot::default);
        self.frames.push(Frame {
            program: Arc::clone(program),
            next: 0,
            at: 0,
            call: 0,
            kind,
            variables,
            dots: self.dots.len(),
            loops: self.loops.len(),
            outer_dot: std::mem::replace(&mut self.dot, dot),
        });
    }

    /// Forgets the template before, but for the memory it used.
    pub(super) fn reset(&mut self) {
        self.stack.clear();
        self.variables.clear();
        self.dots.clear();
        self.loops.clear();
        self.frames.clear();
        self.out.clear();
        *self = Self {
            stack: std::mem::take(&mut self.stack),
            variables: std::mem::take(&mut self.variables),
            dots: std::mem::take(&mut self.dots),
            loops: std::mem::take(&mut self.loops),
            frames: std::mem::take(&mut self.frames),
            out: std::mem::take(&mut self.out),
            ..Self::default()
        };
    }

    /// How often a name is being included right now.
    pub(super) fn inclusions(&self, name: &Text) -> usize {
        let frames = self.frames.iter();
        let including = frames.filter(
            |frame| matches!(&frame.kind, FrameKind::Include { name: own, .. } if own == name),
        );
        including.count()
    }

    pub(super) fn start(&mut self, program: &Arc<Program>, dot: Value) {
        self.enter(program, dot, FrameKind::Root);
    }

    /// Ends the running template and gives its caller's state back.
    pub(super) fn leave(&mut self) -> Option<FrameKind> {
        let frame = self.frames.pop()?;
        self.variables.truncate(frame.variables);
        self.dots.truncate(frame.dots);
        self.loops.truncate(frame.loops);
        self.dot = frame.outer_dot;
        Some(frame.kind)
    }

    /// Lets what a text defines be seen; returns what was seen before.
    pub(super) fn push_scope(&mut self, text: &ParsedText) -> Option<Rc<Scope>> {
        let outer = self.scope.take();
        let reach = outer.as_ref().map_or(0, |outer| outer.reach);
        self.scope = Some(Rc::new(Scope {
            text: text.clone(),
            reach: reach + text.names().count() as u64,
            outer: outer.clone(),
        }));
        outer
    }

    /// How many templates of `tpl` texts a look for a template passes.
    pub(super) fn reach(&self) -> u64 {
        self.scope.as_ref().map_or(0, |scope| scope.reach)
    }

    /// How many steps it takes to count the inclusions of a name.
    pub(super) fn counting_steps(&self) -> u64 {
        self.frames.len() as u64 / FRAMES_PER_STEP
    }

    /// A template by name: the innermost `tpl` text that defines it, else the set.
    pub(super) fn find<'a>(&'a self, set: &'a TemplateSet, name: &str) -> Option<&'a Arc<Program>> {
        let mut scope = self.scope.as_deref();
        let mut blank = None;
        while let Some(inner) = scope {
            match inner.text.find(name) {
                Some(program) if !program.blank => return Some(program),
                found => blank = blank.or(found),
            }
            scope = inner.outer.as_deref();
        }
        set.find(name).or(blank)
    }

    /// The error of a failure: the innermost place first, then what included it.
    pub(super) fn error(&mut self, failure: Failure) -> ExecError {
        let mut cause = match failure {
            Failure::Message(message) => Cause::Message(message),
            Failure::Authored { prefix, message } => Cause::Authored { prefix, message },
            Failure::Exceeded { prefix, exceeded } => Cause::Exceeded { prefix, exceeded },
        };
        if let Some(innermost) = self.frames.last_mut() {
            innermost.call = innermost.at;
        }
        let stack: Vec<Place> = self
            .frames
            .iter()
            .rev()
            .take(MAX_STACK)
            .map(Frame::place)
            .collect();
        // `template` calls share the error of the innermost one; `include` and `tpl` wrap it in their own words.
        let mut inner_place = None;
        while let Some(frame) = self.frames.pop() {
            let place = inner_place.take().unwrap_or_else(|| frame.place());
            let prefix = match &frame.kind {
                FrameKind::Root => {
                    return ExecError {
                        place: Some(place),
                        stack,
                        cause,
                    };
                }
                FrameKind::Template => {
                    inner_place = Some(place);
                    continue;
                }
                FrameKind::Include { .. } => "error calling include: ".to_owned(),
                FrameKind::Tpl { text, .. } => {
                    let text = crate::fmt::quote(shown(text), false);
                    format!("error calling tpl: error during tpl function execution for {text}: ")
                }
            };
            let error = ExecError {
                place: Some(place),
                stack: Vec::new(),
                cause,
            };
            cause = Cause::Nested {
                prefix,
                error: Box::new(error),
            };
        }
        ExecError {
            place: None,
            stack,
            cause,
        }
    }
}

/// The part of a text that an error shows, up to the end of a character.
fn shown(text: &str) -> &[u8] {
    let end = text.floor_char_boundary(MAX_SHOWN_TEXT);
    &text.as_bytes()[..end]
}

impl Frame {
    /// What this template was doing when it called the one above, or failed.
    fn place(&self) -> Place {
        let source = &self.program.source;
        let span = self
            .program
            .spans
            .get(self.call)
            .copied()
            .unwrap_or_default();
        let (line, column) = source.position(span.at());
        let expression = source.render(span);
        let expression = match self.program.code.get(self.call) {
            Some(Op::Template(name) | Op::FindTemplate(name)) => {
                let name = crate::fmt::quote(self.program.name(*name).as_bytes(), false);
                let space = if expression.is_empty() { "" } else { " " };
                format!("{{{{template {name}{space}{expression}}}}}")
            }
            _ => expression,
        };
        Place {
            file: source.name.clone(),
            line,
            column,
            template: self.program.name.as_str().to_owned(),
            expression,
        }
    }
}
