//! How much work a check has done so far, because subschemas that refer to each other can multiply without end.

use std::cell::Cell;

use portolan_budget::{Budget, Exceeded};

/// Applying one subschema to one value takes about as long as so many instructions of a template.
const STEPS_PER_SCHEMA: u64 = 200;

/// Charges each subschema that is applied, until the budget ends.
pub(super) struct Progress<'b> {
    budget: &'b Budget,
    exceeded: Cell<Option<Exceeded>>,
}

impl<'b> Progress<'b> {
    pub(super) fn new(budget: &'b Budget) -> Self {
        Self {
            budget,
            exceeded: Cell::new(None),
        }
    }

    /// Charges one subschema; false once the budget has ended, and nobody reads the result any more.
    pub(super) fn goes_on(&self) -> bool {
        if self.exceeded.get().is_none() {
            self.exceeded.set(self.budget.step(STEPS_PER_SCHEMA).err());
        }
        self.exceeded.get().is_none()
    }

    /// The result of a check, unless it was stopped.
    pub(super) fn finish<T>(&self, result: T) -> Result<T, Exceeded> {
        match self.exceeded.get() {
            Some(exceeded) => Err(exceeded),
            None => Ok(result),
        }
    }
}
