//! `portolan build`: the objects a Flux repository declares, as YAML.

mod filter;
mod write;

use std::sync::{Arc, mpsc};
use std::thread;

use portolan_engine::CancellationToken;
use portolan_flux::api::NamespacedName;
use portolan_flux::{
    Demand, Emitter, Given, Outlet, Wanted, set_kustomization_labels, set_release_labels,
    set_resource_set_labels,
};
use portolan_object::{Object, OwnerKind, Step};

use super::CommandResult;
use crate::error::CommandError;
use crate::printer::Printer;
use crate::repository::{Rendered, RepositoryArgs};
use crate::suggestion::not_found;
use filter::ObjectFilter;
use write::{WriteArgs, Writer};

/// Print the objects that a Flux repository declares
///
/// Everything is rendered as Flux would: Kustomizations found from the cluster's root, built, variables put in; then
/// HelmReleases with their values and charts. Objects go to standard output as YAML documents in a stable order, while
/// the rest is still being rendered; what is wrong goes to standard error, and everything else is built all the same. The exit code is 1 when something is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan build all
  portolan build ks apps --path clusters/production
  portolan build hr podinfo -n apps --skip-secrets | kubectl diff -f -
  portolan build all --only-kinds Deployment,StatefulSet -l app.kubernetes.io/part-of=shop
  portolan build all --skip-secrets --output-dir rendered
  portolan build ks apps --provenance --source shared=../shared-manifests")]
pub(crate) struct BuildArgs {
    /// What to build: Kustomizations (ks), HelmReleases (hr), or all
    #[arg(value_name = "WHAT", default_value = "all")]
    what: What,

    /// Names of Kustomizations or HelmReleases, as in NAME or NAMESPACE/NAME; all when none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    repository: RepositoryArgs,

    #[command(flatten)]
    filter: ObjectFilter,

    #[command(flatten)]
    write: WriteArgs,

    /// Leave out the labels by which Flux's controllers know their objects
    #[arg(long)]
    no_owner_labels: bool,

    /// Releases are always rendered; others want to be told
    #[arg(long, hide = true)]
    enable_helm: bool,

    /// Values of Secrets are always hidden; others want to be told
    #[arg(long, hide = true, conflicts_with = "show_secrets")]
    wipe_secrets: bool,
}

/// What to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Kustomizations
    #[value(alias = "kustomizations", alias = "kustomization")]
    Ks,
    /// HelmReleases
    #[value(alias = "helmreleases", alias = "helmrelease")]
    Hr,
    /// Both
    All,
}

/// The objects of one Kustomization or HelmRelease.
struct Batch {
    /// The cluster's name, when there are several.
    cluster: Option<String>,
    /// `Kustomization flux-system/apps`
    owner: String,
    /// What the owner is made of, for those who want to know.
    made_of: Vec<Step>,
    objects: Vec<Object>,
    /// All objects of the owner, those that are left out too, by which its secrets are known.
    all: Arc<Vec<Object>>,
    owner_kind: OwnerKind,
}

/// What a Kustomization, ResourceSet or HelmRelease gave, and what that is made of.
struct Ready {
    owner: Emitter,
    objects: Arc<Vec<Object>>,
    made_of: Vec<Step>,
}

pub(crate) fn build(args: &BuildArgs, printer: &Printer) -> CommandResult {
    args.write.secrets.apply(printer);
    // Names may turn out to be wrong; a line that changes and documents do not go together on one terminal.
    let rendered = if args.names.is_empty() && !printer.draws_over_data() {
        streamed(args, printer)?
    } else {
        collected(args, printer)?
    };
    let status = rendered.tell_problems(printer);
    Ok(rendered.end(status))
}

/// Renders, and writes what is ready meanwhile.
fn streamed(args: &BuildArgs, printer: &Printer) -> Result<Rendered, CommandError> {
    let (clusters, queue) = mpsc::channel();
    let with_provenance = args.write.provenance;
    let token = CancellationToken::new();
    thread::scope(|scope| {
        // Nobody wants what cannot be written: a pipe that was closed ends the rendering.
        let stop = token.clone();
        let writing = scope
            .spawn(move || write_streams(args, printer, &queue).inspect_err(|_| stop.cancel()));
        let outlet_for = move |cluster: Option<&str>| -> Outlet {
            let (ready, stream) = mpsc::channel::<Ready>();
            // A writer that has given up wants nothing more.
            let _ = clusters.send((cluster.map(str::to_owned), stream));
            Box::new(move |given| {
                let _ = ready.send(Ready::new(given, with_provenance));
            })
        };
        let rendered = args
            .repository
            .render_streamed(&args.demand(), outlet_for, &token, printer);
        let written = writing.join();
        written.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        rendered
    })
}

/// Writes one cluster after the other, each as it becomes ready.
fn write_streams(
    args: &BuildArgs,
    printer: &Printer,
    queue: &mpsc::Receiver<(Option<String>, mpsc::Receiver<Ready>)>,
) -> Result<(), CommandError> {
    let mut writer = None;
    for (cluster, stream) in queue {
        let writer = writer.get_or_insert_with(|| Writer::new(&args.write, printer));
        for ready in stream {
            if let Some(batch) = args.batch(cluster.as_deref(), ready) {
                writer.write(&batch)?;
            }
        }
    }
    // Without a cluster there was nothing to write, not even an empty list.
    writer.map_or(Ok(()), Writer::finish)
}

/// Renders, and then writes.
fn collected(args: &BuildArgs, printer: &Printer) -> Result<Rendered, CommandError> {
    let rendered = args.repository.render(args.demand(), printer)?;
    let missing = args.missing(&rendered);
    if !missing.is_empty() {
        return Err(unknown(args.what, &missing, &rendered));
    }
    let several = rendered.clusters.len() > 1;
    let with_provenance = args.write.provenance;
    let mut writer = Writer::new(&args.write, printer);
    for (cluster, rendering) in &rendered.clusters {
        let cluster = several.then_some(cluster.name.as_str());
        for given in rendering.given() {
            if let Some(batch) = args.batch(cluster, Ready::new(given, with_provenance)) {
                writer.write(&batch)?;
            }
        }
    }
    writer.finish()?;
    Ok(rendered)
}

impl Ready {
    fn new(given: Given<'_>, with_provenance: bool) -> Self {
        Self {
            made_of: if with_provenance {
                given.made_of()
            } else {
                Vec::new()
            },
            objects: Arc::clone(given.objects),
            owner: given.emitter,
        }
    }
}

impl BuildArgs {
    /// What must be rendered: what is named and what that is made of, or everything of the kind.
    fn demand(&self) -> Demand {
        let named = match self.names.as_slice() {
            [] => Wanted::All,
            names => Wanted::Named(names.iter().map(|name| name.as_str().into()).collect()),
        };
        match self.what {
            What::Ks => Demand {
                kustomizations: named,
                releases: Wanted::None,
            },
            What::Hr => Demand {
                kustomizations: Wanted::None,
                releases: named,
            },
            What::All => Demand {
                kustomizations: named.clone(),
                releases: named,
            },
        }
    }

    /// The objects of an owner that are asked for, as they are written.
    fn batch(&self, cluster: Option<&str>, ready: Ready) -> Option<Batch> {
        let owner = &ready.owner;
        let id = owner.id();
        let (is_asked_for, label): (bool, fn(&mut Object, &NamespacedName)) = match owner {
            Emitter::Kustomization(_) => (self.what != What::Hr, set_kustomization_labels),
            Emitter::ResourceSet(_) => (self.what == What::All, set_resource_set_labels),
            Emitter::Release(_) => (self.what != What::Ks, set_release_labels),
            Emitter::Instance(_) => return None,
        };
        if !is_asked_for || !self.filter.selection.has_name(&self.names, id) {
            return None;
        }
        let mut objects = self.filter.objects(&ready.objects);
        if !self.no_owner_labels {
            for object in &mut objects {
                label(object, id);
            }
        }
        Some(Batch {
            cluster: cluster.map(str::to_owned),
            owner: owner.to_string(),
            owner_kind: owner.owner_kind(),
            made_of: ready.made_of,
            objects,
            all: ready.objects,
        })
    }

    /// The names that are asked for and that nothing has.
    fn missing(&self, rendered: &Rendered) -> Vec<String> {
        let is_there = |name: &&String| {
            let name = std::slice::from_ref(*name);
            let selection = &self.filter.selection;
            rendered.clusters.iter().any(|(_, rendering)| {
                let mut kustomizations = rendering.walk.kustomizations.keys();
                let mut releases = rendering.releases.keys();
                (self.what != What::Hr && kustomizations.any(|id| selection.has_name(name, id)))
                    || (self.what != What::Ks && releases.any(|id| selection.has_name(name, id)))
            })
        };
        let names = self.names.iter();
        names.filter(|name| !is_there(name)).cloned().collect()
    }
}

/// The error for names that nothing has.
fn unknown(what: What, names: &[String], rendered: &Rendered) -> CommandError {
    let clusters = || rendered.clusters.iter().map(|(_, rendering)| rendering);
    let kustomizations = clusters().flat_map(|rendering| rendering.walk.kustomizations.keys());
    // Only what was asked for is rendered, but all that was found on the way is known.
    let releases: Vec<NamespacedName> = clusters()
        .flat_map(|rendering| {
            let index = &rendering.walk.index;
            index.of_kind("helm.toolkit.fluxcd.io", "HelmRelease")
        })
        .map(|(_, object)| {
            NamespacedName::new(object.namespace().to_owned(), object.name().to_owned())
        })
        .collect();
    match what {
        What::Ks => not_found("Kustomization", names, kustomizations, "portolan get ks"),
        What::Hr => not_found("HelmRelease", names, &releases, "portolan get hr"),
        What::All => not_found(
            "Kustomization or HelmRelease",
            names,
            kustomizations.chain(&releases),
            "portolan get hr --tree",
        ),
    }
}
