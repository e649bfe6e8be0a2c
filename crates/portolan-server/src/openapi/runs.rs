//! The part of the document that is about runs of books, and requests of webhooks.

use serde_json::{Map, Value, json};

use super::{operation, operation_with_body, path_parameter, reference, responses, text};

const SPACE: &str = "/api/v1alpha/namespaces/{namespace}";

pub(super) fn add_paths(paths: &mut Map<String, Value>) {
    let namespace = path_parameter("namespace", "The namespace.");
    let named = |what: &str| json!([namespace, path_parameter("name", what)]);
    let mut add = |path: &str, parameters: &Value, verb: &str, operation: Value| {
        let item = json!({"parameters": parameters, verb: operation});
        paths.insert(format!("{SPACE}/{path}"), item);
    };
    let book = named("The name of the TaskBook.");
    let run = named("The name of the Run.");
    add("taskbooks/{name}/run", &book, "post", start());
    add("taskbooks/{name}/files", &book, "post", files());
    add("exec", &json!([namespace]), "post", exec());
    let nodes = "Returns what happened on each node of a run.";
    add("runs/{name}/nodes", &run, "get", operation(nodes, "200"));
    let plan = "Returns the plan that a check made.";
    add("runs/{name}/plan", &run, "get", operation(plan, "200"));
    add("runs/{name}/cancel", &run, "post", cancel());
    let resume = "Goes on with a run at the first unfinished step of each node.";
    add("runs/{name}/resume", &run, "post", wish(resume));
    let approve = "Opens the gate that a run waits at.";
    add("runs/{name}/approve", &run, "post", wish(approve));
    add("runs/{name}/rerun", &run, "post", repeat());
    let webhook = named("The name of the Webhook.");
    add("webhooks/{name}/deliver", &webhook, "post", deliver());
}

fn words() -> Value {
    json!({"type": "array", "items": text(), "maxItems": 100})
}

/// An operation that answers with a Run.
fn run_operation(summary: &str, code: &str, properties: &Value, required: &[&str]) -> Value {
    let mut operation = operation_with_body(summary, code, properties, required);
    operation["responses"] = responses(&[code], &reference("Run"));
    operation
}

fn wish(summary: &str) -> Value {
    json!({"summary": summary, "responses": responses(&["200"], &reference("Run"))})
}

fn start() -> Value {
    let properties = json!({
        "mode": {"type": "string", "enum": ["apply", "check"]}, "inputs": {"type": "object"}, "tags": words(),
        "skipTags": words(), "nodes": words(), "selector": text(), "dedupeKey": text(), "parent": text(),
        "book": {"type": "object"}, "plan": {"type": "object"}, "allowDirty": {"type": "boolean"},
    });
    run_operation("Makes a run of a TaskBook.", "201", &properties, &[])
}

fn files() -> Value {
    let summary =
        "Takes files for a book that comes with the request for a run, and says which are missing.";
    operation_with_body(summary, "200", &json!({}), &[])
}

fn exec() -> Value {
    let properties = json!({"run": words(), "shell": text()});
    let mut operation = run_operation("Makes a run of one command.", "201", &properties, &[]);
    operation["description"] =
        json!("Needs the right `exec`, which no role has unless it says so.");
    operation
}

fn cancel() -> Value {
    let properties = json!({"how": {"type": "string", "enum": ["drain", "now"]}});
    run_operation("Ends a run.", "200", &properties, &[])
}

fn repeat() -> Value {
    let properties = json!({
        "onlyFailed": {"type": "boolean"}, "inputs": {"type": "object"}, "dedupeKey": text(),
    });
    let summary = "Makes a new run of what a run was made from.";
    run_operation(summary, "201", &properties, &[])
}

fn deliver() -> Value {
    let header = |name: &str, description: &str| json!({"name": name, "in": "header", "description": description, "schema": text()});
    json!({
        "summary": "Makes events of a request from outside.",
        "description": "The request is signed with a key of the Webhook; no token is needed.",
        "security": [],
        "parameters": [
            header("x-portolan-timestamp", "When it was signed, in seconds since 1970."),
            header("x-portolan-signature", "HMAC-SHA-256 of the time, a full stop and the body, as `sha256=…`."),
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {}}}},
        "responses": responses(&["200"], &json!({"type": "object"})),
    })
}
