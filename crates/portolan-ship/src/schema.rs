//! The JSON schema of the document, for editors.

mod check;

use serde_json::{Value, json};

use crate::document::{API_VERSION, KIND};

/// Returns the schema of the document of `kind: Ship`; it refuses fields that are not known, as reading does.
pub fn schema() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "portolan.yaml, kind Ship",
        "type": "object",
        "additionalProperties": false,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": KIND},
            "metadata": {
                "type": "object",
                "additionalProperties": false,
                "required": ["name"],
                "properties": {"name": text("Name of the project")},
            },
            "spec": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "artifacts": {
                        "description": "What is built, each into an image",
                        "type": "array",
                        "items": {"$ref": "#/definitions/artifact"},
                    },
                    "tests": {
                        "description": "How artifacts are tested",
                        "type": "array",
                        "items": {"$ref": "#/definitions/test"},
                    },
                    "verify": {
                        "description": "How what was deployed is verified",
                        "type": "array",
                        "items": {"$ref": "#/definitions/verification"},
                    },
                    "deploy": {
                        "description": "What is deployed, in steps",
                        "type": "array",
                        "items": {"$ref": "#/definitions/step"},
                    },
                    "dev": {"$ref": "#/definitions/dev"},
                    "profiles": {
                        "description": "What is laid over the document when it is asked for or meant",
                        "type": "array",
                        "items": {"$ref": "#/definitions/profile"},
                    },
                },
            },
        },
        "definitions": {
            "artifact": artifact(),
            "oci": oci(),
            "command": command(),
            "dockerfile": dockerfile(),
            "copy": copy(),
            "step": step(),
            "wait": wait(),
            "helm": helm(),
            "flux": object(
                "A cluster of a Flux repository",
                &[
                    ("path", text("Directory of the cluster")),
                    ("only", texts("Names of Kustomizations and HelmReleases; default: all")),
                ],
                &["path"],
            ),
            "git": object(
                "Images in files of a git repository, committed to a branch",
                &[
                    ("path", text("Work tree, which may lie outside of the project")),
                    ("files", texts("Patterns of the YAML files to look at")),
                    ("branch", text("Branch to commit to")),
                    ("message", text("Message of the commit; `${DIGEST}` stands for the digests")),
                ],
                &["path", "files", "branch"],
            ),
            "rollout": object(
                "A canary whose verdict is waited for",
                &[
                    ("name", text("Name of the IstioCanaryDeployment")),
                    ("timeout", json!({"$ref": "#/definitions/duration"})),
                ],
                &["name"],
            ),
            "test": check::test(),
            "commandCheck": check::command(),
            "imageCheck": check::image(),
            "fileCheck": check::file(),
            "configCheck": check::config(),
            "verification": check::verification(),
            "httpCheck": check::http(),
            "clusterCheck": check::cluster(),
            "dev": dev(),
            "profile": profile(),
            "sync": sync(),
            "forward": forward(),
            "base": base(),
            "secret": secret(),
            "duration": {
                "description": "A span of time such as `90s`, `10m` or `1h30m`",
                "type": "string",
                "pattern": "^([0-9]+[smh])+$",
            },
            "scalar": {"type": ["string", "number", "boolean"]},
            "texts": {"type": "array", "items": {"$ref": "#/definitions/scalar"}},
            "textMap": {
                "type": "object",
                "additionalProperties": {"$ref": "#/definitions/scalar"},
            },
        },
    })
}

fn artifact() -> Value {
    let name = "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$";
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "image"],
        "oneOf": [
            {"required": ["oci"]},
            {"required": ["command"]},
            {"required": ["dockerfile"]},
        ],
        "properties": {
            "name": {"description": "Unique name", "type": "string", "pattern": name},
            "image": text("Repository of the image, without tag and digest"),
            "needs": texts("Artifacts that are built before this one"),
            "retries": retries(),
            "weight": {
                "description": "How many of the places of `--jobs` its build takes; default 1",
                "type": "integer", "minimum": 1, "maximum": 1024,
            },
            "oci": {"$ref": "#/definitions/oci"},
            "command": {"$ref": "#/definitions/command"},
            "dockerfile": {"$ref": "#/definitions/dockerfile"},
        },
    })
}

fn oci() -> Value {
    object(
        "Files laid out as an image, without a daemon",
        &[
            ("context", text("Directory of the files; default `.`")),
            (
                "copy",
                json!({
                    "description": "Which files go where; default: the context to `/`",
                    "type": "array",
                    "items": {"$ref": "#/definitions/copy"},
                }),
            ),
            ("base", json!({"$ref": "#/definitions/base"})),
            ("entrypoint", texts("Program that runs")),
            ("cmd", texts("Arguments of the program")),
            ("env", text_map("Variables of the program")),
            ("user", scalar("User that it runs as; default: the base's")),
            (
                "workdir",
                text("Directory that it runs in; default: the base's"),
            ),
            ("ports", texts("Ports that it listens on")),
            ("labels", text_map("Labels of the image")),
            (
                "platforms",
                texts("One image for each; default `linux/amd64`"),
            ),
            (
                "compression",
                choice("Compression of layers; default `gzip`", &["gzip", "zstd"]),
            ),
            (
                "buckets",
                json!({
                    "description": "Layers that files are distributed over; default 8",
                    "type": "integer", "minimum": 1, "maximum": 100,
                }),
            ),
            (
                "mtime",
                scalar("Time of all files: `epoch`, `commit`, a date, or seconds since 1970"),
            ),
        ],
        &[],
    )
}

fn command() -> Value {
    object(
        "A command that makes an image",
        &[
            ("run", texts("Program and arguments")),
            ("dir", text("Directory that it runs in; default `.`")),
            (
                "inputs",
                texts("Patterns of the files that it reads; default: all"),
            ),
            (
                "env",
                texts("Variables that are passed through, and are part of the key"),
            ),
            ("set", text_map("Variables with values")),
            ("secrets", secrets()),
            (
                "versions",
                json!({
                    "description": "Commands that print versions of tools, which are part of the key",
                    "type": "array", "items": {"$ref": "#/definitions/texts"},
                }),
            ),
            ("timeout", json!({"$ref": "#/definitions/duration"})),
            (
                "hermetic",
                json!({
                    "description": "Whether it sees nothing but its inputs", "type": "boolean",
                }),
            ),
            (
                "output",
                choice(
                    "What it leaves in PORTOLAN_OUT; default `image`",
                    &["image", "files"],
                ),
            ),
            ("oci", json!({"$ref": "#/definitions/oci"})),
        ],
        &["run"],
    )
}

fn dockerfile() -> Value {
    object(
        "A Dockerfile, built by a program that is installed",
        &[
            ("context", text("Directory of the files; default `.`")),
            (
                "file",
                text("Dockerfile in the context; default `Dockerfile`"),
            ),
            ("target", text("Stage to build; default: the last")),
            ("args", text_map("Arguments of the build")),
            ("secrets", secrets()),
            ("platforms", texts("Platforms; default: the program's")),
            ("cacheFrom", texts("Images whose layers may be used again")),
            (
                "engine",
                choice(
                    "Program; default `auto`",
                    &["auto", "buildah", "buildkit", "docker"],
                ),
            ),
            ("timeout", json!({"$ref": "#/definitions/duration"})),
        ],
        &[],
    )
}

fn copy() -> Value {
    object(
        "Files that go to a place in the image",
        &[
            (
                "from",
                text(
                    "File or directory in the context; `${arch}`, `${os}` and `${platform}` are put in",
                ),
            ),
            ("to", text("Place in the image")),
            ("owner", scalar("User, or user and group: `65532:65532`")),
            ("mode", scalar("Mode of all files: `\"0755\"`")),
            ("ignore", texts("Patterns of what is left out")),
            (
                "keep",
                json!({
                    "description": "What is kept that is left out otherwise",
                    "type": "array", "items": {"enum": ["special", "capabilities"]},
                }),
            ),
        ],
        &["to"],
    )
}

fn base() -> Value {
    json!({
        "description": "What the image is built on; default `scratch`",
        "oneOf": [
            {"type": "string"},
            {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "artifact": text("Artifact whose image it is built on"),
                    "layout": text("Directory of an OCI layout"),
                    "name": text("Name in the layout"),
                },
            },
        ],
    })
}

fn step() -> Value {
    let part = |field: &str, kind: Value| {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": [field],
            "properties": {field: kind},
        })
    };
    let mut step = object(
        "Objects that are applied together",
        &[
            ("name", text("Unique name")),
            ("needs", texts("Steps that are done before this one")),
            (
                "context",
                text("Context of the kubeconfig that it is meant for"),
            ),
            ("namespace", text("Namespace of objects that say none")),
            (
                "prune",
                json!({
                    "description": "Whether what is no longer in the step is deleted; default true",
                    "type": "boolean",
                }),
            ),
            ("wait", json!({"$ref": "#/definitions/wait"})),
            (
                "onConflict",
                choice(
                    "What is done about fields of other managers; default `fail`",
                    &["fail", "force"],
                ),
            ),
            (
                "immutable",
                choice(
                    "What is done about changes of fields that cannot be changed: `replace` deletes the object and makes it anew; default `fail`",
                    &["fail", "replace"],
                ),
            ),
            (
                "adopt",
                json!({
                    "description": "Whether objects of others are taken over; default false",
                    "type": "boolean",
                }),
            ),
            (
                "before",
                commands("Commands that run before anything is applied"),
            ),
            (
                "after",
                commands("Commands that run when everything is ready"),
            ),
            ("manifests", part("paths", texts("Files and directories"))),
            ("kustomize", part("path", text("Directory of an overlay"))),
            ("helm", json!({"$ref": "#/definitions/helm"})),
            ("flux", json!({"$ref": "#/definitions/flux"})),
            ("git", json!({"$ref": "#/definitions/git"})),
            ("rollout", json!({"$ref": "#/definitions/rollout"})),
        ],
        &["name"],
    );
    step["oneOf"] = ["manifests", "kustomize", "helm", "flux", "git", "rollout"]
        .map(|kind| json!({"required": [kind]}))
        .to_vec()
        .into();
    step
}

fn helm() -> Value {
    object(
        "A chart as a release of Helm",
        &[
            ("chart", text("Directory or archive of the chart")),
            ("release", text("Name of the release; default: the step's")),
            (
                "values",
                texts("Files of values, later ones over earlier ones"),
            ),
            ("set", text_map("Single values by their paths")),
            (
                "images",
                text_map("Artifacts whose images become values, by the paths of these"),
            ),
            (
                "createNamespace",
                json!({
                    "description": "Whether the namespace is made if it is not there; default false",
                    "type": "boolean",
                }),
            ),
            (
                "historyMax",
                json!({
                    "description": "How many revisions are kept; 0 keeps all; default 10",
                    "type": "integer",
                    "minimum": 0,
                }),
            ),
            (
                "onFailure",
                choice(
                    "What is done after a failure; default `keep`",
                    &["keep", "rollback", "uninstall"],
                ),
            ),
        ],
        &["chart"],
    )
}

fn wait() -> Value {
    object(
        "How long objects are waited for",
        &[
            ("timeout", json!({"$ref": "#/definitions/duration"})),
            (
                "failFast",
                json!({
                    "description": "Whether the first object that failed ends the wait; default true",
                    "type": "boolean",
                }),
            ),
        ],
        &[],
    )
}

/// A profile holds parts of a document: maps merge and null removes, so what is required of a whole is not of them.
fn profile() -> Value {
    let parts = || json!({"type": "array", "items": {"type": "object"}});
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {
            "name": text("Name of the profile, for `-p`"),
            "when": {
                "description": "Lays the profile over the document by itself; all that is named must hold",
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "command": texts("Commands that it is for, such as `dev`"),
                    "context": texts("Contexts of the kubeconfig that it is for; `*` stands for anything"),
                },
            },
            "spec": {
                "description": "What is laid over: maps merge, lists with names by name, others are replaced, null removes",
                "type": ["object", "null"],
                "additionalProperties": false,
                "properties": {
                    "artifacts": parts(), "tests": parts(), "deploy": parts(), "verify": parts(),
                    "dev": {"type": ["object", "null"]},
                },
            },
        },
    })
}

fn dev() -> Value {
    let list = |part: &str, description: &str| {
        json!({
            "description": description,
            "type": "array",
            "items": {"$ref": format!("#/definitions/{part}")},
        })
    };
    object(
        "What `portolan dev` does besides building and deploying",
        &[
            (
                "sync",
                list("sync", "Files that are copied into running pods"),
            ),
            (
                "forward",
                list("forward", "Ports that are forwarded to this machine"),
            ),
            (
                "cleanup",
                json!({
                    "description": "Whether what was deployed is deleted at the end; default false",
                    "type": "boolean",
                }),
            ),
        ],
        &[],
    )
}

fn sync() -> Value {
    object(
        "Files that are copied into the pods of an artifact instead of building it again",
        &[
            ("artifact", text("Artifact whose pods get the files")),
            (
                "from",
                text(
                    "Pattern of the files, relative to the directory that the artifact is built from",
                ),
            ),
            (
                "to",
                text(
                    "Directory in the container, in place of what the pattern says before its first wildcard",
                ),
            ),
            (
                "after",
                texts("Command that runs in the container afterwards"),
            ),
        ],
        &["artifact", "from", "to"],
    )
}

fn forward() -> Value {
    let port = |description: &str| json!({"description": description, "type": "integer", "minimum": 1, "maximum": 65535});
    object(
        "A port that is forwarded to this machine",
        &[
            (
                "resource",
                text("Whose port, such as `service/web` or `deployment/web`"),
            ),
            (
                "namespace",
                text("Its namespace; default: that of the deploy steps"),
            ),
            ("port", port("The port there")),
            (
                "local",
                port("The port of this machine; default: the same one"),
            ),
        ],
        &["resource", "port"],
    )
}

fn secret() -> Value {
    object(
        "Where something secret comes from",
        &[
            ("env", text("Variable of the environment")),
            ("file", text("File, relative to the document")),
            (
                "as",
                choice("How the program gets it; default `file`", &["file", "env"]),
            ),
        ],
        &[],
    )
}

fn secrets() -> Value {
    json!({
        "description": "What is secret, by the name that the program knows it by",
        "type": "object",
        "additionalProperties": {"$ref": "#/definitions/secret"},
    })
}

fn commands(description: &str) -> Value {
    json!({
        "description": description,
        "type": "array",
        "items": {"$ref": "#/definitions/commandCheck"},
    })
}

fn object(description: &str, fields: &[(&str, Value)], required: &[&str]) -> Value {
    let fields = fields.iter().cloned();
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    let properties: serde_json::Map<String, Value> = fields.collect();
    json!({
        "description": description,
        "type": ["object", "null"],
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

fn retries() -> Value {
    json!({
        "description": "How often it is tried again when it failed; default 0",
        "type": "integer", "minimum": 0, "maximum": 10,
    })
}

fn text(description: &str) -> Value {
    json!({"description": description, "type": "string"})
}

fn scalar(description: &str) -> Value {
    json!({"description": description, "type": ["string", "number"]})
}

fn texts(description: &str) -> Value {
    json!({"description": description, "type": "array", "items": {"$ref": "#/definitions/scalar"}})
}

fn text_map(description: &str) -> Value {
    json!({
        "description": description,
        "type": "object",
        "additionalProperties": {"$ref": "#/definitions/scalar"},
    })
}

fn choice(description: &str, words: &[&str]) -> Value {
    json!({"description": description, "enum": words})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::document::{check_fields, deploy_fields, dev_fields, fields_of};

    #[test]
    fn the_schema_has_the_fields_that_are_read() {
        let schema = schema();
        for (name, fields) in fields_of()
            .into_iter()
            .chain(deploy_fields())
            .chain(check_fields())
            .chain(dev_fields())
        {
            let properties = &schema["definitions"][name]["properties"];
            let properties = properties.as_object().expect("an object");
            let written: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
            let read: BTreeSet<&str> = fields.iter().copied().collect();
            assert_eq!(written, read, "{name}");
        }
    }
}
