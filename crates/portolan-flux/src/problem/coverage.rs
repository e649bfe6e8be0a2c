//! What was not checked, or only approximately: clusters whose start is not known, and unknown versions.

use portolan_object::{Finding, KubeVersion};

use crate::cluster::Cluster;
use crate::discover::UnknownRoot;
use crate::problem::rule::{CLUSTER_NOT_COVERED, VERSION_NOT_KNOWN};
use crate::repo::Repo;

/// Findings about everything that a repository or the user names and that is not, or only nearly, looked at.
pub fn not_covered(repo: &Repo) -> Vec<Finding> {
    let clusters = repo.clusters();
    let started: Vec<&str> = clusters
        .iter()
        .map(|cluster| cluster.root.path.as_str())
        .collect();
    let roots = repo.unknown_roots().iter();
    let roots = roots.map(|root| unknown_root(root, &started.join(", ")));
    let versions = clusters
        .iter()
        .flat_map(|cluster| unknown_versions(cluster));
    roots.chain(versions).collect()
}

fn unknown_root(UnknownRoot { place, path }: &UnknownRoot, started: &str) -> Finding {
    let message = format!(
        "the FluxInstance syncs `{path}`, and nothing in the repository sets that variable: its cluster is checked only if it starts at one of {started}"
    );
    Finding {
        place: Some(place.clone()),
        hints: vec!["`--path DIR` names the directory that a cluster starts from".to_owned()],
        ..Finding::new(&CLUSTER_NOT_COVERED, message)
    }
}

fn unknown_versions(cluster: &Cluster) -> Vec<Finding> {
    let mut found = Vec::new();
    let release = cluster.kubernetes.value.release();
    let known = release.nearest_known();
    if known != release {
        let word = if known < release { "newer" } else { "older" };
        let message = format!(
            "Kubernetes {release} is {word} than the releases known here, {} to {}: objects are checked as for {known}",
            KubeVersion::OLDEST_KNOWN,
            KubeVersion::NEWEST_KNOWN
        );
        found.push((message, cluster.kubernetes.by.place()));
    }
    if let Some(known) = cluster.flux.value.stand_in() {
        let version = &cluster.flux.value;
        let message = format!(
            "the behaviour of Flux {version} is not known here: that of {known} is emulated"
        );
        found.push((message, cluster.flux.by.place()));
    }
    let finding = |(message, place): (String, Option<&_>)| Finding {
        place: place.cloned(),
        ..Finding::new(&VERSION_NOT_KNOWN, message).in_cluster(&cluster.name)
    };
    found.into_iter().map(finding).collect()
}
