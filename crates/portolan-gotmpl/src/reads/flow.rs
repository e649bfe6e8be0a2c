//! Follows one program along all of its branches.
//!
//! Instructions are visited in order. If a branch jumps ahead, what is known at the jump is kept until its target is
//! visited, and joined with what arrives there from elsewhere. Only loops go back: what a round leaves in variables
//! is joined with what is known at the loop's start, and the program is followed again until nothing new is found.

use std::collections::BTreeMap;
use std::sync::Arc;

use portolan_yaml::Text;

use super::known::Known;
use super::{ReadAnalysis, Site};
use crate::program::{Constant, LiteralKind, Op, Program};

/// How often a program is followed again because a loop left more in its variables.
const MAX_ROUNDS: usize = 32;

/// A program being followed.
pub(super) struct Flow<'f, 'a> {
    pub(super) analysis: &'f mut ReadAnalysis<'a>,
    program: &'f Arc<Program>,
    dot: Known,
    constants: Vec<Known>,
    /// What is known where a branch goes on, by instruction.
    pending: BTreeMap<usize, State>,
    /// The variables that rounds of a loop leave to the next one, by the loop's head.
    rounds: BTreeMap<usize, Vec<Known>>,
    has_grown: bool,
}

/// What is known at an instruction.
#[derive(Clone)]
struct State {
    stack: Vec<Known>,
    variables: Vec<Known>,
    dot: Known,
    dots: Vec<Known>,
    loops: Vec<Loop>,
}

#[derive(Clone, Copy)]
struct Loop {
    elements: Known,
    outer_dot: Known,
    dots: usize,
}

impl<'f, 'a> Flow<'f, 'a> {
    pub(super) fn new(
        analysis: &'f mut ReadAnalysis<'a>,
        program: &'f Arc<Program>,
        dot: Known,
    ) -> Self {
        let constants = program.constants.iter();
        let constants = constants
            .map(|constant| analysis.constant(constant))
            .collect();
        Self {
            analysis,
            program,
            dot,
            constants,
            pending: BTreeMap::new(),
            rounds: BTreeMap::new(),
            has_grown: false,
        }
    }

    pub(super) fn run(mut self) {
        for _ in 0..MAX_ROUNDS {
            self.has_grown = false;
            self.once();
            if !self.has_grown {
                return;
            }
        }
        self.analysis.paths.read_everything();
    }

    fn once(&mut self) {
        let mut variables = vec![Known::NOTHING; self.program.slots.max(1)];
        variables[0] = self.dot;
        let mut state = Some(State {
            stack: Vec::new(),
            variables,
            dot: self.dot,
            dots: Vec::new(),
            loops: Vec::new(),
        });
        let program = Arc::clone(self.program);
        for (at, op) in program.code.iter().enumerate() {
            if let Some(arriving) = self.pending.remove(&at) {
                match &mut state {
                    Some(state) => state.join(&arriving, self.analysis),
                    None => state = Some(arriving),
                }
            }
            self.analysis.steps += 1;
            if self.analysis.is_over() {
                return;
            }
            if let Some(current) = state.take() {
                state = self.step(at, *op, current);
            }
        }
        self.pending.clear();
    }

    /// What is known after an instruction; nothing when what follows it is reached in another way only.
    fn step(&mut self, at: usize, op: Op, mut state: State) -> Option<State> {
        match op {
            Op::Text { .. }
            | Op::At
            | Op::Unbox
            | Op::Check(_)
            | Op::CheckPiped { .. }
            | Op::FindTemplate(_)
            | Op::MethodArg { .. }
            // Passed over where there is a method.
            | Op::MethodEnd(_) => {}
            Op::Print => {
                let value = state.pop();
                self.analysis.read(value);
            }
            Op::Drop => {
                state.pop();
            }
            Op::Nip => {
                let top = state.pop();
                state.pop();
                state.stack.push(top);
            }
            Op::Dot => state.stack.push(state.dot),
            Op::Variable(slot) => state.stack.push(state.variable(slot)),
            Op::Constant(index) => {
                let constant = self.constants.get(index as usize).copied();
                state.stack.push(constant.unwrap_or_default());
            }
            Op::Nil | Op::MethodNil { .. } => state.stack.push(Known::NOTHING),
            Op::MethodLiteral { literal, .. } => {
                let literal = self.program.literals.get(literal as usize);
                let known = match literal.map(|literal| &literal.kind) {
                    Some(LiteralKind::Str(constant)) => self.analysis.constant(constant),
                    _ => Known::NOTHING,
                };
                state.stack.push(known);
            }
            Op::DotPath(path) => {
                let from = state.dot;
                state.stack.push(self.path(from, path));
            }
            Op::VariablePath { slot, path } => {
                let from = state.variable(slot);
                state.stack.push(self.path(from, path));
            }
            Op::Path(path) => {
                let from = state.pop();
                state.stack.push(self.path(from, path));
            }
            Op::Call {
                function,
                args,
                piped,
            } => {
                let mut arguments = state.pop_many(args as usize);
                if piped {
                    arguments.push(state.pop());
                }
                let site = self.site(at);
                let name = self.program.functions.get(function as usize)?.name;
                let result = self.analysis.call(name, &arguments, site);
                state.stack.push(result);
            }
            Op::Method { piped, .. } => {
                // Nothing to ask: the answer is nil, and the next instruction says where to go on.
                let mut without = state.clone();
                let receivers = 1 + usize::from(piped);
                without.pop_many(receivers);
                without.stack.push(Known::NOTHING);
                if let Some(Op::MethodEnd(to)) = self.program.code.get(at + 1) {
                    self.arrive(*to, without);
                }
            }
            Op::CallMethod { args, piped, .. } => {
                let given = args as usize + 1 + usize::from(piped);
                for value in state.pop_many(given) {
                    self.analysis.read(value);
                }
                state.stack.push(Known::NOTHING);
            }
            Op::SetVariable(slot) => {
                let value = state.stack.last().copied().unwrap_or_default();
                state.set(slot, value);
            }
            Op::Jump(to) => {
                self.jump(at, to, state);
                return None;
            }
            Op::JumpIfFalse(to) => {
                let value = state.pop();
                self.analysis.test(value);
                self.arrive(to, state.clone());
            }
            Op::AndElse(to) | Op::OrElse(to) => {
                self.arrive(to, state.clone());
                let value = state.pop();
                self.analysis.test(value);
            }
            Op::EnterWith(to) => {
                let value = state.pop();
                self.analysis.test(value);
                self.arrive(to, state.clone());
                let outer = std::mem::replace(&mut state.dot, value);
                state.dots.push(outer);
            }
            Op::LeaveWith => {
                if let Some(dot) = state.dots.pop() {
                    state.dot = dot;
                }
            }
            Op::RangeStart { otherwise, .. } => {
                let value = state.pop();
                let elements = self.analysis.elements(value);
                self.arrive(otherwise, state.clone());
                state.loops.push(Loop {
                    elements,
                    outer_dot: state.dot,
                    dots: state.dots.len(),
                });
            }
            Op::RangeNext { exit, targets } => {
                if let Some(left) = self.rounds.get(&at) {
                    self.analysis.join_all(&mut state.variables, left);
                }
                let mut after = state.clone();
                after.end_loop();
                self.arrive(exit, after);
                let current = *state.loops.last()?;
                state.dots.truncate(current.dots);
                let targets = self.program.targets.get(targets as usize).copied();
                let targets = targets.unwrap_or_default();
                if let Some(slot) = targets.key {
                    state.set(slot, Known::NOTHING);
                }
                if let Some(slot) = targets.element {
                    state.set(slot, current.elements);
                }
                state.dot = current.elements;
            }
            Op::RangeBreak(to) => {
                state.end_loop();
                self.arrive(to, state);
                return None;
            }
            Op::Template(name) => {
                let dot = state.pop();
                let name = self.program.name(name).to_owned();
                self.analysis.follow_named(Some(&name), dot);
            }
            Op::Fail(_) | Op::FailHere(_) | Op::Return => return None,
        }
        Some(state)
    }

    /// Keeps what is known until an instruction's turn comes.
    fn arrive(&mut self, to: u32, state: State) {
        match self.pending.get_mut(&(to as usize)) {
            Some(known) => known.join(&state, self.analysis),
            None => drop(self.pending.insert(to as usize, state)),
        }
    }

    fn jump(&mut self, at: usize, to: u32, state: State) {
        if to as usize > at {
            return self.arrive(to, state);
        }
        // The next round of a loop: only variables outlive a round.
        match self.rounds.get_mut(&(to as usize)) {
            Some(left) => self.has_grown |= self.analysis.join_all(left, &state.variables),
            None => {
                self.rounds.insert(to as usize, state.variables);
                self.has_grown = true;
            }
        }
    }

    fn path(&mut self, from: Known, path: u32) -> Known {
        let fields = self.program.path(path).iter();
        fields.fold(from, |value, field| self.analysis.field(value, field))
    }

    fn site(&self, at: usize) -> Site {
        (Arc::as_ptr(self.program).addr(), at, self.dot)
    }
}

impl State {
    fn pop(&mut self) -> Known {
        self.stack.pop().unwrap_or_default()
    }

    /// The topmost values, the last one last.
    fn pop_many(&mut self, count: usize) -> Vec<Known> {
        let at = self.stack.len().saturating_sub(count);
        self.stack.split_off(at)
    }

    fn variable(&self, slot: u32) -> Known {
        self.variables
            .get(slot as usize)
            .copied()
            .unwrap_or_default()
    }

    fn set(&mut self, slot: u32, value: Known) {
        if let Some(variable) = self.variables.get_mut(slot as usize) {
            *variable = value;
        }
    }

    fn end_loop(&mut self) {
        if let Some(over) = self.loops.pop() {
            self.dots.truncate(over.dots);
            self.dot = over.outer_dot;
        }
    }

    fn join(&mut self, other: &Self, analysis: &mut ReadAnalysis<'_>) {
        analysis.join_all(&mut self.stack, &other.stack);
        analysis.join_all(&mut self.variables, &other.variables);
        self.dot = analysis.join(self.dot, other.dot);
        analysis.join_all(&mut self.dots, &other.dots);
        for (one, other) in self.loops.iter_mut().zip(&other.loops) {
            one.elements = analysis.join(one.elements, other.elements);
            one.outer_dot = analysis.join(one.outer_dot, other.outer_dot);
        }
    }
}

impl ReadAnalysis<'_> {
    /// Joins values one by one; says whether that told something new.
    fn join_all(&mut self, all: &mut [Known], others: &[Known]) -> bool {
        let mut has_grown = false;
        for (one, other) in all.iter_mut().zip(others) {
            let joined = self.join(*one, *other);
            has_grown |= joined != *one;
            *one = joined;
        }
        has_grown
    }

    fn constant(&mut self, constant: &Constant) -> Known {
        match constant {
            Constant::Str(text) => self.known.constant(text.clone()),
            Constant::Int(_, number) => self.known.constant(Text::from(number.to_string())),
            _ => Known::NOTHING,
        }
    }
}
