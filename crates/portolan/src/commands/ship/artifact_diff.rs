//! `portolan diff artifacts`: the images that a build would make, of two states of a project.
//!
//! ```text
//! commit ──git──▶ a directory of its own ──▶ images ─┐
//! files as they are now ───────────────────▶ images ─┴─▶ which differ, and which only a build can tell
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_engine::{CancellationToken, Limits};
use portolan_layout::Store;
use portolan_review::compare::Revisions;
use portolan_ship::{
    BuildSetup, CommitError, CommitFiles, ComparedArtifact, ImageDifference, ImagePreview, Ship,
    compare_artifacts, finish_preview, plan_preview,
};

use super::artifact_diff_print::{ArtifactFormat, print};
use super::document_file::{FILE, refused};
use super::project::Project;
use super::project_args::ProjectArgs;
use super::registry_args::{BasePins, RegistryArgs};
use super::store_args::{StoreArgs, begin};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::session::ShownRun;

/// What is compared with what.
#[derive(Debug)]
pub(crate) struct ArtifactDiff {
    /// Artifacts; all if none is named.
    pub(crate) names: Vec<String>,
    /// The commits.
    pub(crate) revisions: Revisions,
    /// Another project's directory in their place.
    pub(crate) other: Option<Utf8PathBuf>,
    /// How the answer is printed.
    pub(crate) format: ArtifactFormat,
}

/// One state of a project.
struct Side {
    project: Project,
    /// The files of the commit, if it is one; they are there as long as this is.
    commit: Option<CommitFiles>,
}

pub(crate) fn diff_artifacts(asked: &ArtifactDiff, app: &App) -> CommandResult {
    let printer = &app.printer;
    let here = ProjectArgs::default().read("diff", printer)?;
    let store = Arc::new(StoreArgs { store: None }.open(&here)?);
    let (title, old, new) = sides(asked, here, app)?;
    let is_known = |name: &String| {
        let has = |side: &Side| side.project.ship.artifact(name).is_some();
        has(&new) || old.as_ref().is_some_and(has)
    };
    if let Some(name) = asked.names.iter().find(|name| !is_known(name)) {
        return Err(new
            .project
            .no_artifact(&new.project.ship.unknown_artifact(name)));
    }
    let before = match &old {
        Some(old) => previews(old, &asked.names, &store, app)?,
        None => BTreeMap::new(),
    };
    let after = previews(&new, &asked.names, &store, app)?;
    let old = old.as_ref().map(|side| &side.project.ship);
    let compared = compare_artifacts(old, &new.project.ship, before, after);
    print(&title, &compared, asked.format, printer)?;
    let differences = || compared.iter().map(ComparedArtifact::difference);
    Ok(if differences().any(|it| it == ImageDifference::Failed) {
        ExitStatus::Failure
    } else if differences().any(|it| it != ImageDifference::Unchanged) {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    })
}

/// The sides by name, what was (nothing if the document was not there), and what is to be.
fn sides(
    asked: &ArtifactDiff,
    here: Project,
    app: &App,
) -> Result<(String, Option<Side>, Side), CommandError> {
    if let Some(other) = &asked.other {
        let old = ProjectArgs {
            file: Some(other.join(FILE)),
            ..ProjectArgs::default()
        };
        let old = Side::of_files(old.read("diff", &app.printer)?);
        let title = format!("{other} → {}", here.directory);
        return Ok((title, Some(old), Side::of_files(here)));
    }
    let commits = asked.revisions.find(&here.directory)?;
    let prefix = here.directory.strip_prefix(&commits.top);
    let prefix = prefix.unwrap_or(Utf8Path::new("")).to_owned();
    let name = here.file.file_name().unwrap_or(FILE).to_owned();
    let document = prefix.join(name);
    let check_out = |commit: &str| Side::of_commit(&commits.top, commit, &document, &here, app);
    let (base, commit) = &commits.old;
    let old = check_out(commit)?;
    let short: String = commit.chars().take(7).collect();
    let (new_name, new) = match &commits.new {
        None => ("work tree".to_owned(), None),
        Some((name, commit)) => {
            let side = check_out(commit)?
                .ok_or_else(|| CommandError::usage(format!("`{name}` has no file `{document}`")))?;
            (name.clone(), Some(side))
        }
    };
    let title = format!("{base} ({short}) → {new_name}");
    Ok((title, old, new.unwrap_or_else(|| Side::of_files(here))))
}

impl Side {
    fn of_files(project: Project) -> Self {
        Self {
            project,
            commit: None,
        }
    }

    /// The project in a commit; `None` if that has no document.
    fn of_commit(
        top: &Utf8Path,
        commit: &str,
        document: &Utf8Path,
        here: &Project,
        app: &App,
    ) -> Result<Option<Self>, CommandError> {
        let files = CommitFiles::check_out(top, commit).map_err(unreadable)?;
        let file = files.tree().join(document);
        let Ok(text) = std::fs::read_to_string(&file) else {
            return Ok(None);
        };
        let shown = Utf8PathBuf::from(format!("{commit}:{document}"));
        let variable = |name: &str| here.env.get(name).cloned();
        let ship = Ship::read_adjusted(&text, &variable, &here.asked)
            .map_err(|error| refused(&error, &shown, &text, &app.printer))?;
        Ok(Some(Self {
            project: Project {
                ship,
                file: shown,
                text,
                directory: file.parent().unwrap_or(files.tree()).to_owned(),
                env: Arc::clone(&here.env),
                asked: here.asked.clone(),
            },
            commit: Some(files),
        }))
    }
}

fn unreadable(error: CommitError) -> CommandError {
    match error {
        CommitError::Directory(error) => CommandError::user(error),
        CommitError::NotUtf8 => {
            CommandError::usage(error.to_string()).hint("TMPDIR names another one")
        }
        CommitError::Git(_) => CommandError::usage(error.to_string()),
    }
}

/// The images that a build of one side would make.
fn previews(
    side: &Side,
    names: &[String],
    store: &Arc<Store>,
    app: &App,
) -> Result<BTreeMap<String, ImagePreview>, CommandError> {
    let project = &side.project;
    let is_there = |name: &&String| project.ship.artifact(name).is_some();
    let wanted: Vec<String> = names.iter().filter(is_there).cloned().collect();
    if wanted.is_empty() && !names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (run, journal) = begin(store)?;
    let registry = RegistryArgs::default().registry()?;
    let bases = BasePins::load(&project.directory)?.images(&registry, false);
    let mut setup: BuildSetup = project.setup(Arc::clone(store), run.clone(), Arc::new(bases), 1);
    if let Some(commit) = &side.commit {
        setup.git = Arc::new(OnceLock::from(Some(commit.facts().clone())));
    }
    let shown = ShownRun {
        journal,
        limits: Limits::default(),
        style: app.printer.progress_style(),
    };
    let token = CancellationToken::new();
    let report = shown.finish(&token, app, |units| {
        // Every name is known.
        let _ = plan_preview(&project.ship, &wanted, &setup, units);
    })?;
    // Nothing was built: whoever looks at the newest run means another one.
    run.remove().map_err(CommandError::user)?;
    if token.is_cancelled() {
        return Err(CommandError::interrupted(&report));
    }
    let artifacts = project.ship.artifacts.iter().map(|artifact| &artifact.name);
    let found = artifacts
        .filter(|name| wanted.is_empty() || wanted.contains(name))
        .filter_map(|name| Some((name.clone(), finish_preview(name, &report)?)));
    Ok(found.collect())
}
