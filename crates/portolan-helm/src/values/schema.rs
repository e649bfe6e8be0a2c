//! `values.schema.json`: values checked before a chart is rendered.
//!
//! Helm 3 and Helm 4 have different validators, and charts were written for one of them: [`loose`] is Helm 3's,
//! [`exact`] is Helm 4's. Results and messages are those of the libraries that they use.
//!
//! ```text
//! bytes ──read──▶ document ──compile──▶ Schema ──messages(values)──▶ text, each line with the place of its value
//! ```

mod document;
mod elsewhere;
pub(crate) mod exact;
pub(crate) mod loose;
mod progress;
mod subschema;

use std::rc::Rc;

use portolan_gotmpl::{Map, Value};

use crate::dependency::Plan;
use crate::render::{Error, TemplateInput};
pub use elsewhere::{MAX_FETCHED_SCHEMAS, SchemaFetchError, SchemaSource};

/// The values break the schemas of these charts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
pub struct SchemaError(pub String);

/// Checks the coalesced values of a chart and, below their names, those of its dependencies.
pub(crate) fn validate(plan: &Plan, values: &Rc<Map>, input: &TemplateInput) -> Result<(), Error> {
    let mut report = String::new();
    collect(plan, values, input, &mut report)?;
    if report.is_empty() {
        Ok(())
    } else {
        Err(SchemaError(report).into())
    }
}

fn collect(
    plan: &Plan,
    values: &Rc<Map>,
    input: &TemplateInput,
    report: &mut String,
) -> Result<(), Error> {
    let own = Value::Map(Rc::clone(values));
    let source = input.schemas.as_deref();
    let (profile, budget) = (input.profile, &input.budget);
    let checked = plan
        .package()
        .schema_messages(&own, profile, source, budget);
    let checked = checked.map_err(|exceeded| Error::SchemaStopped {
        file: format!("{}/values.schema.json", plan.path()),
        exceeded,
    })?;
    if let Some(messages) = checked {
        report.push_str(plan.name());
        report.push_str(":\n");
        report.push_str(&messages);
    }
    for dependency in plan.dependencies() {
        if let Some(Value::Map(below)) = values.get(dependency.name()) {
            collect(dependency, &below, input, report)?;
        }
    }
    Ok(())
}
