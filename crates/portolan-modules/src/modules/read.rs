//! `read`: what a file of the node says, for later steps.

use camino::Utf8PathBuf;
use serde_json::{Value, json};

use crate::action::{Action, Applied, ModuleError};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::Plan;
use crate::view::{Content, View};

/// The module `read`.
pub(super) static READ: ModuleDefinition = ModuleDefinition {
    name: "read",
    summary: "Reads a file, which later steps see as the step's result: `steps['release'].content`.",
    parameters: &[
        ParameterDefinition::required("path", ParameterType::Path, "The file."),
        ParameterDefinition::optional(
            "format",
            ParameterType::Word(&["text", "json"]),
            "`text` (the default) gives `content`; `json` gives `value` too.",
        ),
        ParameterDefinition::optional(
            "optional",
            ParameterType::Boolean,
            "Whether the file may be missing; `exists` says whether it is there.",
        ),
    ],
    // A look at the host is all of it; one that a check cannot make is unknown.
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

/// The most bytes of a file that is read: results travel with the run.
const MAX_BYTES: u64 = 64 << 10;

struct Read {
    path: Utf8PathBuf,
    is_json: bool,
    is_optional: bool,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let is_json = parameters.word("format") == Some("json");
    let is_optional = parameters.boolean("optional", false);
    let path = parameters.path("path")?;
    Some(Box::new(Read {
        path,
        is_json,
        is_optional,
    }))
}

impl Action for Read {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let failed = |reason: String| ModuleError::failed("read", &self.path, reason);
        let mut plan = Plan::unchanged();
        let content = match view.read(&self.path, MAX_BYTES)? {
            None if self.is_optional => {
                plan.result.insert("exists".to_owned(), json!(false));
                return Ok(plan);
            }
            None => {
                let error = failed("it does not exist".to_owned());
                return Err(error.with_hint("`optional: true` lets it be missing"));
            }
            Some(Content::Unknown) => {
                return Ok(Plan::unknown("an earlier step writes the file"));
            }
            Some(Content::Known(content)) => content,
        };
        let text = std::str::from_utf8(&content)
            .map_err(|error| failed(format!("it is not UTF-8 text: {error}")))?;
        plan.result.insert("exists".to_owned(), json!(true));
        plan.result.insert("content".to_owned(), json!(text));
        if self.is_json {
            let value: Value = serde_json::from_str(text)
                .map_err(|error| failed(format!("it is not JSON: {error}")))?;
            plan.result.insert("value".to_owned(), value);
        }
        Ok(plan)
    }

    fn apply(&self, _host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        Ok(Applied::default())
    }
}
