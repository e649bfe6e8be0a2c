//! The part of the document that is about content which is too large for an object.

use serde_json::{Map, Value, json};

use super::{path_parameter, responses, text};

pub(super) fn add_paths(paths: &mut Map<String, Value>) {
    let namespace = path_parameter("namespace", "The namespace.");
    let mut digest = path_parameter(
        "digest",
        "The SHA-256 digest of the content, in hexadecimal.",
    );
    digest["schema"]["pattern"] = json!("^(sha256:)?[0-9a-f]{64}$");
    let binary =
        json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}});
    let made = json!({
        "type": "object", "required": ["apiVersion", "kind", "digest", "bytes", "servers"],
        "properties": {
            "apiVersion": text(), "kind": {"type": "string", "enum": ["Blob"]}, "digest": text(),
            "bytes": {"type": "integer"}, "servers": {"type": "array", "items": text()},
        },
    });
    let mut content = responses(&["200"], &json!({}));
    content["200"]["content"] = binary.clone();
    paths.insert(
        "/api/v1alpha/namespaces/{namespace}/blobs".to_owned(),
        json!({
            "parameters": [namespace],
            "post": {
                "summary": "Stores content; when it answers, two servers have it if there are two.",
                "requestBody": {"required": true, "content": binary},
                "responses": responses(&["201"], &made),
            },
        }),
    );
    paths.insert(
        "/api/v1alpha/namespaces/{namespace}/blobs/{digest}".to_owned(),
        json!({
            "parameters": [namespace, digest],
            "get": {"summary": "Returns content.", "responses": content},
            "delete": {
                "summary": "Takes content out of the namespace.",
                "responses": responses(&["200"], &json!({"type": "object"})),
            },
        }),
    );
}
