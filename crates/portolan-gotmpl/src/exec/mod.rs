//! Executes programs over values.
//!
//! A stack machine without recursion: templates that call, include or evaluate other templates push a frame, so no
//! template can exhaust the thread's stack. All output goes into one buffer; the result of `include` is cut from the
//! end of that buffer.

mod call;
mod check;
mod frame;
mod member;
mod range;
mod run;

use std::collections::HashMap;

use portolan_budget::{Budget, Exceeded};
use portolan_yaml::Text;

use crate::error::ExecError;
use crate::fmt::raw;
use crate::function::Ctx;
use crate::host::Host;
use crate::limits::Limits;
use crate::meter::Meter;
use crate::options::Options;
use crate::set::{ParsedText, TemplateSet, TextParser};
use crate::value::Value;

pub(crate) use call::{NO_VALUE, has_no_value};
use frame::{Frame, Scope};
use range::Loop;

/// Runs the templates of a set, one after the other, over shared values.
pub struct Executor<'e> {
    set: &'e TemplateSet,
    parser: &'e TextParser,
    options: Options,
    ctx: Ctx<'e>,
    /// Texts that `tpl` has seen.
    texts: HashMap<Text, ParsedText>,
    /// How long they are together.
    text_bytes: usize,
    machine: Machine,
}

/// The state of a running template.
#[derive(Default)]
struct Machine {
    stack: Vec<Value>,
    /// Whether the top of the stack was declared as `interface {}`: an element of a map or list.
    boxed: bool,
    variables: Vec<Slot>,
    dot: Slot,
    /// What a variable holds that was never set.
    nothing: Slot,
    /// Dots to give back.
    dots: Vec<Slot>,
    loops: Vec<Loop>,
    frames: Vec<Frame>,
    /// What `tpl` defined, seen from here.
    scope: Option<std::rc::Rc<Scope>>,
    out: String,
    /// Whether bytes that are not UTF-8 stand in the output, as [`raw`] has them.
    is_marked: bool,
}

/// A value and whether it was declared as `interface {}`, which shows in errors and decides what nil means.
#[derive(Clone, Default)]
struct Slot {
    value: Value,
    boxed: bool,
}

/// Why a template stops; the place is what the machine remembers.
enum Failure {
    Message(String),
    Authored { prefix: String, message: String },
    Exceeded { prefix: String, exceeded: Exceeded },
}

impl<'e> Executor<'e> {
    /// An executor for a set; `parser` reads the texts that templates evaluate.
    pub fn new(
        set: &'e TemplateSet,
        parser: &'e TextParser,
        options: Options,
        limits: &'e Limits,
        host: &'e mut dyn Host,
    ) -> Self {
        Self {
            set,
            parser,
            options,
            ctx: Ctx::new(host, limits, Budget::default()),
            texts: HashMap::new(),
            text_bytes: 0,
            machine: Machine::default(),
        }
    }

    /// Charges this budget in place of one of the default limits that nobody can stop.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.ctx.meter = Meter::new(budget);
        self
    }

    /// Executes a template over a value and returns its output.
    pub fn execute(&mut self, name: &str, dot: Value) -> Result<String, Box<ExecError>> {
        let Some(program) = self.set.find(name) else {
            let name = crate::fmt::quote(name.as_bytes(), false);
            let message =
                format!("template: no template {name} associated with template \"gotpl\"");
            return Err(Box::new(ExecError::message(message)));
        };
        self.machine.reset();
        self.ctx.meter.reset();
        self.machine.start(program, dot);
        match self.run() {
            Ok(()) => {
                // The buffer stays for the next template.
                let out = self.machine.out.clone();
                Ok(if self.machine.is_marked {
                    raw::lossy(out)
                } else {
                    out
                })
            }
            Err(failure) => Err(Box::new(self.machine.error(failure))),
        }
    }
}

impl From<Exceeded> for Failure {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded {
            prefix: String::new(),
            exceeded,
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}
