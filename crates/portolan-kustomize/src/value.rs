//! Fields and trees of resources: how they are found, changed, merged, printed and charged to the budget.

pub(crate) mod alias;
pub(crate) mod cost;
pub(crate) mod field;
pub(crate) mod fieldspec;
pub(crate) mod json;
pub(crate) mod jsonpatch;
pub(crate) mod merge;
pub(crate) mod regexp;
pub(crate) mod remark;
pub(crate) mod yamltext;
