//! The `OpenAPI` document of the HTTP API, made from the kinds.

mod blobs;
mod runs;

use std::sync::OnceLock;

use portolan_kinds::{KINDS, KindDefinition, definition_schema, metadata_schema};
use serde_json::{Map, Value, json};

/// The whole document.
pub(crate) fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(make)
}

fn make() -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    schemas.insert("Metadata".to_owned(), metadata_schema());
    schemas.insert("Error".to_owned(), error_schema());
    for kind in KINDS {
        schemas.insert(kind.name.to_owned(), definition_schema(kind));
        schemas.insert(format!("{}List", kind.name), list_schema(kind));
        add_paths(&mut paths, kind);
    }
    add_other_paths(&mut paths);
    add_identity_paths(&mut paths);
    runs::add_paths(&mut paths);
    blobs::add_paths(&mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Portolan", "version": portolan_kinds::VERSION,
            "description": "Objects of the control plane. Errors have a `reason` for programs and a `hint` for people.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn error_schema() -> Value {
    json!({
        "type": "object", "required": ["apiVersion", "kind", "status", "error"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string", "enum": ["Error"]},
            "status": {"type": "integer"}, "reason": {"type": "string"}, "error": {"type": "string"},
            "hint": {"type": "string"}, "details": {},
        },
    })
}

fn list_schema(kind: &KindDefinition) -> Value {
    json!({
        "type": "object", "required": ["apiVersion", "kind", "metadata", "items"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {
                "type": "object",
                "properties": {"resourceVersion": {"type": "string"}, "continue": {"type": "string"}},
            },
            "items": {"type": "array", "items": reference(kind.name)},
        },
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn add_paths(paths: &mut Map<String, Value>, kind: &KindDefinition) {
    let plural = kind.plural;
    let (base, mut parameters) = if kind.is_namespaced {
        let all = json!({"get": list_operation(kind)});
        paths.insert(format!("/api/v1alpha/{plural}"), all);
        let namespace = path_parameter("namespace", "The namespace.");
        (
            format!("/api/v1alpha/namespaces/{{namespace}}/{plural}"),
            vec![namespace],
        )
    } else {
        (format!("/api/v1alpha/{plural}"), Vec::new())
    };
    let collection = json!({
        "parameters": parameters,
        "get": list_operation(kind),
        "post": write_operation(kind, "Creates an object.", &["201"], &["dryRun"]),
    });
    paths.insert(base.clone(), collection);
    parameters.push(path_parameter("name", "The name."));
    let item = json!({
        "parameters": parameters,
        "get": {
            "summary": format!("Returns a {}.", kind.name), "parameters": queries(&["history", "reveal"]),
            "responses": responses(&["200"], &json!({})),
        },
        "put": write_operation(kind, "Replaces an object, or applies it.", &["200"], &["apply", "dryRun"]),
        "delete": {
            "summary": "Deletes an object.", "parameters": queries(&["dryRun", "resourceVersion", "uuid"]),
            "responses": responses(&["200", "202"], &json!({"type": "object"})),
        },
    });
    paths.insert(format!("{base}/{{name}}"), item);
}

fn list_operation(kind: &KindDefinition) -> Value {
    let parameters = queries(&[
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "watch",
        "initial",
        "resourceVersion",
    ]);
    let mut responses = responses(&["200"], &reference(&format!("{}List", kind.name)));
    // With `watch`, an answer that goes on.
    for stream in ["application/x-ndjson", "text/event-stream"] {
        responses["200"]["content"][stream] = json!({"schema": {"type": "string"}});
    }
    json!({
        "summary": format!("Lists or watches {}.", kind.plural), "parameters": parameters, "responses": responses,
    })
}

fn write_operation(
    kind: &KindDefinition,
    summary: &str,
    codes: &[&str],
    parameters: &[&str],
) -> Value {
    let content = json!({
        "application/json": {"schema": reference(kind.name)},
        "application/yaml": {"schema": reference(kind.name)},
    });
    json!({
        "summary": summary, "parameters": queries(parameters),
        "requestBody": {"required": true, "content": content},
        "responses": responses(codes, &reference(kind.name)),
    })
}

fn add_other_paths(paths: &mut Map<String, Value>) {
    let object = json!({"type": "object"});
    paths.insert(
        "/api/v1alpha/status".to_owned(),
        json!({"get": {"summary": "Says how the server stands.", "responses": responses(&["200"], &object)}}),
    );
    paths.insert(
        "/api/v1alpha/namespaces/{namespace}/nodes/{node}/variables".to_owned(),
        json!({
            "parameters": [
                path_parameter("namespace", "The namespace of runs."), path_parameter("node", "The name of the node."),
            ],
            "get": {
                "summary": "Returns the variables of a node in runs of a namespace, and where each came from.",
                "responses": responses(&["200"], &object),
            },
        }),
    );
    paths.insert(
        "/api/v1alpha/trigger-tests".to_owned(),
        json!({"post": {
            "summary": "Says what triggers would do about an event, and why; nothing is done.",
            "requestBody": body(&json!({"namespace": text(), "name": text()}), &["namespace", "name"]),
            "responses": responses(&["200"], &object),
        }}),
    );
    paths.insert(
        "/api/v1alpha/auth/can-i".to_owned(),
        json!({"post": {
            "summary": "Says whether the caller may do something, and why.",
            "requestBody": body(
                &json!({"verb": text(), "kind": text(), "namespace": text(), "name": text()}), &["verb", "kind"],
            ),
            "responses": responses(&["200"], &object),
        }}),
    );
    paths.insert(
        "/api/v1alpha/auth/rights".to_owned(),
        json!({"get": {"summary": "Lists the rights of the caller.", "responses": responses(&["200"], &object)}}),
    );
    paths.insert(
        "/api/v1alpha/auth/tokens".to_owned(),
        json!({
            "get": {"summary": "Lists tokens.", "responses": responses(&["200"], &object)},
            "post": {
                "summary": "Makes a token.",
                "requestBody": body(
                    &json!({
                        "user": text(), "groups": {"type": "array", "items": text()}, "life": text(),
                        "description": text(),
                    }),
                    &["user"],
                ),
                "responses": responses(&["201"], &object),
            },
        }),
    );
    paths.insert(
        "/api/v1alpha/auth/tokens/{id}".to_owned(),
        json!({
            "parameters": [path_parameter("id", "The public id of the token.")],
            "delete": {"summary": "Ends a token.", "responses": responses(&["200"], &object)},
        }),
    );
}

/// Paths of identities. What only agents do is described by `portolan-identity`, which does it.
fn add_identity_paths(paths: &mut Map<String, Value>) {
    let key = path_parameter("fingerprint", "The SHA-256 digest of the key.");
    let node = path_parameter("name", "The name of the node.");
    let new_token = json!({
        "uses": {"type": "integer", "minimum": 1}, "life": text(), "namePattern": text(),
        "labels": {"type": "object", "additionalProperties": text()},
    });
    let new_certificate = json!({
        "user": text(), "groups": {"type": "array", "items": text()}, "life": text(), "csr": text(),
    });
    let rows = [
        (
            "authorities",
            json!({"get": operation("Returns the authorities of the fleet.", "200")}),
        ),
        (
            "authorities/rotate",
            json!({"post": operation("Makes the next authority now.", "200")}),
        ),
        (
            "auth/certificates",
            json!({
                "post": operation_with_body("Makes a client certificate of a user.", "201", &new_certificate, &["user", "csr"]),
            }),
        ),
        (
            "enrolments",
            json!({"get": operation("Lists machines that wait for approval.", "200")}),
        ),
        (
            "enrolments/{fingerprint}",
            json!({
                "parameters": [key], "delete": operation("Forgets a waiting machine.", "200"),
            }),
        ),
        (
            "enrolments/{fingerprint}/approve",
            json!({
                "parameters": [key], "post": operation("Makes a waiting machine a node.", "200"),
            }),
        ),
        (
            "join-tokens",
            json!({
                "get": operation("Lists join tokens.", "200"),
                "post": operation_with_body("Makes a join token.", "201", &new_token, &[]),
            }),
        ),
        (
            "join-tokens/{id}",
            json!({
                "parameters": [path_parameter("id", "The public id of the token.")],
                "delete": operation("Ends a join token.", "200"),
            }),
        ),
        (
            "nodes/{name}/revoke",
            json!({
                "parameters": [node], "post": operation("Makes all certificates of a node useless.", "200"),
            }),
        ),
    ];
    for (path, operations) in rows {
        paths.insert(format!("/api/v1alpha/{path}"), operations);
    }
}

fn text() -> Value {
    json!({"type": "string"})
}

/// A body that is one JSON object.
fn body(properties: &Value, required: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    json!({"required": true, "content": {"application/json": {"schema": schema}}})
}

/// An operation that answers with an object of its own.
fn operation(summary: &str, code: &str) -> Value {
    json!({"summary": summary, "responses": responses(&[code], &json!({"type": "object"}))})
}

fn operation_with_body(summary: &str, code: &str, properties: &Value, required: &[&str]) -> Value {
    let mut operation = operation(summary, code);
    operation["requestBody"] = body(properties, required);
    operation
}

fn path_parameter(name: &str, description: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "description": description, "schema": {"type": "string"}})
}

fn queries(names: &[&str]) -> Value {
    let one = |name: &&str| {
        let (schema, description) = match *name {
            "limit" => (
                json!({"type": "integer", "minimum": 1}),
                "The most objects of a page.",
            ),
            "continue" => (
                json!({"type": "string"}),
                "The `metadata.continue` of the page before.",
            ),
            "labelSelector" => (
                json!({"type": "string"}),
                "A label selector, as in `role=web`.",
            ),
            "fieldSelector" => (
                json!({"type": "string"}),
                "A field selector, as in `metadata.name=web`.",
            ),
            "resourceVersion" => (
                json!({"type": "string"}),
                "The version to begin after, or to delete.",
            ),
            "uuid" => (
                json!({"type": "string"}),
                "The identity of the object to delete.",
            ),
            "watch" => (
                json!({"type": "boolean"}),
                "Follows changes instead of listing.",
            ),
            "initial" => (
                json!({"type": "boolean"}),
                "Begins with the objects that exist.",
            ),
            "apply" => (
                json!({"type": "boolean"}),
                "Creates the object if it does not exist.",
            ),
            "reveal" => (
                json!({"type": "boolean"}),
                "Returns the values of a Secret.",
            ),
            "history" => (
                json!({"type": "boolean"}),
                "Returns the last changes instead of the object.",
            ),
            _ => (
                json!({"type": "boolean"}),
                "Checks everything and changes nothing.",
            ),
        };
        json!({"name": name, "in": "query", "description": description, "schema": schema})
    };
    names.iter().map(one).collect()
}

/// The answers of an operation: those that work, and errors.
fn responses(codes: &[&str], schema: &Value) -> Value {
    let mut responses = Map::new();
    for code in codes {
        let content = json!({"application/json": {"schema": schema}});
        responses.insert(
            (*code).to_owned(),
            json!({"description": "It worked.", "content": content}),
        );
    }
    let error = json!({"description": "It was refused.", "content": {"application/json": {"schema": reference("Error")}}});
    responses.insert("4XX".to_owned(), error.clone());
    responses.insert("5XX".to_owned(), error);
    Value::Object(responses)
}
