//! The names that people use for kinds: `Deployment`, `deployments`, `deploy`, `certificates.cert-manager.io`.
//!
//! Kubernetes gives a client the plural and the short names of each kind that it serves; kubectl accepts any of them.
//! The names of Kubernetes and Flux are built in, and [`KindNames::define`] adds those of a repository's own CRDs. A
//! kind that nothing defines has only its name and the regular plural.

use portolan_yaml::{Node, Text};

use crate::gvk::Gvk;
use crate::kind::served::served_resources;

/// What kinds are called.
#[derive(Debug, Clone, Default)]
pub struct KindNames {
    defined: Vec<Defined>,
}

/// The words for a kind that a definition adds.
#[derive(Debug, Clone)]
struct Defined {
    group: Text,
    kind: Text,
    /// Plural, singular and short names, in lower case.
    words: Vec<String>,
}

/// Group, kind and short names, as `kubectl api-resources` prints them.
const SHORT_NAMES: [(&str, &str, &[&str]); 40] = [
    ("", "ComponentStatus", &["cs"]),
    ("", "ConfigMap", &["cm"]),
    ("", "Endpoints", &["ep"]),
    ("", "Event", &["ev"]),
    ("", "LimitRange", &["limits"]),
    ("", "Namespace", &["ns"]),
    ("", "Node", &["no"]),
    ("", "PersistentVolume", &["pv"]),
    ("", "PersistentVolumeClaim", &["pvc"]),
    ("", "Pod", &["po"]),
    ("", "ReplicationController", &["rc"]),
    ("", "ResourceQuota", &["quota"]),
    ("", "Service", &["svc"]),
    ("", "ServiceAccount", &["sa"]),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &["crd", "crds"],
    ),
    ("apps", "DaemonSet", &["ds"]),
    ("apps", "Deployment", &["deploy"]),
    ("apps", "ReplicaSet", &["rs"]),
    ("apps", "StatefulSet", &["sts"]),
    ("autoscaling", "HorizontalPodAutoscaler", &["hpa"]),
    ("batch", "CronJob", &["cj"]),
    ("certificates.k8s.io", "CertificateSigningRequest", &["csr"]),
    ("events.k8s.io", "Event", &["ev"]),
    ("fluxcd.controlplane.io", "ResourceSet", &["rset"]),
    (
        "fluxcd.controlplane.io",
        "ResourceSetInputProvider",
        &["rsip"],
    ),
    ("helm.toolkit.fluxcd.io", "HelmRelease", &["hr"]),
    (
        "image.toolkit.fluxcd.io",
        "ImagePolicy",
        &["imgpol", "imagepol"],
    ),
    (
        "image.toolkit.fluxcd.io",
        "ImageRepository",
        &["imgrepo", "imagerepo"],
    ),
    (
        "image.toolkit.fluxcd.io",
        "ImageUpdateAutomation",
        &["iua", "imgupd", "imgauto"],
    ),
    ("kustomize.toolkit.fluxcd.io", "Kustomization", &["ks"]),
    ("networking.k8s.io", "IPAddress", &["ip"]),
    ("networking.k8s.io", "Ingress", &["ing"]),
    ("networking.k8s.io", "NetworkPolicy", &["netpol"]),
    ("policy", "PodDisruptionBudget", &["pdb"]),
    ("scheduling.k8s.io", "PriorityClass", &["pc"]),
    ("source.toolkit.fluxcd.io", "GitRepository", &["gitrepo"]),
    ("source.toolkit.fluxcd.io", "HelmChart", &["hc"]),
    ("source.toolkit.fluxcd.io", "HelmRepository", &["helmrepo"]),
    ("source.toolkit.fluxcd.io", "OCIRepository", &["ocirepo"]),
    ("storage.k8s.io", "StorageClass", &["sc"]),
];

impl KindNames {
    /// Adds the words of a `CustomResourceDefinition`; anything else adds nothing.
    pub fn define(&mut self, definition: &Node) {
        self.defined.extend(Defined::read(definition));
    }

    /// Whether a word is one for this kind.
    ///
    /// A group, or a version and a group, may follow the word after a dot, as in `deployments.apps` and
    /// `deployments.v1.apps`. Upper and lower case are the same.
    ///
    /// ```
    /// use portolan_object::{Gvk, KindNames};
    ///
    /// let names = KindNames::default();
    /// let deployment: Gvk = "apps/v1/Deployment".parse()?;
    /// assert!(names.is("deploy", &deployment));
    /// assert!(names.is("deployments.apps", &deployment));
    /// assert!(!names.is("ds", &deployment));
    /// # Ok::<(), portolan_object::GvkError>(())
    /// ```
    pub fn is(&self, word: &str, gvk: &Gvk) -> bool {
        let word = word.to_ascii_lowercase();
        match word.split_once('.') {
            None => self.is_word(&word, gvk),
            Some((word, group)) => {
                let is_group = gvk.group == group;
                let with_version = || format!("{}.{}", gvk.version, gvk.group);
                (is_group || group == with_version()) && self.is_word(word, gvk)
            }
        }
    }

    fn is_word(&self, word: &str, gvk: &Gvk) -> bool {
        let kind = gvk.kind.to_ascii_lowercase();
        if word == kind || is_short(word, &gvk.group, &gvk.kind) {
            return true;
        }
        let mut defined = self.defined.iter();
        let own = defined.find(|one| one.group == gvk.group && one.kind == gvk.kind);
        if let Some(defined) = own {
            return defined.words.iter().any(|own| own == word);
        }
        let mut served = served_resources().filter(|(group, of, _)| gvk.is(group, of));
        match served.next() {
            Some((_, _, plural)) => plural == word,
            None => is_regular_plural(word, &kind),
        }
    }

    /// Whether a word is one for a kind of Kubernetes or Flux, or for one that was defined.
    pub fn knows(&self, word: &str) -> bool {
        let mut defined = self.defined.iter();
        is_built_in(word) || defined.any(|one| self.is(word, &one.gvk()))
    }

    /// The kinds that were defined.
    pub fn defined(&self) -> impl Iterator<Item = &str> {
        self.defined.iter().map(|defined| defined.kind.as_str())
    }
}

/// Whether a word is one for a kind of Kubernetes or Flux.
pub(crate) fn is_built_in(word: &str) -> bool {
    let names = KindNames::default();
    let served = served_resources().map(|(group, kind, _)| (group, kind));
    let with_short = SHORT_NAMES.iter().map(|(group, kind, _)| (*group, *kind));
    let mut kinds = served.chain(with_short);
    kinds.any(|(group, kind)| names.is(word, &Gvk::new(group, "v1", kind)))
}

/// The kinds of Kubernetes and Flux, and the short words for them.
pub(crate) fn built_in_words<'a>() -> impl Iterator<Item = &'a str> {
    let served = served_resources().map(|(_, kind, _)| kind);
    let kinds = SHORT_NAMES.iter().map(|(_, kind, _)| *kind);
    let words = SHORT_NAMES.iter().flat_map(|(_, _, words)| *words);
    served.chain(kinds).chain(words.copied())
}

fn is_short(word: &str, group: &str, kind: &str) -> bool {
    let mut rows = SHORT_NAMES.iter();
    rows.any(|(of_group, of_kind, words)| {
        (*of_group, *of_kind) == (group, kind) && words.contains(&word)
    })
}

/// `certificates`, `policies`, `classes`
fn is_regular_plural(word: &str, kind: &str) -> bool {
    let stem = kind.strip_suffix('y').map(|stem| format!("{stem}ies"));
    word == format!("{kind}s") || word == format!("{kind}es") || stem.is_some_and(|it| it == word)
}

// === impl Defined ===

impl Defined {
    fn read(definition: &Node) -> Option<Self> {
        let text = |path: &[&str]| definition.at_path(path).and_then(Node::as_str);
        if text(&["kind"]) != Some("CustomResourceDefinition") {
            return None;
        }
        let kind = text(&["spec", "names", "kind"])?;
        let names = ["plural", "singular"].into_iter();
        let names = names.filter_map(|name| text(&["spec", "names", name]));
        let short = definition.at_path(&["spec", "names", "shortNames"]);
        let short = short.and_then(Node::as_list).into_iter();
        let short = short.flat_map(|list| list.iter().filter_map(Node::as_str));
        Some(Self {
            group: text(&["spec", "group"])?.into(),
            kind: kind.into(),
            words: names.chain(short).map(str::to_ascii_lowercase).collect(),
        })
    }

    fn gvk(&self) -> Gvk {
        Gvk::new(self.group.clone(), "v1", self.kind.clone())
    }
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one};

    use super::*;

    fn check(names: &KindNames, gvk: &str, words: &[&str]) {
        let gvk: Gvk = gvk.parse().unwrap();
        for word in words {
            assert!(names.is(word, &gvk), "`{word}` is {gvk}");
        }
    }

    #[test]
    fn kinds_go_by_short_singular_and_plural_names() {
        let names = KindNames::default();
        check(
            &names,
            "apps/v1/Deployment",
            &["deploy", "Deployment", "deployments", "deployment.v1.apps"],
        );
        check(
            &names,
            "networking.k8s.io/v1/Ingress",
            &["ingresses", "ing"],
        );
        check(
            &names,
            "networking.k8s.io/v1/NetworkPolicy",
            &["networkpolicies", "netpol"],
        );
        check(&names, "v1/Endpoints", &["ep", "endpoints"]);
        check(&names, "example.org/v1/Policy", &["policies", "policy"]);
        assert!(!names.is("deploy", &"apps/v1/DaemonSet".parse().unwrap()));
    }

    #[test]
    fn a_short_name_belongs_to_one_group() {
        let knative: Gvk = "serving.knative.dev/v1/Service".parse().unwrap();
        let names = KindNames::default();
        assert!(!names.is("svc", &knative));
        assert!(names.is("service", &knative));
        assert!(!names.is("services.apps", &knative));
    }

    #[test]
    fn a_definition_brings_its_own_words() {
        let text = "kind: CustomResourceDefinition\nspec:\n  group: example.org\n  names: {kind: Beacon, plural: beacons, singular: beacon, shortNames: [bcn]}\n";
        let definition = parse_one(text, Dialect::Kustomize).unwrap();
        let mut names = KindNames::default();
        assert!(!names.knows("bcn"));
        names.define(&definition);
        assert!(names.knows("bcn"));
        check(
            &names,
            "example.org/v1/Beacon",
            &["bcn", "beacons.example.org"],
        );
    }

    #[test]
    fn words_of_kubernetes_are_known_without_any_definition() {
        let names = KindNames::default();
        for word in ["po", "hr", "Secret", "secrets", "crd"] {
            assert!(names.knows(word), "`{word}`");
        }
        assert!(!names.knows("secrt"));
    }
}
