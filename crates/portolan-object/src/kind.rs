//! Kinds: their names, scopes and definitions, and which Kubernetes version served which.

pub(crate) mod definition;
pub(crate) mod kind_names;
pub(crate) mod scope;
pub(crate) mod served;
pub(crate) mod version;
