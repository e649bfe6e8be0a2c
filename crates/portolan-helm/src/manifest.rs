//! Splits rendered files into objects and hooks, and sorts them in the order in which Helm installs them.
//!
//! ```text
//! rendered file ──split──▶ documents with their heads ─┐
//! rendered file ──split──▶ documents with their heads ─┴─by path─┬─▶ manifests, sorted by kind
//!                                                                └─▶ hooks, sorted by kind
//! ```

use std::sync::Arc;

use portolan_yaml::Text;

use crate::documents::split;
use crate::head::{Head, Heads};
use crate::profile::Profile;

/// A document of a template's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The template it comes from, such as `web/templates/deployment.yaml`.
    pub source: Text,
    /// The text, without separators or space before it; Helm 4 keeps the space behind it.
    pub text: Text,
    /// The object's kind; empty where there is none.
    pub kind: String,
    /// The object's apiVersion; empty where there is none.
    pub api_version: String,
    /// The object's name; empty where there is none.
    pub name: String,
}

/// An object that Helm creates at a point of a release's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The object.
    pub manifest: Manifest,
    /// When it is created.
    pub events: Vec<HookEvent>,
    /// Hooks of one event run in the order of their weights.
    pub weight: i64,
    /// When it is deleted, as written.
    pub delete_policies: Vec<String>,
}

/// A point in a release's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are Helm's")]
pub enum HookEvent {
    PreInstall,
    PostInstall,
    PreDelete,
    PostDelete,
    PreUpgrade,
    PostUpgrade,
    PreRollback,
    PostRollback,
    Test,
}

/// A document that is not YAML, or not an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("YAML parse error on {source_path}: {reason}")]
pub struct ManifestError {
    /// The template it comes from.
    pub source_path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Manifests and hooks, each in Helm's order.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    pub(crate) manifests: Vec<Manifest>,
    pub(crate) hooks: Vec<Hook>,
}

/// The kinds in the order they are installed in; other kinds come last, by name.
const INSTALL_ORDER: &[&str] = &[
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// What Helm 4 installs behind those, before kinds that it does not know.
const INSTALLED_LAST: &[&str] = &[
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// A rendered file, taken apart.
#[derive(Debug)]
pub(crate) struct RenderedFile {
    pub(crate) path: Text,
    pub(crate) content: Arc<str>,
    documents: Vec<(Text, Result<Head, String>)>,
}

impl RenderedFile {
    /// Splits a file's text and reads the heads of its documents; notes are for people and stay whole.
    pub(crate) fn new(path: Text, content: Arc<str>, heads: &Heads, profile: Profile) -> Self {
        let documents = if path.ends_with("NOTES.txt") {
            Vec::new()
        } else {
            split(&content, profile)
        };
        let documents = documents.into_iter().map(|document| {
            let text = slice_of(&content, document);
            let head = heads.read(&text);
            (text, head)
        });
        Self {
            documents: documents.collect(),
            path,
            content,
        }
    }
}

/// Tells manifests from hooks and puts both in order; `files` must be sorted by path.
pub(crate) fn sort(
    files: Vec<RenderedFile>,
    profile: Profile,
    warnings: &mut Vec<String>,
) -> Result<Sorted, ManifestError> {
    let mut sorted = Sorted::default();
    for file in files {
        for (text, head) in file.documents {
            let head = head.map_err(|reason| ManifestError {
                source_path: file.path.to_string(),
                reason,
            })?;
            sorted.take(&file.path, text, head, warnings);
        }
    }
    let by_kind = |a: &Manifest, b: &Manifest| by_kind(&a.kind, &b.kind, profile);
    sorted.manifests.sort_by(by_kind);
    sorted
        .hooks
        .sort_by(|a, b| by_kind(&a.manifest, &b.manifest));
    Ok(sorted)
}

impl Sorted {
    fn take(&mut self, source: &Text, text: Text, head: Head, warnings: &mut Vec<String>) {
        let manifest = Manifest {
            source: source.clone(),
            text,
            kind: head.kind,
            api_version: head.api_version,
            name: head.name,
        };
        let annotation = |key: &str| {
            let found = head.annotations.iter().rev().find(|(name, _)| name == key);
            found.map(|(_, value)| value.as_str())
        };
        let Some(events) = annotation("helm.sh/hook") else {
            self.manifests.push(manifest);
            return;
        };
        let known: Option<Vec<_>> = events.split(',').map(HookEvent::parse).collect();
        let Some(known) = known else {
            warnings.push(format!("info: skipping unknown hook: {events:?}"));
            return;
        };
        let weight = annotation("helm.sh/hook-weight").map(str::parse);
        let policies = annotation("helm.sh/hook-delete-policy");
        self.hooks.push(Hook {
            manifest,
            events: known,
            weight: weight.and_then(Result::ok).unwrap_or(0),
            delete_policies: policies
                .map(|text| text.split(',').map(|p| p.trim().to_lowercase()).collect())
                .unwrap_or_default(),
        });
    }
}

fn by_kind(a: &str, b: &str, profile: Profile) -> std::cmp::Ordering {
    let last = match profile {
        Profile::Helm3 => &[],
        Profile::Helm4 => INSTALLED_LAST,
    };
    let order = || INSTALL_ORDER.iter().chain(last);
    let rank = |kind: &str| order().position(|known| *known == kind);
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// The text of a part of a shared text, without a copy.
pub(crate) fn slice_of(whole: &Arc<str>, part: &str) -> Text {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    Text::slice(whole, start, start.saturating_add(part.len()))
        .filter(|slice| slice.as_str() == part)
        .unwrap_or_else(|| Text::from(part))
}

// === impl HookEvent ===

impl HookEvent {
    fn parse(text: &str) -> Option<Self> {
        Some(match text.trim().to_lowercase().as_str() {
            "pre-install" => Self::PreInstall,
            "post-install" => Self::PostInstall,
            "pre-delete" => Self::PreDelete,
            "post-delete" => Self::PostDelete,
            "pre-upgrade" => Self::PreUpgrade,
            "post-upgrade" => Self::PostUpgrade,
            "pre-rollback" => Self::PreRollback,
            "post-rollback" => Self::PostRollback,
            // The second name is Helm 2's.
            "test" | "test-success" => Self::Test,
            _ => return None,
        })
    }

    /// The name in annotations.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreInstall => "pre-install",
            Self::PostInstall => "post-install",
            Self::PreDelete => "pre-delete",
            Self::PostDelete => "post-delete",
            Self::PreUpgrade => "pre-upgrade",
            Self::PostUpgrade => "post-upgrade",
            Self::PreRollback => "pre-rollback",
            Self::PostRollback => "post-rollback",
            Self::Test => "test",
        }
    }
}

impl Hook {
    /// Whether it is one of the chart's tests.
    pub fn is_test(&self) -> bool {
        self.events.contains(&HookEvent::Test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn try_sort(files: &[(&str, &str)]) -> Result<Sorted, ManifestError> {
        let heads = Heads::default();
        let read = |(path, text): &(&str, &str)| {
            RenderedFile::new(Text::from(*path), Arc::from(*text), &heads, Profile::Helm3)
        };
        sort(
            files.iter().map(read).collect(),
            Profile::Helm3,
            &mut Vec::new(),
        )
    }

    fn sorted(files: &[(&str, &str)]) -> Sorted {
        try_sort(files).unwrap()
    }

    #[test]
    fn kinds_come_in_install_order_and_unknown_ones_last() {
        let kinds = sorted(&[
            ("a", "kind: Zebra\n---\nkind: Service\n---\nkind: Ape"),
            ("b", "kind: Namespace\n---\nkind: Service"),
        ]);
        let order: Vec<_> = kinds
            .manifests
            .iter()
            .map(|m| (m.kind.as_str(), m.source.as_str()))
            .collect();
        assert_eq!(
            order,
            [
                ("Namespace", "b"),
                ("Service", "a"),
                ("Service", "b"),
                ("Ape", "a"),
                ("Zebra", "a")
            ]
        );
    }

    #[test]
    fn hooks_are_told_apart_and_unknown_ones_dropped() {
        let all = sorted(&[(
            "a",
            "kind: Job\nmetadata: {annotations: {helm.sh/hook: 'pre-install, Test-Success', helm.sh/hook-weight: 5}}\n---\nkind: Job\nmetadata: {annotations: {helm.sh/hook: crd-install}}",
        )]);
        assert!(all.manifests.is_empty());
        assert_eq!(
            all.hooks[0].events,
            [HookEvent::PreInstall, HookEvent::Test]
        );
        assert_eq!(all.hooks[0].weight, 5);
        assert_eq!(all.hooks.len(), 1);
    }

    #[test]
    fn a_document_that_is_not_yaml_is_an_error_with_its_template() {
        let error = try_sort(&[("web/templates/a.yaml", "a: b: c")]).unwrap_err();
        assert_eq!(error.source_path, "web/templates/a.yaml");
    }

    /// As helm 3.17.3 and helm 4.2.4 order them.
    #[test]
    fn helm_4_installs_webhooks_before_kinds_it_does_not_know() {
        let kinds = [
            "ValidatingWebhookConfiguration",
            "Certificate",
            "APIService",
        ];
        let sorted = |profile| {
            let mut kinds = kinds;
            kinds.sort_by(|a, b| by_kind(a, b, profile));
            kinds
        };
        let [validating, certificate, service] = kinds;
        assert_eq!(sorted(Profile::Helm3), [service, certificate, validating]);
        assert_eq!(sorted(Profile::Helm4), [service, validating, certificate]);
    }
}
