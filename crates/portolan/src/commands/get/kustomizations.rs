//! `get ks`: the Kustomizations of every cluster.

use std::rc::Rc;

use portolan_flux::api::{Dependency, NamespacedName};
use portolan_flux::{Walked, owner_gvk};
use portolan_object::{Candidate, Noun, Object, OwnerKind, counted};
use portolan_review::{Health, Statuses, source_name};
use portolan_yaml::Node;

use super::{Question, truth};
use crate::error::CommandError;
use crate::listing::{Column, Entry, Listing, record, texts};
use crate::table::{Cell, Tone};

const NOUN: Noun = Noun {
    singular: "Kustomization",
    list_command: "portolan get ks",
};

pub(super) fn list(question: &Question<'_>) -> Result<Listing, CommandError> {
    let mut listing = Listing::new(
        "KustomizationList",
        question.columns(
            true,
            &[
                Column::Always("NAME"),
                Column::Roomy("PATH"),
                Column::Roomy("SOURCE"),
                Column::Roomy("SUSPENDED"),
                Column::Always("READY"),
                Column::Always("STATUS"),
                Column::Wide("DEPENDS ON"),
                Column::Wide("PRUNE"),
                Column::Wide("DECLARED IN"),
            ],
        ),
    );
    let mut all = Vec::new();
    for (cluster, rendering) in &question.rendered.clusters {
        let statuses = Rc::new(question.rendered.statuses(rendering));
        for (id, walked) in &rendering.walk.kustomizations {
            let candidate = owner(OwnerKind::Kustomization, id, walked.definition.as_ref());
            all.push((candidate, (cluster, id, walked, Rc::clone(&statuses))));
        }
    }
    for (cluster, id, walked, statuses) in question.chosen(NOUN, all)? {
        listing.push(entry(question, &cluster.name, id, walked, &statuses));
    }
    Ok(listing)
}

/// A Kustomization or HelmRelease as something that may be meant.
pub(super) fn owner<'a>(
    kind: OwnerKind,
    id: &'a NamespacedName,
    object: Option<&'a Object>,
) -> Candidate<'a> {
    Candidate {
        gvk: owner_gvk(kind),
        namespace: &id.namespace,
        name: &id.name,
        object,
    }
}

fn entry(
    question: &Question<'_>,
    cluster: &str,
    id: &NamespacedName,
    walked: &Walked,
    statuses: &Statuses,
) -> Entry {
    let spec = walked.spec.as_ref().ok();
    let health = statuses.health(OwnerKind::Kustomization, id);
    let count = walked.built.as_ref().map_or(0, |built| built.objects.len());
    let status = statuses
        .message(OwnerKind::Kustomization, id)
        .map_or_else(|| counted(count, "object"), str::to_owned);
    let path = spec.map_or("", |spec| spec.path.as_str());
    let source = spec.map(|spec| source_name(&spec.source, &id.namespace));
    let source = source.unwrap_or_default();
    let suspended = spec.is_some_and(|spec| spec.suspend);
    let prune = spec.is_some_and(|spec| spec.prune);
    let needs = spec.map_or_else(Vec::new, |spec| needs(&spec.depends_on, &id.namespace));
    let file = declared_in(walked.definition.as_ref());
    let cells = vec![
        Cell::name(id.name.as_str()),
        path.into(),
        source.clone().into(),
        suspension(suspended),
        ready_cell(health),
        status.clone().into(),
        needs.join(", ").into(),
        truth(prune),
        file.clone().into(),
    ];
    let record = record([
        ("cluster", Node::string(cluster)),
        ("namespace", Node::string(id.namespace.clone())),
        ("name", Node::string(id.name.clone())),
        ("path", Node::string(path)),
        ("source", Node::string(source)),
        ("suspended", Node::bool(suspended)),
        ("prune", Node::bool(prune)),
        ("ready", Node::bool(health.is_ready())),
        ("status", Node::string(status)),
        ("objects", Node::int(count as i64)),
        ("dependsOn", texts(needs)),
        ("declaredIn", Node::string(file)),
    ]);
    Entry {
        cells: question.cells(cluster, Some(&id.namespace), cells),
        record,
        name: format!("kustomization.kustomize.toolkit.fluxcd.io/{}", id.name),
    }
}

/// The names of what must be ready first, with the namespace when it is another.
pub(super) fn needs(dependencies: &[Dependency], namespace: &str) -> Vec<String> {
    let name = |dependency: &Dependency| {
        if dependency.id.namespace == namespace {
            dependency.id.name.to_string()
        } else {
            dependency.id.to_string()
        }
    };
    dependencies.iter().map(name).collect()
}

/// The file and line of an object, as the user can open it.
pub(super) fn declared_in(object: Option<&Object>) -> String {
    let place = object.and_then(Object::place);
    place.map_or_else(String::new, |place| {
        place.to_string().trim_start_matches('/').to_owned()
    })
}

/// A cell that stands out when something is suspended.
pub(super) fn suspension(suspended: bool) -> Cell {
    if suspended {
        Cell::new("True", Tone::Warning)
    } else {
        truth(false)
    }
}

/// The cell of a READY column.
pub(super) fn ready_cell(health: Health) -> Cell {
    let text = if health.is_ready() { "True" } else { "False" };
    let tone = match health {
        Health::Ready => Tone::Good,
        Health::Noted => Tone::Warning,
        Health::Failed => Tone::Bad,
    };
    Cell::new(text, tone)
}
