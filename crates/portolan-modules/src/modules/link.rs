//! The module `link`: a symbolic link, or a second name of a file.

use camino::Utf8PathBuf;

use super::attributes::failure;
use super::path_state;
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::{PredictedPath, Prediction};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::{Parameters, read_path};
use crate::plan::{Change, ChangeKind, Plan, Subject};
use crate::root::{FileKind, Follow};
use crate::view::{Content, Found, View};

use super::write::MAX_FILE_BYTES;

pub(crate) static LINK: ModuleDefinition = ModuleDefinition {
    name: "link",
    summary: "Makes a link to a file or directory. The module `file` with `state: absent` removes it.",
    parameters: &[
        ParameterDefinition {
            name: "path",
            kind: ParameterType::Path,
            is_required: true,
            summary: "Where the link is.",
        },
        ParameterDefinition {
            name: "to",
            kind: ParameterType::Text,
            is_required: true,
            summary: "Where it leads. A symbolic link keeps this text; what it leads to need not be there.",
        },
        ParameterDefinition {
            name: "hard",
            kind: ParameterType::Boolean,
            is_required: false,
            summary: "Gives the file at `to` a second name instead (default false).",
        },
        ParameterDefinition {
            name: "force",
            kind: ParameterType::Boolean,
            is_required: false,
            summary: "Replaces a file or an empty directory at the path (default false). A link with another target is replaced anyway.",
        },
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

struct LinkAction {
    path: Utf8PathBuf,
    target: Target,
    force: bool,
}

enum Target {
    Symbolic(String),
    Hard(Utf8PathBuf),
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let to = parameters.line("to");
    let is_hard = parameters.boolean("hard", false);
    let force = parameters.boolean("force", false);
    let path = parameters.path("path")?;
    let to = to?;
    let target = if is_hard {
        let Some(file) = read_path(to) else {
            parameters.fault("to", "must be a path that begins with `/` and has no `..`");
            return None;
        };
        Target::Hard(file)
    } else {
        Target::Symbolic(to.to_owned())
    };
    if path == "/" {
        parameters.fault("path", "must name a link");
        return None;
    }
    Some(Box::new(LinkAction {
        path,
        target,
        force,
    }))
}

impl LinkAction {
    /// Whether the link is as it should be.
    fn is_there(&self, view: &View<'_>, found: &Found) -> Result<bool, ModuleError> {
        match (&self.target, found) {
            (Target::Symbolic(to), Found::Link(there)) => Ok(to == there),
            (Target::Hard(to), Found::File(_)) => {
                let look = |path| {
                    let status = view.host.root.status(path, Follow::No);
                    status.map_err(|error| ModuleError::failed("look at", path, error))
                };
                let file = |status: &crate::root::Status| (status.device, status.inode);
                let (one, other) = (look(&self.path)?, look(to)?);
                Ok(one.is_some() && one.as_ref().map(file) == other.as_ref().map(file))
            }
            _ => Ok(false),
        }
    }

    /// What a hard link will contain.
    fn linked(&self, view: &View<'_>) -> Result<PredictedPath, ModuleError> {
        let to = match &self.target {
            Target::Symbolic(to) => return Ok(PredictedPath::Link(to.clone())),
            Target::Hard(to) => to,
        };
        match view.find(to, Follow::No)?.1 {
            Found::File(_) => {}
            Found::Absent => {
                return Err(ModuleError::failed("link to", to, "there is no such file"));
            }
            _ => {
                return Err(ModuleError::failed(
                    "link to",
                    to,
                    "it is not a regular file",
                ));
            }
        }
        Ok(match view.read(to, MAX_FILE_BYTES) {
            Ok(Some(Content::Known(content))) => PredictedPath::File(Some(content)),
            _ => PredictedPath::File(None),
        })
    }
}

impl Action for LinkAction {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let (path, found) = view.find(&self.path, Follow::No)?;
        let predicted = self.linked(view)?;
        if self.is_there(view, &found)? {
            return Ok(Plan::unchanged());
        }
        let parent = self.path.parent().unwrap_or("/".into());
        if !matches!(view.find(parent, Follow::Yes)?.1, Found::Directory(_)) {
            return Err(ModuleError::failed(
                "make the link",
                &self.path,
                format!("the directory `{parent}` is missing"),
            )
            .with_hint("add a step with the module `directory` before this one"));
        }
        let in_the_way = |what: &str| {
            Err(
                ModuleError::failed("make the link", &self.path, format!("{what} is there"))
                    .with_hint("`force: true` replaces it"),
            )
        };
        let (before, was) = match &found {
            Found::Absent => (path_state::of_absent(), String::new()),
            Found::Link(there) => (path_state::of_link(there), format!("{there} → ")),
            Found::File(_) if self.force => (path_state::of_kind("file"), "a file → ".to_owned()),
            Found::File(_) => return in_the_way("a file"),
            Found::Directory(_) if !view.list(&path)?.is_empty() => {
                return Err(ModuleError::failed(
                    "make the link",
                    &self.path,
                    "a directory that is not empty is there",
                ));
            }
            Found::Directory(_) if self.force => (
                path_state::of_kind("directory"),
                "an empty directory → ".to_owned(),
            ),
            Found::Directory(_) => return in_the_way("a directory"),
            Found::Other => {
                return Err(ModuleError::failed(
                    "make the link",
                    &self.path,
                    "a device, a pipe or a socket is there",
                ));
            }
        };
        let (word, to) = match &self.target {
            Target::Symbolic(to) => ("link", to.as_str()),
            Target::Hard(to) => ("hard link", to.as_str()),
        };
        let mut plan = Plan::of_changes(vec![Change {
            subject: Subject::Path(self.path.clone()),
            kind: if found == Found::Absent {
                ChangeKind::Create
            } else {
                ChangeKind::Update
            },
            before,
            after: path_state::of_link(to),
            diff: format!("{word}: {was}{to}\n"),
        }]);
        plan.predictions = vec![Prediction::Path(path, predicted)];
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let now = self.plan(&View::of(host))?;
        plan.confirm(&now)?;
        if now.changes().is_empty() {
            return Ok(Applied::default());
        }
        let failed = |error| failure(host, "make the link", &self.path, error);
        let there = host.root.status(&self.path, Follow::No).map_err(failed)?;
        if there.is_some_and(|there| there.kind == FileKind::Directory) {
            host.root.remove_directory(&self.path).map_err(failed)?;
        }
        match &self.target {
            Target::Symbolic(to) => host.root.symlink(to, &self.path),
            Target::Hard(to) => host.root.hard_link(to, &self.path),
        }
        .map_err(failed)?;
        Ok(Applied {
            is_changed: true,
            ..Applied::default()
        })
    }
}
