//! `portolan diff artifacts`: the images that a build would make, of two states of a project.
//!
//! ```text
//! commit ──git──▶ a directory of its own ──▶ images ─┐
//! files as they are now ───────────────────▶ images ─┴─▶ which differ, and which only a build can tell
//! ```

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_engine::{CancellationToken, Limits};
use portolan_layout::Store;
use portolan_review::compare::Revisions;
use portolan_ship::{BuildSetup, GitFacts, ImagePreview, Ship, finish_preview, plan_preview};
use tempfile::TempDir;

use super::artifact_diff_print::{ArtifactFormat, print};
use super::document_file::{FILE, refused};
use super::project::{Project, ProjectArgs, StoreArgs, begin};
use super::registry_args::{BasePins, RegistryArgs};
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

/// An artifact on both sides.
#[derive(Debug)]
pub(super) struct ComparedArtifact {
    pub(super) name: String,
    /// The repository of its images.
    pub(super) image: String,
    /// What would have been made; `None` if there was no such artifact.
    pub(super) old: Option<ImagePreview>,
    /// What would be made; `None` if there is no such artifact any more.
    pub(super) new: Option<ImagePreview>,
}

/// What is to be said of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Difference {
    Unchanged,
    Changed,
    Added,
    Removed,
    Unknown,
    Failed,
}

/// One state of a project. Its files are there as long as it is.
struct Side {
    project: Project,
    /// The time of the commit, if it is one.
    commit: Option<GitFacts>,
    _files: Option<TempDir>,
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
        return Err(new.project.no_artifact(name));
    }
    let before = match &old {
        Some(old) => previews(old, &asked.names, &store, app)?,
        None => BTreeMap::new(),
    };
    let after = previews(&new, &asked.names, &store, app)?;
    let compared = compare(old.as_ref(), &new, before, after);
    print(&title, &compared, asked.format, printer)?;
    let differences = || compared.iter().map(ComparedArtifact::difference);
    Ok(if differences().any(|it| it == Difference::Failed) {
        ExitStatus::Failure
    } else if differences().any(|it| it != Difference::Unchanged) {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    })
}

impl ComparedArtifact {
    pub(super) fn difference(&self) -> Difference {
        use ImagePreview::{Failed, Known, Unknown};
        match (&self.old, &self.new) {
            (Some(Failed(_)), _) | (_, Some(Failed(_))) => Difference::Failed,
            (None, _) => Difference::Added,
            (_, None) => Difference::Removed,
            (Some(Unknown { .. }), _) | (_, Some(Unknown { .. })) => Difference::Unknown,
            (Some(Known(old)), Some(Known(new))) if old == new => Difference::Unchanged,
            (Some(Known(_)), Some(Known(_))) => Difference::Changed,
        }
    }
}

/// Both sides in the order of the new document; what is gone comes last.
fn compare(
    old: Option<&Side>,
    new: &Side,
    mut before: BTreeMap<String, ImagePreview>,
    mut after: BTreeMap<String, ImagePreview>,
) -> Vec<ComparedArtifact> {
    let mut compared = Vec::new();
    let sides = std::iter::once(new).chain(old);
    for artifact in sides.flat_map(|side| &side.project.ship.artifacts) {
        let (old, new) = (before.remove(&artifact.name), after.remove(&artifact.name));
        if old.is_some() || new.is_some() {
            compared.push(ComparedArtifact {
                name: artifact.name.clone(),
                image: artifact.image.clone(),
                old,
                new,
            });
        }
    }
    compared
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
            _files: None,
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
        let files = tempfile::tempdir().map_err(CommandError::user)?;
        let directory =
            Utf8Path::from_path(files.path()).and_then(|it| it.canonicalize_utf8().ok());
        let directory = directory.ok_or_else(|| {
            CommandError::usage("the directory for temporary files is not UTF-8")
                .hint("TMPDIR names another one")
        })?;
        let tree = directory.join("tree");
        let index = directory.join("index");
        git(top, &index, &["read-tree", commit])?;
        // As a clone would have them: line ends and filters that git is told of count.
        let prefix = format!("--prefix={tree}/");
        git(top, &index, &["checkout-index", "--all", &prefix])?;
        let file = tree.join(document);
        let Ok(text) = std::fs::read_to_string(&file) else {
            return Ok(None);
        };
        let shown = Utf8PathBuf::from(format!("{commit}:{document}"));
        let variable = |name: &str| here.env.get(name).cloned();
        let ship = Ship::read_adjusted(&text, &variable, &here.asked)
            .map_err(|error| refused(&error, &shown, &text, &app.printer))?;
        let committed = git(top, &index, &["show", "-s", "--format=%ct", commit])?;
        let facts = GitFacts {
            address: None,
            revision: commit.to_owned(),
            committed: committed.trim().parse().unwrap_or(0),
            is_clean: true,
        };
        Ok(Some(Self {
            project: Project {
                ship,
                file: shown,
                text,
                directory: file.parent().unwrap_or(&tree).to_owned(),
                env: Arc::clone(&here.env),
                asked: here.asked.clone(),
            },
            commit: Some(facts),
            _files: Some(files),
        }))
    }
}

/// Asks git, with an index of its own: that of the repository is not touched.
fn git(top: &Utf8Path, index: &Utf8Path, args: &[&str]) -> Result<String, CommandError> {
    let failed = |why: String| CommandError::usage(format!("cannot read the commit: {why}"));
    let answer = Command::new("git")
        .args(args)
        .current_dir(top)
        .env("GIT_INDEX_FILE", index)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format!("`git` cannot be started: {error}")))?;
    if !answer.status.success() {
        let words = String::from_utf8_lossy(&answer.stderr);
        return Err(failed(words.trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
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
        setup.git = Arc::new(OnceLock::from(Some(commit.clone())));
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
