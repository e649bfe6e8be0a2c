//! The module `publish`: gives a file or a value to other nodes.

use camino::Utf8PathBuf;
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
use crate::shares::{MAX_SHARE_BYTES, ShareError};
use crate::view::{Content, View};

pub(crate) static PUBLISH: ModuleDefinition = ModuleDefinition {
    name: "publish",
    summary: "Gives a file or a value to other nodes, encrypted so that only they can read it. They take it with `fetch`.",
    parameters: &[
        SHARE,
        ParameterDefinition::optional(
            "path",
            ParameterType::Path,
            "The file whose content is given, at most 1 MiB.",
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

struct PublishAction {
    share: String,
    origin: Origin,
    to: Value,
}

enum Origin {
    File(Utf8PathBuf),
    Value(String),
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
    let origin = match parameters.exactly_one(&["path", "value"])? {
        "path" => Origin::File(parameters.path("path")?),
        _ => Origin::Value(parameters.text("value")?.to_owned()),
    };
    Some(Box::new(PublishAction {
        share: share?,
        origin,
        to: to.map_or(Value::Null, Value::Object),
    }))
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
    /// What is given; `None` if an earlier step of the check writes it.
    fn content(&self, view: &View<'_>) -> Result<Option<Vec<u8>>, ModuleError> {
        let path = match &self.origin {
            Origin::Value(value) => return Ok(Some(value.clone().into_bytes())),
            Origin::File(path) => path,
        };
        match view.read(path, MAX_SHARE_BYTES as u64)? {
            Some(Content::Known(content)) => Ok(Some(content.to_vec())),
            Some(Content::Unknown) => Ok(None),
            None => Err(ModuleError::failed("read", path, "it does not exist")),
        }
    }
}

impl PublishAction {
    fn is_published(&self, host: &Host, content: &[u8]) -> Result<bool, ModuleError> {
        host.shares
            .is_published(&self.share, &self.to, content, &host.stop)
            .map_err(|error| failed("publish", &self.share, error))
    }
}

impl Action for PublishAction {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let Some(content) = self.content(view)? else {
            return Ok(Plan::unknown("an earlier step writes the file"));
        };
        if content.len() > MAX_SHARE_BYTES {
            let reason = format!("it has more than {MAX_SHARE_BYTES} bytes");
            let error = ModuleError::failed("publish", &self.share, reason);
            return Err(error.with_hint("larger files belong into packages"));
        }
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
            diff: format!("a new version of {} bytes\n", content.len()),
        }]))
    }

    fn apply(&self, host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        let content = self.content(&View::of(host))?.unwrap_or_default();
        if self.is_published(host, &content)? {
            return Ok(Applied::default());
        }
        let published = host
            .shares
            .publish(&self.share, &self.to, &content, &host.stop);
        let version = published.map_err(|error| failed("publish", &self.share, error))?;
        let mut applied = Applied {
            is_changed: true,
            ..Applied::default()
        };
        applied.result.insert("version".to_owned(), json!(version));
        Ok(applied)
    }
}
