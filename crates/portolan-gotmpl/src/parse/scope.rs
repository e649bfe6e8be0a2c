//! The variables that a template may use at one point, each with the slot of its value.

use super::tree::Variable;

/// The variables in scope; a slot is free again when its scope ends.
pub(super) struct Scope<'s> {
    variables: Vec<Variable<'s>>,
    /// The next free slot.
    next: u32,
    /// The most slots ever in use.
    pub(super) slots: u32,
}

/// How far the scope had grown at some point.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    variables: usize,
    next: u32,
}

impl Default for Scope<'_> {
    fn default() -> Self {
        Self {
            variables: vec![Variable {
                name: "$",
                slot: Some(0),
            }],
            next: 1,
            slots: 1,
        }
    }
}

impl<'s> Scope<'s> {
    /// A name that gets its value only when the pipeline after it is done: `$x := $x` reads the outer one.
    pub(super) fn announce(&mut self, name: &'s str) -> usize {
        self.variables.push(Variable { name, slot: None });
        self.variables.len() - 1
    }

    /// Gives an announced name its slot.
    pub(super) fn declare(&mut self, index: usize) -> Variable<'s> {
        let slot = self.next;
        self.next += 1;
        self.slots = self.slots.max(self.next);
        self.variables[index].slot = Some(slot);
        self.variables[index]
    }

    pub(super) fn find(&self, name: &str) -> Option<Variable<'s>> {
        let named = |variable: &&Variable<'s>| variable.name == name;
        let live = self
            .variables
            .iter()
            .rev()
            .filter(named)
            .find(|variable| variable.slot.is_some());
        live.or_else(|| self.variables.iter().find(named)).copied()
    }

    /// A variable to assign; Go notices only at run time that there is none.
    pub(super) fn assign(&mut self, name: &'s str) -> Variable<'s> {
        self.find(name).unwrap_or_else(|| {
            let variable = Variable { name, slot: None };
            self.variables.push(variable);
            variable
        })
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            variables: self.variables.len(),
            next: self.next,
        }
    }

    /// What a branch declared is known to the branches after it, but never has a value there.
    pub(super) fn leave_branch(&mut self, mark: Mark) {
        for variable in &mut self.variables[mark.variables..] {
            variable.slot = None;
        }
        self.next = mark.next;
    }

    pub(super) fn leave(&mut self, mark: Mark) {
        self.variables.truncate(mark.variables);
        self.next = mark.next;
    }
}
