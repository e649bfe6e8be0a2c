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

use portolan_flux::Depth;
use portolan_object::{Candidate, KindNames, NoMatch, Noun, ObjectSelection};

use super::CommandResult;
use crate::error::CommandError;
use crate::graph::{self, Extent, Graph, GraphFormat};
use crate::inventory;
use crate::listing::{Column, Format, Listing};
use crate::printer::Printer;
use crate::repository::{Rendered, RepositoryArgs};
use crate::secret::{RepositoryView, SecretArgs};
use crate::selection::{SelectionArgs, Word};
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

    /// Show what emits what as a tree: Kustomizations, for `hr` with their releases, for `objects` with everything
    #[arg(long, conflicts_with_all = ["output", "graph"])]
    tree: bool,

    /// Draw what emits and needs what
    #[arg(long, value_name = "FORMAT", conflicts_with = "output")]
    graph: Option<GraphFormat>,

    /// Values of Secrets are always hidden; other tools have to be told
    #[arg(long, hide = true, conflicts_with = "show_secrets")]
    wipe_secrets: bool,
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
    /// The names as they were written.
    names: Vec<String>,
    selection: ObjectSelection,
    kinds: KindNames,
    view: RepositoryView,
    rendered: &'a Rendered,
}

pub(crate) fn get(args: &GetArgs, printer: &Printer) -> CommandResult {
    args.secrets.apply(printer);
    let (what, selection, names) = args.selected();
    let extent = args.output.extent(what)?;
    // Names, sources and where things are declared take no chart that is not at hand.
    let is_at_hand = matches!(what, What::Ks | What::Hr | What::Sources);
    let rendered = if is_at_hand {
        args.repository.render_at_hand(what.depth(), printer)?
    } else {
        args.repository.render(what.depth(), printer)?
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
        rendered.tell_problems_at_hand(printer);
    })?;
    if matches!(args.output.output, Format::Yaml | Format::Json) {
        question.view.tell(printer);
    }
    let status = rendered.tell_problems_at_hand(printer);
    Ok(rendered.end(status))
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
    fn extent(&self, what: What) -> Result<Option<Extent>, CommandError> {
        if !self.tree && self.graph.is_none() {
            return Ok(None);
        }
        match what {
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
    fn answer(
        &self,
        what: What,
        extent: Option<Extent>,
        output: &OutputArgs,
        printer: &Printer,
    ) -> Result<(), CommandError> {
        if let Some(extent) = extent {
            let graph = Graph::of(self.rendered, extent, &self.selection, &self.kinds)?;
            return printer.data(match output.graph {
                Some(format) => graph.draw(format),
                None => graph::tree(&graph, printer.canvas()),
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

    /// The things that are meant; refuses what none of them has.
    fn chosen<'c, T>(
        &self,
        noun: Noun,
        things: Vec<(Candidate<'c>, T)>,
    ) -> Result<Vec<T>, CommandError> {
        let candidates: Vec<Candidate<'c>> = things.iter().map(|(one, _)| one.clone()).collect();
        if let Some(wanted) = &self.selection.namespace {
            let is_there = |one: &Candidate<'_>| one.namespace == wanted;
            if !candidates.iter().any(is_there) {
                let known = inventory::namespaces(self.rendered);
                let refused = if known.iter().any(|known| known == wanted) {
                    let own = candidates.iter().map(|one| one.namespace);
                    let refused = NoMatch::namespace(noun, wanted, own);
                    let near = refused.hint().unwrap_or_default().to_owned();
                    let command = format!("`portolan get objects -n {wanted}`");
                    refused.with_hint(format!("{near} {command} lists what else lies there"))
                } else {
                    NoMatch::namespace(noun, wanted, known.iter().map(String::as_str))
                };
                return Err(refused.into());
            }
        }
        self.selection.check(&self.kinds, noun, &candidates)?;
        let is_meant = |(one, _): &(Candidate<'c>, T)| self.selection.selects(&self.kinds, one);
        let chosen = things.into_iter().filter(is_meant);
        Ok(chosen.map(|(_, thing)| thing).collect())
    }

    /// Refuses names that nothing has.
    fn refuse_unknown_names(
        &self,
        noun: Noun,
        is_known: impl Fn(&str) -> bool,
        known: &[String],
    ) -> Result<(), CommandError> {
        let missing = self.names.iter().filter(|name| !is_known(name));
        let missing: Vec<&String> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        let known = known.iter().map(|name| ("", name.as_str()));
        Err(NoMatch::names(noun, &missing, known).into())
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
            cells.push(Cell::whole(cluster));
        }
        if let Some(namespace) = namespace.filter(|_| self.selection.namespace.is_none()) {
            cells.push(Cell::whole(namespace));
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
