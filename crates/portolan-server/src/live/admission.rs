//! What a Beacon, CronJob, Trigger, Webhook, Variable or TaskBook asks for beyond its own fields, checked when it is written.
//!
//! Their runs are made by the server itself. So who writes one must have the right to make such runs by hand.

use std::sync::Arc;

use portolan_fleet::{MemoryFiles, TextRenderer, named_files};
use portolan_kinds::KindObject;
use serde_json::Value;

use super::trigger_state::read_trigger;
use crate::access::{Access, Action};
use crate::error::{ApiError, RefusalReason};
use crate::token::Identity;

/// Refuses an object that asks for what its author may not do, or that could never work.
pub(crate) fn check_live(
    access: &Access,
    identity: &Identity,
    object: &KindObject,
) -> Result<(), ApiError> {
    let may = |verb: &str, kind: &str, name: Option<&str>| {
        let action = Action {
            verb,
            kind,
            namespace: object.namespace(),
            name,
        };
        access.check(identity, &action).map(|_| ())
    };
    match object.kind.name {
        "Beacon" if object.spec.get("drift").is_some() => {
            may("run", "TaskBook", object.spec["drift"]["book"].as_str())
        }
        "CronJob" => {
            let books = object.spec.get("books").and_then(Value::as_array);
            let books = books.into_iter().flatten();
            for book in books.filter_map(|book| book["name"].as_str()) {
                may("run", "TaskBook", Some(book))?;
            }
            if object.spec.get("steps").is_some() {
                // Who brings steps of their own could as well change a book.
                may("run", "TaskBook", Some(object.name()))?;
                may("update", "TaskBook", Some(object.name()))?;
            }
            Ok(())
        }
        "TaskBook" if object.spec.get("reconcile").is_some() => {
            may("run", "TaskBook", Some(object.name()))
        }
        "Trigger" => {
            may("run", "TaskBook", object.spec["run"]["book"].as_str())?;
            read_trigger(object).map_err(|error| invalid(error.message))?;
            check_templates(&object.spec["run"]["inputs"])
        }
        "Variable" if object.spec["dynamic"].get("taskBook").is_some() => may(
            "run",
            "TaskBook",
            object.spec["dynamic"]["taskBook"].as_str(),
        ),
        "Variable" => {
            // Who may run a book that uses the variable can have the value.
            let places = object.spec.get("secrets").and_then(Value::as_object);
            for place in places.into_iter().flat_map(|places| places.values()) {
                may("read-secret", "Secret", place["secret"].as_str())?;
            }
            Ok(())
        }
        "Webhook" => may("create", "Event", None),
        _ => Ok(()),
    }
}

/// Refuses a TaskBook or Variable that names files beside it, unless it comes from a commit that has them.
pub(crate) fn check_files_beside(object: &KindObject) -> Result<(), ApiError> {
    if object.kind.name == "Variable" && object.spec.get("files").is_some() {
        let message = format!(
            "Variable {} has its values in files, and one that is applied comes without files",
            object.name()
        );
        let hint = "a Repository has the files of its commit; otherwise put them into `values`";
        return Err(invalid(message).hint(hint));
    }
    if object.kind.name != "TaskBook" {
        return Ok(());
    }
    let Some(file) = named_files(&object.spec).into_iter().next() else {
        return Ok(());
    };
    let message = format!(
        "TaskBook {} names the file `{file}`, and a book that is applied comes without files",
        object.name()
    );
    Err(invalid(message).hint(
        "`portolan fleet run -f` sends a book with its files, and a Repository has those of its commit",
    ))
}

/// Refuses inputs that are no templates.
fn check_templates(inputs: &Value) -> Result<(), ApiError> {
    let renderer = TextRenderer::new(Arc::new(MemoryFiles::default()));
    let mut waiting = vec![inputs];
    while let Some(value) = waiting.pop() {
        match value {
            Value::String(text) => {
                let names = renderer.names_in_text(text);
                names.map_err(|error| invalid(format!("`spec.run.inputs`: `{text}`: {error}")))?;
            }
            Value::Array(items) => waiting.extend(items),
            Value::Object(map) => waiting.extend(map.values()),
            _ => {}
        }
    }
    Ok(())
}

fn invalid(message: String) -> ApiError {
    ApiError::new(
        http::StatusCode::UNPROCESSABLE_ENTITY,
        RefusalReason::Invalid,
        message,
    )
}
