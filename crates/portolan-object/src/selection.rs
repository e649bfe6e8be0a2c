//! Choosing objects by name, namespace, label and kind, and what to say when nothing is chosen.

pub(crate) mod label;
pub(crate) mod name;
pub(crate) mod nearest;
pub(crate) mod no_match;
pub(crate) mod object_name;
pub(crate) mod object_selection;
pub(crate) mod selector;
