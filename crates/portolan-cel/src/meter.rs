//! Counts the steps of an evaluation.

use kube_cel::cel::Value;
use kube_cel::cel::objects::{Key, OptionalValue};
use portolan_budget::{Budget, Exceeded};

use crate::failure::Failure;

/// The steps that one expression may take: Kubernetes' limit on the cost of one rule.
const STEPS_PER_RULE: u64 = 1_000_000;

/// Text and bytes that are looked at in one step.
const BYTES_PER_STEP: usize = 16;

/// What a copy of one value takes, beside a step of the evaluation.
pub(crate) const STEPS_PER_COPY: u64 = 4;

/// What one expression may still do; all expressions of an object share its budget.
pub struct Meter<'a> {
    object: &'a Budget,
    left: u64,
}

impl<'a> Meter<'a> {
    /// Counts one expression, and charges the budget of all.
    pub fn new(object: &'a Budget) -> Self {
        Self {
            object,
            left: STEPS_PER_RULE,
        }
    }

    /// Charges steps that are about to be done.
    pub(crate) fn step(&mut self, steps: u64) -> Result<(), Failure> {
        self.left = self
            .left
            .checked_sub(steps)
            .ok_or(Exceeded::Steps(STEPS_PER_RULE))?;
        Ok(self.object.step(steps)?)
    }

    /// Charges so many things.
    pub(crate) fn items(&mut self, count: usize) -> Result<(), Failure> {
        self.step(u64::try_from(count).unwrap_or(u64::MAX))
    }

    /// Charges text or bytes of a length.
    pub(crate) fn bytes(&mut self, length: usize) -> Result<(), Failure> {
        self.items(length / BYTES_PER_STEP)
    }

    /// Charges a walk over a whole value, as comparisons make it. Parts that are shared count each time.
    pub(crate) fn value(&mut self, value: &Value) -> Result<(), Failure> {
        self.walks(1, value)
    }

    /// Charges what it takes to hand a value to the library, which makes copies in its own form and in ours.
    pub(crate) fn copies(&mut self, value: &Value) -> Result<(), Failure> {
        self.walks(STEPS_PER_COPY, value)
    }

    fn walks(&mut self, times: u64, value: &Value) -> Result<(), Failure> {
        self.step(times)?;
        match value {
            Value::String(text) => self.bytes(text.len()),
            Value::Bytes(bytes) => self.bytes(bytes.len()),
            Value::List(list) => list.iter().try_for_each(|item| self.walks(times, item)),
            Value::Map(map) => map.map.iter().try_for_each(|(key, value)| {
                if let Key::String(key) = key {
                    self.bytes(key.len())?;
                }
                self.walks(times, value)
            }),
            Value::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
                Some(optional) => {
                    let value = optional.value();
                    value.map_or(Ok(()), |value| self.walks(times, value))
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}
