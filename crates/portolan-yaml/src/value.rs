//! Values: nodes, texts and scalars, and the types that Go gives to them.

pub(crate) mod binary;
pub(crate) mod node;
pub(crate) mod number;
pub(crate) mod resolve;
pub(crate) mod shared;
pub(crate) mod text;
pub(crate) mod timestamp;
