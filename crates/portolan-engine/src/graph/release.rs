//! Frees outputs that no unit of the run will read any more.
//!
//! This happens only for units that ask for it: a unit that is added later may need any output, so the graph alone
//! cannot decide.

use super::{Effects, Graph, Stage, UnitId};
use crate::Outcome;

impl Graph {
    /// Counts that a reader of a unit's output has it, or does not want it any more.
    pub(super) fn has_read(&mut self, id: UnitId, effects: &mut Effects) {
        self.nodes[id].readers -= 1;
        self.release_if_read(id, effects);
    }

    /// Lets the output of a transient unit go if nobody is left who waits to read it.
    pub(super) fn release_if_read(&mut self, id: UnitId, effects: &mut Effects) {
        let node = &mut self.nodes[id];
        if node.is_transient
            && node.readers == 0
            && let Stage::Ended(over) = &mut node.stage
            && let Outcome::Done(output) = &mut over.outcome
        {
            effects.released.extend(output.release());
        }
    }
}
