//! `portolan get`: what a Flux repository contains, as lists, trees and graphs.
//!
//! ```text
//! repository ──render──▶ clusters ──▶ Listing (one file per kind of thing), or Graph ──▶ tree, dot, mermaid, svg
//! ```

mod charts;
mod images;
mod kustomizations;
mod objects;
mod output;
mod question;
mod releases;
mod sources;

use portolan_flux::Depth;
use portolan_object::ObjectSelection;
use portolan_review::inventory;

use super::CommandResult;
use crate::app::App;
use crate::listing::Format;
use crate::repository::{RepositoryArgs, end, tell_problems_at_hand};
use crate::secret::{RepositoryView, SecretArgs};
use crate::selection::{SelectionArgs, Word};
use output::OutputArgs;
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

impl What {
    /// How far the repository has to be rendered.
    fn depth(self) -> Depth {
        match self {
            Self::Ks => Depth::Kustomizations,
            _ => Depth::Releases,
        }
    }
}
