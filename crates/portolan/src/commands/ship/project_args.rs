//! The arguments that name a project, and the reading of its document.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_ship::{
    Adjustments, Ship, choose_artifacts, parse_namespace, parse_registry, parse_set,
};

use super::document_file::{FILE, find_above, read_text, real_directory, refused};
use super::project::Project;
use super::target_args::current_context;
use crate::error::CommandError;
use crate::printer::Printer;

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
        let names = self.names.iter().chain(more);
        choose_artifacts(&project.ship, names).map_err(|error| project.no_artifact(&error))
    }

    /// The artifacts that are named, all of which must be there.
    pub(super) fn check(&self, project: &Project) -> Result<&[String], CommandError> {
        choose_artifacts(&project.ship, &self.names)
            .map_err(|error| project.no_artifact(&error))?;
        Ok(&self.names)
    }
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
