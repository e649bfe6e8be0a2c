//! `get hr`: the HelmReleases of every cluster.

use portolan_flux::api::NamespacedName;
use portolan_flux::{RenderedRelease, release_name, release_namespace};
use portolan_object::OwnerKind;
use portolan_yaml::Node;

use super::Question;
use super::kustomizations::{counted, declared_in, needs, suspension};
use crate::chart::ChartInfo;
use crate::error::CommandError;
use crate::listing::{Column, Entry, Listing, record, texts};
use crate::status::Statuses;
use crate::suggestion::not_found;
use crate::table::{Cell, Tone};

pub(super) fn list(question: &Question<'_>) -> Listing {
    let mut listing = Listing::new(
        "HelmReleaseList",
        question.columns(
            true,
            &[
                Column::Always("NAME"),
                Column::Always("CHART"),
                Column::Always("VERSION"),
                Column::Always("SOURCE"),
                Column::Always("SUSPENDED"),
                Column::Always("READY"),
                Column::Always("STATUS"),
                Column::Wide("RELEASE"),
                Column::Wide("EMITTED BY"),
                Column::Wide("DEPENDS ON"),
                Column::Wide("DECLARED IN"),
            ],
        ),
    );
    for (cluster, rendering) in &question.rendered.clusters {
        let statuses = question.rendered.statuses(rendering);
        for (id, release) in &rendering.releases {
            if question.selection.has_name(question.names, id)
                && question.selection.has_labels(Some(&release.definition))
            {
                listing.push(entry(question, &cluster.name, id, release, &statuses));
            }
        }
    }
    listing
}

pub(super) fn unknown(question: &Question<'_>) -> CommandError {
    let clusters = question.rendered.clusters.iter();
    let known = clusters.flat_map(|(_, rendering)| rendering.releases.keys());
    not_found("HelmRelease", question.names, known, "portolan get hr")
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
        (health.cell(), Node::bool(health.is_ready()))
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
