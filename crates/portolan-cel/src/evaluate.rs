//! Walks an expression and counts the steps.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, MapExpr, SelectExpr,
};
use kube_cel::cel::objects::{Key, KeyRef, Map, OptionalValue};
use kube_cel::cel::{IdedExpr, Value};
use regex::Regex;

use crate::expression::Expression;
use crate::failure::Failure;
use crate::function;
use crate::meter::Meter;

type Answer = Result<Value, Failure>;

/// Functions beside those of CEL: gives `None` for a name that it does not know.
type Function<'f> = dyn Fn(&str, &[Value]) -> Option<Answer> + 'f;

/// What an expression can name.
#[derive(Default)]
pub struct EvaluationScope<'a> {
    variables: Vec<(&'a str, Value)>,
    function: Option<&'a Function<'a>>,
}

impl<'a> EvaluationScope<'a> {
    /// These variables.
    pub fn of(variables: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            function: None,
        }
    }

    /// Adds functions beside those of CEL: gives `None` for a name that it does not know.
    #[must_use]
    pub fn with_function(mut self, function: &'a Function<'a>) -> Self {
        self.function = Some(function);
        self
    }
}

/// An optional value that has none.
pub fn none() -> Value {
    optional(None)
}

/// Evaluates an expression.
///
/// # Errors
/// When it has no value: a key is missing, types do not fit, or it needs more than it may use.
pub fn evaluate(
    expression: &Expression,
    scope: &EvaluationScope<'_>,
    meter: &mut Meter<'_>,
) -> Answer {
    let variables = scope.variables.iter();
    let mut run = Run {
        meter,
        function: scope.function,
        scope: variables
            .map(|(name, value)| (*name, Ok(value.clone())))
            .collect(),
        patterns: HashMap::new(),
    };
    run.value(expression.tree())
}

/// One evaluation under way.
struct Run<'e, 'm, 'b> {
    meter: &'m mut Meter<'b>,
    function: Option<&'e Function<'e>>,
    /// Variables, the innermost last. What a loop gathers may have no value yet and get one from a later item.
    scope: Vec<(&'e str, Answer)>,
    patterns: HashMap<String, Option<Regex>>,
}

impl<'e> Run<'e, '_, '_> {
    fn value(&mut self, expression: &'e IdedExpr) -> Answer {
        self.meter.step(1)?;
        match &expression.expr {
            Expr::Literal(literal) => Value::try_from(literal.to_val().as_ref())
                .map_err(|error| function::explained(&error, "literal")),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Call(call) => self.call(call),
            Expr::Struct(_) | Expr::Unspecified => Err(Failure::Unsupported(
                "messages cannot be made here".to_owned(),
            )),
        }
    }

    fn truth(&mut self, expression: &'e IdedExpr) -> Result<bool, Failure> {
        match self.value(expression)? {
            Value::Bool(truth) => Ok(truth),
            _ => Err(Failure::types()),
        }
    }

    fn variable(&self, name: &str) -> Answer {
        let found = self.scope.iter().rev().find(|(known, _)| *known == name);
        match found {
            Some((_, value)) => value.clone(),
            None => Err(Failure::Unsupported(format!("`{name}` is not known here"))),
        }
    }

    fn select(&mut self, select: &'e SelectExpr) -> Answer {
        let (value, is_optional) = match unwrapped(self.value(&select.operand)?) {
            Unwrapped::Nothing if select.test => return Ok(Value::Bool(false)),
            Unwrapped::Nothing => return Ok(optional(None)),
            Unwrapped::Optional(value) => (value, true),
            Unwrapped::Plain(value) => (value, false),
        };
        let Value::Map(map) = value else {
            return Err(Failure::types());
        };
        let found = map.get(&KeyRef::String(&select.field)).cloned();
        match found {
            found if select.test => Ok(Value::Bool(found.is_some())),
            found if is_optional => Ok(optional(found)),
            Some(found) => Ok(found),
            None => Err(Failure::Undefined(format!(
                "there is no key `{}`",
                select.field
            ))),
        }
    }

    fn list(&mut self, list: &'e ListExpr) -> Answer {
        let mut items = Vec::new();
        for (index, element) in list.elements.iter().enumerate() {
            let value = self.value(element)?;
            if list.optional_indices.contains(&index) {
                items.extend(present(value));
            } else {
                items.push(value);
            }
        }
        Ok(Value::List(Arc::new(items)))
    }

    fn map(&mut self, map: &'e MapExpr) -> Answer {
        let mut entries = HashMap::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err(Failure::types());
            };
            let key: Key = self
                .value(&entry.key)?
                .try_into()
                .map_err(|_| Failure::types())?;
            let value = self.value(&entry.value)?;
            let value = if entry.optional {
                present(value)
            } else {
                Some(value)
            };
            entries.extend(value.map(|value| (key, value)));
        }
        let map = Arc::new(entries);
        Ok(Value::Map(Map { map }))
    }

    /// `all`, `exists`, `exists_one`, `map` and `filter`: the parser has made loops of them.
    fn comprehension(&mut self, comprehension: &'e ComprehensionExpr) -> Answer {
        let range = self.value(&comprehension.iter_range)?;
        let items = self.items(&range)?;
        let start = self.value(&comprehension.accu_init);
        let outer = self.scope.len();
        self.scope.push((&comprehension.accu_var, start));
        self.scope.push((&comprehension.iter_var, Ok(Value::Null)));
        let result = self.repeat(comprehension, &items);
        self.scope.truncate(outer);
        result
    }

    fn repeat(&mut self, comprehension: &'e ComprehensionExpr, items: &[Value]) -> Answer {
        let place = self.scope.len();
        for item in items {
            if !self.truth(&comprehension.loop_cond)? {
                break;
            }
            self.assign(place - 1, Ok(item.clone()));
            match self.value(&comprehension.loop_step) {
                Err(Failure::Exceeded(exceeded)) => return Err(exceeded.into()),
                // A term without a value does not end `all` or `exists`: a later item may decide.
                next => self.assign(place - 2, next),
            }
        }
        self.value(&comprehension.result)
    }

    fn assign(&mut self, place: usize, value: Answer) {
        if let Some((_, held)) = self.scope.get_mut(place) {
            *held = value;
        }
    }

    /// What a loop goes over: the items of a list, the keys of a map.
    fn items(&mut self, range: &Value) -> Result<Arc<Vec<Value>>, Failure> {
        match range {
            Value::List(list) => Ok(Arc::clone(list)),
            Value::Map(map) => {
                self.meter.items(map.map.len())?;
                let mut keys: Vec<&Key> = map.map.keys().collect();
                keys.sort();
                Ok(Arc::new(keys.into_iter().map(Value::from).collect()))
            }
            _ => Err(Failure::types()),
        }
    }

    fn call(&mut self, call: &'e CallExpr) -> Answer {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (op::LOGICAL_AND, [left, right]) => self.logic(left, right, false),
            (op::LOGICAL_OR, [left, right]) => self.logic(left, right, true),
            (op::CONDITIONAL, [condition, yes, no]) => {
                let chosen = if self.truth(condition)? { yes } else { no };
                self.value(chosen)
            }
            (op::LOGICAL_NOT, [term]) => Ok(Value::Bool(!self.truth(term)?)),
            (op::NOT_STRICTLY_FALSE, [term]) => match self.truth(term) {
                Err(Failure::Exceeded(exceeded)) => Err(exceeded.into()),
                truth => Ok(Value::Bool(truth.unwrap_or(true))),
            },
            (op::ADD, [left, right]) => self.add(left, right),
            (op::OPT_SELECT | op::OPT_INDEX, [value, key]) => {
                let (value, key) = (self.value(value)?, self.value(key)?);
                index(value, &key, Index::Optional)
            }
            (op::INDEX, [value, key]) => {
                let (value, key) = (self.value(value)?, self.value(key)?);
                index(value, &key, Index::Plain)
            }
            (op::NEGATE, [term]) => match self.value(term)? {
                Value::Int(number) => number
                    .checked_neg()
                    .map(Value::Int)
                    .ok_or_else(Failure::types),
                Value::Float(number) => Ok(Value::Float(-number)),
                _ => Err(Failure::types()),
            },
            (name, [left, right]) if is_binary(name) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.binary(name, left, right)
            }
            _ => self.function(call),
        }
    }

    /// `&&` and `||`: what one side decides alone holds even when the other has no value.
    fn logic(&mut self, left: &'e IdedExpr, right: &'e IdedExpr, decides: bool) -> Answer {
        let left = match self.truth(left) {
            Ok(truth) if truth == decides => return Ok(Value::Bool(decides)),
            Err(Failure::Exceeded(exceeded)) => return Err(exceeded.into()),
            left => left,
        };
        match (left, self.truth(right)) {
            (Err(_), Ok(truth)) if truth == decides => Ok(Value::Bool(decides)),
            (Err(failure), Ok(_)) | (_, Err(failure)) => Err(failure),
            (Ok(_), Ok(truth)) => Ok(Value::Bool(truth)),
        }
    }

    /// Adds two values; a list that a loop gathers is extended in place, so that `map` does not copy it for each item.
    fn add(&mut self, left: &'e IdedExpr, right: &'e IdedExpr) -> Answer {
        if let Expr::Ident(name) = &left.expr
            && name == "@result"
        {
            let right = self.value(right)?;
            let held = self.scope.iter_mut().rev().find(|(known, _)| known == name);
            let gathered = held.map_or(Ok(Value::Null), |(_, value)| {
                std::mem::replace(value, Ok(Value::Null))
            });
            return (gathered? + right).map_err(|_| Failure::types());
        }
        let (left, right) = (self.value(left)?, self.value(right)?);
        match (&left, &right) {
            (Value::String(one), Value::String(other)) => {
                self.meter.bytes(one.len() + other.len())?;
            }
            (Value::List(one), Value::List(other)) => self.meter.items(one.len() + other.len())?,
            _ => {}
        }
        (left + right).map_err(|_| Failure::types())
    }

    fn binary(&mut self, name: &str, left: Value, right: Value) -> Answer {
        let whole = matches!(name, op::EQUALS | op::NOT_EQUALS | op::IN);
        // A key of a map is found without a look at the others.
        if !(name == op::IN && matches!(right, Value::Map(_))) && whole {
            self.meter.value(&left)?;
            self.meter.value(&right)?;
        }
        let ordered = |left: &Value, right: &Value| left.partial_cmp(right).ok_or(Failure::types());
        let truth = match name {
            op::EQUALS => left == right,
            op::NOT_EQUALS => left != right,
            op::LESS => ordered(&left, &right)?.is_lt(),
            op::LESS_EQUALS => ordered(&left, &right)?.is_le(),
            op::GREATER => ordered(&left, &right)?.is_gt(),
            op::GREATER_EQUALS => ordered(&left, &right)?.is_ge(),
            op::IN => contains(&right, &left)?,
            op::SUBSTRACT => return (left - right).map_err(|_| Failure::types()),
            op::MULTIPLY => return (left * right).map_err(|_| Failure::types()),
            op::DIVIDE => return (left / right).map_err(|_| Failure::types()),
            _ => return (left % right).map_err(|_| Failure::types()),
        };
        Ok(Value::Bool(truth))
    }

    fn function(&mut self, call: &'e CallExpr) -> Answer {
        let called = self.named(call);
        let mut arguments = Vec::new();
        for argument in called.target.into_iter().chain(&call.args) {
            arguments.push(self.value(argument)?);
        }
        if let Some(answer) = self.own_function(&called.name, &arguments) {
            return answer;
        }
        let given = self.function.filter(|_| called.target.is_none());
        if let Some(answer) = given.and_then(|function| function(&called.name, &arguments)) {
            let answer = answer?;
            self.meter.value(&answer)?;
            return Ok(answer);
        }
        let name = &called.name;
        let Some(function) = function::named(name, arguments.len()) else {
            return Err(Failure::Unsupported(format!("`{name}` is not known here")));
        };
        function.charge(&arguments, self.meter)?;
        let target = called.target.map(|_| arguments.remove(0));
        let made = function::call(name, target, arguments)?;
        // What was made is held; parts of the arguments that it shares were copied.
        self.meter.value(&made)?;
        Ok(made)
    }

    /// Which function is meant: `lists.range(3)` is one of a namespace, `names.size()` one of a value.
    fn named(&self, call: &'e CallExpr) -> Called<'e> {
        let name = call.func_name.clone();
        let Some(target) = call.target.as_deref() else {
            return Called { name, target: None };
        };
        if let Expr::Ident(prefix) = &target.expr
            && !self.scope.iter().any(|(known, _)| known == prefix)
        {
            let name = format!("{prefix}.{name}");
            return Called { name, target: None };
        }
        let target = Some(target);
        Called { name, target }
    }

    /// The functions that are done here: the library's count bytes for characters, or compile a pattern for each call.
    fn own_function(&mut self, name: &str, arguments: &[Value]) -> Option<Answer> {
        let answer = match (name, arguments) {
            ("dyn", [value]) => Ok(value.clone()),
            ("size", [value]) => self.size(value),
            ("matches", [Value::String(text), Value::String(pattern)]) => self
                .pattern(pattern, text)
                .map(|pattern| Value::Bool(pattern.is_match(text))),
            ("find", [Value::String(text), Value::String(pattern)]) => {
                self.pattern(pattern, text).map(|pattern| {
                    let found = pattern.find(text).map_or("", |found| found.as_str());
                    crate::text(found)
                })
            }
            ("findAll", [Value::String(text), Value::String(pattern), rest @ ..]) => {
                let most = match rest {
                    [] => usize::MAX,
                    [Value::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
                    _ => return None,
                };
                self.pattern(pattern, text).map(|pattern| {
                    let found = pattern.find_iter(text).take(most);
                    let found = found.map(|found| crate::text(found.as_str()));
                    Value::List(Arc::new(found.collect()))
                })
            }
            _ => return None,
        };
        Some(answer)
    }

    fn size(&mut self, value: &Value) -> Answer {
        let size = match value {
            Value::List(list) => list.len(),
            Value::Map(map) => map.map.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::String(text) => {
                self.meter.bytes(text.len())?;
                text.chars().count()
            }
            _ => return Err(Failure::types()),
        };
        Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
    }

    /// A pattern, compiled once for an evaluation, whose search through a text is charged.
    fn pattern(&mut self, pattern: &str, text: &str) -> Result<&Regex, Failure> {
        /// Steps that compiling the largest pattern takes as long as.
        const COMPILE_STEPS: u64 = 20_000;
        // A search takes up to the length of the pattern for each character.
        self.meter
            .bytes(text.len().saturating_mul(1 + pattern.len()))?;
        if !self.patterns.contains_key(pattern) {
            self.meter.step(COMPILE_STEPS)?;
            let compiled = compile_pattern(pattern);
            self.patterns.insert(pattern.to_owned(), compiled);
        }
        let compiled = self.patterns.get(pattern).and_then(Option::as_ref);
        compiled.ok_or_else(|| Failure::Unsupported("a pattern cannot be read here".to_owned()))
    }
}

/// The largest compiled pattern, in bytes: large enough for real ones, small enough that a hostile one costs little.
const LARGEST_PATTERN: usize = 1 << 20;

fn compile_pattern(text: &str) -> Option<Regex> {
    let mut builder = regex::RegexBuilder::new(text);
    builder.size_limit(LARGEST_PATTERN).build().ok()
}

/// A function and the value that it is called on.
struct Called<'e> {
    name: String,
    target: Option<&'e IdedExpr>,
}

/// A value that may be one of CEL's optional values.
enum Unwrapped {
    Plain(Value),
    Optional(Value),
    Nothing,
}

fn unwrapped(value: Value) -> Unwrapped {
    let Value::Opaque(opaque) = &value else {
        return Unwrapped::Plain(value);
    };
    match opaque
        .downcast_ref::<OptionalValue>()
        .map(OptionalValue::value)
    {
        None => Unwrapped::Plain(value),
        Some(None) => Unwrapped::Nothing,
        Some(Some(inner)) => Unwrapped::Optional(inner.clone()),
    }
}

/// The value itself, unless it is an optional one without a value.
fn present(value: Value) -> Option<Value> {
    match unwrapped(value) {
        Unwrapped::Plain(value) | Unwrapped::Optional(value) => Some(value),
        Unwrapped::Nothing => None,
    }
}

fn optional(value: Option<Value>) -> Value {
    Value::Opaque(Arc::new(
        value.map_or_else(OptionalValue::none, OptionalValue::of),
    ))
}

fn is_binary(name: &str) -> bool {
    let operators = [
        op::EQUALS,
        op::NOT_EQUALS,
        op::LESS,
        op::LESS_EQUALS,
        op::GREATER,
        op::GREATER_EQUALS,
        op::IN,
        op::SUBSTRACT,
        op::MULTIPLY,
        op::DIVIDE,
        op::MODULO,
    ];
    operators.contains(&name)
}

fn contains(range: &Value, wanted: &Value) -> Result<bool, Failure> {
    match range {
        Value::List(list) => Ok(list.contains(wanted)),
        Value::Map(map) => {
            let key = KeyRef::try_from(wanted).map_err(|_| Failure::types())?;
            Ok(map.get(&key).is_some())
        }
        _ => Err(Failure::types()),
    }
}

/// How an item is asked for: `a[b]`, or `a[?b]` and `a.?b`, which may have none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Index {
    Plain,
    Optional,
}

fn index(value: Value, key: &Value, asked: Index) -> Answer {
    let (value, is_optional) = match unwrapped(value) {
        Unwrapped::Nothing => return Ok(optional(None)),
        Unwrapped::Optional(value) => (value, true),
        Unwrapped::Plain(value) => (value, asked == Index::Optional),
    };
    let found = match &value {
        Value::List(list) => position(key).and_then(|at| list.get(at)),
        Value::Map(map) => {
            let key = KeyRef::try_from(key).map_err(|_| Failure::types())?;
            map.get(&key)
        }
        _ => return Err(Failure::types()),
    };
    match found.cloned() {
        found if is_optional => Ok(optional(found)),
        Some(found) => Ok(found),
        None => Err(Failure::Undefined("there is no such item".to_owned())),
    }
}

fn position(key: &Value) -> Option<usize> {
    match key {
        Value::Int(at) => usize::try_from(*at).ok(),
        Value::UInt(at) => usize::try_from(*at).ok(),
        _ => None,
    }
}
