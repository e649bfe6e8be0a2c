//! `get sources`: where the files and charts of every cluster come from, and who uses them.

use portolan_flux::Cluster;
use portolan_flux::api::{GitRef, OciRef, Source, SourceRef, SourceSpec};
use portolan_object::{Candidate, Gvk, Noun};
use portolan_review::inventory::{SOURCE_GROUP, UsedSource, used_sources};
use portolan_yaml::Node;

use super::kustomizations::declared_in;
use super::{Question, some_of};
use crate::error::CommandError;
use crate::listing::{Column, Entry, Listing, record, texts};
use crate::table::Cell;

const NOUN: Noun = Noun {
    singular: "source",
    list_command: "portolan get sources",
};

pub(super) fn list(question: &Question<'_>) -> Result<Listing, CommandError> {
    let mut listing = Listing::new(
        "SourceList",
        question.columns(
            true,
            &[
                Column::Always("KIND"),
                Column::Always("NAME"),
                Column::Always("URL"),
                Column::Roomy("REVISION"),
                Column::Roomy("USED BY"),
                Column::Wide("DECLARED IN"),
            ],
        ),
    );
    let clusters = question.rendered.clusters.iter();
    let sources: Vec<_> = clusters
        .flat_map(|(cluster, rendering)| {
            let sources = used_sources(rendering).into_iter();
            sources.map(move |(source, used)| (cluster, source, used))
        })
        .collect();
    let all = sources.iter().map(|(cluster, source, used)| {
        let candidate = Candidate {
            gvk: Gvk::new(SOURCE_GROUP, "v1", source.kind.clone()),
            namespace: &source.id.namespace,
            name: &source.id.name,
            object: used.object,
        };
        (candidate, (cluster, source, used))
    });
    for (cluster, source, used) in question.chosen(NOUN, all.collect())? {
        listing.push(entry(question, cluster, source, used));
    }
    Ok(listing)
}

fn entry(
    question: &Question<'_>,
    cluster: &Cluster,
    source: &SourceRef,
    used: &UsedSource<'_>,
) -> Entry {
    let read = used.object.and_then(|object| Source::read(object.node()));
    let (url, revision) = match read {
        Some(Ok(source)) => address(&source.spec),
        _ => (String::new(), String::new()),
    };
    let url = question.view.address(&url).into_owned();
    let is_own = *source == cluster.root.source;
    let shown = match (is_own, url.is_empty()) {
        (true, true) => "this repository".to_owned(),
        (true, false) => format!("{url} (this repository)"),
        (false, _) => url.clone(),
    };
    let file = declared_in(used.object);
    let users: Vec<String> = used.users.iter().map(ToString::to_string).collect();
    let cells = vec![
        Cell::whole(source.kind.as_str()),
        Cell::name(source.id.name.as_str()),
        shown.into(),
        revision.clone().into(),
        some_of(&users).into(),
        file.clone().into(),
    ];
    let record = record([
        ("cluster", Node::string(cluster.name.clone())),
        ("namespace", Node::string(source.id.namespace.clone())),
        ("kind", Node::string(source.kind.clone())),
        ("name", Node::string(source.id.name.clone())),
        ("url", Node::string(url)),
        ("revision", Node::string(revision)),
        ("thisRepository", Node::bool(is_own)),
        ("usedBy", texts(users)),
        ("declaredIn", Node::string(file)),
    ]);
    Entry {
        cells: question.cells(&cluster.name, Some(&source.id.namespace), cells),
        record,
        name: format!(
            "{}.{SOURCE_GROUP}/{}",
            source.kind.to_lowercase(),
            source.id.name
        ),
    }
}

/// Where a source lies, and which revision of it is taken.
fn address(spec: &SourceSpec) -> (String, String) {
    match spec {
        SourceSpec::Git { url, reference } => (url.to_string(), git_revision(reference)),
        SourceSpec::Oci { url, reference, .. } => (url.to_string(), oci_revision(reference)),
        SourceSpec::HelmRepository { url, .. } => (url.to_string(), String::new()),
        SourceSpec::HelmChart(chart) => (
            format!("{} of {}", chart.chart, chart.source),
            chart.version.to_string(),
        ),
        SourceSpec::Bucket { endpoint, name, .. } => (format!("{endpoint}/{name}"), String::new()),
        SourceSpec::ExternalArtifact => (String::new(), String::new()),
    }
}

fn git_revision(reference: &GitRef) -> String {
    let GitRef {
        commit,
        name,
        semver,
        tag,
        branch,
    } = reference;
    let first = [commit, name, semver, tag, branch]
        .into_iter()
        .flatten()
        .next();
    first.map_or_else(|| "master".to_owned(), ToString::to_string)
}

fn oci_revision(reference: &OciRef) -> String {
    let OciRef {
        digest,
        semver,
        tag,
        semver_filter: _,
    } = reference;
    let first = [digest, semver, tag].into_iter().flatten().next();
    first.map_or_else(|| "latest".to_owned(), ToString::to_string)
}
