//! Expressions in CEL, read and evaluated under limits.
//!
//! ```text
//! text ──length, depth──▶ Expression ──evaluate(self, Meter)──▶ value, or the Failure that says why there is none
//! ```
//!
//! Whoever writes a definition writes its rules, so a rule may be made to overflow the stack, to fill the memory or to
//! run for ever. `kube-cel` and the `cel` crate below it parse expressions and have the functions, but count nothing:
//! the tree is walked here, where every step is charged, and only calls of functions whose cost is bounded beforehand
//! are handed on. Their estimate of a rule's cost is not used: it guesses from the sizes that a definition allows, while
//! the object is at hand and its steps can be counted.

mod convert;
mod depth;
mod evaluate;
mod expression;
mod failure;
mod function;
mod meter;

pub(crate) use convert::{Form, escaped, scalar, text};
pub(crate) use evaluate::evaluate;
pub(crate) use expression::{Expression, STACK_BYTES};
pub(crate) use failure::Failure;
pub(crate) use meter::Meter;
