//! `print`: says something at a step.

use serde_json::json;

use crate::action::{Action, Applied, ModuleError};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::Plan;
use crate::view::View;

/// The module `print`.
pub(super) static PRINT: ModuleDefinition = ModuleDefinition {
    name: "print",
    summary: "Shows a message beside the step.",
    parameters: &[ParameterDefinition::required(
        "message",
        ParameterType::Text,
        "The message; secrets in it are hidden.",
    )],
    effect: Effect::Read,
    root: RootSupport::Full,
    parse,
};

struct Print {
    message: String,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let message = parameters.text("message")?.to_owned();
    Some(Box::new(Print { message }))
}

impl Action for Print {
    fn plan(&self, _view: &View<'_>) -> Result<Plan, ModuleError> {
        let mut plan = Plan::unchanged();
        plan.notes.push(self.message.clone());
        plan.result
            .insert("message".to_owned(), json!(self.message));
        Ok(plan)
    }

    fn apply(&self, _host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        Ok(Applied::default())
    }
}
