//! `portolan build`: the objects a Flux repository declares, as YAML.

mod filter;
mod write;

use portolan_flux::api::NamespacedName;
use portolan_flux::{
    Demand, Emitter, Wanted, set_kustomization_labels, set_release_labels, set_resource_set_labels,
};
use portolan_object::Object;

use super::CommandResult;
use crate::error::CommandError;
use crate::printer::Printer;
use crate::repository::{Rendered, RepositoryArgs};
use crate::suggestion::not_found;
use filter::ObjectFilter;
use write::WriteArgs;

/// Print the objects that a Flux repository declares
///
/// Everything is rendered as Flux would: Kustomizations found from the cluster's root, built, variables put in; then
/// HelmReleases with their values and charts. Objects go to standard output as YAML documents in a stable order, what
/// is wrong goes to standard error, and the rest is still built. The exit code is 1 when something is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan build all
  portolan build ks apps --path clusters/production
  portolan build hr podinfo -n apps | kubectl diff -f -
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
    objects: Vec<Object>,
}

pub(crate) fn build(args: &BuildArgs, printer: &Printer) -> CommandResult {
    args.write.secrets.apply(printer);
    let rendered = args.repository.render(args.demand(), printer)?;
    let missing = args.missing(&rendered);
    if !missing.is_empty() {
        return Err(unknown(args.what, &missing, &rendered));
    }
    write::write(&collect(args, &rendered), &args.write, printer)?;
    Ok(rendered.tell_problems(printer))
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

fn collect(args: &BuildArgs, rendered: &Rendered) -> Vec<Batch> {
    let mut batches = Vec::new();
    for (cluster, rendering) in &rendered.clusters {
        let several = rendered.clusters.len() > 1;
        let cluster = several.then(|| cluster.name.to_string());
        let mut push = |owner: String, objects: &[Object], label: &dyn Fn(&mut Object)| {
            let mut objects = args.filter.objects(objects);
            if !args.no_owner_labels {
                objects.iter_mut().for_each(label);
            }
            batches.push(Batch {
                cluster: cluster.clone(),
                owner,
                objects,
            });
        };
        if args.what != What::Hr {
            for (id, walked) in &rendering.walk.kustomizations {
                let Some(built) = &walked.built else { continue };
                if args.filter.selection.has_name(&args.names, id) {
                    push(format!("Kustomization {id}"), &built.objects, &|object| {
                        set_kustomization_labels(object, id);
                    });
                }
            }
        }
        for (emitter, expansion) in &rendering.walk.expansions {
            let (Emitter::ResourceSet(id), Some(objects)) = (emitter, &expansion.objects) else {
                continue;
            };
            if args.what == What::All && args.filter.selection.has_name(&args.names, id) {
                push(emitter.to_string(), objects, &|object| {
                    set_resource_set_labels(object, id);
                });
            }
        }
        for (id, release) in &rendering.releases {
            let Some(objects) = &release.objects else {
                continue;
            };
            if args.filter.selection.has_name(&args.names, id) {
                push(format!("HelmRelease {id}"), objects, &|object| {
                    set_release_labels(object, id);
                });
            }
        }
    }
    batches
}
