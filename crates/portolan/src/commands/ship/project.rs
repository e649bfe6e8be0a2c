//! The arguments that name a project and its store, and what its builders get.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_layout::Store;
use portolan_object::similar;
use portolan_ship::{Adjustments, BaseImages, BuildSetup, Ship, ShipRun};

use super::document_file::{FILE, cannot_use, find_above, read_text, real_directory, refused};
use super::target_args::current_context;
use crate::error::CommandError;
use crate::printer::Printer;

/// Where the store is if nothing is said, beside the document.
const STORE: &str = ".portolan";

/// Which project.
#[derive(Debug, Default, clap::Args)]
pub(super) struct ProjectArgs {
    /// Document to read; the default is `portolan.yaml` here or in the nearest directory above
    #[arg(short, long, value_name = "FILE", help_heading = "Project")]
    pub(super) file: Option<Utf8PathBuf>,

    /// Profile of the document to lay over it; may be repeated, later ones over earlier ones
    #[arg(short, long = "profile", value_name = "NAME", help_heading = "Project")]
    pub(super) profiles: Vec<String>,

    /// Value to set in the document, as in `artifacts.web.oci.compression=zstd`; may be repeated
    #[arg(long, value_name = "PATH=VALUE", value_parser = parse_set, help_heading = "Project")]
    pub(super) set: Vec<(String, String)>,

    /// Registry that all images go to instead of the document's, as in `localhost:5000` or `registry.example/team`
    #[arg(long, value_name = "PREFIX", value_parser = parse_registry, help_heading = "Project")]
    pub(super) registry: Option<String>,
}

/// Where a command works, besides what the document says.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// The context of the kubeconfig; without one it is the current one.
    pub(super) context: Option<String>,
    /// The namespace, in place of those of the document.
    pub(super) namespace: Option<String>,
}

/// The namespace, in place of those of the document.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct NamespaceArgs {
    /// Namespace of all steps, verifications and forwarded ports, in place of those in the document
    #[arg(short, long, value_name = "NAME", value_parser = parse_namespace, help_heading = "Cluster")]
    pub(super) namespace: Option<String>,
}

/// Which artifacts.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ArtifactArgs {
    /// Artifact to work on, with those that it needs; may be repeated. The default is all
    #[arg(
        id = "only",
        short = 'a',
        long = "artifact",
        value_name = "ARTIFACT",
        help_heading = "Selection"
    )]
    pub(super) names: Vec<String>,
}

impl ArtifactArgs {
    /// The artifacts of both lists; all of the document if none is named.
    pub(super) fn with(
        &self,
        more: &[String],
        project: &Project,
    ) -> Result<Vec<String>, CommandError> {
        let names = self.check(project)?.iter().chain(more);
        let names: BTreeSet<String> = names.cloned().collect();
        let artifacts = project.ship.artifacts.iter().map(|it| it.name.clone());
        if let Some(name) = names
            .iter()
            .find(|name| project.ship.artifact(name).is_none())
        {
            return Err(project.no_artifact(name));
        }
        Ok(if names.is_empty() {
            artifacts.collect()
        } else {
            names.into_iter().collect()
        })
    }

    /// The artifacts that are named, all of which must be there.
    pub(super) fn check(&self, project: &Project) -> Result<&[String], CommandError> {
        let is_missing = |name: &&String| project.ship.artifact(name).is_none();
        match self.names.iter().find(is_missing) {
            Some(name) => Err(project.no_artifact(name)),
            None => Ok(&self.names),
        }
    }
}

/// A registry is no address: it may have a port and a path.
fn parse_registry(text: &str) -> Result<String, String> {
    let example = "write it as `localhost:5000` or `registry.example/team`";
    match text {
        "" => Err(format!("it is empty; {example}")),
        _ if text.contains("://") => Err(format!("it has a scheme; {example}")),
        _ if text.contains('@') => Err(format!("it has a digest or a login; {example}")),
        _ => Ok(text.to_owned()),
    }
}

/// A namespace has the name of a label.
fn parse_namespace(text: &str) -> Result<String, String> {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_name = !text.is_empty()
        && text.len() <= 63
        && text
            .chars()
            .all(|letter| is_letter(letter) || letter == '-')
        && text.starts_with(is_letter)
        && text.ends_with(is_letter);
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("a namespace has small letters, digits and `-` between them".to_owned())
    }
}

fn parse_set(text: &str) -> Result<(String, String), String> {
    let (path, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not of the form PATH=VALUE"))?;
    Ok((path.to_owned(), value.to_owned()))
}

/// Where images, results and runs are kept.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    /// Directory of images and runs, which is an OCI layout; the default is `.portolan` beside the document
    #[arg(long, value_name = "DIR", help_heading = "Project")]
    pub(crate) store: Option<Utf8PathBuf>,
}

/// A project that was read.
pub(super) struct Project {
    /// What its document says.
    pub(super) ship: Ship,
    /// The document's file as messages have it.
    pub(super) file: Utf8PathBuf,
    /// The document's text.
    pub(super) text: String,
    /// The directory of the document, without links.
    pub(super) directory: Utf8PathBuf,
    /// The environment, of which commands get what the document names.
    pub(super) env: Arc<BTreeMap<String, String>>,
    /// What was laid over the document.
    pub(super) asked: Adjustments,
}

impl ProjectArgs {
    /// Reads the document; everything that is wrong with it is drawn.
    pub(super) fn read(&self, command: &str, printer: &Printer) -> Result<Project, CommandError> {
        self.read_for(command, Place::default(), printer)
    }

    /// The same for a command that works on a cluster.
    pub(super) fn read_for(
        &self,
        command: &str,
        place: Place,
        printer: &Printer,
    ) -> Result<Project, CommandError> {
        let file = self.find()?;
        let text = read_text(&file)?;
        // What is no UTF-8 cannot be put into a document.
        let env: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let variable = |name: &str| env.get(name).cloned();
        let asked = Adjustments {
            profiles: self.profiles.clone(),
            command: command.to_owned(),
            context: place.context.or_else(|| current_context(None)),
            set: self.set.clone(),
            registry: self.registry.clone(),
            namespace: place.namespace,
        };
        let ship = Ship::read_adjusted(&text, &variable, &asked)
            .map_err(|error| refused(&error, &file, &text, printer))?;
        let directory = real_directory(&file)?;
        Ok(Project {
            ship,
            file,
            text,
            directory,
            env: Arc::new(env),
            asked,
        })
    }

    fn find(&self) -> Result<Utf8PathBuf, CommandError> {
        match &self.file {
            Some(file) => Ok(file.clone()),
            None => find_above().ok_or_else(|| {
                CommandError::usage(format!("there is no `{FILE}` here or in a directory above"))
                    .hint("`portolan ship init` writes one for what it finds here")
            }),
        }
    }
}

impl StoreArgs {
    /// The directory of the store: the one that is named, or the one beside a document.
    pub(crate) fn directory(
        &self,
        project: Option<&Utf8Path>,
    ) -> Result<Utf8PathBuf, CommandError> {
        if let Some(store) = &self.store {
            return Ok(store.clone());
        }
        if let Some(directory) = project {
            return Ok(directory.join(STORE));
        }
        let file = find_above().ok_or_else(|| {
            CommandError::usage(format!("there is no `{FILE}` here or in a directory above"))
                .hint("name the store: `--store DIR`")
        })?;
        Ok(real_directory(&file)?.join(STORE))
    }

    /// The store of a project, made if it is not there.
    pub(super) fn open(&self, project: &Project) -> Result<Store, CommandError> {
        let path = self.directory(Some(&project.directory))?;
        fs::create_dir_all(&path).map_err(|error| cannot_use(&path, error))?;
        // Builders leave the store out of what they read, and compare paths for that.
        let path = path
            .canonicalize_utf8()
            .map_err(|error| cannot_use(&path, error))?;
        let store = Store::open(&path).map_err(CommandError::user)?;
        if self.store.is_none() {
            let ignore = path.join(".gitignore");
            if !ignore.exists() {
                fs::write(&ignore, "*\n").map_err(|error| cannot_use(&ignore, error))?;
            }
        }
        Ok(store)
    }
}

impl Project {
    /// What builders of a run have.
    pub(super) fn setup(
        &self,
        store: Arc<Store>,
        run: ShipRun,
        bases: Arc<BaseImages>,
        jobs: usize,
    ) -> BuildSetup {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        BuildSetup {
            directory: self.directory.clone(),
            store,
            run: Arc::new(run),
            bases,
            writes_sbom: false,
            git: Arc::default(),
            threads: (cores / jobs.max(1)).max(1),
            now: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
            env: Arc::clone(&self.env),
        }
    }

    /// An artifact of that name is not there; says which may be meant.
    pub(super) fn no_artifact(&self, name: &str) -> CommandError {
        let file = &self.file;
        let error = CommandError::usage(format!("`{file}` has no artifact `{name}`"));
        let names = || {
            self.ship
                .artifacts
                .iter()
                .map(|artifact| artifact.name.as_str())
        };
        match similar(name, names(), |name| name) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("it has {}", names().collect::<Vec<_>>().join(", "))),
        }
    }
}

/// Begins a run and its journal in a store.
pub(super) fn begin(store: &Store) -> Result<(ShipRun, portolan_engine::Journal), CommandError> {
    let now = SystemTime::now();
    let run = ShipRun::begin(store.root(), now).map_err(CommandError::user)?;
    let journal = run.journal(now).map_err(CommandError::user)?;
    Ok((run, journal))
}
