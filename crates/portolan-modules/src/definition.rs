//! A module, and how it is found by name.

use serde_json::{Map, Value};

use crate::action::Action;
use crate::modules::MODULES;
use crate::parameters::{ParameterFault, Parameters};

/// Everything that is known about a module without running it; its reference is generated from this.
pub struct ModuleDefinition {
    /// The word by which a step names it, such as `file`.
    pub name: &'static str,
    /// What it does, as one sentence.
    pub summary: &'static str,
    /// Its parameters, in the order of the reference.
    pub parameters: &'static [ParameterDefinition],
    /// How often its work may be done after a crash, unless a step says otherwise.
    pub effect: Effect,
    /// How much of it works below another root directory.
    pub root: RootSupport,
    /// Reads rendered parameters. Gives `None` after it noted what is wrong with them.
    pub parse: fn(&mut Parameters<'_>) -> Option<Box<dyn Action>>,
}

/// A parameter of a module.
pub struct ParameterDefinition {
    /// Its name, in lower camel case.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: ParameterType,
    /// Whether a step must have it.
    pub is_required: bool,
    /// What it means, as one sentence.
    pub summary: &'static str,
}

/// The values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// A text.
    Text,
    /// A path that begins with `/`.
    Path,
    /// File permissions: a quoted octal number, such as `"0640"`.
    Mode,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A duration, such as `90s`.
    Duration,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of texts.
    TextList,
    /// A map of texts.
    TextMap,
    /// A map of any values.
    Map,
    /// Anything.
    Any,
}

/// How often the work of a step may be done when nobody knows whether it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing, so it may be done at any time, also in a check.
    Read,
    /// It looks first and does only what is missing, so it may be repeated.
    Converge,
    /// It must not be done twice.
    Once,
}

/// How much of a module works below another root directory than `/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootSupport {
    /// All of it.
    Full,
    /// What it does to files; the rest is unknown or skipped.
    FilesOnly,
    /// Nothing.
    Refused,
}

/// The module with this name.
pub fn find_module(name: &str) -> Option<&'static ModuleDefinition> {
    MODULES
        .iter()
        .find(|module| module.name == name)
        .map(|module| &**module)
}

impl ParameterDefinition {
    /// A parameter that a step must have.
    pub const fn required(name: &'static str, kind: ParameterType, summary: &'static str) -> Self {
        Self {
            name,
            kind,
            is_required: true,
            summary,
        }
    }

    /// A parameter that a step may have.
    pub const fn optional(name: &'static str, kind: ParameterType, summary: &'static str) -> Self {
        Self {
            name,
            kind,
            is_required: false,
            summary,
        }
    }
}

impl ModuleDefinition {
    /// Reads rendered parameters.
    ///
    /// # Errors
    /// Everything that is wrong with them: unknown and missing names, and values that do not fit.
    pub fn read(
        &self,
        values: &Map<String, Value>,
    ) -> Result<Box<dyn Action>, Vec<ParameterFault>> {
        let mut parameters = Parameters::new(self, values);
        parameters.check_names();
        let action = (self.parse)(&mut parameters);
        match action {
            Some(action) if parameters.is_faultless() => Ok(action),
            _ => Err(parameters.into_faults()),
        }
    }

    /// What is wrong with the names of parameters that are not rendered yet.
    pub fn check_names(&self, values: &Map<String, Value>) -> Vec<ParameterFault> {
        let mut parameters = Parameters::new(self, values);
        parameters.check_names();
        parameters.into_faults()
    }
}

impl std::fmt::Debug for ModuleDefinition {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name)
    }
}
