//! Two trees of one cluster: what has to be rendered to see how they differ, and what each difference comes from.

pub(crate) mod changed_value;
pub(crate) mod drawing;
pub(crate) mod excerpt;
pub(crate) mod inputs;
pub(crate) mod likeness;
pub(crate) mod not_rendered;
pub(crate) mod pair;
pub(crate) mod sketch;
pub(crate) mod sparing;
pub(crate) mod tree_charts;
