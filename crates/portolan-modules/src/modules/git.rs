//! `git`: a directory is a checkout of one commit of a repository, with nothing else in it.
//!
//! The machine's own git does the work, without hooks and without asking for anything. A branch or tag is resolved to
//! a commit when the step is planned, so the plan names the old commit and the new one.

mod checkout;
mod remote;

use camino::Utf8PathBuf;

use self::checkout::Checkout;
use self::remote::{commit_of, fault_of_url};
use crate::account_tool::refuse_links;
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::{PredictedPath, Prediction};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Plan, Subject};
use crate::state::State;
use crate::view::View;
use serde_json::json;

/// The module `git`.
pub(super) static GIT: ModuleDefinition = ModuleDefinition {
    name: "git",
    summary: "Checks out a commit of a Git repository into a directory.",
    parameters: &[
        ParameterDefinition::required(
            "url",
            ParameterType::Text,
            "The repository. A password does not belong into it: use a credential helper or an SSH key.",
        ),
        ParameterDefinition::optional(
            "ref",
            ParameterType::Text,
            "A branch, a tag or a full commit id; the repository's own branch by default.",
        ),
        ParameterDefinition::required("path", ParameterType::Path, "The directory."),
        ParameterDefinition::optional(
            "dirty",
            ParameterType::Word(&["fail", "discard"]),
            "What happens to changed and untracked files: the step fails, which is the default, or they are discarded.",
        ),
        ParameterDefinition::optional(
            "hostKeys",
            ParameterType::TextList,
            "Lines of `known_hosts`: the only keys that an SSH server may have. The machine's own by default.",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

/// The most files that a message names.
const NAMED_FILES: usize = 20;

struct Git {
    url: String,
    reference: Option<String>,
    path: Utf8PathBuf,
    discards: bool,
    host_keys: Option<Vec<String>>,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let path = parameters.path("path");
    let reference = parameters.line("ref").map(str::to_owned);
    if reference.as_deref().is_some_and(|name| !is_reference(name)) {
        parameters.fault(
            "ref",
            "must be the name of a branch or tag, or a full commit id",
        );
    }
    let discards = parameters.word("dirty") == Some("discard");
    let host_keys = parameters.text_list("hostKeys");
    let is_line = |key: &String| !key.contains(['\n', '\r', '\0']);
    if !host_keys.iter().flatten().all(is_line) {
        parameters.fault("hostKeys", "must be single lines");
    }
    let url = parameters.line("url")?.to_owned();
    if let Some(fault) = fault_of_url(&url) {
        parameters.fault("url", fault);
    }
    Some(Box::new(Git {
        url,
        reference,
        path: path?,
        discards,
        host_keys,
    }))
}

/// What git takes for a name, without its shorthands for other commits.
fn is_reference(name: &str) -> bool {
    let is_letter = |letter: char| {
        !letter.is_control() && !letter.is_whitespace() && !"~^:?*[\\".contains(letter)
    };
    !name.starts_with('-')
        && !name.contains("..")
        && !name.contains("@{")
        && name.chars().all(is_letter)
}

impl Action for Git {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let host = view.host;
        if !host.is_confined {
            refuse_links(&host.root, &self.path)?;
        }
        let checkout = Checkout::find(view, self)?;
        let now = checkout.commit(host)?;
        let wanted = commit_of(&checkout, host)?;
        let leftovers = match now {
            Some(_) => checkout.leftovers(host)?,
            None => Vec::new(),
        };
        if !leftovers.is_empty() && !self.discards {
            let reason = format!(
                "it has files that are changed or untracked: {}",
                named(&leftovers)
            );
            return Err(ModuleError::failed("check out", self.path.as_str(), reason)
                .with_hint("commit them, remove them, or use `dirty: discard`"));
        }
        let url = checkout.url(host)?;
        let before = state(url.as_deref(), now.as_deref(), &leftovers);
        let after = state(Some(&self.url), Some(&wanted), &[]);
        let change = before.change_to(&after, Subject::Path(self.path.clone()));
        let mut plan = Plan::of_changes(change.into_iter().collect());
        plan.before.insert("commit".to_owned(), json!(now));
        plan.predictions.push(Prediction::Path(
            self.path.clone(),
            PredictedPath::Directory,
        ));
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let view = View::of(host);
        let now = self.plan(&view)?;
        plan.confirm(&now)?;
        let checkout = Checkout::find(&view, self)?;
        let wanted = commit_of(&checkout, host)?;
        let is_changed = !now.changes().is_empty();
        if is_changed {
            checkout.update(host, &wanted)?;
        }
        let mut applied = Applied {
            is_changed,
            ..Applied::default()
        };
        applied.result.insert("commit".to_owned(), json!(wanted));
        Ok(applied)
    }
}

/// The state of a checkout; absent without a commit.
fn state(url: Option<&str>, commit: Option<&str>, leftovers: &[String]) -> State {
    let Some(commit) = commit else {
        return State::default();
    };
    let state = State::default()
        .with("url", url.unwrap_or_default())
        .with("commit", commit);
    match leftovers {
        [] => state,
        leftovers => state.with("changed or untracked", named(leftovers)),
    }
}

/// The first files of a list, and how many more there are.
fn named(files: &[String]) -> String {
    let shown = files[..files.len().min(NAMED_FILES)].join(", ");
    match files.len().saturating_sub(NAMED_FILES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
