//! The arguments of `portolan helm template`.

use std::sync::Arc;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_helm::{Lookup, OutputOptions, Profile, ReleaseName, Snapshot};
use portolan_vfs::Disk;

use crate::commands::helm::access_options::AccessOptions;
use crate::commands::helm::chart_options::ChartOptions;
use crate::commands::helm::cluster_options::ClusterOptions;
use crate::commands::helm::go_flags;
use crate::commands::helm::install_options::InstallOptions;
use crate::error::CommandError;
use crate::limit_args::LimitArgs;
use crate::random_args::RandomArgs;

/// Render a chart and print its manifests
#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
    override_usage = "portolan helm template [OPTIONS] [NAME] <CHART>",
    args_override_self = true,
    mut_args = go_flags::with_value,
    after_help = "\
Examples:
  portolan helm template web ./charts/web
  portolan helm template web web-1.2.3.tgz -n apps -f values.yaml --set replicas=3
  portolan helm template web ./charts/web --show-only templates/deployment.yaml
  portolan helm template web oci://ghcr.io/stefanprodan/charts/podinfo --version ^6
  portolan helm template web ./charts/web --lookup-dir cluster-export"
)]
pub(crate) struct TemplateArgs {
    /// The release's name and the chart: a directory, an archive, an address, or a name with `--repo`; the release's
    /// name may be left out
    #[arg(required = true, num_args = 1..=2, value_name = "[NAME] CHART")]
    name_and_chart: Vec<String>,

    #[command(flatten)]
    pub(super) options: ChartOptions,

    /// The namespace of the release
    #[arg(short, long, default_value = "default", help_heading = "Release")]
    pub(super) namespace: String,

    /// Print the files of `crds/` as well
    #[arg(long, help_heading = "Output")]
    include_crds: bool,

    /// Accepted for Helm's sake: CRDs are printed only with --include-crds
    #[arg(long, help_heading = "Output")]
    skip_crds: bool,

    /// Leave hooks out
    #[arg(long, help_heading = "Output")]
    no_hooks: bool,

    /// Leave tests out
    #[arg(long, help_heading = "Output")]
    skip_tests: bool,

    /// Print only what these templates give (repeatable, patterns allowed)
    #[arg(short, long, value_name = "TEMPLATE", help_heading = "Output")]
    show_only: Vec<String>,

    /// Set `.Release.IsUpgrade` instead of `.Release.IsInstall`
    #[arg(long, help_heading = "Release")]
    pub(super) is_upgrade: bool,

    /// Generate a release name from the chart's name and the time
    #[arg(short, long, help_heading = "Release")]
    generate_name: bool,

    /// Make the release's name by a template
    #[arg(long, value_name = "TEMPLATE", help_heading = "Release")]
    name_template: Option<String>,

    /// Write one file for each template below this directory instead of printing
    #[arg(long, value_name = "DIRECTORY", help_heading = "Output")]
    pub(super) output_dir: Option<Utf8PathBuf>,

    /// Put a directory with the release's name below --output-dir
    #[arg(long, help_heading = "Release")]
    pub(super) release_name: bool,

    /// Accepted for Helm's sake: manifests are never sent to a cluster
    #[arg(long, help_heading = "Kubernetes and Helm")]
    pub(super) validate: bool,

    /// Helm version to emulate
    #[arg(long, value_enum, default_value_t = HelmVersion::V3, help_heading = "Kubernetes and Helm")]
    helm: HelmVersion,

    /// Fetch the charts it depends on into `charts/` when some are missing
    #[arg(long, help_heading = "Sources and network")]
    pub(super) dependency_update: bool,

    /// Answer `lookup` from the objects in the YAML and JSON files of this directory
    #[arg(long, value_name = "DIRECTORY", help_heading = "Kubernetes and Helm")]
    lookup_dir: Option<Utf8PathBuf>,

    /// The repository that the chart is in
    #[arg(long, value_name = "URL", help_heading = "Sources and network")]
    pub(super) repo: Option<String>,

    /// A version or range of versions of a chart that is fetched; the newest when it is not given
    #[arg(
        long,
        value_name = "RANGE",
        default_value = "",
        hide_default_value = true,
        help_heading = "Sources and network"
    )]
    pub(super) version: String,

    #[command(flatten)]
    pub(super) access: AccessOptions,

    #[command(flatten)]
    pub(super) install: InstallOptions,

    #[command(flatten)]
    cluster: ClusterOptions,

    #[command(flatten)]
    pub(super) random: RandomArgs,

    #[command(flatten)]
    pub(super) limit: LimitArgs,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum HelmVersion {
    /// Helm 3.17
    #[value(name = "3")]
    V3,
    /// Helm 4.2
    #[value(name = "4")]
    V4,
}

impl TemplateArgs {
    pub(super) fn profile(&self) -> Profile {
        match self.helm {
            HelmVersion::V3 => Profile::Helm3,
            HelmVersion::V4 => Profile::Helm4,
        }
    }

    /// The release's name and the path or address of the chart.
    pub(super) fn name_and_chart(&self) -> Result<(String, &Utf8Path), CommandError> {
        let (name, chart) = match (self.name_and_chart.as_slice(), &self.name_template) {
            ([_, _], _) if self.generate_name => return Err(named_twice("--generate-name")),
            ([_, _], Some(_)) => return Err(named_twice("--name-template")),
            ([name, chart], None) => (ReleaseName::Given(name), chart),
            ([chart], Some(template)) => (ReleaseName::Template(template), chart),
            ([chart], None) if self.generate_name => {
                let now = SystemTime::now();
                (ReleaseName::Generated { chart, now }, chart)
            }
            ([chart], None) => (ReleaseName::Unnamed, chart),
            _ => return Err(CommandError::usage("a name and a chart are needed")),
        };
        let name = name.resolve().map_err(CommandError::user)?;
        Ok((name, Utf8Path::new(chart)))
    }

    /// What `lookup` answers with.
    pub(super) fn lookup(&self) -> Result<Option<Arc<dyn Lookup>>, CommandError> {
        let Some(directory) = &self.lookup_dir else {
            return Ok(None);
        };
        let disk = Disk::open(directory).map_err(CommandError::user)?;
        let snapshot = Snapshot::load(&disk, "/".into()).map_err(CommandError::user)?;
        Ok(Some(Arc::new(snapshot)))
    }

    /// What is printed of what was rendered.
    pub(super) fn output(&self) -> OutputOptions {
        OutputOptions {
            include_crds: self.include_crds,
            no_hooks: self.no_hooks,
            skip_tests: self.skip_tests,
            show_only: self.show_only.clone(),
        }
    }
}

fn named_twice(option: &str) -> CommandError {
    CommandError::usage(format!("cannot set {option} and also specify a name"))
}
