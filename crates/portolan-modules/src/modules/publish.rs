//! The module `publish`: gives files or a value to other nodes.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;
use portolan_object::NameRule;
use serde_json::{Value, json};

use crate::action::{Action, Applied, ModuleError};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Change, ChangeKind, Plan, Subject};
use crate::root::Follow;
use crate::share_files::{MAX_SHARE_FILES, ShareFiles, SharedContent};
use crate::shares::{MAX_SHARE_BYTES, Publication, ShareError};
use crate::view::{Content, Found, View};

pub(crate) static PUBLISH: ModuleDefinition = ModuleDefinition {
    name: "publish",
    summary: "Gives files or a value to other nodes, encrypted so that only they can read it. They take it with `fetch`.",
    parameters: &[
        SHARE,
        ParameterDefinition::optional(
            "path",
            ParameterType::Path,
            "The file whose content is given, at most 1 MiB.",
        ),
        ParameterDefinition::optional(
            "paths",
            ParameterType::TextList,
            "Files that are given together under their names, at most 100 and 1 MiB. Their permissions are kept; links are refused.",
        ),
        ParameterDefinition::optional(
            "directory",
            ParameterType::Path,
            "A directory whose files are given together, those below it too. As for `paths`.",
        ),
        ParameterDefinition::optional(
            "value",
            ParameterType::Text,
            "The text that is given instead of a file.",
        ),
        ParameterDefinition::optional(
            "to",
            ParameterType::Map,
            "The nodes that may have it, within those of the namespace: `group`, `groups`, `selector`, `nodes` or `all: true`. Without it, those of the Share that exists.",
        ),
        ParameterDefinition::optional(
            "ttl",
            ParameterType::Duration,
            "After which time the version is gone. Without it, it stays.",
        ),
        ParameterDefinition::optional(
            "oneShot",
            ParameterType::Boolean,
            "The version is gone once every node that it is for has it (default false).",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

/// The parameter `share`.
pub(crate) const SHARE: ParameterDefinition = ParameterDefinition::required(
    "share",
    ParameterType::Text,
    "The name of the Share, in the namespace of the run.",
);

/// What `to` may have.
const TO: [&str; 5] = ["group", "groups", "selector", "nodes", "all"];

/// The shortest time after which a version is gone.
const MIN_TTL: Duration = Duration::from_secs(1);

/// The most names that are looked at in a directory.
const MAX_NAMES: usize = 10_000;

struct PublishAction {
    share: String,
    origin: Origin,
    to: Value,
    ttl: Option<Duration>,
    is_one_shot: bool,
}

enum Origin {
    File(Utf8PathBuf),
    Files(Vec<Utf8PathBuf>),
    Directory(Utf8PathBuf),
    Value(String),
}

/// What is given.
enum Given {
    /// These bytes, and how to say how much it is.
    Known(Vec<u8>, String),
    /// An earlier step of the check writes it.
    Unknown,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let share = read_share(parameters);
    let to = parameters.map("to").cloned();
    for name in to.iter().flat_map(|to| to.keys()) {
        if !TO.contains(&name.as_str()) {
            let hint = Some(format!("it has {}", TO.join(", ")));
            parameters.fault_with(&format!("to.{name}"), "is not known", hint);
        }
    }
    let ttl = parameters.duration("ttl");
    if ttl.is_some_and(|ttl| ttl < MIN_TTL) {
        parameters.fault("ttl", "must be at least 1s");
    }
    let is_one_shot = parameters.boolean("oneShot", false);
    let origin = match parameters.exactly_one(&["path", "paths", "directory", "value"])? {
        "path" => Origin::File(parameters.path("path")?),
        "paths" => Origin::Files(parse_paths(parameters)?),
        "directory" => Origin::Directory(parameters.path("directory")?),
        _ => Origin::Value(parameters.text("value")?.to_owned()),
    };
    Some(Box::new(PublishAction {
        share: share?,
        origin,
        to: to.map_or(Value::Null, Value::Object),
        ttl,
        is_one_shot,
    }))
}

fn parse_paths(parameters: &mut Parameters<'_>) -> Option<Vec<Utf8PathBuf>> {
    let paths = parameters.text_list("paths")?;
    if paths.is_empty() || paths.len() > MAX_SHARE_FILES {
        let message = format!("must have 1 to {MAX_SHARE_FILES} files");
        parameters.fault("paths", message);
        return None;
    }
    let paths: Vec<Utf8PathBuf> = paths.into_iter().map(Utf8PathBuf::from).collect();
    for path in &paths {
        if !path.is_absolute() || path.file_name().is_none() {
            let message = format!("`{path}` must begin with `/` and name a file");
            parameters.fault("paths", message);
            return None;
        }
    }
    Some(paths)
}

/// Reads `share`.
pub(crate) fn read_share(parameters: &mut Parameters<'_>) -> Option<String> {
    let share = parameters.text("share")?;
    if !NameRule::Subdomain.fits(share) {
        parameters.fault("share", NameRule::Subdomain.to_string());
        return None;
    }
    Some(share.to_owned())
}

/// A failure of a share.
pub(crate) fn failed(act: &'static str, share: &str, error: ShareError) -> ModuleError {
    match error {
        ShareError::Stopped => ModuleError::Stopped,
        error => ModuleError::failed(act, share, error),
    }
}

impl PublishAction {
    fn given(&self, view: &View<'_>) -> Result<Given, ModuleError> {
        let content = match &self.origin {
            Origin::Value(value) => value.clone().into_bytes(),
            Origin::File(path) => match view.read(path, MAX_SHARE_BYTES as u64)? {
                Some(Content::Known(content)) => content.to_vec(),
                Some(Content::Unknown) => return Ok(Given::Unknown),
                None => return Err(ModuleError::failed("read", path, "it does not exist")),
            },
            Origin::Files(paths) => {
                let mut files = ShareFiles::default();
                for path in paths {
                    let name = path.file_name().unwrap_or_default();
                    if !self.add_file(view, path, name.into(), &mut files)? {
                        return Ok(Given::Unknown);
                    }
                }
                return self.together(&files);
            }
            Origin::Directory(directory) => {
                if !matches!(view.find(directory, Follow::Yes)?.1, Found::Directory(_)) {
                    let reason = "there is no directory";
                    return Err(ModuleError::failed("read", directory, reason));
                }
                let mut files = ShareFiles::default();
                if !self.add_below(view, directory, &mut files)? {
                    return Ok(Given::Unknown);
                }
                return self.together(&files);
            }
        };
        if content.len() > MAX_SHARE_BYTES {
            let reason = format!("it has more than {MAX_SHARE_BYTES} bytes");
            return Err(self.too_much(&reason));
        }
        if SharedContent::looks_like_files(&content) {
            let reason = "it begins as a share of several files does";
            return Err(ModuleError::failed("publish", &self.share, reason));
        }
        let size = format!("{} bytes", content.len());
        Ok(Given::Known(content, size))
    }

    fn too_much(&self, reason: &dyn std::fmt::Display) -> ModuleError {
        let error = ModuleError::failed("publish", &self.share, reason.to_string());
        error.with_hint("more and larger files belong into packages")
    }

    fn together(&self, files: &ShareFiles) -> Result<Given, ModuleError> {
        let content = files.to_content().map_err(|error| self.too_much(&error))?;
        let size = format!("{} files with {} bytes", files.count(), files.bytes());
        Ok(Given::Known(content, size))
    }

    /// Adds everything below a directory. `false` if an earlier step of the check writes something that nobody can tell.
    fn add_below(
        &self,
        view: &View<'_>,
        top: &Utf8Path,
        files: &mut ShareFiles,
    ) -> Result<bool, ModuleError> {
        let mut waiting = vec![Utf8PathBuf::new()];
        let mut names = 0;
        while let Some(below) = waiting.pop() {
            for name in view.list(&top.join(&below))? {
                names += 1;
                if names > MAX_NAMES {
                    let reason = format!("`{top}` has more than {MAX_NAMES} names");
                    return Err(self.too_much(&reason));
                }
                let (path, name) = (top.join(&below).join(&name), below.join(&name));
                if let Found::Directory(_) = view.find(&path, Follow::No)?.1 {
                    waiting.push(name);
                } else if !self.add_file(view, &path, &name, files)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn add_file(
        &self,
        view: &View<'_>,
        path: &Utf8Path,
        name: &Utf8Path,
        files: &mut ShareFiles,
    ) -> Result<bool, ModuleError> {
        let refused = |reason: &str| Err(ModuleError::failed("publish", path, reason));
        let mode = match view.find(path, Follow::No)?.1 {
            Found::File(attributes) => attributes.mode,
            Found::Absent => return refused("it does not exist"),
            Found::Link(_) => return refused("it is a link; name the file that it leads to"),
            Found::Directory(_) => return refused("it is a directory; use `directory`"),
            Found::Other => return refused("it is not a regular file"),
        };
        let content = view.read(path, MAX_SHARE_BYTES as u64)?;
        let (Some(mode), Some(Content::Known(content))) = (mode, content) else {
            return Ok(false);
        };
        let added = files.add(name, mode, content.to_vec());
        added.map_err(|error| self.too_much(&error))?;
        Ok(true)
    }

    fn publication<'a>(&'a self, content: &'a [u8]) -> Publication<'a> {
        Publication {
            share: &self.share,
            to: &self.to,
            content,
            ttl: self.ttl,
            is_one_shot: self.is_one_shot,
        }
    }

    fn is_published(&self, host: &Host, content: &[u8]) -> Result<bool, ModuleError> {
        host.shares
            .is_published(&self.publication(content), &host.stop)
            .map_err(|error| failed("publish", &self.share, error))
    }
}

impl Action for PublishAction {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let Given::Known(content, size) = self.given(view)? else {
            return Ok(Plan::unknown("an earlier step writes what is given"));
        };
        if self.is_published(view.host, &content)? {
            return Ok(Plan::unchanged());
        }
        Ok(Plan::of_changes(vec![Change {
            subject: Subject::Other("share", self.share.clone()),
            kind: ChangeKind::Update,
            before: Digest::of(b""),
            // Neither the content nor its digest, by which a short one could be guessed: shares are secrets more often than
            // not.
            after: Digest::of(&content.len().to_le_bytes()),
            diff: format!("a new version: {size}\n"),
        }]))
    }

    fn apply(&self, host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        let Given::Known(content, _) = self.given(&View::of(host))? else {
            return Err(ModuleError::failed(
                "publish",
                &self.share,
                "it cannot be read",
            ));
        };
        if self.is_published(host, &content)? {
            return Ok(Applied::default());
        }
        let published = host.shares.publish(&self.publication(&content), &host.stop);
        let version = published.map_err(|error| failed("publish", &self.share, error))?;
        let mut applied = Applied {
            is_changed: true,
            ..Applied::default()
        };
        applied.result.insert("version".to_owned(), json!(version));
        Ok(applied)
    }
}
