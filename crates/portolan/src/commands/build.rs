//! `portolan build`: the objects a Flux repository declares, as YAML.

mod document;
mod stream;
mod write;

use std::sync::Arc;

use portolan_flux::api::NamespacedName;
use portolan_flux::{
    Emitter, Selection, set_kustomization_labels, set_release_labels, set_resource_set_labels,
};
use portolan_object::{KindNames, Object, ObjectId, OwnerKind, Step};
use portolan_review::{RenderedRepository, has_known_kinds, inventory, selectable};

use super::CommandResult;
use crate::app::App;
use crate::error::CommandError;
use crate::repository::{RepositoryArgs, end, tell_problems};
use crate::selection::{OwnersWord, SelectionArgs, Word};
use stream::Ready;
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

/// The objects of one Kustomization or HelmRelease.
struct Batch {
    /// The cluster's name, when there are several.
    cluster: Option<String>,
    /// `Kustomization flux-system/apps`
    owner: String,
    /// What the owner is made of, for those who want to know.
    made_of: Vec<Step>,
    /// What is written of it, without the owner's labels.
    objects: Vec<Object>,
    /// Puts the owner's labels on an object.
    label: Option<(SetLabels, NamespacedName)>,
    /// All objects of the owner, those that are left out too, by which its secrets are known.
    all: Arc<Vec<Object>>,
    owner_kind: OwnerKind,
}

/// Puts the labels of an owner on an object.
type SetLabels = fn(&mut Object, &NamespacedName);

/// What is built and how it is written.
struct Job<'a> {
    args: &'a BuildArgs,
    selection: Selection,
    app: &'a App,
}

pub(crate) fn build(args: &BuildArgs, app: &App) -> CommandResult {
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

impl Batch {
    /// The objects as they are written, one after the other: a list of thousands is not read all at once.
    fn labelled(&self) -> impl Iterator<Item = Object> {
        self.objects.iter().map(|object| {
            let mut object = object.clone();
            if let Some((label, owner)) = &self.label {
                label(&mut object, owner);
            }
            object
        })
    }
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
                let ready = Ready::new(given, with_provenance);
                let ids = ids.as_mut().and_then(|ids| ids.remove(&ready.owner));
                if let Some(batch) = self.batch(cluster, ready, &kinds, ids.as_deref()) {
                    writer.write(&batch)?;
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
    fn batch(
        &self,
        cluster: Option<&str>,
        ready: Ready,
        kinds: &KindNames,
        ids: Option<&[ObjectId]>,
    ) -> Option<Batch> {
        let owner = &ready.owner;
        let id = owner.id();
        let label: SetLabels = match owner {
            Emitter::Kustomization(_) => set_kustomization_labels,
            Emitter::ResourceSet(_) => set_resource_set_labels,
            Emitter::Release(_) => set_release_labels,
            Emitter::Instance(_) => return None,
        };
        let is_owner_meant = self.selection.selects_owner(kinds, owner.owner_kind(), id);
        if !is_owner_meant && ids.is_none() {
            return None;
        }
        let own_id = |(at, object): (usize, &Object)| {
            let id = ids.and_then(|ids| ids.get(at));
            id.unwrap_or_else(|| object.id()).clone()
        };
        let is_meant = |(at, object): &(usize, &Object)| {
            let id = own_id((*at, *object));
            self.selection
                .selects_object(kinds, is_owner_meant, &id, object)
        };
        let all = ready.objects.iter().enumerate();
        let meant = all.filter(is_meant).map(|(_, object)| object.clone());
        let objects: Vec<Object> = meant.collect();
        if objects.is_empty() && !is_owner_meant {
            return None;
        }
        let is_labelled = !self.args.write.no_owner_labels;
        Some(Batch {
            cluster: cluster.map(str::to_owned),
            owner: owner.to_string(),
            owner_kind: owner.owner_kind(),
            made_of: ready.made_of,
            objects,
            label: is_labelled.then(|| (label, id.clone())),
            all: ready.objects,
        })
    }
}
