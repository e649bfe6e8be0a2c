//! Variables of a node: which of several values counts, and which values are computed from others.

mod config;
mod fault;
mod graph;
mod order;
mod path;
mod precedence;
mod result;

pub use config::StaleRule;
pub use fault::{GraphFault, StaleVariable};
pub use graph::{
    ComputedValue, GraphStep, ProducerWork, UsedValue, VariableDefinition, VariableGraph,
    VariableProducer, variables_read,
};
pub use path::VariablePath;
pub use precedence::{
    MergeRule, ResolvedVariables, SourceRole, VariableCandidate, VariableConflict,
    VariableExplanation, VariableScope, VariableSource, resolve,
};
pub use result::{check_result_expression, result_values};
