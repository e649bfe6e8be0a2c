//! `portolan helm pull`: fetches a chart into a directory.

use std::io::Write as _;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use portolan_sources::{Access, ChartRequest, FileRequest, Limits, Sources, unpack};
use portolan_vfs::Vfs;

use super::access_options::{AccessOptions, wait};
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Fetch a chart into a directory
///
/// The chart is kept in the cache as well, so that fetching it again needs no network.
#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "\
Examples:
  portolan helm pull podinfo --repo https://stefanprodan.github.io/podinfo --version ^6
  portolan helm pull oci://ghcr.io/stefanprodan/charts/podinfo --untar
  portolan helm pull https://example.com/charts/web-1.0.0.tgz -d charts"
)]
pub(crate) struct PullArgs {
    /// The chart: a name with `--repo`, an `oci://` address or the address of an archive
    chart: String,

    /// The repository that the chart is in
    #[arg(long, value_name = "URL")]
    repo: Option<String>,

    /// A version or range of versions; the newest when it is not given
    #[arg(
        long,
        value_name = "RANGE",
        default_value = "",
        hide_default_value = true
    )]
    version: String,

    /// Put the chart here
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    destination: Utf8PathBuf,

    /// Unpack the archive
    #[arg(long)]
    untar: bool,

    #[command(flatten)]
    access: AccessOptions,
}

/// An archive with the name it gets.
struct Pulled {
    file_name: String,
    content: Vec<u8>,
}

pub(crate) fn pull(args: &PullArgs, printer: &Printer) -> CommandResult {
    let sources = args.access.sources()?;
    let access = args.access.access()?;
    let pulled = wait(fetch(args, &sources, access))??;
    let path = if args.untar {
        untar(&pulled.content, &args.destination)?
    } else {
        let path = args.destination.join(&pulled.file_name);
        write_file(&path, &pulled.content).map_err(CommandError::user)?;
        path
    };
    printer.data(format!("{path}\n"))?;
    Ok(ExitStatus::Clean)
}

async fn fetch(args: &PullArgs, sources: &Sources, access: Access) -> Result<Pulled, CommandError> {
    if args.repo.is_none() && args.chart.starts_with("http") {
        return fetch_archive(&args.chart, sources, access).await;
    }
    let (repository, name) = named(args)?;
    let request = ChartRequest {
        repository,
        name,
        version: args.version.clone(),
        access,
    };
    let chart = sources.chart(&request).await.map_err(CommandError::user)?;
    Ok(Pulled {
        file_name: format!("{}-{}.tgz", request.name, chart.version),
        content: chart.content,
    })
}

async fn fetch_archive(
    url: &str,
    sources: &Sources,
    access: Access,
) -> Result<Pulled, CommandError> {
    let request = FileRequest {
        url: url.to_owned(),
        access,
        ..FileRequest::default()
    };
    let file = sources.http_file(&request).await;
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let file_name = path.rsplit('/').next().unwrap_or_default();
    Ok(Pulled {
        file_name: file_name.to_owned(),
        content: file.map_err(CommandError::user)?.content,
    })
}

/// The repository and the chart's name in it.
fn named(args: &PullArgs) -> Result<(String, String), CommandError> {
    if let Some(repository) = &args.repo {
        return Ok((repository.clone(), args.chart.clone()));
    }
    let address = args.chart.strip_prefix("oci://");
    match address.and_then(|address| address.rsplit_once('/')) {
        Some((repository, name)) => Ok((format!("oci://{repository}"), name.to_owned())),
        None => Err(CommandError::usage(format!(
            "`{}` does not say where the chart is",
            args.chart
        ))
        .hint("give the repository's address with --repo, or an oci:// address")),
    }
}

/// Writes a file in one step, making its directory first.
pub(super) fn write_file(path: &Utf8Path, content: &[u8]) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let write = || {
        let parent = path.parent().unwrap_or(path);
        let parent = if parent.as_str().is_empty() {
            ".".into()
        } else {
            parent
        };
        std::fs::create_dir_all(parent)?;
        let mut file = tempfile::NamedTempFile::new_in(parent)?;
        file.write_all(content)?;
        let readable = std::fs::Permissions::from_mode(0o644);
        file.as_file().set_permissions(readable)?;
        file.persist(path)?;
        Ok::<_, std::io::Error>(())
    };
    write().with_context(|| format!("cannot write `{path}`"))
}

/// Unpacks an archive below a directory and returns the chart's own; one that is there is left alone.
fn untar(content: &[u8], destination: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    let files = unpack(content, &Limits::default()).map_err(CommandError::user)?;
    let top = files.list("/".into()).map_err(CommandError::user)?;
    let chart = match top.as_slice() {
        [only] if only.is_directory => destination.join(&only.name),
        _ => return Err(CommandError::usage("the archive does not hold one chart")),
    };
    if chart.exists() {
        return Err(CommandError::usage(format!("`{chart}` is there already")));
    }
    let mut pending = vec![Utf8PathBuf::from("/")];
    while let Some(directory) = pending.pop() {
        for entry in files.list(&directory).map_err(CommandError::user)? {
            let path = directory.join(&entry.name);
            if entry.is_directory {
                pending.push(path);
                continue;
            }
            let content = files.read(&path).map_err(CommandError::user)?;
            let target = destination.join(path.strip_prefix("/").unwrap_or(&path));
            write_file(&target, &content).map_err(CommandError::user)?;
        }
    }
    Ok(chart)
}
