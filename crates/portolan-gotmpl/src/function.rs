//! Functions that templates call, with what Go's reflection knows about them.
//!
//! A [`Function`] declares its parameters once; the executor checks and converts arguments by that declaration, with
//! Go's error messages, so a function body can rely on its arguments' types ([`Args`]).

use std::borrow::Cow;
use std::rc::Rc;

use portolan_budget::{Budget, Exceeded};

use crate::fmt::raw;
use crate::host::Host;
use crate::limits::Limits;
use crate::meter::Meter;
use crate::object::Signature;
use crate::value::{List, Map, Value};

/// What a function body is.
pub type NativeFn = fn(&mut Ctx<'_>, Args<'_>) -> Result<Value, FuncError>;

/// A function as templates see it.
#[derive(Clone, Copy)]
pub struct Function {
    /// The name templates call it by.
    pub name: &'static str,
    /// What it takes.
    pub signature: Signature,
    /// What it does.
    pub call: NativeFn,
    /// Functions that the executor itself carries out.
    pub(crate) special: Option<Special>,
    /// Whether it looks no further than the items of its arguments, or charges the walk itself, and makes no new text.
    pub(crate) shallow: bool,
}

/// What only the executor can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    /// Evaluates arguments up to the first that is false.
    And,
    /// Evaluates arguments up to the first that is true.
    Or,
    /// Gets the text of its first argument too, for errors.
    Call,
    /// Tells a nil in the data from no value at all.
    Len,
    /// Executes a template and returns its output.
    Include,
    /// Executes a text as a template and returns its output.
    Tpl,
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    /// `interface {}`: anything, nil included.
    Any,
    /// `reflect.Value`: anything, and as the last argument of a pipeline also nil.
    Value,
    /// `string`
    Str,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `int64`
    Int64,
    /// `uint32`
    Uint32,
    /// `float64`
    Float,
    /// `[]byte`
    Bytes,
    /// `[]interface {}`
    List,
    /// `[]string`
    Strings,
    /// `map[string]interface {}`; a named map type passes as the plain map inside.
    Map,
    /// The Go type of host objects of that name, such as `time.Time`.
    Object(&'static str),
}

/// What a function body may use beside its arguments.
pub struct Ctx<'h> {
    /// The outside world: clock, randomness, cluster, names.
    pub host: &'h mut dyn Host,
    /// How large the parts of a template may be.
    pub limits: &'h Limits,
    /// What the template has used.
    pub(crate) meter: Meter,
}

/// The arguments of a call; they fit the function's signature.
#[derive(Clone, Copy)]
pub struct Args<'a>(&'a [Value]);

/// Why a function failed; the executor adds `error calling NAME: ` and the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FuncError {
    pub(crate) message: Cow<'static, str>,
    /// The chart's author wrote this message (`fail`, `required`): shown without the engine's words around it.
    pub(crate) authored: bool,
    /// The limit that was reached, when that is the reason.
    pub(crate) exceeded: Option<Exceeded>,
}

// === impl Ctx ===

impl<'h> Ctx<'h> {
    /// What functions use that are called with this budget.
    pub fn new(host: &'h mut dyn Host, limits: &'h Limits, budget: Budget) -> Self {
        Self {
            host,
            limits,
            meter: Meter::new(budget),
        }
    }

    /// Charges work that is about to be done; one step is about ten nanoseconds.
    pub fn step(&self, steps: u64) -> Result<(), FuncError> {
        Ok(self.meter.step(steps)?)
    }

    /// Charges memory that stays taken until the template ends.
    pub fn allocate(&self, bytes: usize) -> Result<(), FuncError> {
        Ok(self.meter.allocate(bytes)?)
    }

    /// Refuses a text that is about to be made and is larger than a value may be; charges the work of making it.
    pub fn check_text(&self, bytes: usize) -> Result<(), FuncError> {
        self.meter.check_value(bytes)?;
        Ok(self.meter.copy(bytes)?)
    }

    /// The same for a list of so many items.
    pub fn check_items(&self, items: usize) -> Result<(), FuncError> {
        self.check_text(items.saturating_mul(size_of::<Value>()))
    }

    /// Charges a walk over everything in a value, as often as it would be printed.
    pub fn weigh(&self, value: &Value) -> Result<(), FuncError> {
        Ok(self.meter.weigh(value)?)
    }
}

// === impl Function ===

impl Function {
    /// A function of fixed parameters.
    pub const fn new(name: &'static str, params: &'static [Param], call: NativeFn) -> Self {
        Self {
            name,
            signature: Signature::new(params),
            call,
            special: None,
            shallow: false,
        }
    }

    /// A function that takes any number of further arguments.
    pub const fn variadic(
        name: &'static str,
        params: &'static [Param],
        rest: Param,
        call: NativeFn,
    ) -> Self {
        Self {
            name,
            signature: Signature::variadic(params, rest),
            call,
            special: None,
            shallow: false,
        }
    }
}

impl Function {
    /// The same function, which looks no further than the items of its arguments and makes no new text: calling it needs
    /// no look at how large they are.
    pub(crate) const fn shallow(self) -> Self {
        Self {
            shallow: true,
            ..self
        }
    }

    /// A function that the executor carries out itself.
    pub(crate) const fn special(
        name: &'static str,
        signature: Signature,
        special: Special,
    ) -> Self {
        let call: NativeFn = |_, _| Err(FuncError::new("only the executor can call this"));
        Self {
            name,
            signature,
            call,
            special: Some(special),
            shallow: true,
        }
    }
}

// === impl Param ===

impl Param {
    /// The Go type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Value => "reflect.Value",
            Self::Str => "string",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Uint32 => "uint32",
            Self::Float => "float64",
            Self::Bytes => "[]uint8",
            Self::List => "[]interface {}",
            Self::Strings => "[]string",
            Self::Map => "map[string]interface {}",
            Self::Object(name) => name,
        }
    }

    /// Whether `nil` may be passed.
    pub(crate) fn can_be_nil(self) -> bool {
        match self {
            Self::Any | Self::Value | Self::Bytes | Self::List | Self::Strings | Self::Map => true,
            Self::Object(name) => name.starts_with('*'),
            _ => false,
        }
    }

    /// Whether every value passes.
    pub(crate) fn takes_anything(self) -> bool {
        matches!(self, Self::Any | Self::Value)
    }
}

// === impl FuncError ===

impl FuncError {
    /// An error with a message.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            message: message.into(),
            authored: false,
            exceeded: None,
        }
    }

    /// A message of the chart's author.
    pub(crate) fn authored(message: &str) -> Self {
        Self {
            message: message.to_owned().into(),
            authored: true,
            exceeded: None,
        }
    }
}

impl From<Exceeded> for FuncError {
    fn from(exceeded: Exceeded) -> Self {
        Self {
            message: exceeded.with_option().into(),
            authored: false,
            exceeded: Some(exceeded),
        }
    }
}

// === impl Args ===

impl<'a> Args<'a> {
    /// These values; they must fit the signature of the function that gets them.
    pub fn new(values: &'a [Value]) -> Self {
        Self(values)
    }

    /// All of them.
    pub fn all(self) -> &'a [Value] {
        self.0
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The argument at an index; nil beyond the last.
    pub fn get(self, index: usize) -> &'a Value {
        self.0.get(index).unwrap_or(&Value::Nil)
    }

    /// The arguments from an index on.
    pub fn rest(self, from: usize) -> &'a [Value] {
        self.0.get(from..).unwrap_or_default()
    }

    /// A string. One that is not UTF-8 has marks in place of the bad bytes, which become bytes again in the result.
    pub fn str(self, index: usize) -> Cow<'a, str> {
        match self.get(index) {
            Value::Str(text) => Cow::Borrowed(text.as_str()),
            Value::RawStr(bytes) => raw::mark(bytes),
            _ => Cow::Borrowed(""),
        }
    }

    /// A string of characters: what is not UTF-8 is U+FFFD, byte by byte, as in functions that walk over runes.
    pub fn characters(self, index: usize) -> Cow<'a, str> {
        match self.str(index) {
            Cow::Owned(marked) => Cow::Owned(raw::lossy(marked)),
            text @ Cow::Borrowed(_) => text,
        }
    }

    /// The bytes of a string or `[]byte`.
    pub fn bytes(self, index: usize) -> &'a [u8] {
        self.get(index).as_bytes().unwrap_or_default()
    }

    /// An integer of any width.
    pub fn int(self, index: usize) -> i64 {
        match self.get(index) {
            Value::Int(_, value) => *value,
            Value::Uint(_, value) => *value as i64,
            _ => 0,
        }
    }

    /// A float.
    pub fn float(self, index: usize) -> f64 {
        match self.get(index) {
            Value::Float(_, value) => *value,
            _ => 0.0,
        }
    }

    /// A bool.
    pub fn bool(self, index: usize) -> bool {
        matches!(self.get(index), Value::Bool(true))
    }

    /// A map; none for a nil map.
    pub fn map(self, index: usize) -> Option<&'a Rc<Map>> {
        self.get(index).as_map()
    }

    /// A list; none for a nil list.
    pub fn list(self, index: usize) -> Option<&'a Rc<List>> {
        self.get(index).as_list()
    }
}
