//! Selects objects by name, namespace, label and kind, and the errors if nothing matches.

pub(crate) mod label;
pub(crate) mod name;
pub(crate) mod nearest;
pub(crate) mod no_match;
pub(crate) mod object_name;
pub(crate) mod object_selection;
pub(crate) mod selector;
