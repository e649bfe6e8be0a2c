//! `get charts`: every chart that a HelmRelease is rendered from, and the HelmReleases that use it.

use std::collections::BTreeMap;

use portolan_flux::Emitter;
use portolan_object::{Noun, OwnerKind};
use portolan_review::ChartInfo;
use portolan_yaml::Node;

use super::kustomizations::owner;
use super::{Question, some_of};
use crate::error::CommandError;
use crate::listing::{Column, Entry, Listing, record, texts};
use crate::table::Cell;

const NOUN: Noun = Noun {
    singular: "chart",
    list_command: "portolan get charts",
};

const RELEASE: Noun = Noun {
    singular: "HelmRelease",
    list_command: "portolan get hr",
};

pub(super) fn list(question: &Question<'_>) -> Result<Listing, CommandError> {
    let mut listing = Listing::new(
        "ChartList",
        question.columns(
            false,
            &[
                Column::Always("CHART"),
                Column::Always("VERSION"),
                Column::Roomy("SOURCE"),
                Column::Always("USED BY"),
                Column::Wide("URL"),
            ],
        ),
    );
    let mut all = Vec::new();
    for (at, (_, rendering)) in question.rendered.clusters.iter().enumerate() {
        for (id, release) in &rendering.releases {
            let candidate = owner(OwnerKind::Release, id, Some(&release.definition));
            all.push((candidate, (at, id, release)));
        }
    }
    let mut charts: BTreeMap<(usize, ChartInfo), Vec<String>> = BTreeMap::new();
    for (at, id, release) in question.chosen(RELEASE, all)? {
        let users = charts.entry((at, ChartInfo::of(release))).or_default();
        users.push(Emitter::Release(id.clone()).to_string());
    }
    let known: Vec<String> = charts.keys().map(|(_, chart)| chart.name.clone()).collect();
    let is_known = |name: &str| known.iter().any(|known| known == name);
    question.refuse_unknown_names(NOUN, is_known, &known)?;
    for ((at, chart), users) in charts {
        let cluster = &question.rendered.clusters[at].0;
        if question.names.is_empty() || question.names.contains(&chart.name) {
            listing.push(entry(question, &cluster.name, &chart, &users));
        }
    }
    Ok(listing)
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
