//! Two trees of one cluster: what has to be rendered to see how they differ, and what each difference comes from.

pub(crate) mod changed_value;
pub(crate) mod equal_inputs;
pub(crate) mod excerpt;
pub(crate) mod inputs;
pub(crate) mod not_rendered;
pub(crate) mod outline;
pub(crate) mod pair;
pub(crate) mod skip_check;
pub(crate) mod skip_plan;
pub(crate) mod tree_charts;
