//! Decisions: CEL expressions over what is known on a node.

use std::fmt;
use std::sync::Arc;

use portolan_budget::{Budget, Limits, Stop};
use portolan_cel::{EvaluationScope, Expression, Failure, Meter, from_json, to_json};
use portolan_object::SelectorError;
use serde_json::{Map, Value};

use crate::fault::Place;

/// The steps that one decision may take.
const MAX_STEPS: u64 = 1_000_000;

/// A CEL expression of a book.
#[derive(Clone)]
pub struct Decision {
    expression: Arc<Expression>,
    text: Arc<str>,
    /// Where it was written.
    pub place: Place,
}

/// Why a decision could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` cannot be decided: {reason}")]
pub struct DecisionError {
    /// The expression.
    pub text: String,
    /// Why not.
    pub reason: String,
}

/// What expressions can ask about other nodes.
pub trait Fleet: Send + Sync {
    /// The nodes whose labels match a selector, as maps with `name`, `labels` and exported facts.
    ///
    /// # Errors
    /// When the selector is wrong, or other nodes are not known here.
    fn nodes(&self, selector: &str) -> Result<Vec<Value>, FleetQueryError>;

    /// The results of a step on all nodes of the run, by node.
    ///
    /// # Errors
    /// When they are not known.
    fn results(&self, step: &str) -> Result<Map<String, Value>, FleetQueryError>;
}

/// Why a question about other nodes has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FleetQueryError {
    /// The selector is wrong.
    #[error("`{selector}`: {error}")]
    Selector {
        /// What was written.
        selector: String,
        /// What is wrong with it.
        error: SelectorError,
    },
    /// This run knows no other nodes.
    #[error("a local run knows no other nodes")]
    Alone,
    /// Results are not sent to other nodes.
    #[error("results of other nodes are not known here")]
    NoResults,
    /// The results of a step cannot be read.
    #[error("the results of `{step}` cannot be read: {reason}")]
    UnreadableResults {
        /// The step.
        step: String,
        /// Why not.
        reason: String,
    },
}

/// A node that stands alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFleet;

impl Fleet for NoFleet {
    fn nodes(&self, _selector: &str) -> Result<Vec<Value>, FleetQueryError> {
        Err(FleetQueryError::Alone)
    }

    fn results(&self, _step: &str) -> Result<Map<String, Value>, FleetQueryError> {
        Err(FleetQueryError::Alone)
    }
}

impl Decision {
    /// Reads an expression, on a stack of at least [`portolan_cel::STACK_BYTES`].
    pub(crate) fn parse(text: &str, place: Place) -> Result<Self, Failure> {
        Ok(Self {
            expression: Arc::new(Expression::parse(text)?),
            text: text.into(),
            place,
        })
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn expression(&self) -> &Expression {
        &self.expression
    }

    /// The value of the expression.
    ///
    /// # Errors
    /// When it has none.
    pub fn value(
        &self,
        values: &Map<String, Value>,
        fleet: &dyn Fleet,
    ) -> Result<Value, DecisionError> {
        let failed = |reason: String| DecisionError {
            text: self.text.to_string(),
            reason,
        };
        let function = |name: &str, arguments: &[portolan_cel::Value]| {
            let [portolan_cel::Value::String(argument)] = arguments else {
                return None;
            };
            let answer = match name {
                "nodes" => fleet.nodes(argument).map(Value::Array),
                "results" => fleet.results(argument).map(Value::Object),
                _ => return None,
            };
            Some(
                answer
                    .map(|value| from_json(&value))
                    .map_err(|error| Failure::Undefined(error.to_string())),
            )
        };
        let used = values
            .iter()
            .filter(|(name, _)| self.expression.names(name))
            .map(|(name, value)| (name.as_str(), from_json(value)));
        let scope = EvaluationScope::of(used).with_function(&function);
        let limits = Limits {
            steps: MAX_STEPS,
            ..Limits::default()
        };
        let budget = Budget::new(limits, Stop::default());
        let value = portolan_cel::evaluate(&self.expression, &scope, &mut Meter::new(&budget));
        let value = value.map_err(|failure| failed(failure.to_string()))?;
        to_json(&value).ok_or_else(|| failed("its value is none that a book can hold".to_owned()))
    }

    /// Whether the expression is true.
    ///
    /// # Errors
    /// When it has no value, or one that is neither true nor false.
    pub fn holds(
        &self,
        values: &Map<String, Value>,
        fleet: &dyn Fleet,
    ) -> Result<bool, DecisionError> {
        match self.value(values, fleet)? {
            Value::Bool(holds) => Ok(holds),
            _ => Err(DecisionError {
                text: self.text.to_string(),
                reason: "it is neither true nor false".to_owned(),
            }),
        }
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Decision({:?})", self.text)
    }
}
