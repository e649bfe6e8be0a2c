//! Single commands: a book of the server's own with one command, which needs the right `exec` and agents that take such
//! commands.
//!
//! It is a run like any other: on nodes that the namespace may target, once on each, with its output in the records. The
//! command is a part of the audit log.

use std::time::Duration;

use portolan_kinds::find_kind;
use serde_json::{Map, Value, json};

use super::record::StoredBook;
use super::request::RunRequest;
use super::target::Narrowing;
use crate::error::ApiError;
use crate::server::{ApiServer, Caller, Target};

/// The name of the book.
const BOOK: &str = "exec";

/// The bytes of standard output, and as many of standard error, that are kept of a node.
const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// The most words of a command, and their bytes.
const MAX_WORDS: usize = 1_000;
const MAX_BYTES: usize = 128 << 10;

/// The longest time that a command may take.
const MAX_TIME: Duration = Duration::from_hours(1);

/// A command, and where it runs.
#[derive(Debug)]
pub(crate) struct ExecRequest {
    command: Vec<String>,
    timeout: Duration,
    narrowing: Narrowing,
}

impl ExecRequest {
    /// Reads the body of a request; what is unknown is refused.
    pub(crate) fn read(body: &Value) -> Result<Self, ApiError> {
        let Some(body) = body.as_object() else {
            return Err(ApiError::bad_request("the body must be a JSON object"));
        };
        let mut request = Self {
            command: Vec::new(),
            timeout: Duration::from_mins(1),
            narrowing: Narrowing::default(),
        };
        for (key, value) in body {
            let wrong = || ApiError::bad_request(format!("`{key}` has a wrong type"));
            let texts = || -> Result<Vec<String>, ApiError> {
                let list = value.as_array().ok_or_else(wrong)?.iter();
                let texts = list.map(|item| item.as_str().map(str::to_owned));
                texts.collect::<Option<_>>().ok_or_else(wrong)
            };
            match key.as_str() {
                "command" => request.command = texts()?,
                "nodes" => request.narrowing.nodes = texts()?,
                "selector" => {
                    let text = value.as_str().ok_or_else(wrong)?;
                    let selector = text
                        .parse()
                        .map_err(|error| ApiError::bad_request(format!("`{text}`: {error}")));
                    request.narrowing.selector = Some(selector?);
                }
                "timeoutSeconds" => {
                    let seconds = value.as_u64().ok_or_else(wrong)?;
                    request.timeout = Duration::from_secs(seconds);
                }
                _ => {
                    let message = format!("`{key}` is no part of a request for a command");
                    return Err(ApiError::bad_request(message));
                }
            }
        }
        let bytes: usize = request.command.iter().map(String::len).sum();
        if request.command.is_empty() || request.command.len() > MAX_WORDS || bytes > MAX_BYTES {
            let message = format!(
                "`command` must have 1 to {MAX_WORDS} words with at most {MAX_BYTES} bytes"
            );
            return Err(ApiError::bad_request(message));
        }
        if request.timeout.is_zero() || request.timeout > MAX_TIME {
            let message = format!("`timeoutSeconds` must be 1 to {}", MAX_TIME.as_secs());
            return Err(ApiError::bad_request(message));
        }
        if request.narrowing.nodes.is_empty() && request.narrowing.selector.is_none() {
            return Err(ApiError::bad_request("name nodes, or give a selector"));
        }
        Ok(request)
    }

    /// The book. The command is an input, so that nothing of it is taken for a template.
    fn book(&self, namespace: &str) -> StoredBook {
        let output =
            |stream: &str| format!("{{{{ steps['exec'].{stream}[:{MAX_OUTPUT_BYTES}] }}}}");
        let text = json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "TaskBook",
            "metadata": {"name": BOOK, "namespace": namespace},
            "spec": {
                "target": {"all": true}, "strategy": "free", "maxFailures": "100%",
                "inputs": {"command": {"type": "list"}},
                "steps": [
                    {
                        "name": "exec", "command": {"run": "{{ inputs.command }}"}, "success": "true",
                        "timeout": format!("{}s", self.timeout.as_secs()),
                    },
                    {"name": "output", "print": {"message": output("stdout") + &output("stderr")}},
                    {
                        "name": "code",
                        "assert": {
                            "that": ["steps['exec'].code == 0"],
                            "message": "exit code {{ steps['exec'].code }}",
                        },
                    },
                ],
            },
        });
        StoredBook {
            file: BOOK.to_owned(),
            text: format!("{text:#}\n"),
            files: std::collections::BTreeMap::new(),
            is_sent: false,
            commit: None,
            dirty: false,
        }
    }
}

impl ApiServer {
    /// Makes a run of a single command. The caller has the right `exec` for Runs of the namespace.
    pub(crate) async fn start_exec(
        &self,
        caller: &Caller,
        namespace: &str,
        request: ExecRequest,
    ) -> Result<Value, ApiError> {
        let kind = find_kind("TaskBook").ok_or_else(|| ApiError::internal("no TaskBook"))?;
        let target = Target {
            kind,
            namespace: Some(namespace.to_owned()),
            name: Some(BOOK.to_owned()),
        };
        let inputs = Map::from_iter([("command".to_owned(), json!(request.command))]);
        let book = request.book(namespace);
        let made = RunRequest::exec(book, inputs, request.narrowing);
        let made = self.make_run(caller, &target, made).await;
        let name = made.as_ref().ok().map(|run| run.name().to_owned());
        let about = json!({
            "kind": "Run", "namespace": namespace, "name": name, "command": request.command,
        });
        let version = made
            .as_ref()
            .map(|run| run.metadata.resource_version.as_deref());
        self.record_about(caller, "exec", about, version).await?;
        Ok(made?.to_json())
    }
}
