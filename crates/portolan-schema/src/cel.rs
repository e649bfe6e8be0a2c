//! CEL expressions, parsed and evaluated under limits.
//!
//! ```text
//! text ──length, depth──▶ Expression ──evaluate(self, Meter)──▶ value, or the Failure that says why there is none
//! ```
//!
//! The author of a CRD writes its rules, so a rule may try to overflow the stack, fill the memory or run forever.
//! `kube-cel` and the `cel` crate below it parse expressions and have the functions, but count nothing. So the tree
//! is walked here, where every step is charged, and only calls of functions with a known maximum cost are passed on
//! to them. Their estimate of a rule's cost is not used: it guesses from the sizes that a CRD allows, while here the
//! object is known and its steps can be counted.

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
