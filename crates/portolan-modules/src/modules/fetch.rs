//! The module `fetch`: takes what another node gave.

use camino::Utf8PathBuf;
use serde_json::json;

use super::attributes::{GROUP, MODE, OWNER};
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
use crate::shares::ShareWait;
use crate::view::View;

pub(crate) static FETCH: ModuleDefinition = ModuleDefinition {
    name: "fetch",
    summary: "Writes what another node gave with `publish` into a file. Waits until it is there.",
    parameters: &[
        SHARE,
        ParameterDefinition::required("path", ParameterType::Path, "Where the file is."),
        MODE,
        OWNER,
        GROUP,
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

struct FetchAction {
    share: String,
    path: Utf8PathBuf,
    options: WriteOptions,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let share = read_share(parameters);
    let options = WriteOptions {
        attributes: Attributes::parse(parameters),
        follow: true,
        ..WriteOptions::default()
    };
    let path = parameters.path("path")?;
    Some(Box::new(FetchAction {
        share: share?,
        path,
        options,
    }))
}

impl FetchAction {
    fn file(&self, content: &[u8]) -> FileAction {
        FileAction::of_bytes(&self.path, content, self.options.clone())
    }
}

impl Action for FetchAction {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let shares = &view.host.shares;
        let looked = shares.fetch(&self.share, ShareWait::No, &view.host.stop);
        let looked = looked.map_err(|error| failed("fetch", &self.share, error))?;
        let Some((version, content)) = looked else {
            return Ok(Plan::unknown("the share is not there yet"));
        };
        let mut plan = self.file(&content).plan(view)?;
        if let PlannedOutcome::Change(changes) = &mut plan.outcome {
            for change in changes {
                // Never the content: shares are secrets more often than not.
                change.diff = format!("version {version} of share {}\n", self.share);
            }
        }
        Ok(plan)
    }

    fn apply(&self, host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        let taken = host
            .shares
            .fetch(&self.share, ShareWait::Until, &host.stop)
            .map_err(|error| failed("fetch", &self.share, error))?;
        let (version, content) = taken.ok_or(ModuleError::Stopped)?;
        let file = self.file(&content);
        // What is there now decides: a newer version may have come since the plan was made.
        let plan = file.plan(&View::of(host))?;
        let mut applied = file.apply(host, &plan)?;
        applied.result.insert("version".to_owned(), json!(version));
        Ok(applied)
    }
}
