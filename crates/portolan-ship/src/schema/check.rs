//! The schema of tests and verifications.

use serde_json::{Value, json};

use super::{object, scalar, text, text_map, texts};

pub(super) fn test() -> Value {
    let mut test = object(
        "A test, done for each of its artifacts",
        &[
            ("name", text("Unique name")),
            ("artifacts", texts("Artifacts that are tested")),
            ("retries", super::retries()),
            ("command", reference("commandCheck")),
            ("image", reference("imageCheck")),
        ],
        &["name", "artifacts"],
    );
    test["oneOf"] = one_of(&["command", "image"]);
    test
}

pub(super) fn command() -> Value {
    object(
        "A program that ends with 0 if all is well",
        &[
            ("run", texts("Program and its arguments")),
            ("dir", text("Where it runs; default .")),
            (
                "inputs",
                texts("Patterns of files that it reads; it runs in a directory of these alone"),
            ),
            ("env", texts("Variables that are passed through")),
            ("set", text_map("Variables")),
            (
                "secrets",
                json!({
                    "description": "Secrets by name",
                    "type": "object",
                    "additionalProperties": {"$ref": "#/definitions/secret"},
                }),
            ),
            ("timeout", reference("duration")),
        ],
        &["run"],
    )
}

pub(super) fn image() -> Value {
    object(
        "What an image must have",
        &[
            (
                "files",
                json!({
                    "description": "Files that must be there, or must not",
                    "type": "array",
                    "items": {"$ref": "#/definitions/fileCheck"},
                }),
            ),
            ("config", reference("configCheck")),
            (
                "maxSize",
                scalar("Most bytes of its layers, such as `50Mi`"),
            ),
            (
                "secrets",
                object(
                    "Nothing may look like a secret",
                    &[("allow", texts("Patterns of files that may hold one"))],
                    &[],
                ),
            ),
        ],
        &[],
    )
}

pub(super) fn file() -> Value {
    object(
        "A file of an image",
        &[
            ("path", text("Path in the image")),
            ("mode", scalar("Permissions, such as \"0755\"")),
            ("owner", text("Numbers of user and group, such as \"0:0\"")),
            (
                "absent",
                json!({"description": "Whether it must not be there; default false", "type": "boolean"}),
            ),
        ],
        &["path"],
    )
}

pub(super) fn config() -> Value {
    object(
        "What the config of an image must say",
        &[
            ("user", scalar("User")),
            ("workdir", text("Directory")),
            ("entrypoint", texts("Program")),
            ("cmd", texts("Arguments")),
            ("env", text_map("Variables")),
            ("labels", text_map("Labels")),
        ],
        &[],
    )
}

pub(super) fn verification() -> Value {
    let mut verification = object(
        "A look at what was deployed",
        &[
            ("name", text("Unique name")),
            ("needs", texts("Deploy steps that come first; default: all")),
            (
                "namespace",
                text("Namespace of objects; default: that of the context"),
            ),
            ("http", reference("httpCheck")),
            ("command", reference("commandCheck")),
            ("cluster", reference("clusterCheck")),
        ],
        &["name"],
    );
    verification["oneOf"] = one_of(&["http", "command", "cluster"]);
    verification
}

pub(super) fn http() -> Value {
    let mut http = object(
        "A request that must be answered well",
        &[
            ("url", text("Address")),
            (
                "forward",
                text("Port of something in the cluster, such as `service/web:80`"),
            ),
            ("path", text("Path behind the address")),
            (
                "status",
                json!({"description": "Status of a good answer; default 200", "type": "integer"}),
            ),
            ("contains", text("Text in the body of a good answer")),
            ("for", reference("duration")),
        ],
        &[],
    );
    http["oneOf"] = one_of(&["url", "forward"]);
    http
}

pub(super) fn cluster() -> Value {
    object(
        "Objects that must be in a state",
        &[
            ("apiVersion", text("As in `apps/v1`")),
            ("kind", text("As in `Deployment`")),
            ("name", text("Name of one object")),
            ("selector", text("Labels, as in `app=web`")),
            (
                "condition",
                text("Condition that must be true; default: the object is what it asks for"),
            ),
            (
                "atLeast",
                json!({"description": "How many there must be; default 1", "type": "integer", "minimum": 1}),
            ),
            ("timeout", reference("duration")),
        ],
        &["apiVersion", "kind"],
    )
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/definitions/{name}")})
}

fn one_of(kinds: &[&str]) -> Value {
    let each = kinds.iter().map(|kind| json!({"required": [kind]}));
    each.collect()
}
