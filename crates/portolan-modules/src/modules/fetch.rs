//! The module `fetch`: takes what another node gave.

mod tree;

use camino::Utf8PathBuf;
use serde_json::json;

use super::attributes::{GROUP, OWNER};
use super::file::FileAction;
use super::publish::{SHARE, failed, read_share};
use super::write::WriteOptions;
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::Attributes;
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Plan, PlannedOutcome};
use crate::root::Follow;
use crate::share_files::SharedContent;
use crate::shares::{FetchedShare, ShareWait};
use crate::view::{Found, View};
use tree::FetchedTree;

pub(crate) static FETCH: ModuleDefinition = ModuleDefinition {
    name: "fetch",
    summary: "Writes what another node gave with `publish` into a file, or several files into a directory. Waits until it is there.",
    parameters: &[
        SHARE,
        ParameterDefinition::optional(
            "path",
            ParameterType::Path,
            "Where the file is, for a single file or a value.",
        ),
        ParameterDefinition::optional(
            "directory",
            ParameterType::Path,
            "The directory that gets several files, with the permissions that they had. It is made beside its place and then put there, so that nobody sees some files of one version and some of another.",
        ),
        ParameterDefinition::optional(
            "purge",
            ParameterType::Boolean,
            "Removes what is in the directory and not in the share. Without it, the step fails if there is something (default false).",
        ),
        ParameterDefinition::optional(
            "mode",
            ParameterType::Mode,
            "The permissions of the file or directory, as a quoted octal number. Without it they stay as they are; a new file gets `0644` and a new directory `0700`.",
        ),
        OWNER,
        GROUP,
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

struct FetchAction {
    share: String,
    target: FetchTarget,
}

enum FetchTarget {
    File(Utf8PathBuf, WriteOptions),
    Tree(FetchedTree),
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let share = read_share(parameters);
    let attributes = Attributes::parse(parameters);
    let purge = parameters.optional_boolean("purge");
    let target = match parameters.exactly_one(&["path", "directory"])? {
        "path" => {
            if purge.is_some() {
                parameters.fault("purge", "stands beside `directory`");
            }
            let options = WriteOptions {
                attributes,
                follow: true,
                ..WriteOptions::default()
            };
            FetchTarget::File(parameters.path("path")?, options)
        }
        _ => {
            let directory = parameters.path("directory")?;
            if directory == "/" {
                parameters.fault("directory", "must not be the root directory");
                return None;
            }
            FetchTarget::Tree(FetchedTree {
                directory,
                attributes,
                purge: purge.unwrap_or(false),
            })
        }
    };
    Some(Box::new(FetchAction {
        share: share?,
        target,
    }))
}

impl FetchAction {
    fn error(&self, reason: &dyn std::fmt::Display) -> ModuleError {
        ModuleError::failed("fetch", &self.share, reason.to_string())
    }

    /// What the content means for this node.
    fn plan_content(&self, view: &View<'_>, content: Vec<u8>) -> Result<Plan, ModuleError> {
        let content = SharedContent::read(content).map_err(|error| self.error(&error))?;
        match (&self.target, content) {
            (FetchTarget::File(path, options), SharedContent::Single(content)) => {
                FileAction::of_bytes(path, &content, options.clone()).plan(view)
            }
            (FetchTarget::Tree(tree), SharedContent::Files(files)) => tree.plan(view, &files),
            (FetchTarget::File(..), SharedContent::Files(_)) => {
                let error = self.error(&"the share has several files");
                Err(error.with_hint("write `directory` in place of `path`"))
            }
            (FetchTarget::Tree(_), SharedContent::Single(_)) => {
                let error = self.error(&"the share has one content without a name");
                Err(error.with_hint("write `path` in place of `directory`"))
            }
        }
    }

    /// A version that was for one time, and that this node has had: it counts as long as something is there.
    fn spent(&self, view: &View<'_>, version: u64) -> Result<Plan, ModuleError> {
        let path = match &self.target {
            FetchTarget::File(path, _) => path,
            FetchTarget::Tree(tree) => &tree.directory,
        };
        if view.find(path, Follow::Yes)?.1 == Found::Absent {
            let reason = format!(
                "version {version} was for one time, this node has had it, and `{path}` is gone"
            );
            return Err(self.error(&reason).with_hint("publish it again"));
        }
        Ok(Plan::unchanged())
    }
}

impl Action for FetchAction {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let shares = &view.host.shares;
        let looked = shares.fetch(&self.share, ShareWait::No, &view.host.stop);
        let looked = looked.map_err(|error| failed("fetch", &self.share, error))?;
        let version = match looked {
            FetchedShare::Pending => return Ok(Plan::unknown("the share is not there yet")),
            FetchedShare::Spent(version) => return self.spent(view, version),
            FetchedShare::Version(version) => version,
        };
        let mut plan = self.plan_content(view, version.content.clone())?;
        if matches!(plan.outcome, PlannedOutcome::Unchanged) && view.ahead.is_empty() {
            shares.acknowledge(&version);
        }
        if let PlannedOutcome::Change(changes) = &mut plan.outcome {
            for change in changes {
                // Never the content, nor a digest by which it could be guessed: shares are secrets more often than not.
                change.diff = format!("version {} of share {}\n", version.number, self.share);
                change.before = shares.keyed_digest(change.before.hex().as_bytes());
                change.after = shares.keyed_digest(change.after.hex().as_bytes());
            }
        }
        Ok(plan)
    }

    fn apply(&self, host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        let taken = host
            .shares
            .fetch(&self.share, ShareWait::Until, &host.stop)
            .map_err(|error| failed("fetch", &self.share, error))?;
        let view = View::of(host);
        let version = match taken {
            FetchedShare::Pending => return Err(ModuleError::Stopped),
            FetchedShare::Spent(version) => {
                self.spent(&view, version)?;
                let mut applied = Applied::default();
                applied.result.insert("version".to_owned(), json!(version));
                return Ok(applied);
            }
            FetchedShare::Version(version) => version,
        };
        // What is there now decides: a newer version may have come since the plan was made.
        let plan = self.plan_content(&view, version.content.clone())?;
        let content = SharedContent::read(version.content.clone());
        let content = content.map_err(|error| self.error(&error))?;
        let mut applied = match (&self.target, content) {
            (FetchTarget::File(path, options), SharedContent::Single(content)) => {
                FileAction::of_bytes(path, &content, options.clone()).apply(host, &plan)?
            }
            (FetchTarget::Tree(tree), SharedContent::Files(files)) => {
                tree.apply(host, &plan, &files)?
            }
            _ => return Err(self.error(&"it changed its form meanwhile")),
        };
        host.shares.acknowledge(&version);
        let number = json!(version.number);
        applied.result.insert("version".to_owned(), number);
        Ok(applied)
    }
}
