//! `helmCharts`: charts that a [`ChartRenderer`](crate::ChartRenderer) renders to resources.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_budget::Budget;
use portolan_vfs::Vfs;
use portolan_yaml::{Dialect, Node, Text};

pub use crate::load::kustomization::ChartArgs;

use crate::error::{Error, Result};
use crate::load::loader::Loader;
use crate::load::read::{charge_document, read_resources};
use crate::resource::{Origin, Resource};
use crate::schema::Schema;
use crate::value::merge::{Direction, merge};

/// Renders charts; the Helm crate implements it.
pub trait ChartRenderer: Send + Sync {
    /// Renders one chart to manifests.
    fn render(&self, chart: &Chart<'_>) -> std::result::Result<Vec<u8>, ChartFailure>;

    /// Brings a chart that is not in the chart home: files, and in their root the directory with the chart's name.
    fn pull(&self, args: &ChartArgs) -> std::result::Result<Arc<dyn Vfs>, ChartFailure>;
}

/// Why a chart could not be rendered or pulled.
pub type ChartFailure = Box<dyn std::error::Error + Send + Sync>;

/// A chart to render.
pub struct Chart<'a> {
    /// What the kustomization says about it.
    pub args: &'a ChartArgs,
    /// The files the chart may lie in.
    pub files: &'a dyn Vfs,
    /// Where the chart lies in them.
    pub directory: Utf8PathBuf,
    /// The values files in order, later ones over earlier ones; the chart's own values are not among them.
    pub values: Vec<Node>,
}

/// Renders the chart of one entry.
pub(crate) fn render_chart(
    args: &ChartArgs,
    home: &Text,
    loader: &Loader<'_>,
    renderer: Option<&dyn ChartRenderer>,
    origin: &Arc<Origin>,
    budget: &Budget,
) -> Result<Vec<Resource>> {
    let Some(renderer) = renderer else {
        return Err(Error::refused("must specify --enable-helm"));
    };
    if args.name.is_empty() {
        return Err(Error::refused("chart name cannot be empty"));
    }
    if !matches!(
        args.values_merge.as_str(),
        "" | "merge" | "override" | "replace"
    ) {
        return Err(Error::refused(
            "valuesMerge must be one of [merge override replace]",
        ));
    }
    let failed = |failure: ChartFailure| Error::Chart {
        chart: args.name.to_string(),
        reason: with_causes(&*failure),
    };
    let place = Place::find(args, home, loader, renderer).map_err(failed)?;
    let files = place.files(loader);
    let chart = Chart {
        args,
        files,
        values: load_values(args, files, &place.directory, loader, budget)?,
        directory: place.directory.clone(),
    };
    let manifests = renderer.render(&chart).map_err(failed)?;
    let mut resources = read_resources(&manifests, origin, budget)?;
    for resource in &mut resources {
        resource.history.is_from_helm = true;
    }
    Ok(resources)
}

/// A failure and what led to it, as one text.
fn with_causes(failure: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(failure), |&error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

/// Where a chart lies: in the chart home, or in what was pulled.
struct Place {
    pulled: Option<Arc<dyn Vfs>>,
    directory: Utf8PathBuf,
}

impl Place {
    fn find(
        args: &ChartArgs,
        home: &Text,
        loader: &Loader<'_>,
        renderer: &dyn ChartRenderer,
    ) -> std::result::Result<Self, ChartFailure> {
        let directory = chart_directory(args, home, loader.root());
        if loader.files().is_directory(&directory) {
            return Ok(Self {
                pulled: None,
                directory,
            });
        }
        if args.repository.is_empty() {
            let message = format!("no repo specified for pull, no chart found at `{directory}`");
            return Err(message.into());
        }
        Ok(Self {
            pulled: Some(renderer.pull(args)?),
            directory: Utf8Path::new("/").join(args.name.as_str()),
        })
    }

    fn files<'a>(&'a self, loader: &'a Loader<'_>) -> &'a dyn Vfs {
        match &self.pulled {
            Some(files) => files.as_ref(),
            None => loader.files(),
        }
    }
}

fn chart_directory(args: &ChartArgs, home: &Text, root: &Utf8Path) -> Utf8PathBuf {
    let home = if home.is_empty() { "charts" } else { home };
    let mut directory = root.join(home);
    if !args.version.is_empty() && !args.repository.is_empty() {
        directory.push(format!("{}-{}", args.name, args.version));
    }
    directory.join(args.name.as_str())
}

/// The values file with the inline values merged into it as asked, then the additional files.
fn load_values(
    args: &ChartArgs,
    files: &dyn Vfs,
    directory: &Utf8Path,
    loader: &Loader<'_>,
    budget: &Budget,
) -> Result<Vec<Node>> {
    let mut values = Vec::new();
    let base = match args.values_file.as_str() {
        "" => files.read(&directory.join("values.yaml")).ok(),
        file => Some(loader.load(file)?),
    };
    let base = base
        .map(|bytes| parse(&bytes, "values file", budget))
        .transpose()?;
    values.extend(merge_inline(args, base, budget)?);
    for file in &args.additional_values_files {
        values.push(parse(&loader.load(file)?, file, budget)?);
    }
    Ok(values)
}

fn merge_inline(args: &ChartArgs, base: Option<Node>, budget: &Budget) -> Result<Option<Node>> {
    let inline = args
        .values_inline
        .as_ref()
        .filter(|node| node.as_map().is_some_and(|map| !map.is_empty()));
    let Some(inline) = inline else {
        return Ok(base);
    };
    let Some(base) = base.filter(|base| !base.is_null()) else {
        return Ok(Some(inline.clone()));
    };
    let schema = Schema::default();
    match args.values_merge.as_str() {
        "replace" => Ok(Some(inline.clone())),
        "merge" => merge(inline, &base, Direction::Append, &schema, budget),
        _ => merge(&base, inline, Direction::Append, &schema, budget),
    }
}

fn parse(bytes: &[u8], file: &str, budget: &Budget) -> Result<Node> {
    let parsed = portolan_yaml::parse_one_bytes(bytes, Dialect::Helm);
    let node = parsed.map_err(|source| Error::Yaml {
        file: file.to_owned(),
        source,
    })?;
    charge_document(&node, file, budget)?;
    Ok(node)
}
