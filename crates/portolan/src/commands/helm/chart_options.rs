//! What the `helm` commands share: where the chart is, which values it gets and what it is rendered for.

use std::io::Read;
use std::sync::Arc;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use portolan_helm::values::{Overrides, Tree};
use portolan_helm::{Capabilities, Chart, Package, Profile, ReportedVersion};
use portolan_vfs::Disk;

use crate::error::CommandError;

/// The flags of Helm that say what a chart is given.
#[derive(Debug, clap::Args)]
pub(crate) struct ChartOptions {
    /// Read values from a file, or from standard input with `-` (repeatable, later files win)
    #[arg(
        short = 'f',
        long = "values",
        value_name = "FILE",
        value_delimiter = ',',
        help_heading = "Values"
    )]
    values: Vec<String>,

    /// Set values: `a.b=1,c[0]=x,d={y,z}` (repeatable)
    #[arg(long, value_name = "ASSIGNMENTS", help_heading = "Values")]
    set: Vec<String>,

    /// Set values, all of them texts
    #[arg(long, value_name = "ASSIGNMENTS", help_heading = "Values")]
    set_string: Vec<String>,

    /// Set values to the content of files
    #[arg(long, value_name = "ASSIGNMENTS", help_heading = "Values")]
    set_file: Vec<String>,

    /// Set values to JSON
    #[arg(long, value_name = "ASSIGNMENTS", help_heading = "Values")]
    set_json: Vec<String>,

    /// Set one value to a text that is taken as it is
    #[arg(long, value_name = "ASSIGNMENT", help_heading = "Values")]
    set_literal: Vec<String>,

    /// Render for this Kubernetes version
    #[arg(long, value_name = "VERSION", help_heading = "Kubernetes and Helm")]
    kube_version: Option<String>,

    /// Say that the cluster serves these API versions as well
    #[arg(
        short,
        long,
        value_name = "GROUP/VERSION[/KIND]",
        value_delimiter = ',',
        help_heading = "Kubernetes and Helm"
    )]
    api_versions: Vec<String>,

    /// Do not check values against `values.schema.json`
    #[arg(long, help_heading = "Values")]
    pub(crate) skip_schema_validation: bool,
}

/// Opens a chart directory or archive.
///
/// Charts of one repository share parts by symbolic links, so a link may lead to anywhere in the Git work tree that the
/// chart lies in; without one, only to places in the chart itself.
pub(crate) fn load_chart(path: &Utf8Path) -> Result<Chart, CommandError> {
    let loaded = if path.is_dir() {
        let directory = path.canonicalize_utf8()?;
        let mut above = directory.ancestors();
        let root = above.find(|place| place.join(".git").exists());
        let root = root.unwrap_or(&directory);
        let inside = directory.strip_prefix(root).unwrap_or("".into());
        let disk = Disk::open(root).map_err(CommandError::user)?;
        Package::load(&disk, &Utf8Path::new("/").join(inside))
    } else {
        let bytes = std::fs::read(path)
            .with_context(|| format!("cannot read chart `{path}`"))
            .map_err(CommandError::user)?;
        Package::from_archive(&bytes)
    };
    loaded.map(Chart::new).map_err(CommandError::user)
}

impl ChartOptions {
    /// The values the user gave, merged.
    pub(crate) fn merged_values(&self) -> Result<Tree, CommandError> {
        let mut files = Vec::new();
        for name in &self.values {
            let content = read(name).map_err(CommandError::user)?;
            files.push((name.clone(), content));
        }
        let overrides = Overrides {
            files,
            json: self.set_json.clone(),
            typed: self.set.clone(),
            strings: self.set_string.clone(),
            set_files: self.set_file.clone(),
            literals: self.set_literal.clone(),
        };
        let mut read_text = |name: &str| {
            let content = read(name).map_err(|error| format!("{error:#}"))?;
            Ok(String::from_utf8_lossy(&content).into_owned())
        };
        overrides.merge(&mut read_text).map_err(CommandError::user)
    }

    /// The cluster the chart is rendered for.
    pub(crate) fn capabilities(&self, profile: Profile) -> Result<Arc<Capabilities>, CommandError> {
        let mut capabilities = Capabilities::built_into(profile);
        if let Some(version) = &self.kube_version {
            let version = ReportedVersion::parse_for(profile, version);
            capabilities = capabilities.with_version(version.map_err(CommandError::user)?);
        }
        capabilities.add_api_versions(self.api_versions.iter().map(String::as_str));
        Ok(Arc::new(capabilities))
    }
}

fn read(name: &str) -> anyhow::Result<Vec<u8>> {
    if name.trim() == "-" {
        let mut content = Vec::new();
        std::io::stdin().read_to_end(&mut content)?;
        return Ok(content);
    }
    std::fs::read(Utf8PathBuf::from(name)).with_context(|| format!("cannot read `{name}`"))
}
