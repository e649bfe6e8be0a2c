//! The module `line`: one line of a text file.

use std::sync::Arc;

use camino::Utf8PathBuf;
use regex::bytes::Regex;

use super::file::write_confirmed;
use super::text_lines::{Position, TextLines, parse_regex};
use super::write::{Look, WriteOptions};
use crate::action::{Action, Applied, ModuleError};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::Plan;
use crate::view::View;

pub(crate) static LINE: ModuleDefinition = ModuleDefinition {
    name: "line",
    summary: "Puts one line into a text file, or removes lines. The file keeps its line endings.",
    parameters: &[
        PATH,
        ParameterDefinition {
            name: "line",
            kind: ParameterType::Text,
            is_required: false,
            summary: "The line. Required unless `state: absent` has a `match`.",
        },
        ParameterDefinition {
            name: "match",
            kind: ParameterType::Text,
            is_required: false,
            summary: "A regular expression. The last line that matches is replaced; with `state: absent` all that match are removed. It must match `line` itself: otherwise each run would add the line again.",
        },
        AFTER,
        BEFORE,
        ParameterDefinition {
            name: "state",
            kind: ParameterType::Word(&["present", "absent"]),
            is_required: false,
            summary: "`present` (the default) or `absent`.",
        },
        CREATE,
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

/// The parameter `path` of a text file.
pub(crate) const PATH: ParameterDefinition = ParameterDefinition {
    name: "path",
    kind: ParameterType::Path,
    is_required: true,
    summary: "The text file. A link is followed.",
};

/// The parameter `after`.
pub(crate) const AFTER: ParameterDefinition = ParameterDefinition {
    name: "after",
    kind: ParameterType::Text,
    is_required: false,
    summary: "A regular expression: what is new is put after the last line that matches, or at the end if none does.",
};

/// The parameter `before`.
pub(crate) const BEFORE: ParameterDefinition = ParameterDefinition {
    name: "before",
    kind: ParameterType::Text,
    is_required: false,
    summary: "A regular expression: what is new is put before the last line that matches, or at the end if none does.",
};

/// The parameter `create`.
pub(crate) const CREATE: ParameterDefinition = ParameterDefinition {
    name: "create",
    kind: ParameterType::Boolean,
    is_required: false,
    summary: "Makes the file if it is missing (default false: that is an error).",
};

struct LineAction {
    path: Utf8PathBuf,
    edit: Edit,
    create: bool,
    options: WriteOptions,
}

enum Edit {
    Put {
        line: String,
        matching: Option<Regex>,
        position: Position,
    },
    Remove {
        line: Option<String>,
        matching: Option<Regex>,
    },
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let is_absent = parameters.word("state") == Some("absent");
    let line = parameters.text("line").map(str::to_owned);
    let matching = parse_regex(parameters, "match");
    let position = Position::parse(parameters);
    let create = parameters.boolean("create", false);
    let path = parameters.path("path");
    if let Some(text) = &line
        && text.contains(['\n', '\r'])
    {
        parameters.fault_with(
            "line",
            "must be one line",
            Some("the module `block` takes several".to_owned()),
        );
    }
    if !is_absent
        && let (Some(line), Some(matching)) = (&line, &matching)
        && !matching.is_match(line.as_bytes())
    {
        parameters.fault(
            "match",
            "does not match `line`: each run would add the line again",
        );
    }
    let edit = match (is_absent, line) {
        (false, Some(line)) => Edit::Put {
            line,
            matching,
            position,
        },
        (false, None) => {
            parameters.fault("line", "is missing");
            return None;
        }
        (true, None) if matching.is_none() => {
            parameters.fault("", "needs one of `line`, `match`");
            return None;
        }
        (true, line) => Edit::Remove { line, matching },
    };
    Some(Box::new(LineAction {
        path: path?,
        edit,
        create,
        options: WriteOptions {
            follow: true,
            ..WriteOptions::default()
        },
    }))
}

impl Edit {
    fn apply(&self, old: &[u8]) -> Vec<u8> {
        let mut lines = TextLines::of(old);
        match self {
            Self::Put {
                line,
                matching,
                position,
            } => {
                let found = matching.as_ref().and_then(|regex| lines.last_match(regex));
                if let Some(at) = found {
                    lines.set(at, line.as_bytes());
                } else if !lines.texts().any(|text| text == line.as_bytes()) {
                    let at = lines.place(position);
                    lines.insert(at, &[line.as_bytes()]);
                }
            }
            Self::Remove { line, matching } => lines.retain(|text| match (matching, line) {
                (Some(regex), _) => !regex.is_match(text),
                (None, Some(line)) => text != line.as_bytes(),
                (None, None) => true,
            }),
        }
        lines.into_bytes()
    }
}

impl LineAction {
    fn look(&self, view: &View<'_>) -> Result<Look, ModuleError> {
        let is_removal = matches!(self.edit, Edit::Remove { .. });
        self.options.look(view, &self.path, &|old| match old {
            Some(old) => Ok(Some(self.edit.apply(old).into())),
            None if is_removal => Ok(None),
            None if self.create => Ok(Some(Arc::from(self.edit.apply(&[])))),
            None => Err(missing(&self.path)),
        })
    }
}

/// A text file that is not there.
pub(crate) fn missing(path: &camino::Utf8Path) -> ModuleError {
    ModuleError::failed("change", path, "there is no such file")
        .with_hint("`create: true` makes it")
}

impl Action for LineAction {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        Ok(match self.look(view)? {
            Look::Work(work) => work.into_plan(),
            Look::Unknown(reason) => Plan::unknown(reason),
        })
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        write_confirmed(&self.options, host, plan, self.look(&View::of(host))?)
    }
}
