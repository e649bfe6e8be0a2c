//! `assert`: ends the run of a node on which something does not hold.
//!
//! Whether it holds is decided before the module is asked, because only the run knows facts, inputs and results.

use crate::action::{Action, Applied, ModuleError};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::Plan;
use crate::view::View;

/// The module `assert`.
pub(super) static ASSERT: ModuleDefinition = ModuleDefinition {
    name: "assert",
    summary: "Fails the step if an expression does not hold.",
    parameters: &[
        ParameterDefinition::required(
            "that",
            ParameterType::Any,
            "A CEL expression, or a list of them, over what `when` can use; each must hold.",
        ),
        ParameterDefinition::optional(
            "message",
            ParameterType::Text,
            "What to say if one does not hold.",
        ),
    ],
    effect: Effect::Read,
    root: RootSupport::Full,
    parse,
};

struct Assert;

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    parameters.text("message");
    parameters.value("that")?;
    Some(Box::new(Assert))
}

impl Action for Assert {
    fn plan(&self, _view: &View<'_>) -> Result<Plan, ModuleError> {
        Ok(Plan::unchanged())
    }

    fn apply(&self, _host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        Ok(Applied::default())
    }
}
