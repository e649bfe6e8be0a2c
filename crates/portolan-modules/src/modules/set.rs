//! `set`: names values that later steps use.

use serde_json::{Map, Value};

use crate::action::{Action, Applied, ModuleError};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::Plan;
use crate::view::View;

/// The module `set`.
pub(super) static SET: ModuleDefinition = ModuleDefinition {
    name: "set",
    summary: "Keeps values, which later steps see as the step's result: `steps['limits'].files`.",
    parameters: &[ParameterDefinition::required(
        "values",
        ParameterType::Map,
        "The values by their names.",
    )],
    effect: Effect::Read,
    root: RootSupport::Full,
    parse,
};

/// What every result has already.
const RESERVED: [&str; 3] = ["before", "changed", "failed"];

struct Set {
    values: Map<String, Value>,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let values = parameters.map("values")?.clone();
    for name in RESERVED {
        if values.contains_key(name) {
            let message = format!("cannot name a value `{name}`: every result has one of its own");
            parameters.fault("values", message);
        }
    }
    Some(Box::new(Set { values }))
}

impl Action for Set {
    fn plan(&self, _view: &View<'_>) -> Result<Plan, ModuleError> {
        let mut plan = Plan::unchanged();
        plan.result.clone_from(&self.values);
        Ok(plan)
    }

    fn apply(&self, _host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        Ok(Applied::default())
    }
}
