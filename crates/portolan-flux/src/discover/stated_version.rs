//! The Kubernetes version that files of a repository state for its clusters.
//!
//! Only files that install or upgrade clusters are used, and only if they are unambiguous: versions in variables are
//! ignored, and so are files that name different releases for one cluster.

use std::sync::{Arc, LazyLock};

use camino::Utf8Path;
use memchr::memmem::Finder;
use portolan_helm::ReportedVersion;
use portolan_object::{KubeVersion, Place};
use portolan_yaml::{Node, Text, Value};

/// A Kubernetes version that a file states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatedVersion {
    pub(crate) version: ReportedVersion,
    pub(crate) place: Place,
}

/// Where a cluster starts, and its name.
pub(crate) struct Site<'a> {
    pub(crate) directory: &'a Utf8Path,
    pub(crate) name: &'a str,
}

/// Group and kind of an object that installs or upgrades a cluster, and the field that holds the version.
type Row = (&'static str, &'static str, &'static [&'static str]);

const STATED: &[Row] = &[
    (
        "tuppr.home-operations.com",
        "KubernetesUpgrade",
        &["spec", "kubernetes", "version"],
    ),
    ("upgrade.cattle.io", "Plan", &["spec", "version"]),
    (
        "kubeadm.k8s.io",
        "ClusterConfiguration",
        &["kubernetesVersion"],
    ),
    (
        "k0sctl.k0sproject.io",
        "Cluster",
        &["spec", "k0s", "version"],
    ),
    ("kops.k8s.io", "Cluster", &["spec", "kubernetesVersion"]),
    ("eksctl.io", "ClusterConfig", &["metadata", "version"]),
];

/// Plans upgrade operating systems as well; these images upgrade Kubernetes.
const UPGRADE_IMAGES: [&str; 2] = ["/k3s-upgrade", "/rke2-upgrade"];

/// The image of Talos' kubelet, whose tag is the Kubernetes version.
const KUBELET: &str = "/kubelet:";

/// What files that may state a version contain.
static MENTIONS: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| {
    let groups = STATED.iter().map(|(group, _, _)| *group);
    groups.chain([KUBELET]).map(Finder::new).collect()
});

/// Whether a file may state a version; looking costs less than parsing.
pub(super) fn may_state(path: &Utf8Path, bytes: &[u8]) -> bool {
    is_talhelper(path) || MENTIONS.iter().any(|word| word.find(bytes).is_some())
}

/// The settings of talhelper, which makes the configuration of Talos machines.
fn is_talhelper(path: &Utf8Path) -> bool {
    matches!(path.file_name(), Some("talconfig.yaml" | "talconfig.yml"))
}

impl StatedVersion {
    /// What a document states; `None` if it states no version or leaves a doubt.
    pub(super) fn read(path: &Utf8Path, document: &Node) -> Option<Self> {
        let node = stating(path, document)?;
        let Value::Scalar(scalar) = &node.value else {
            return None;
        };
        // A version of one number is no Kubernetes version, though a semantic one.
        let version = match scalar.text.rsplit_once(KUBELET) {
            Some((_, tag)) => tag.split('@').next()?,
            None => scalar.text.as_str(),
        };
        version.parse::<KubeVersion>().ok()?;
        Some(Self {
            version: ReportedVersion::parse(version).ok()?,
            place: Place {
                file: Text::from(path.as_str()),
                at: node.at,
            },
        })
    }
}

/// The field of a document that states a version.
fn stating<'n>(path: &Utf8Path, document: &'n Node) -> Option<&'n Node> {
    let text = |path: &[&str]| document.at_path(path).and_then(Node::as_str);
    let Some(api_version) = text(&["apiVersion"]) else {
        return if is_talhelper(path) {
            document.get("kubernetesVersion")
        } else {
            document.at_path(&["machine", "kubelet", "image"])
        };
    };
    let group = api_version.split('/').next()?;
    let kind = text(&["kind"])?;
    let (_, _, field) = STATED.iter().find(|row| (row.0, row.1) == (group, kind))?;
    if kind == "Plan" {
        let image = text(&["spec", "upgrade", "image"])?;
        UPGRADE_IMAGES.iter().find(|name| image.contains(*name))?;
    }
    document.at_path(field)
}

/// The version that is stated for each cluster.
pub(crate) fn stated_for(
    stated: &[Arc<StatedVersion>],
    clusters: &[Site<'_>],
) -> Vec<Option<Arc<StatedVersion>>> {
    let of_cluster = |cluster| {
        let is_own = |one: &&Arc<StatedVersion>| {
            let file = Utf8Path::new(one.place.file.as_str());
            let is_nearer = |other| nearness(file, other) > nearness(file, cluster);
            !clusters.iter().any(is_nearer)
        };
        agreed(stated.iter().filter(is_own))
    };
    clusters.iter().map(of_cluster).collect()
}

/// How surely a file is about a cluster: whether it lies in a directory of the cluster's name, then how many directories
/// its path has in common with the cluster's.
fn nearness(file: &Utf8Path, cluster: &Site<'_>) -> (bool, usize) {
    let directories = || file.parent().into_iter().flat_map(Utf8Path::components);
    let is_named = directories().any(|part| part.as_str() == cluster.name);
    let pairs = directories().zip(cluster.directory.components());
    (
        is_named,
        pairs.take_while(|(one, other)| one == other).count(),
    )
}

/// The first of them if all are of one release.
fn agreed<'s>(
    mut stated: impl Iterator<Item = &'s Arc<StatedVersion>>,
) -> Option<Arc<StatedVersion>> {
    let first = stated.next()?;
    let release = first.version.release();
    let is_same = |one: &Arc<StatedVersion>| one.version.release() == release;
    stated.all(is_same).then(|| Arc::clone(first))
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one};

    use super::*;

    fn read(path: &str, text: &str) -> Option<String> {
        let path = Utf8Path::new(path);
        assert!(may_state(path, text.as_bytes()), "{text}");
        let document = parse_one(text, Dialect::Kustomize).unwrap();
        let stated = StatedVersion::read(path, &document)?;
        Some(format!("{} {}", stated.version, stated.place))
    }

    #[test]
    fn what_installs_or_upgrades_a_cluster_states_its_version() {
        let check = |path: &str, text: &str, expected: &str| {
            assert_eq!(read(path, text).as_deref(), Some(expected), "{text}");
        };
        check(
            "/talos/talconfig.yaml",
            "clusterName: home\nkubernetesVersion: v1.33.4\n",
            "v1.33.4 /talos/talconfig.yaml:2",
        );
        check(
            "/talos/node.yaml",
            "machine: {kubelet: {image: 'ghcr.io/siderolabs/kubelet:v1.34.1@sha256:0'}}\n",
            "v1.34.1 /talos/node.yaml:1",
        );
        check(
            "/a.yaml",
            "apiVersion: tuppr.home-operations.com/v1alpha1\nkind: KubernetesUpgrade\nspec: {kubernetes: {version: v1.35.0}}\n",
            "v1.35.0 /a.yaml:3",
        );
        check(
            "/a.yaml",
            "apiVersion: upgrade.cattle.io/v1\nkind: Plan\nspec: {version: v1.31.4+k3s1, upgrade: {image: rancher/k3s-upgrade}}\n",
            "v1.31.4+k3s1 /a.yaml:3",
        );
        check(
            "/a.yaml",
            "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: 1.32.0\n",
            "v1.32.0 /a.yaml:3",
        );
        check(
            "/a.yaml",
            "apiVersion: k0sctl.k0sproject.io/v1beta1\nkind: Cluster\nspec: {k0s: {version: v1.30.0+k0s.0}}\n",
            "v1.30.0+k0s.0 /a.yaml:3",
        );
        check(
            "/a.yaml",
            "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nspec: {kubernetesVersion: 1.30.1}\n",
            "v1.30.1 /a.yaml:3",
        );
        // Unquoted, YAML reads a number; what was written counts.
        check(
            "/a.yaml",
            "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {version: 1.30}\n",
            "v1.30.0 /a.yaml:3",
        );
    }

    #[test]
    fn variables_and_other_plans_state_nothing() {
        for text in [
            "apiVersion: tuppr.home-operations.com/v1alpha1\nkind: KubernetesUpgrade\nspec: {kubernetes: {version: '${KUBERNETES_VERSION}'}}\n",
            "apiVersion: tuppr.home-operations.com/v1alpha1\nkind: TalosUpgrade\nspec: {talos: {version: v1.11.0}}\n",
            "apiVersion: upgrade.cattle.io/v1\nkind: Plan\nspec: {version: v1.11.0, upgrade: {image: ghcr.io/siderolabs/talosctl}}\n",
            "apiVersion: upgrade.cattle.io/v1\nkind: Plan\nspec: {channel: 'https://update.k3s.io/v1-release/channels/stable', upgrade: {image: rancher/k3s-upgrade}}\n",
        ] {
            assert_eq!(read("/a.yaml", text), None, "{text}");
        }
    }

    #[test]
    fn a_file_counts_for_the_clusters_it_is_nearest_to_unless_others_disagree() {
        let check = |files: &[(&str, &str)],
                     clusters: &[(&'static str, &'static str)],
                     expected: &[Option<&str>]| {
            let stated = |(file, version): &(&str, &str)| {
                Arc::new(StatedVersion {
                    version: ReportedVersion::parse(version).unwrap(),
                    place: Place::line(file.to_string(), 1),
                })
            };
            let stated: Vec<_> = files.iter().map(stated).collect();
            let site = |(directory, name): &(&'static str, &'static str)| Site {
                directory: Utf8Path::new(*directory),
                name,
            };
            let sites: Vec<Site<'_>> = clusters.iter().map(site).collect();
            let found = stated_for(&stated, &sites);
            let found: Vec<Option<String>> = found
                .iter()
                .map(|one| one.as_ref().map(|one| one.version.to_string()))
                .collect();
            let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
            assert_eq!(found, expected, "{files:?}");
        };
        let one = [("/kubernetes/flux", "kubernetes")];
        check(
            &[("/talos/talconfig.yaml", "1.33.1")],
            &one,
            &[Some("v1.33.1")],
        );
        let differing = [("/a.yaml", "1.33.1"), ("/b.yaml", "1.34.0")];
        check(&differing, &one, &[None]);
        let patches = [("/a.yaml", "1.33.1"), ("/b.yaml", "1.33.0")];
        check(&patches, &one, &[Some("v1.33.1")]);
        let two = [("/clusters/a", "a"), ("/clusters/b", "b")];
        check(
            &[
                ("/clusters/a/k3s.yaml", "1.33.1"),
                ("/talos/b/talconfig.yaml", "1.34.0"),
            ],
            &two,
            &[Some("v1.33.1"), Some("v1.34.0")],
        );
        check(
            &[("/talos/talconfig.yaml", "1.33.1")],
            &two,
            &[Some("v1.33.1"); 2],
        );
        check(&differing, &two, &[None, None]);
        check(&[], &two, &[None, None]);
    }
}
