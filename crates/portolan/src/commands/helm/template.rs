//! `portolan helm template`: what `helm template` prints.

use std::sync::Arc;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_helm::{
    Chart, Lookup, OutputOptions, Package, Profile, Release, Snapshot, TemplateInput,
    template as render,
};
use portolan_vfs::Disk;

use super::access_options::AccessOptions;
use super::chart_options::{ChartOptions, load_chart};
use super::cluster_options::ClusterOptions;
use super::dependency::bring;
use super::generated_name::generated_name;
use super::go_flags;
use super::install_options::InstallOptions;
use super::pull::{Address, fetch};
use super::schemas::WebSchemas;
use super::template_files::write_files;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::limit_args::LimitArgs;
use crate::random_args::RandomArgs;

/// Render a chart and print its manifests
#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
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
    #[arg(required = true, num_args = 1..=2, value_name = "NAME] [CHART")]
    name_and_chart: Vec<String>,

    #[command(flatten)]
    options: ChartOptions,

    /// The namespace of the release
    #[arg(short, long, default_value = "default", help_heading = "Release")]
    namespace: String,

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
    is_upgrade: bool,

    /// Generate a release name from the chart's name and the time
    #[arg(short, long, help_heading = "Release")]
    generate_name: bool,

    /// Make the release's name by a template
    #[arg(long, value_name = "TEMPLATE", help_heading = "Release")]
    name_template: Option<String>,

    /// Write one file for each template below this directory instead of printing
    #[arg(long, value_name = "DIRECTORY", help_heading = "Output")]
    output_dir: Option<Utf8PathBuf>,

    /// Put a directory with the release's name below --output-dir
    #[arg(long, help_heading = "Release")]
    release_name: bool,

    /// Accepted for Helm's sake: manifests are never sent to a cluster
    #[arg(long, help_heading = "Kubernetes and Helm")]
    validate: bool,

    /// Helm version to emulate
    #[arg(long, value_enum, default_value_t = HelmVersion::V3, help_heading = "Kubernetes and Helm")]
    helm: HelmVersion,

    /// Fetch the charts it depends on into `charts/` when some are missing
    #[arg(long, help_heading = "Sources and network")]
    dependency_update: bool,

    /// Answer `lookup` from the objects in the YAML and JSON files of this directory
    #[arg(long, value_name = "DIRECTORY", help_heading = "Kubernetes and Helm")]
    lookup_dir: Option<Utf8PathBuf>,

    /// The repository that the chart is in
    #[arg(long, value_name = "URL", help_heading = "Sources and network")]
    repo: Option<String>,

    /// A version or range of versions of a chart that is fetched; the newest when it is not given
    #[arg(
        long,
        value_name = "RANGE",
        default_value = "",
        hide_default_value = true,
        help_heading = "Sources and network"
    )]
    version: String,

    #[command(flatten)]
    access: AccessOptions,

    #[command(flatten)]
    install: InstallOptions,

    #[command(flatten)]
    cluster: ClusterOptions,

    #[command(flatten)]
    random: RandomArgs,

    #[command(flatten)]
    limit: LimitArgs,
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

pub(crate) fn template(args: &TemplateArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    if args.validate {
        return Err(CommandError::usage(
            "--validate needs a cluster, and this command talks to none",
        )
        .hint("leave it out, or pass --validate=false"));
    }
    args.install.check()?;
    let (name, path) = args.name_and_chart()?;
    let chart = args.chart(&path, app)?;
    if chart.package().metadata.deprecated {
        printer.warning("this chart is deprecated");
    }
    let mut release = Release::new(name, args.namespace.as_str());
    release.is_upgrade = args.is_upgrade;
    let profile = match args.helm {
        HelmVersion::V3 => Profile::Helm3,
        HelmVersion::V4 => Profile::Helm4,
    };
    let input = TemplateInput {
        values: args.options.merged_values()?,
        capabilities: args.options.capabilities(profile)?,
        profile,
        skip_schema_validation: args.options.skip_schema_validation,
        schemas: Some(Arc::new(WebSchemas {
            access: args.access.clone(),
            runtime: app.lazy_runtime().clone(),
        })),
        now: args.random.now(),
        live_seed: args.random.live_seed()?,
        lookup: args.lookup()?,
        budget: args.limit.budget(),
        ..TemplateInput::new(release)
    };
    let rendered = render(&chart, &input).map_err(CommandError::user)?;
    for warning in &rendered.warnings {
        printer.warning(warning);
    }
    match &args.output_dir {
        Some(directory) => {
            let below = args.release_name.then_some(input.release.name.as_str());
            write_files(directory, below, &rendered, &args.output(), printer)?;
        }
        None => {
            let text = rendered
                .to_text(&args.output())
                .map_err(CommandError::user)?;
            printer.data(text)?;
        }
    }
    // The process ends now: freeing thousands of values one by one would only take time.
    std::mem::forget((chart, input, rendered));
    Ok(ExitStatus::Clean)
}

impl TemplateArgs {
    /// The chart, fetched when it lies elsewhere.
    fn chart(&self, path: &Utf8Path, app: &App) -> Result<Chart, CommandError> {
        let is_remote = ["oci://", "http://", "https://"]
            .iter()
            .any(|scheme| path.as_str().starts_with(scheme));
        if self.repo.is_some() || is_remote {
            return self.fetched(path.as_str(), app);
        }
        let chart = load_chart(path)?;
        if !self.dependency_update || chart.package().missing_dependencies().is_empty() {
            return Ok(chart);
        }
        bring(path, &self.access, app)?;
        load_chart(path)
    }

    fn fetched(&self, chart: &str, app: &App) -> Result<Chart, CommandError> {
        let address = Address {
            chart,
            repo: self.repo.as_deref(),
            version: self.install.version(&self.version),
        };
        let sources = self.access.sources();
        let access = self.access.access()?;
        let pulled = app.wait(fetch(&address, &sources, access))??;
        let package = Package::from_archive(&pulled.content).map_err(CommandError::user)?;
        Ok(Chart::new(package))
    }

    fn lookup(&self) -> Result<Option<Arc<dyn Lookup>>, CommandError> {
        let Some(directory) = &self.lookup_dir else {
            return Ok(None);
        };
        let disk = Disk::open(directory).map_err(CommandError::user)?;
        let snapshot = Snapshot::load(&disk, "/".into()).map_err(CommandError::user)?;
        Ok(Some(Arc::new(snapshot)))
    }

    fn name_and_chart(&self) -> Result<(String, Utf8PathBuf), CommandError> {
        match self.name_and_chart.as_slice() {
            [name, chart] => {
                let made_up = match &self.name_template {
                    _ if self.generate_name => "--generate-name",
                    Some(_) => "--name-template",
                    None => return Ok((name.clone(), chart.into())),
                };
                Err(CommandError::usage(format!(
                    "cannot set {made_up} and also specify a name"
                )))
            }
            [chart] => {
                let name = match &self.name_template {
                    Some(template) => {
                        portolan_helm::name_from_template(template).map_err(CommandError::user)?
                    }
                    None if self.generate_name => generated_name(chart, SystemTime::now()),
                    None => "release-name".to_owned(),
                };
                Ok((name, chart.into()))
            }
            _ => Err(CommandError::usage("a name and a chart are needed")),
        }
    }

    fn output(&self) -> OutputOptions {
        OutputOptions {
            include_crds: self.include_crds,
            no_hooks: self.no_hooks,
            skip_tests: self.skip_tests,
            show_only: self.show_only.clone(),
        }
    }
}
