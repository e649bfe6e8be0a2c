//! How the answer of `portolan get` is shown: as a list, a tree or a graph.

use portolan_review::{Graph, GraphExtent, GraphFormat};

use super::question::Question;
use super::{What, charts, images, kustomizations, objects, releases, sources};
use crate::error::CommandError;
use crate::graph_tree;
use crate::listing::{Format, Listing};
use crate::printer::Printer;

/// How the answer is shown.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(super) output: Format,

    /// Show a tree of Kustomizations; with `hr`, also their releases; with `objects`, also all objects
    #[arg(long, conflicts_with_all = ["output", "graph"])]
    tree: bool,

    /// Draw a graph of what emits what and what depends on what
    #[arg(long, value_name = "FORMAT", conflicts_with = "output")]
    graph: Option<GraphWord>,

    /// Values of Secrets are always hidden; other tools have to be told
    #[arg(long, hide = true, conflicts_with = "show_secrets")]
    wipe_secrets: bool,
}

/// As what a graph is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GraphWord {
    /// For Graphviz
    Dot,
    /// For Markdown pages
    Mermaid,
    /// A picture
    Svg,
}

impl OutputArgs {
    /// How much a tree or graph shows; none when a list is asked for.
    pub(super) fn extent(&self, what: What) -> Result<Option<GraphExtent>, CommandError> {
        if !self.tree && self.graph.is_none() {
            return Ok(None);
        }
        match what {
            What::Ks => Ok(Some(GraphExtent::Kustomizations)),
            What::Hr => Ok(Some(GraphExtent::Releases)),
            What::Objects => Ok(Some(GraphExtent::Objects)),
            What::Sources if !self.tree => Ok(Some(GraphExtent::Sources)),
            What::Sources | What::Images | What::Charts => {
                let error = CommandError::usage("this list cannot be shown as a tree");
                Err(error.hint("`--tree` shows `ks`, `hr` and `objects`"))
            }
        }
    }
}

impl GraphWord {
    fn format(self) -> GraphFormat {
        match self {
            Self::Dot => GraphFormat::Dot,
            Self::Mermaid => GraphFormat::Mermaid,
            Self::Svg => GraphFormat::Svg,
        }
    }
}

impl Question<'_> {
    /// Prints what was asked for.
    pub(super) fn answer(
        &self,
        what: What,
        extent: Option<GraphExtent>,
        output: &OutputArgs,
        printer: &Printer,
    ) -> Result<(), CommandError> {
        if let Some(extent) = extent {
            let graph = Graph::of(self.rendered, extent, &self.selection, &self.kinds)?;
            return printer.data(match output.graph {
                Some(word) => graph.draw(word.format()),
                None => graph_tree::tree(&graph, printer.canvas()),
            });
        }
        if what == What::Objects && output.output == Format::Yaml {
            return printer.data(objects::documents(self)?);
        }
        self.listing(what)?.print(output.output, printer)
    }

    fn listing(&self, what: What) -> Result<Listing, CommandError> {
        match what {
            What::Ks => kustomizations::list(self),
            What::Hr => releases::list(self),
            What::Sources => sources::list(self),
            What::Images => images::list(self),
            What::Charts => charts::list(self),
            What::Objects => objects::list(self),
        }
    }
}
