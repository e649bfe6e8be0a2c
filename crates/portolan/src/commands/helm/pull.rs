//! `portolan helm pull`: fetches a chart into a directory.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_files::{OutputDir, file_name};
use portolan_sources::{Access, ChartRequest, FileRequest, Limits, Sources, unpack};
use portolan_vfs::Vfs;

use super::access_options::AccessOptions;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

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
    #[arg(long, value_name = "URL", help_heading = "Sources and network")]
    repo: Option<String>,

    /// A version or range of versions; the newest when it is not given
    #[arg(
        long,
        value_name = "RANGE",
        default_value = "",
        hide_default_value = true,
        help_heading = "Sources and network"
    )]
    version: String,

    /// Put the chart here
    #[arg(
        short,
        long,
        value_name = "DIR",
        default_value = ".",
        help_heading = "Output"
    )]
    destination: Utf8PathBuf,

    /// Unpack the archive
    #[arg(long, help_heading = "Output")]
    untar: bool,

    #[command(flatten)]
    access: AccessOptions,
}

/// A chart that lies elsewhere, in Helm's words.
pub(super) struct Address<'a> {
    pub(super) chart: &'a str,
    pub(super) repo: Option<&'a str>,
    pub(super) version: &'a str,
}

/// An archive with the name it gets.
pub(super) struct Pulled {
    file_name: String,
    pub(super) content: Vec<u8>,
}

pub(crate) fn pull(args: &PullArgs, app: &App) -> CommandResult {
    let sources = args.access.sources();
    let access = args.access.access()?;
    let address = Address {
        chart: &args.chart,
        repo: args.repo.as_deref(),
        version: &args.version,
    };
    let pulled = app.wait(fetch(&address, &sources, access))??;
    let path = if args.untar {
        untar(&pulled.content, &args.destination)?
    } else {
        let output = OutputDir::create(&args.destination)?;
        output.write(
            file_name(&pulled.file_name).as_str().into(),
            &pulled.content,
        )?
    };
    app.printer.data(format!("{path}\n"))?;
    Ok(ExitStatus::Clean)
}

/// Fetches a chart from a repository, a registry or an address.
pub(super) async fn fetch(
    address: &Address<'_>,
    sources: &Sources,
    access: Access,
) -> Result<Pulled, CommandError> {
    if address.repo.is_none() && address.chart.starts_with("http") {
        return fetch_archive(address.chart, sources, access).await;
    }
    let (repository, name) = named(address)?;
    let request = ChartRequest {
        repository,
        name,
        version: address.version.to_owned(),
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
fn named(address: &Address<'_>) -> Result<(String, String), CommandError> {
    if let Some(repository) = address.repo {
        return Ok((repository.to_owned(), address.chart.to_owned()));
    }
    let path = address.chart.strip_prefix("oci://");
    match path.and_then(|path| path.rsplit_once('/')) {
        Some((repository, name)) => Ok((format!("oci://{repository}"), name.to_owned())),
        None => Err(CommandError::usage(format!(
            "`{}` does not say where the chart is",
            address.chart
        ))
        .hint("give the repository's address with --repo, or an oci:// address")),
    }
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
    let output = OutputDir::create(destination)?;
    let mut pending = vec![Utf8PathBuf::from("/")];
    while let Some(directory) = pending.pop() {
        for entry in files.list(&directory).map_err(CommandError::user)? {
            let path = directory.join(&entry.name);
            if entry.is_directory {
                pending.push(path);
                continue;
            }
            let content = files.read(&path).map_err(CommandError::user)?;
            output.write(path.strip_prefix("/").unwrap_or(&path), &content)?;
        }
    }
    Ok(chart)
}
