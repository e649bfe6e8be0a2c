//! The module `file`: a file with a content, an owner and permissions.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use super::attributes::{GROUP, MODE, OWNER, failure};
use super::path_state;
use super::write::{Look, MAX_FILE_BYTES, WriteOptions, keep_backups};
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::{Attributes, PredictedPath, Prediction};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::{Parameters, read_mode};
use crate::plan::{Change, ChangeKind, Plan, Subject};
use crate::root::Follow;
use crate::unified::unified;
use crate::view::{Content, Found, View};

/// The most backups of one file.
pub const MAX_BACKUPS: u32 = 100;

pub(crate) static FILE: ModuleDefinition = ModuleDefinition {
    name: "file",
    summary: "Writes a file, or removes it.",
    parameters: &[
        ParameterDefinition {
            name: "path",
            kind: ParameterType::Path,
            is_required: true,
            summary: "Where the file is.",
        },
        ParameterDefinition {
            name: "content",
            kind: ParameterType::Text,
            is_required: false,
            summary: "What it contains, to the byte. Without `content`, `template` and `source` a new file is empty and an old one keeps its content.",
        },
        ParameterDefinition {
            name: "template",
            kind: ParameterType::Text,
            is_required: false,
            summary: "A file of the book that is rendered to the content.",
        },
        ParameterDefinition {
            name: "source",
            kind: ParameterType::Text,
            is_required: false,
            summary: "A file of the book that is copied as it is.",
        },
        MODE,
        OWNER,
        GROUP,
        ParameterDefinition {
            name: "state",
            kind: ParameterType::Word(&["present", "absent"]),
            is_required: false,
            summary: "`present` (the default) or `absent`.",
        },
        FOLLOW,
        PARENTS,
        ParameterDefinition {
            name: "validate",
            kind: ParameterType::TextList,
            is_required: false,
            summary: "A program with its arguments that looks at the new file before it is put in place; `%s` stands for its path. Below another root directory it is not confined.",
        },
        ParameterDefinition {
            name: "backup",
            kind: ParameterType::Integer,
            is_required: false,
            summary: "How many older contents are kept beside the file, the newest as `NAME.~1~` (default 0).",
        },
        ParameterDefinition {
            name: "inPlace",
            kind: ParameterType::Boolean,
            is_required: false,
            summary: "Writes into the file that is there instead of replacing it: for bind mounts and for files with several names. A crash can leave a part of the new content (default false).",
        },
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

/// The parameter `follow`.
pub(crate) const FOLLOW: ParameterDefinition = ParameterDefinition {
    name: "follow",
    kind: ParameterType::Boolean,
    is_required: false,
    summary: "Whether a link at the path leads to what is meant; otherwise it is replaced (default true). A link that somebody else put where everybody can write is refused.",
};

/// The parameter `parents`.
pub(crate) const PARENTS: ParameterDefinition = ParameterDefinition {
    name: "parents",
    kind: ParameterType::Map,
    is_required: false,
    summary: "Makes missing directories on the way, with this `mode`, `owner` and `group`; without it they are not made.",
};

/// A file with a content.
pub(super) struct FileAction {
    path: Utf8PathBuf,
    content: Wanted,
    options: WriteOptions,
}

/// What the file should contain.
enum Wanted {
    /// Nothing: there should be no file.
    Absent,
    /// Whatever it contains.
    Anything,
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// A file of the book.
    Source(Utf8PathBuf),
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let is_absent = parameters.word("state") == Some("absent");
    let origin = parameters.at_most_one(&["content", "template", "source"]);
    if let (true, Some(origin)) = (is_absent, origin) {
        parameters.fault(origin, "cannot stand beside `state: absent`");
    }
    let content = match origin {
        _ if is_absent => Wanted::Absent,
        None => Wanted::Anything,
        Some("source") => Wanted::Source(parameters.text("source")?.into()),
        Some("template") => {
            parameters.fault("template", "must be rendered before the step is made");
            return None;
        }
        Some(_) => Wanted::Bytes(parameters.text("content")?.as_bytes().into()),
    };
    let options = WriteOptions {
        attributes: Attributes::parse(parameters),
        follow: parameters.boolean("follow", true),
        parents: parse_parents(parameters),
        validate: parse_validate(parameters),
        backups: parameters
            .integer("backup", 0..=i64::from(MAX_BACKUPS))
            .map_or(0, |count| count as u32),
        in_place: parameters.boolean("inPlace", false),
    };
    let path = parameters.path("path")?;
    if path == "/" {
        parameters.fault("path", "must name a file");
        return None;
    }
    Some(Box::new(FileAction {
        path,
        content,
        options,
    }))
}

/// Reads `parents`.
pub(crate) fn parse_parents(parameters: &mut Parameters<'_>) -> Option<Attributes> {
    let map = parameters.map("parents")?;
    let mut wanted = Attributes::default();
    for (name, value) in map {
        let text = value.as_str().unwrap_or_default();
        match name.as_str() {
            "mode" if read_mode(text).is_some() => wanted.mode = read_mode(text),
            "mode" => parameters.fault_with(
                "parents.mode",
                "must be a quoted octal number",
                Some("as in parents: {mode: \"0755\"}".to_owned()),
            ),
            "owner" if !text.is_empty() => wanted.owner = Some(text.to_owned()),
            "group" if !text.is_empty() => wanted.group = Some(text.to_owned()),
            "owner" | "group" => {
                parameters.fault(&format!("parents.{name}"), "must be a name");
            }
            _ => parameters.fault_with(
                &format!("parents.{name}"),
                "is not known",
                Some("it has mode, owner, group".to_owned()),
            ),
        }
    }
    Some(wanted)
}

fn parse_validate(parameters: &mut Parameters<'_>) -> Option<Vec<String>> {
    let validate = parameters.text_list("validate")?;
    if validate.len() < 2 || !validate.iter().any(|part| part.contains("%s")) {
        parameters.fault_with(
            "validate",
            "must be a program and its arguments, one of them with `%s`",
            Some("as in validate: [visudo, -cf, \"%s\"]".to_owned()),
        );
    }
    Some(validate)
}

impl FileAction {
    /// A file with these bytes.
    pub(super) fn of_bytes(path: &Utf8Path, content: &[u8], options: WriteOptions) -> Self {
        Self {
            path: path.to_owned(),
            content: Wanted::Bytes(content.into()),
            options,
        }
    }

    fn look(&self, view: &View<'_>) -> Result<Look, ModuleError> {
        let wanted: Option<Arc<[u8]>> = match &self.content {
            Wanted::Bytes(bytes) => Some(Arc::clone(bytes)),
            Wanted::Source(source) => Some(read_source(view.host, source)?),
            _ => None,
        };
        self.options.look(view, &self.path, &|old| {
            Ok(match (&wanted, old) {
                (Some(wanted), _) => Some(Arc::clone(wanted)),
                (None, Some(_)) => None,
                (None, None) => Some(Arc::from([])),
            })
        })
    }

    fn plan_removal(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let (path, found) = view.find(&self.path, Follow::No)?;
        let (before, diff) = match &found {
            Found::Absent => return Ok(Plan::unchanged()),
            Found::Directory(_) => {
                return Err(
                    ModuleError::failed("remove", &self.path, "it is a directory")
                        .with_hint("use the module `directory` with `state: absent`"),
                );
            }
            Found::Link(target) => (
                path_state::of_link(target),
                format!("the link to {target} is removed\n"),
            ),
            Found::Other => (
                path_state::of_kind("special"),
                "the device, pipe or socket is removed\n".to_owned(),
            ),
            Found::File(_) => match view.read(&path, MAX_FILE_BYTES)? {
                Some(Content::Known(old)) => (
                    path_state::of_file(&old, &Attributes::default()),
                    unified(self.path.as_str(), Some(&old), None),
                ),
                _ => return Ok(Plan::unknown("an earlier step writes the file")),
            },
        };
        let mut plan = Plan::of_changes(vec![Change {
            subject: Subject::Path(self.path.clone()),
            kind: ChangeKind::Remove,
            before,
            after: path_state::of_absent(),
            diff,
        }]);
        plan.predictions = vec![Prediction::Path(path, PredictedPath::Absent)];
        Ok(plan)
    }

    fn remove(&self, host: &Host, planned: &Plan) -> Result<Applied, ModuleError> {
        let now = self.plan_removal(&View::of(host))?;
        planned.confirm(&now)?;
        if now.changes().is_empty() {
            return Ok(Applied::default());
        }
        let is_file = matches!(
            View::of(host).find(&self.path, Follow::No)?.1,
            Found::File(_)
        );
        if is_file {
            keep_backups(host, &self.path, self.options.backups, false)?;
        }
        let removed = host.root.remove_file(&self.path);
        removed.map_err(|error| failure(host, "remove", &self.path, error))?;
        Ok(Applied {
            is_changed: true,
            ..Applied::default()
        })
    }
}

impl Action for FileAction {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        if matches!(self.content, Wanted::Absent) {
            return self.plan_removal(view);
        }
        Ok(match self.look(view)? {
            Look::Work(work) => work.into_plan(),
            Look::Unknown(reason) => Plan::unknown(reason),
        })
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        if matches!(self.content, Wanted::Absent) {
            return self.remove(host, plan);
        }
        write_confirmed(&self.options, host, plan, self.look(&View::of(host))?)
    }
}

/// Writes a file after a look whether the plan still fits.
pub(crate) fn write_confirmed(
    options: &WriteOptions,
    host: &Host,
    plan: &Plan,
    look: Look,
) -> Result<Applied, ModuleError> {
    let work = match look {
        Look::Work(work) => work,
        Look::Unknown(reason) => return Err(ModuleError::failed("plan", "the step", reason)),
    };
    plan.confirm(&Plan::of_changes(work.changes.clone()))?;
    options.write(host, &work)
}

/// The content of a file of the book.
pub(crate) fn read_source(host: &Host, source: &Utf8Path) -> Result<Arc<[u8]>, ModuleError> {
    let content = host
        .book_files
        .read(source)
        .map_err(|reason| ModuleError::failed("read", source, reason))?;
    if content.len() as u64 > MAX_FILE_BYTES {
        let reason = format!("it is larger than {MAX_FILE_BYTES} bytes");
        return Err(ModuleError::failed("read", source, reason));
    }
    Ok(content)
}
