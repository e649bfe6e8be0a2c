//! `portolan build`: the objects a Flux repository declares, as YAML.

mod filter;
mod write;

use portolan_flux::{Depth, set_kustomization_labels, set_release_labels};
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
  portolan build all --skip-secrets --output-dir rendered")]
pub(crate) struct BuildArgs {
    /// What to build: Kustomizations (ks), HelmReleases (hr), or all
    #[arg(value_name = "WHAT", default_value = "all")]
    what: What,

    /// Names of Kustomizations or HelmReleases; all when none is given
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
    /// `Kustomization flux-system/apps`
    owner: String,
    objects: Vec<Object>,
}

pub(crate) fn build(args: &BuildArgs, printer: &Printer) -> CommandResult {
    let depth = if args.what == What::Ks {
        Depth::Kustomizations
    } else {
        Depth::Releases
    };
    let rendered = args.repository.render(depth, printer)?;
    let batches = collect(args, &rendered);
    if batches.is_empty() && !args.names.is_empty() {
        return Err(unknown(args, &rendered));
    }
    write::write(&batches, &args.write, printer)?;
    Ok(rendered.tell_problems(printer))
}

/// The error for names that nothing has.
fn unknown(args: &BuildArgs, rendered: &Rendered) -> CommandError {
    let clusters = || rendered.clusters.iter().map(|(_, rendering)| rendering);
    if args.what == What::Hr {
        let known = clusters().flat_map(|rendering| rendering.releases.keys());
        not_found("HelmRelease", &args.names, known, "portolan get hr")
    } else {
        let known = clusters().flat_map(|rendering| rendering.walk.kustomizations.keys());
        not_found("Kustomization", &args.names, known, "portolan get ks")
    }
}

fn collect(args: &BuildArgs, rendered: &Rendered) -> Vec<Batch> {
    let mut batches = Vec::new();
    for (_, rendering) in &rendered.clusters {
        if args.what != What::Hr {
            for (id, walked) in &rendering.walk.kustomizations {
                let Some(built) = &walked.built else { continue };
                if args.filter.selection.has_name(&args.names, id) {
                    let mut objects = args.filter.objects(&built.objects);
                    if !args.no_owner_labels {
                        for object in &mut objects {
                            set_kustomization_labels(object, id);
                        }
                    }
                    batches.push(Batch {
                        owner: format!("Kustomization {id}"),
                        objects,
                    });
                }
            }
        }
        for (id, release) in &rendering.releases {
            let Some(objects) = &release.objects else {
                continue;
            };
            if args.filter.selection.has_name(&args.names, id) {
                let mut objects = args.filter.objects(objects);
                if !args.no_owner_labels {
                    for object in &mut objects {
                        set_release_labels(object, id);
                    }
                }
                batches.push(Batch {
                    owner: format!("HelmRelease {id}"),
                    objects,
                });
            }
        }
    }
    batches
}
