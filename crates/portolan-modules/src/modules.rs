//! All modules, in the order of the reference. A module is one file below this, and one line here.

use crate::definition::ModuleDefinition;

/// All modules.
pub static MODULES: &[&ModuleDefinition] = &[];
