//! `portolan audit cluster`: what runs in a cluster.

use std::path::PathBuf;
use std::time::Duration;

use portolan_audit::{Report, Target};
use portolan_cluster::{Access, Cluster, ClusterError, ErrorKind};
use portolan_exporter::{ScanError, ScanOptions, Sources, scan};

use super::check_options::CheckOptions;
use super::print::print;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;

/// Find deprecated and removed APIs in a cluster
///
/// Checks Helm releases (the newest deployed revision, hooks included, in Secrets and ConfigMaps), live objects (who
/// wrote them last and in which API version, what was last applied), CRDs and their stored versions, and the API
/// server's own count of deprecated requests. Lists only metadata, in pages, and reads one record per release. Without
/// --target, checks for the version that the cluster runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan audit cluster --target 1.36
  portolan audit cluster --context production -n shop -o json
  portolan audit cluster --only helm --fail-on deprecated")]
pub(crate) struct ClusterArgs {
    #[command(flatten)]
    look: LookArgs,

    #[command(flatten)]
    check: CheckOptions,
}

/// Which cluster, and how to look at it.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct LookArgs {
    /// The kubeconfig; without it `KUBECONFIG`, `~/.kube/config` and the pod's service account are tried
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    context: Option<String>,

    /// Only this namespace; cluster-scoped objects are left out
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    namespace: Option<String>,

    /// Look at one source only
    #[arg(long, value_name = "SOURCE", help_heading = "Selection")]
    only: Option<Only>,

    /// How many releases are read at a time
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256), help_heading = "Limits")]
    workers: u16,

    /// How many findings are kept; the rest is counted
    #[arg(long, value_name = "COUNT", default_value_t = portolan_exporter::MAX_FINDINGS, help_heading = "Limits")]
    max_findings: usize,

    /// How long one answer of the API server may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = "Limits")]
    timeout: u64,
}

/// One source of what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    /// Helm releases
    Helm,
    /// Live objects, definitions and deprecated requests
    Live,
}

pub(crate) fn cluster(args: &ClusterArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let mut report = app.runtime()?.block_on(look(args))?;
    let warnings = args.check.accept(&mut report.findings)?;
    report.warnings.extend(warnings);
    print(&report, args.check.output, printer)?;
    Ok(args.check.status(&report))
}

async fn look(args: &ClusterArgs) -> Result<Report, CommandError> {
    let cluster = args.look.connect().await?;
    let version = cluster.version().await.map_err(refused)?;
    let target = Target::kubernetes(version.parse().map_err(CommandError::user)?);
    let (checker, warnings) = args.check.checker_for(target)?;
    let report = scan(&cluster, &checker, &args.look.options()).await;
    let mut report = report.map_err(scan_refused)?;
    report.warnings.extend(warnings);
    Ok(report)
}

impl LookArgs {
    pub(super) async fn connect(&self) -> Result<Cluster, CommandError> {
        let access = Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            plugin_runner: std::env::current_exe().ok(),
        };
        let cluster = Cluster::connect(&access).await.map_err(refused)?;
        Ok(cluster.with_patience(Duration::from_secs(self.timeout)))
    }

    pub(super) fn options(&self) -> ScanOptions {
        ScanOptions {
            sources: match self.only {
                None => Sources::All,
                Some(Only::Helm) => Sources::Helm,
                Some(Only::Live) => Sources::Live,
            },
            namespace: self.namespace.clone(),
            workers: usize::from(self.workers),
            max_findings: self.max_findings,
        }
    }
}

fn scan_refused(error: ScanError) -> CommandError {
    match error {
        ScanError::Cluster(error) => refused(error),
        other @ ScanError::Worker(_) => CommandError::user(other),
    }
}

fn refused(error: ClusterError) -> CommandError {
    match hint(&error) {
        Some(hint) => CommandError::user(error).hint(hint),
        None => CommandError::user(error),
    }
}

/// What to do about it.
fn hint(error: &ClusterError) -> Option<&'static str> {
    let by_kind = match error.kind() {
        ErrorKind::Forbidden => {
            "deploy/audit/rbac.yaml grants what an audit needs; --only live does without Secrets, --namespace with one namespace"
        }
        ErrorKind::Unauthorized => {
            "the credentials of the kubeconfig are not accepted, or no longer: log in again, or choose others with --context"
        }
        ErrorKind::Config => {
            "name a kubeconfig with --kubeconfig, or a context of it with --context"
        }
        ErrorKind::Unreachable => {
            "is the cluster up, and can it be reached from here? --context chooses another"
        }
        ErrorKind::Timeout => "--timeout gives it longer",
        ErrorKind::Throttled | ErrorKind::Server => {
            "the API server is busy or in trouble: try again later, or ask for less at a time with --workers"
        }
        ErrorKind::Gone | ErrorKind::Conflict | ErrorKind::Other => return None,
    };
    Some(match error {
        ClusterError::Untrusted { .. } => {
            "the server's certificate must be signed by the kubeconfig's certificate-authority, for this address"
        }
        ClusterError::Credentials { .. } => {
            "the kubeconfig's user names a program or a file that gives the credentials: try it by hand"
        }
        _ => by_kind,
    })
}
