//! `get hr`: the HelmReleases of every cluster.

use std::rc::Rc;

use portolan_flux::api::NamespacedName;
use portolan_flux::{RenderedRelease, release_name, release_namespace};
use portolan_object::{Noun, OwnerKind, counted};
use portolan_review::{ChartInfo, Statuses};
use portolan_yaml::Node;

use super::Question;
use super::kustomizations::{declared_in, needs, owner, ready_cell, suspension};
use crate::error::CommandError;
use crate::listing::{Column, Entry, Listing, record, texts};
use crate::table::{Cell, Tone};

const NOUN: Noun = Noun {
    singular: "HelmRelease",
    list_command: "portolan get hr",
};

pub(super) fn list(question: &Question<'_>) -> Result<Listing, CommandError> {
    let mut listing = Listing::new(
        "HelmReleaseList",
        question.columns(
            true,
            &[
                Column::Always("NAME"),
                Column::Always("CHART"),
                Column::Roomy("VERSION"),
                Column::Roomy("SOURCE"),
                Column::Roomy("SUSPENDED"),
                Column::Always("READY"),
                Column::Always("STATUS"),
                Column::Wide("RELEASE"),
                Column::Wide("EMITTED BY"),
                Column::Wide("DEPENDS ON"),
                Column::Wide("DECLARED IN"),
            ],
        ),
    );
    let mut all = Vec::new();
    for (cluster, rendering) in &question.rendered.clusters {
        let statuses = Rc::new(question.rendered.statuses(rendering));
        for (id, release) in &rendering.releases {
            let candidate = owner(OwnerKind::Release, id, Some(&release.definition));
            all.push((candidate, (cluster, id, release, Rc::clone(&statuses))));
        }
    }
    for (cluster, id, release, statuses) in question.chosen(NOUN, all)? {
        listing.push(entry(question, &cluster.name, id, release, &statuses));
    }
    Ok(listing)
}

fn entry(
    question: &Question<'_>,
    cluster: &str,
    id: &NamespacedName,
    release: &RenderedRelease,
    statuses: &Statuses,
) -> Entry {
    let spec = release.spec.as_ref().ok();
    let chart = ChartInfo::of(release);
    let is_unfetched = question.rendered.is_unfetched(release);
    let health = statuses.health(OwnerKind::Release, id);
    let count = release.objects.as_ref().map_or(0, |objects| objects.len());
    let status = match statuses.message(OwnerKind::Release, id) {
        _ if is_unfetched => "not rendered: the chart is not in the cache".to_owned(),
        Some(message) => message.to_owned(),
        None => counted(count, "object"),
    };
    let (ready, is_ready) = if is_unfetched {
        (Cell::new("Unknown", Tone::Warning), Node::null())
    } else {
        (ready_cell(health), Node::bool(health.is_ready()))
    };
    let suspended = spec.is_some_and(|spec| spec.suspend);
    let needs = spec.map_or_else(Vec::new, |spec| needs(&spec.depends_on, &id.namespace));
    let name = spec.map_or_else(String::new, |spec| release_name(spec).to_string());
    let target = spec.map_or_else(String::new, |spec| release_namespace(spec).to_string());
    let emitter = release.emitter.to_string();
    let file = declared_in(Some(&release.definition));
    let cells = vec![
        Cell::name(id.name.as_str()),
        chart.name.clone().into(),
        chart.version.clone().into(),
        chart.source.clone().into(),
        suspension(suspended),
        ready,
        status.clone().into(),
        format!("{target}/{name}").into(),
        emitter.clone().into(),
        needs.join(", ").into(),
        file.clone().into(),
    ];
    let record = record([
        ("cluster", Node::string(cluster)),
        ("namespace", Node::string(id.namespace.clone())),
        ("name", Node::string(id.name.clone())),
        ("chart", Node::string(chart.name)),
        ("version", Node::string(chart.version)),
        ("source", Node::string(chart.source)),
        ("releaseName", Node::string(name)),
        ("targetNamespace", Node::string(target)),
        ("suspended", Node::bool(suspended)),
        ("ready", is_ready),
        ("status", Node::string(status)),
        ("objects", Node::int(count as i64)),
        ("emittedBy", Node::string(emitter)),
        ("dependsOn", texts(needs)),
        ("declaredIn", Node::string(file)),
    ]);
    Entry {
        cells: question.cells(cluster, Some(&id.namespace), cells),
        record,
        name: format!("helmrelease.helm.toolkit.fluxcd.io/{}", id.name),
    }
}
