//! Counts what a running template uses and charges it to the budget in batches.
//!
//! Threads share a budget; charging it for every instruction would cost more than the instructions.

use std::cell::Cell;

use portolan_budget::{Budget, Exceeded};

use crate::value::{MAX_DEPTH, Value};

/// Steps that are charged together.
const STEPS_PER_BATCH: u64 = 1 << 12;

/// Bytes that are charged together.
const BYTES_PER_BATCH: usize = 64 << 10;

/// Copying so many bytes costs about as much as one instruction.
const BYTES_PER_STEP: usize = 16;

/// One value may take this part of the memory, so that a function that holds a few copies of it stays within all of it.
const VALUE_SHARE: u64 = 16;

/// Output may take this part of the memory: it is copied, cut into documents and read again.
pub(crate) const OUTPUT_SHARE: u64 = 8;

/// What an entry of a large map takes: key, value and its share of a tree that is half empty.
pub(crate) const ENTRY_BYTES: usize = 112;

/// What the smallest map with an entry takes: a node of the tree has room for eleven.
pub(crate) const NODE_BYTES: usize = 704;

/// What a map of so many entries takes.
pub(crate) fn map_bytes(entries: usize) -> usize {
    match entries {
        0 => 64,
        _ => NODE_BYTES.max(entries.saturating_mul(ENTRY_BYTES)),
    }
}

/// Counts for one executor.
pub(crate) struct Meter {
    budget: Budget,
    /// Steps that are not charged yet.
    steps: Cell<u64>,
    /// Bytes of the values that the running template has made.
    bytes: Cell<usize>,
    /// How many of them are charged, with some in advance.
    charged: Cell<usize>,
}

impl Meter {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            budget,
            steps: Cell::new(0),
            bytes: Cell::new(0),
            charged: Cell::new(0),
        }
    }

    /// Charges steps that are about to be done.
    pub(crate) fn step(&self, steps: u64) -> Result<(), Exceeded> {
        let steps = self.steps.get().saturating_add(steps);
        if steps < STEPS_PER_BATCH {
            self.steps.set(steps);
            return Ok(());
        }
        self.steps.set(0);
        self.budget.step(steps)
    }

    /// Charges the reading or copying of so many bytes.
    pub(crate) fn copy(&self, bytes: usize) -> Result<(), Exceeded> {
        self.step((bytes / BYTES_PER_STEP) as u64)
    }

    /// Charges memory that a value is about to take.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<(), Exceeded> {
        let bytes = self.bytes.get().saturating_add(bytes);
        if bytes > self.charged.get() {
            self.charge_memory(bytes)?;
        }
        self.bytes.set(bytes);
        Ok(())
    }

    /// Gives memory back that was charged.
    pub(crate) fn release(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
    }

    #[cold]
    fn charge_memory(&self, bytes: usize) -> Result<(), Exceeded> {
        let charged = self.charged.get();
        let needed = bytes - charged;
        let batch = needed.max(BYTES_PER_BATCH);
        let taken = match self.budget.allocate(batch) {
            Ok(()) => batch,
            // Near the limit only what is needed counts.
            Err(_) => self.budget.allocate(needed).map(|()| needed)?,
        };
        self.charged.set(charged + taken);
        Ok(())
    }

    /// Refuses a single value of more bytes than one may have.
    pub(crate) fn check_value(&self, bytes: usize) -> Result<(), Exceeded> {
        let limit = self.budget.limits().bytes / VALUE_SHARE;
        if bytes as u64 > limit {
            return Err(Exceeded::Value(limit));
        }
        Ok(())
    }

    /// Returns how many bytes a single value may have.
    pub(crate) fn value_limit(&self) -> usize {
        usize::try_from(self.budget.limits().bytes / VALUE_SHARE).unwrap_or(usize::MAX)
    }

    /// Refuses more output than a template may print.
    pub(crate) fn check_output(&self, bytes: usize) -> Result<(), Exceeded> {
        let limit = self.budget.limits().bytes / OUTPUT_SHARE;
        if bytes as u64 > limit {
            return Err(Exceeded::Output(limit));
        }
        Ok(())
    }

    /// Charges a walk over everything below a value, which is what printing it takes, before anybody begins.
    ///
    /// A list that holds another twice, which holds a third twice, is small and prints without end: what is shared
    /// counts each time that it would be printed.
    pub(crate) fn weigh(&self, value: &Value) -> Result<(), Exceeded> {
        match value {
            Value::List(_) | Value::Map(_) | Value::Object(_) => {
                let mut scale = Scale {
                    meter: self,
                    limit: self.value_limit(),
                    bytes: 0,
                };
                scale.add(value, 0)
            }
            _ => Ok(()),
        }
    }

    /// Forgets the values of a template that has ended.
    pub(crate) fn reset(&self) {
        self.budget.release(self.charged.take());
        self.bytes.set(0);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.reset();
    }
}

/// A walk that adds up what would be printed.
struct Scale<'m> {
    meter: &'m Meter,
    limit: usize,
    bytes: usize,
}

impl Scale<'_> {
    fn add(&mut self, value: &Value, depth: usize) -> Result<(), Exceeded> {
        // Nothing prints deeper than this.
        if depth > MAX_DEPTH {
            return Ok(());
        }
        self.meter.step(1)?;
        // Every level of YAML and of pretty JSON begins its lines with two more blanks.
        self.text(1 + 2 * depth)?;
        match value {
            Value::Str(text) => self.text(text.len()),
            Value::RawStr(bytes) | Value::Bytes(bytes) => self.text(bytes.len()),
            Value::List(list) => list.iter().try_for_each(|item| self.add(item, depth + 1)),
            Value::Map(map) => map.borrow().iter().try_for_each(|(key, value)| {
                self.text(key.len())?;
                self.add(value, depth + 1)
            }),
            Value::Object(object) => match object.data() {
                Some(data) => self.add(&data, depth + 1),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn text(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit {
            return self.meter.check_value(self.bytes);
        }
        self.meter.copy(bytes)
    }
}
