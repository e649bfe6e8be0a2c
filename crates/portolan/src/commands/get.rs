//! `portolan get`: what a Flux repository holds, as lists, trees and graphs.
//!
//! ```text
//! repository ──render──▶ clusters ──▶ Listing (one file per kind of thing), or Graph ──▶ tree, dot, mermaid, svg
//! ```

mod charts;
mod images;
mod kustomizations;
mod objects;
mod releases;
mod sources;

use std::collections::BTreeSet;

use portolan_flux::Depth;

use super::CommandResult;
use crate::error::CommandError;
use crate::graph::{self, Drawing, Extent, Graph};
use crate::inventory;
use crate::listing::{Column, Format, Listing};
use crate::printer::Printer;
use crate::repository::{Rendered, RepositoryArgs};
use crate::secret::{RepositoryView, SecretArgs};
use crate::selection::Selection;
use crate::suggestion::no_namespace;
use crate::table::Cell;

/// Show what a Flux repository holds
///
/// The repository is rendered as Flux would, then listed: Kustomizations, HelmReleases, sources, container images,
/// charts, or every object. --tree and --graph show how they hang together instead. What is wrong goes to standard
/// error, and makes the exit code 1. `ks`, `hr` and `sources` fetch no chart: releases of charts that are not in the cache
/// are listed without being rendered.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan get ks
  portolan get hr -n apps -o wide
  portolan get images -o json | jq -r '.items[].image'
  portolan get objects -l app.kubernetes.io/name=podinfo
  portolan get ks --tree
  portolan get hr --graph svg > graph.svg")]
pub(crate) struct GetArgs {
    /// What to show
    #[arg(value_name = "WHAT")]
    what: What,

    /// Names, as in NAME or NAMESPACE/NAME (for objects also KIND/NAME); all when none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    selection: Selection,

    /// In which form
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,

    /// Show what emits what as a tree: Kustomizations, for `hr` with their releases, for `objects` with everything
    #[arg(long, conflicts_with_all = ["output", "graph"])]
    tree: bool,

    /// Draw what emits and needs what
    #[arg(long, value_name = "FORMAT", conflicts_with = "output")]
    graph: Option<Drawing>,

    #[command(flatten)]
    secrets: SecretArgs,

    #[command(flatten)]
    repository: RepositoryArgs,
}

/// What to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Kustomizations
    #[value(alias = "kustomization", alias = "kustomizations")]
    Ks,
    /// HelmReleases
    #[value(alias = "helmrelease", alias = "helmreleases")]
    Hr,
    /// Where files and charts come from
    #[value(alias = "source")]
    Sources,
    /// Container images
    #[value(alias = "image")]
    Images,
    /// Helm charts
    #[value(alias = "chart")]
    Charts,
    /// Every object
    #[value(alias = "object", alias = "all")]
    Objects,
}

/// What a listing is made from.
struct Question<'a> {
    names: &'a [String],
    selection: &'a Selection,
    view: RepositoryView,
    rendered: &'a Rendered,
}

pub(crate) fn get(args: &GetArgs, printer: &Printer) -> CommandResult {
    args.secrets.apply(printer);
    let extent = args.extent()?;
    // Names, sources and where things are declared take no chart that is not at hand.
    let is_at_hand = matches!(args.what, What::Ks | What::Hr | What::Sources);
    let rendered = if is_at_hand {
        args.repository.render_at_hand(args.what.depth(), printer)?
    } else {
        args.repository.render(args.what.depth(), printer)?
    };
    args.refuse_unknown_namespace(&rendered)?;
    let question = Question {
        names: &args.names,
        selection: &args.selection,
        view: RepositoryView::new(&rendered, printer),
        rendered: &rendered,
    };
    if let Some(extent) = extent {
        let graph = Graph::of(&rendered, extent, &args.names, &args.selection);
        if graph.is_empty() && !args.names.is_empty() {
            return Err(question.unknown(args.what));
        }
        printer.data(match args.graph {
            Some(drawing) => graph.draw(drawing),
            None => graph::tree(&graph, printer.canvas()),
        })?;
    } else if args.what == What::Objects && args.output == Format::Yaml {
        printer.data(objects::documents(&question)?)?;
    } else {
        question.listing(args.what)?.print(args.output, printer)?;
    }
    if matches!(args.output, Format::Yaml | Format::Json) {
        question.view.tell(printer);
    }
    let status = rendered.tell_problems_at_hand(printer);
    Ok(rendered.end(status))
}

impl GetArgs {
    /// Refuses a namespace that nothing in the repository has.
    fn refuse_unknown_namespace(&self, rendered: &Rendered) -> Result<(), CommandError> {
        let Some(namespace) = &self.selection.namespace else {
            return Ok(());
        };
        let clusters = rendered.clusters.iter();
        let known: BTreeSet<String> = clusters
            .flat_map(|(_, rendering)| inventory::namespaces(rendering))
            .collect();
        if known.contains(namespace) {
            return Ok(());
        }
        Err(no_namespace(namespace, &known))
    }

    /// How much a tree or graph shows; none when a list is asked for.
    fn extent(&self) -> Result<Option<Extent>, CommandError> {
        if !self.tree && self.graph.is_none() {
            return Ok(None);
        }
        match self.what {
            What::Ks => Ok(Some(Extent::Kustomizations)),
            What::Hr => Ok(Some(Extent::Releases)),
            What::Objects => Ok(Some(Extent::Objects)),
            What::Sources if !self.tree => Ok(Some(Extent::Sources)),
            What::Sources | What::Images | What::Charts => {
                let error = CommandError::usage("these do not hang together as a tree");
                Err(error.hint("`--tree` shows `ks`, `hr` and `objects`"))
            }
        }
    }
}

impl What {
    /// How far the repository has to be rendered.
    fn depth(self) -> Depth {
        match self {
            Self::Ks => Depth::Kustomizations,
            _ => Depth::Releases,
        }
    }
}

impl Question<'_> {
    fn listing(&self, what: What) -> Result<Listing, CommandError> {
        let listing = match what {
            What::Ks => kustomizations::list(self),
            What::Hr => releases::list(self),
            What::Sources => sources::list(self),
            What::Images => images::list(self),
            What::Charts => charts::list(self),
            What::Objects => objects::list(self),
        };
        if listing.is_empty() && !self.names.is_empty() {
            return Err(self.unknown(what));
        }
        Ok(listing)
    }

    /// The error for names that nothing has.
    fn unknown(&self, what: What) -> CommandError {
        match what {
            What::Ks => kustomizations::unknown(self),
            What::Hr => releases::unknown(self),
            What::Sources => sources::unknown(self),
            What::Images => images::unknown(self),
            What::Charts => charts::unknown(self),
            What::Objects => objects::unknown(self),
        }
    }

    /// A cluster column when there are several, and a namespace column unless one is asked for; then the others.
    fn columns(&self, namespaced: bool, others: &[Column]) -> Vec<Column> {
        let mut columns = Vec::new();
        if self.rendered.clusters.len() > 1 {
            columns.push(Column::Always("CLUSTER"));
        }
        if namespaced && self.selection.namespace.is_none() {
            columns.push(Column::Always("NAMESPACE"));
        }
        columns.extend(others);
        columns
    }

    /// The cells for [`Self::columns`].
    fn cells(&self, cluster: &str, namespace: Option<&str>, others: Vec<Cell>) -> Vec<Cell> {
        let mut cells = Vec::new();
        if self.rendered.clusters.len() > 1 {
            cells.push(Cell::from(cluster));
        }
        if let Some(namespace) = namespace.filter(|_| self.selection.namespace.is_none()) {
            cells.push(Cell::from(namespace));
        }
        cells.extend(others);
        cells
    }
}

/// `True` or `False`, as kubectl prints conditions.
fn truth(value: bool) -> Cell {
    Cell::from(if value { "True" } else { "False" })
}

/// How many users a table names; the wide form names all of them.
const NAMED_USERS: usize = 2;

/// `a, b and 3 more`
fn some_of(users: &[String]) -> String {
    let named = users.iter().take(NAMED_USERS);
    let named = named.map(String::as_str).collect::<Vec<_>>().join(", ");
    match users.len().saturating_sub(NAMED_USERS) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
