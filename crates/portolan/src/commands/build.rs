//! `portolan build`: the objects a Flux repository declares, as YAML.

mod document;
mod stream;
mod write;

use portolan_flux::Selection;
use portolan_object::{KindNames, ObjectId};
use portolan_review::{
    OwnerOutput, RenderedRepository, SelectedOutput, has_known_kinds, inventory, selectable,
};

use super::CommandResult;
use crate::app::App;
use crate::error::CommandError;
use crate::repository::{RepositoryArgs, end, tell_problems};
use crate::selection::{OwnersWord, SelectionArgs, Word};
use write::{WriteArgs, Writer};

/// Print the objects that a Flux repository declares
///
/// Renders everything as Flux does: Kustomizations from the cluster's root, with variables substituted, then
/// HelmReleases with their charts and values. Objects go to standard output as YAML documents in a stable order, while
/// the rest is still being rendered. Problems go to standard error, and everything else is still built. The exit code
/// is 1 if there is a problem.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan build all
  portolan build ks apps --path clusters/production
  portolan build hr/podinfo deploy/web
  portolan build hr podinfo -n apps --skip-secrets | kubectl diff -f -
  portolan build all --only-kinds Deployment,StatefulSet -l app.kubernetes.io/part-of=shop
  portolan build all --skip-secrets --output-dir rendered
  portolan build ks apps --provenance --source shared=../shared-manifests")]
pub(crate) struct BuildArgs {
    /// What to build [default: all]; may also be a name
    #[arg(value_name = "WHAT")]
    what: Option<Word<OwnersWord>>,

    /// Names of Kustomizations and HelmReleases, or of objects with their kind; all when none is given
    ///
    /// As in NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME: `podinfo`, `apps/podinfo`, `hr/podinfo`,
    /// `deploy/web`.
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    selection: SelectionArgs,

    #[command(flatten)]
    write: WriteArgs,

    #[command(flatten)]
    repository: RepositoryArgs,
}

/// What is built and how it is written.
struct Job<'a> {
    args: &'a BuildArgs,
    selection: Selection,
    app: &'a App,
}

pub(crate) fn build(args: &BuildArgs, app: &App) -> CommandResult {
    app.start_for_computing()?;
    let printer = &app.printer;
    args.write.secrets.apply(printer);
    let (what, names) = Word::split(args.what.as_ref(), &args.names, OwnersWord::All);
    let job = Job {
        args,
        selection: args.selection.owners(what.kinds(), &names),
        app,
    };
    // Names may turn out to be wrong, and words for kinds may be defined by what is rendered last; a line that changes
    // and documents do not go together on one terminal.
    let objects = &job.selection.objects;
    let is_known = objects.names.is_empty() && has_known_kinds(objects);
    let rendered = if is_known && !printer.draws_over_data() {
        job.streamed()?
    } else {
        job.collected()?
    };
    let status = tell_problems(&rendered, printer);
    Ok(end(rendered, status))
}

impl Job<'_> {
    /// Renders, and then writes.
    fn collected(&self) -> Result<RenderedRepository, CommandError> {
        let rendered = self.render()?;
        let objects = inventory::objects(&rendered);
        let kinds = inventory::kind_names(&objects);
        drop(objects);
        let several = rendered.clusters.len() > 1;
        let with_provenance = self.args.write.provenance;
        let mut writer = Writer::new(&self.args.write, &self.app.printer);
        for (cluster, rendering) in &rendered.clusters {
            let mut ids = self
                .selection
                .may_name_objects()
                .then(|| inventory::ids_by_owner(cluster, rendering));
            let cluster = several.then_some(cluster.name.as_str());
            for given in rendering.outputs() {
                let output = OwnerOutput::new(given, with_provenance);
                let ids = ids.as_mut().and_then(|ids| ids.remove(output.owner()));
                if let Some(selected) = self.select(cluster, output, &kinds, ids.as_deref()) {
                    writer.write(&selected)?;
                }
            }
        }
        writer.finish()?;
        Ok(rendered)
    }

    /// Renders what is named; everything, if a name may be that of an object of a kind that the repository defines.
    fn render(&self) -> Result<RenderedRepository, CommandError> {
        let repository = &self.args.repository;
        let rendered = repository.render(self.selection.demand(), self.app)?;
        let objects = inventory::objects(&rendered);
        let checked = self.selection.check(&selectable(&rendered, &objects));
        let wider = self.selection.wider_demand().filter(|_| checked.is_err());
        let Some(demand) = wider else {
            drop(objects);
            return self.check(&rendered).map(|()| rendered);
        };
        let rendered = repository.render(demand, self.app)?;
        self.check(&rendered)?;
        Ok(rendered)
    }

    /// Refuses a selection that nothing fits, after what is wrong was told: that may be why.
    fn check(&self, rendered: &RenderedRepository) -> Result<(), CommandError> {
        if self.selection.objects.is_everything() {
            return Ok(());
        }
        let objects = inventory::objects(rendered);
        let checked = self.selection.check(&selectable(rendered, &objects));
        checked.map_err(|error| {
            tell_problems(rendered, &self.app.printer);
            error.into()
        })
    }

    /// The objects of an owner that are asked for, as they are written; `ids` are theirs with their namespaces.
    fn select(
        &self,
        cluster: Option<&str>,
        output: OwnerOutput,
        kinds: &KindNames,
        ids: Option<&[ObjectId]>,
    ) -> Option<SelectedOutput> {
        let mut selected = output.select(&self.selection, kinds, ids)?;
        if self.args.write.no_owner_labels {
            selected = selected.without_labels();
        }
        selected.cluster = cluster.map(str::to_owned);
        Some(selected)
    }
}
