//! The runs of a slot: one for each book of a CronJob, or one for its steps.

use portolan_digest::Digest;
use portolan_kinds::KindObject;
use portolan_trigger::SlotFiring;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::runs::{BookName, BookUse, FiredRun, MadeBy};

/// The name that runs of schedules are made under.
pub(super) const USER: &str = "system:cron";

/// The runs of a slot, in the order of the books. `made_by` has what is written with the last one; the others write
/// nothing.
pub(super) fn runs_of(
    job: &KindObject,
    firing: &SlotFiring,
    made_by: &MadeBy,
) -> Result<Vec<FiredRun>, ApiError> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let target = job.spec.get("target").cloned().unwrap_or_default();
    let nodes = target.get("nodes").and_then(Value::as_array);
    let nodes = nodes.into_iter().flatten().filter_map(Value::as_str);
    let selector = match text(&target, "selector") {
        Some(text) => Some(text.parse().map_err(|error| {
            ApiError::bad_request(format!("`target.selector` of the CronJob: {error}"))
        })?),
        None => None,
    };
    let run = |book: String, inputs: Map<String, Value>| FiredRun {
        user: USER,
        namespace: job.namespace().unwrap_or_default().to_owned(),
        key: run_key(job, firing),
        book,
        text: None,
        is_check: job.spec["mode"] == "check",
        inputs,
        nodes: nodes.clone().map(str::to_owned).collect(),
        selector: selector.clone(),
        made_by: MadeBy {
            with: portolan_store::Transaction::new(),
            ..made_by.clone()
        },
    };
    let books = job.spec.get("books").and_then(Value::as_array);
    let books = books.into_iter().flatten();
    let mut runs: Vec<FiredRun> = books
        .map(|book| {
            let inputs = book.get("inputs").and_then(Value::as_object);
            let name = text(book, "name").unwrap_or_default();
            run(name, inputs.cloned().unwrap_or_default())
        })
        .collect();
    if runs.is_empty() {
        // The target of steps is that of their book; it is not narrowed again.
        runs.push(FiredRun {
            text: Some(book_of_steps(job, &target)),
            nodes: Vec::new(),
            selector: None,
            ..run(job.name().to_owned(), Map::new())
        });
    }
    if let Some(last) = runs.last_mut() {
        last.made_by.with = made_by.with.clone();
    }
    Ok(runs)
}

/// Whether nodes keep a schedule, and not a server.
pub(crate) fn is_kept_by_nodes(job: &KindObject) -> bool {
    job.spec["on"] == "agent"
}

/// The books that nodes take in each slot of a schedule that they keep, in order.
pub(crate) fn book_uses(job: &KindObject) -> Vec<BookUse> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let target = job.spec.get("target").cloned().unwrap_or_default();
    let nodes = target.get("nodes").and_then(Value::as_array);
    let nodes = nodes.into_iter().flatten().filter_map(Value::as_str);
    let nodes: Vec<String> = nodes.map(str::to_owned).collect();
    let wanted = |book: String, text: Option<String>| BookUse {
        name: BookName {
            namespace: job.namespace().unwrap_or_default().to_owned(),
            book,
            text,
        },
        inputs: Map::new(),
        selector: None,
        nodes: Vec::new(),
        is_check: job.spec["mode"] == "check",
    };
    let books = job.spec.get("books").and_then(Value::as_array);
    let books = books.filter(|books| !books.is_empty());
    let Some(books) = books else {
        // The target of steps is that of their book.
        let steps = book_of_steps(job, &target);
        return vec![wanted(job.name().to_owned(), Some(steps))];
    };
    let books = books.iter().map(|book| BookUse {
        inputs: book["inputs"].as_object().cloned().unwrap_or_default(),
        selector: text(&target, "selector"),
        nodes: nodes.clone(),
        ..wanted(text(book, "name").unwrap_or_default(), None)
    });
    books.collect()
}

/// A TaskBook of the steps of a CronJob, named like it.
fn book_of_steps(job: &KindObject, target: &Value) -> String {
    let book = json!({
        "apiVersion": portolan_kinds::VERSION, "kind": "TaskBook",
        "metadata": {"name": job.name(), "namespace": job.namespace()},
        "spec": {"target": target, "steps": job.spec["steps"]},
    });
    book.to_string()
}

/// What tells the run of a slot from others of its book: the job, and the minute in UTC.
fn run_key(job: &KindObject, firing: &SlotFiring) -> String {
    let job = Digest::of(job.metadata.uuid().as_bytes()).hex();
    let job = job.get(..6).unwrap_or_default();
    format!("{job}-{}", firing.slot.strftime("%Y%m%d-%H%M"))
}
