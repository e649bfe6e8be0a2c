//! `get charts`: every chart that a HelmRelease is rendered from, and by which.

use std::collections::BTreeMap;

use portolan_flux::api::NamespacedName;
use portolan_yaml::Node;

use super::{Question, some_of};
use crate::chart::ChartInfo;
use crate::error::CommandError;
use crate::listing::{Column, Entry, Listing, record, texts};
use crate::suggestion::not_found;
use crate::table::Cell;

pub(super) fn list(question: &Question<'_>) -> Listing {
    let mut listing = Listing::new(
        "ChartList",
        question.columns(
            false,
            &[
                Column::Always("CHART"),
                Column::Always("VERSION"),
                Column::Always("SOURCE"),
                Column::Always("USED BY"),
                Column::Wide("URL"),
            ],
        ),
    );
    for (cluster, rendering) in &question.rendered.clusters {
        let mut charts: BTreeMap<ChartInfo, Vec<String>> = BTreeMap::new();
        for (id, release) in &rendering.releases {
            if question.selection.has_namespace(&id.namespace)
                && question.selection.has_labels(Some(&release.definition))
            {
                let chart = ChartInfo::of(release);
                charts.entry(chart).or_default().push(format!("hr/{id}"));
            }
        }
        for (chart, users) in charts {
            if question.names.is_empty() || question.names.contains(&chart.name) {
                listing.push(entry(question, &cluster.name, &chart, &users));
            }
        }
    }
    listing
}

pub(super) fn unknown(question: &Question<'_>) -> CommandError {
    let clusters = question.rendered.clusters.iter();
    let releases = clusters.flat_map(|(_, rendering)| rendering.releases.values());
    let known: Vec<_> = releases
        .map(|release| NamespacedName::new("", ChartInfo::of(release).name))
        .collect();
    not_found("chart", question.names, &known, "portolan get charts")
}

fn entry(question: &Question<'_>, cluster: &str, chart: &ChartInfo, users: &[String]) -> Entry {
    let cells = vec![
        Cell::name(chart.name.as_str()),
        chart.version.as_str().into(),
        chart.source.as_str().into(),
        some_of(users).into(),
        chart.url.as_str().into(),
    ];
    let record = record([
        ("cluster", Node::string(cluster)),
        ("chart", Node::string(chart.name.as_str())),
        ("version", Node::string(chart.version.as_str())),
        ("source", Node::string(chart.source.as_str())),
        ("url", Node::string(chart.url.as_str())),
        ("usedBy", texts(users)),
    ]);
    Entry {
        cells: question.cells(cluster, None, cells),
        record,
        name: chart.name.clone(),
    }
}
