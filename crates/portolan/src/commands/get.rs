//! `portolan get`: what a Flux repository contains, as lists, trees and graphs.
//!
//! ```text
//! repository ──render──▶ clusters ──▶ Listing (one file per kind of thing), or Graph ──▶ tree, dot, mermaid, svg
//! ```

mod charts;
mod images;
mod kustomizations;
mod objects;
mod question;
mod releases;
mod sources;

use portolan_flux::Depth;
use portolan_object::ObjectSelection;
use portolan_review::{Graph, GraphExtent, GraphFormat, inventory};

use super::CommandResult;
use crate::app::App;
use crate::error::CommandError;
use crate::graph_tree;
use crate::listing::{Format, Listing};
use crate::printer::Printer;
use crate::repository::{RepositoryArgs, end, tell_problems_at_hand};
use crate::secret::{RepositoryView, SecretArgs};
use crate::selection::{SelectionArgs, Word};
use question::{Question, some_of, truth};

/// Show what a Flux repository holds
///
/// The repository is rendered as Flux would, then listed: Kustomizations, HelmReleases, sources, container images,
/// charts, or every object. --tree and --graph show how they depend on each other instead. Problems go to standard
/// error, and make the exit code 1. `ks`, `hr` and `sources` fetch no chart: releases of charts that are not in the
/// cache are listed without being rendered.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan get ks
  portolan get hr -n apps -o wide
  portolan get images -o json | jq -r '.items[].image'
  portolan get objects -l app.kubernetes.io/name=podinfo
  portolan get deploy -n apps
  portolan get deploy/podinfo -o yaml
  portolan get ks --tree
  portolan get hr --graph svg > graph.svg")]
pub(crate) struct GetArgs {
    /// What to list; a kind as in `deploy`, or a name as in `deploy/web`, lists such objects
    #[arg(value_name = "WHAT", required = true)]
    what: Option<Word<What>>,

    /// Names, as in NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME; all when none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    selection: SelectionArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    secrets: SecretArgs,

    #[command(flatten)]
    repository: RepositoryArgs,
}

/// How the answer is shown.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,

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

pub(crate) fn get(args: &GetArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    args.secrets.apply(printer);
    let (what, selection, names) = args.selected();
    let extent = args.output.extent(what)?;
    // Names, sources and where things are declared take no chart that is not at hand.
    let is_at_hand = matches!(what, What::Ks | What::Hr | What::Sources);
    let rendered = if is_at_hand {
        args.repository.render_at_hand(what.depth(), app)?
    } else {
        args.repository.render(what.depth(), app)?
    };
    let question = Question {
        names,
        selection,
        kinds: inventory::kind_names(&inventory::objects(&rendered)),
        view: RepositoryView::new(&rendered, printer),
        rendered: &rendered,
    };
    let answered = question.answer(what, extent, &args.output, printer);
    answered.inspect_err(|_| {
        // Something may only be missing because of what is wrong.
        tell_problems_at_hand(&rendered, printer);
    })?;
    if matches!(args.output.output, Format::Yaml | Format::Json) {
        question.view.tell(printer);
    }
    let status = tell_problems_at_hand(&rendered, printer);
    Ok(end(rendered, status))
}

impl GetArgs {
    /// What to list, and which of it; a kind or the name of an object in the first place means objects.
    fn selected(&self) -> (What, ObjectSelection, Vec<String>) {
        let kind = match &self.what {
            Some(Word::Name(word)) if !word.contains(['/', ' ']) => Some(word),
            _ => None,
        };
        let word = self.what.as_ref().filter(|_| kind.is_none());
        let (what, names) = Word::split(word, &self.names, What::Objects);
        // Images and charts are no objects: their names are compared with what each is called.
        let has_objects = !matches!(what, What::Images | What::Charts);
        let mut selection = self
            .selection
            .objects(if has_objects { &names } else { &[] });
        selection.only_kinds.extend(kind.cloned());
        (what, selection, names)
    }
}

impl OutputArgs {
    /// How much a tree or graph shows; none when a list is asked for.
    fn extent(&self, what: What) -> Result<Option<GraphExtent>, CommandError> {
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
    fn answer(
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
