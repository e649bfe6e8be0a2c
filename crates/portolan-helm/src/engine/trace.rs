//! How Helm 4 reports a failed template: one block for each running template, outermost first.
//!
//! ```text
//! web/templates/a.yaml:1:3
//!   executing "web/templates/a.yaml" at <include "x" .>:
//!     error calling include:
//! web/templates/_x.tpl:1:20
//!   executing "x" at <.Values.a.b>:
//!     nil pointer evaluating interface {}.b
//! ```

use portolan_gotmpl::{Cause, ExecError};

const INCLUDE: &str = "error calling include: ";
const NO_TEMPLATE: &str = "error calling include: template: no template ";

/// The blocks; none where a function failed, whose error Helm 4 leaves in Go's words.
pub(super) fn traced(error: &ExecError) -> Option<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut error = error;
    loop {
        let (message, inner) = match &error.cause {
            Cause::Message(message) if message.starts_with(NO_TEMPLATE) => {
                let (call, missing) = message.split_at(INCLUDE.len());
                blocks.push(block(error, call.trim_end())?);
                blocks.push(missing.to_owned());
                return Some(blocks.concat());
            }
            Cause::Message(message) if !message.starts_with("error calling ") => {
                (message.as_str(), None)
            }
            Cause::Nested { prefix, error } if prefix == INCLUDE => {
                (prefix.trim_end(), Some(error))
            }
            _ => return None,
        };
        let block = block(error, message)?;
        if blocks.last() != Some(&block) {
            blocks.push(block);
        }
        match inner {
            Some(inner) => error = inner,
            None => return Some(blocks.concat().trim().to_owned()),
        }
    }
}

fn block(error: &ExecError, message: &str) -> Option<String> {
    let place = error.place.as_ref()?;
    Some(format!(
        "{}\n  executing \"{}\" at <{}>:\n    {message}\n",
        place.location(),
        place.template,
        place.expression
    ))
}
