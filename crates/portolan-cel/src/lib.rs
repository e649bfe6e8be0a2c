//! CEL expressions, parsed, type-checked, and evaluated under limits.
//!
//! ```text
//! text ──length, depth──▶ Expression ──check(Type)────────────▶ its type, or every TypeFault
//!                              └──────evaluate(EvaluationScope, Meter)──▶ value, or the Failure that says why there is none
//! ```
//!
//! Whoever writes an expression may try to overflow the stack, fill the memory or run forever. `kube-cel` and the
//! `cel` crate below it parse expressions and have the functions, but count nothing. So the tree is walked here, where
//! every step is charged, and only calls of functions with a known maximum cost are passed on to them. Their estimate
//! of a rule's cost is not used: it guesses from the sizes that a definition allows, while here the values are known
//! and steps can be counted.
//!
//! The crate does not know what its variables mean: rules of a CRD have `self`, TaskBooks have `facts` and `inputs`.

#![warn(missing_docs)]

mod convert;
mod depth;
mod evaluate;
mod expression;
mod failure;
mod function;
mod meter;

mod check;
mod types;

pub use check::{TypeFault, check};
pub use convert::{Form, escaped, from_json, scalar, text, to_json};
pub use evaluate::{EvaluationScope, evaluate, none};
pub use expression::{Expression, STACK_BYTES};
pub use failure::Failure;
pub use kube_cel::cel::Value;
pub use meter::Meter;
pub use types::{Record, Type};
