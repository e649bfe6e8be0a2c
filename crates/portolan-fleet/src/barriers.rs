//! The barriers of a book: where nodes wait for each other, in the order in which they come to them.

use std::collections::BTreeMap;

use crate::book::{Barrier, Book, Step, Work};
use crate::fleet_run::BarrierScope;

/// The barriers of a book, each before one step.
///
/// Nodes that take their steps together also wait for their batch before every step of the book itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Barriers {
    scopes: Vec<BarrierScope>,
    before: BTreeMap<String, usize>,
    /// How many barriers a node has passed when it takes a step of the book, those in `rescue` and `always` too.
    passed: BTreeMap<String, usize>,
}

impl Barriers {
    /// The barriers of a book.
    pub fn of(book: &Book) -> Self {
        let mut barriers = Self::default();
        for (position, step) in book.steps.iter().enumerate() {
            if step.options.barrier == Barrier::None && book.run.is_lockstep && position > 0 {
                barriers.add(step, BarrierScope::Batch);
            }
            barriers.collect(step);
        }
        barriers
    }

    /// Whom each barrier waits for.
    pub fn scopes(&self) -> &[BarrierScope] {
        &self.scopes
    }

    /// The barrier before a step, if there is one.
    pub fn before(&self, step: &Step) -> Option<usize> {
        self.before.get(&step.id).copied()
    }

    /// How many barriers a node has passed when it takes a step; `None` for a handler.
    pub fn passed_before(&self, step: &Step) -> Option<usize> {
        self.passed.get(&step.id).copied()
    }

    fn collect(&mut self, step: &Step) {
        match step.options.barrier {
            Barrier::None => {}
            Barrier::Batch => self.add(step, BarrierScope::Batch),
            Barrier::Run => self.add(step, BarrierScope::Run),
        }
        self.passed.insert(step.id.clone(), self.scopes.len());
        // There is none in `rescue` and `always`: not every node comes there.
        if let Work::Block(block) = &step.work {
            for step in &block.steps {
                self.collect(step);
            }
            for step in block.rescue.iter().chain(&block.always) {
                let passed = self.scopes.len();
                step.visit(&mut |step| {
                    self.passed.insert(step.id.clone(), passed);
                });
            }
        }
    }

    fn add(&mut self, step: &Step, scope: BarrierScope) {
        self.before.insert(step.id.clone(), self.scopes.len());
        self.scopes.push(scope);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use portolan_modules::NoBookFiles;

    use super::*;
    use crate::compile::{BookSource, compile};

    fn barriers(strategy: &str) -> (Vec<BarrierScope>, Vec<Option<usize>>) {
        let text = format!(
            "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {{name: web}}\nspec:\n  strategy: {strategy}\n  steps:\n  \
             - {{name: a, directory: {{path: /a}}}}\n  - {{name: b, directory: {{path: /b}}}}\n  \
             - {{name: c, directory: {{path: /c}}, barrier: run}}\n  - name: d\n    steps:\n    \
             - {{name: e, directory: {{path: /e}}, barrier: batch}}\n"
        );
        let book = compile(&BookSource::new("book.yaml", &text, Arc::new(NoBookFiles)));
        let book = book.expect("a book");
        let barriers = Barriers::of(&book);
        let before =
            ["a", "b", "c", "d", "d/e"].map(|id| barriers.before(book.step(id).expect(id)));
        (barriers.scopes().to_vec(), before.to_vec())
    }

    #[test]
    fn barriers_are_counted_in_the_order_of_the_book() {
        use BarrierScope::{Batch, Run};
        let (scopes, before) = barriers("free");
        assert_eq!(scopes, [Run, Batch]);
        assert_eq!(before, [None, None, Some(0), None, Some(1)]);
        let (scopes, before) = barriers("lockstep");
        assert_eq!(scopes, [Batch, Run, Batch, Batch]);
        assert_eq!(before, [None, Some(0), Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn every_step_knows_how_many_barriers_are_behind_it() {
        let text = "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: web}\nspec:\n  strategy: free\n  steps:\n  \
                    - {name: a, directory: {path: /a}}\n  - name: b\n    steps:\n    \
                    - {name: c, directory: {path: /c}, barrier: run}\n    always:\n    \
                    - {name: d, directory: {path: /d}}\n  handlers:\n  - {name: h, directory: {path: /h}}\n";
        let book = compile(&BookSource::new("book.yaml", text, Arc::new(NoBookFiles)));
        let book = book.expect("a book");
        let barriers = Barriers::of(&book);
        let passed = ["a", "b/c", "b/d", "handlers/h"]
            .map(|id| barriers.passed_before(book.step(id).expect(id)));
        assert_eq!(passed, [Some(0), Some(1), Some(1), None]);
    }
}
