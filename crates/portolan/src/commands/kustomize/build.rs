//! `portolan kustomize build`: what `kustomize build` prints.

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use portolan_files::{OutputDir, file_name, write_file};
use portolan_helm::ReportedVersion;
use portolan_kustomize::{
    Deprecation, LoadRestrictor, Options, Reorder, Resource, ResourceSet, to_yaml,
};
use portolan_vfs::{Disk, Memory};

use super::charts::HelmCharts;
use super::remote::Outside;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::limit_args::LimitArgs;

/// Build an overlay and print its objects
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan kustomize build ./overlays/prod
  portolan kustomize build . --load-restrictor LoadRestrictionsNone
  portolan kustomize build ./overlays/prod --offline
  portolan kustomize build ./overlays/prod -o objects.yaml")]
pub(crate) struct BuildArgs {
    /// The directory with the kustomization file
    #[arg(value_name = "DIR", default_value = ".")]
    directory: Utf8PathBuf,

    /// Which files a kustomization may read
    #[arg(long, value_enum, default_value_t = Restrictor::RootOnly, help_heading = "Build")]
    load_restrictor: Restrictor,

    /// The order of the objects, unless the kustomization sets one
    #[arg(long, value_enum, default_value_t = Order::Legacy, help_heading = "Build")]
    reorder: Order,

    /// Render the charts of `helmCharts`
    #[arg(long, help_heading = "Build")]
    enable_helm: bool,

    /// Render charts for this Kubernetes version, whatever they say
    #[arg(long, value_name = "VERSION", help_heading = "Build")]
    helm_kube_version: Option<String>,

    /// Tell charts that the cluster serves these API versions, whatever they say
    #[arg(long, value_name = "VERSION", help_heading = "Build")]
    helm_api_versions: Vec<String>,

    /// Accepted for kustomize's sake: charts are rendered without a helm program
    #[arg(long, value_name = "PROGRAM", help_heading = "Build")]
    helm_command: Option<String>,

    /// Accepted for kustomize's sake: no functions are run
    #[arg(long, help_heading = "Build")]
    as_current_user: bool,

    /// Fetch nothing: use what was fetched before
    #[arg(long, help_heading = "Sources and network")]
    offline: bool,

    #[command(flatten)]
    limits: LimitArgs,

    /// Write to a file, or one file per object to a directory that exists
    #[arg(short, long, value_name = "PATH", help_heading = "Output")]
    output: Option<Utf8PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Restrictor {
    /// Only files in or below its directory
    #[value(name = "LoadRestrictionsRootOnly")]
    RootOnly,
    /// All files
    #[value(name = "LoadRestrictionsNone")]
    None,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Order {
    /// By kind
    Legacy,
    /// As accumulated
    None,
}

pub(crate) fn build(args: &BuildArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    if args.helm_command.is_some() {
        printer.warning("--helm-command is not used: charts are rendered without a helm program");
    }
    let root = absolute(&args.directory).map_err(CommandError::user)?;
    let outside = Outside::open(&root, args.offline, app)?;
    let budget = args.limits.budget();
    // kustomize takes an empty option for an absent one.
    let kube_version = args.helm_kube_version.as_deref();
    let kube_version = kube_version.filter(|version| !version.is_empty());
    let kube_version = kube_version.map(ReportedVersion::parse).transpose();
    let kube_version = kube_version
        .map_err(|error| CommandError::user(error).hint("write it as in `1.36` or `v1.36.3`"))?;
    let charts = HelmCharts {
        budget: &budget,
        sources: &outside.sources,
        runtime: app.lazy_runtime(),
        kube_version: kube_version.as_ref(),
        api_versions: &args.helm_api_versions,
    };
    let warn = |deprecation: Deprecation| printer.remark(&format!("# Warning: {deprecation}"));
    let options = Options {
        load_restrictor: match args.load_restrictor {
            Restrictor::RootOnly => LoadRestrictor::RootOnly,
            Restrictor::None => LoadRestrictor::None,
        },
        reorder: match args.reorder {
            Order::Legacy => Reorder::Legacy,
            Order::None => Reorder::None,
        },
        charts: args.enable_helm.then_some(&charts),
        fetch: Some(&outside.remote),
        warn: Some(&warn),
        kustomization: None,
        budget: Some(&budget),
    };
    let set = if is_address(&args.directory) {
        let only = format!("resources:\n- {}\n", args.directory);
        let files = Memory::from_iter([("/kustomization.yaml", only)]);
        portolan_kustomize::build("/".into(), &files, &options)
    } else {
        portolan_kustomize::build(&root, &Disk::machine(), &options)
    };
    let set = set.map_err(CommandError::user)?;
    match &args.output {
        None => printer.data(to_yaml(&set).map_err(CommandError::user)?)?,
        Some(path) => write(path, &set)?,
    }
    // The process ends now: freeing thousands of values one by one would only take time.
    std::mem::forget(set);
    Ok(ExitStatus::Clean)
}

/// Whether a directory of a git repository elsewhere is meant, as kustomize writes it.
fn is_address(directory: &Utf8Path) -> bool {
    let text = directory.as_str();
    let is_spelled =
        text.contains("://") || text.starts_with("git@") || text.starts_with("github.com/");
    is_spelled && !directory.exists()
}

fn absolute(directory: &Utf8Path) -> anyhow::Result<Utf8PathBuf> {
    let current = std::env::current_dir().context("cannot find the current directory")?;
    let current = Utf8PathBuf::try_from(current)?;
    Ok(current.join(directory))
}

/// A directory gets one file per object, anything else everything.
fn write(path: &Utf8Path, set: &ResourceSet) -> Result<(), CommandError> {
    if !path.is_dir() {
        let text = to_yaml(set).map_err(CommandError::user)?;
        return Ok(write_file(path, text.as_bytes())?);
    }
    let output = OutputDir::create(path)?;
    for resource in set {
        let text = portolan_yaml::write_kustomize(&resource.node).map_err(CommandError::user)?;
        let name = file_name(&name_of(resource));
        output.write(name.as_str().into(), text.as_bytes())?;
    }
    Ok(())
}

/// `group_version_kind_name.yaml`, in lower case, as kustomize calls it; a namespace comes first.
fn name_of(resource: &Resource) -> String {
    let gvk = resource.gvk();
    let parts = [gvk.group.as_str(), gvk.version.as_str(), gvk.kind.as_str()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let name = resource.name().replace(['/', ':'], "-");
    let namespace = resource.namespace();
    let prefix = if namespace.is_empty() {
        String::new()
    } else {
        format!("{namespace}_")
    };
    format!("{prefix}{}_{name}.yaml", parts.join("_")).to_lowercase()
}
