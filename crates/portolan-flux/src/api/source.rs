//! The kinds of `source.toolkit.fluxcd.io`: where files and charts come from.

use portolan_yaml::{Node, Text};

use super::fields::{Errors, Fields, read_object};
use super::helm_release::ChartSpec;
use super::kustomization::non_empty;
use super::{DataKind, FieldError, NamespacedName, SourceRef};

/// What sources are called.
const KINDS: [&str; 6] = [
    "GitRepository",
    "OCIRepository",
    "HelmRepository",
    "HelmChart",
    "Bucket",
    "ExternalArtifact",
];

/// A source and what it says of itself.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its kind and name.
    pub id: SourceRef,
    /// Patterns of files that are left out, in gitignore's syntax.
    pub ignore: Option<Text>,
    /// The Secret with credentials.
    pub secret: Option<Text>,
    /// Whether plain HTTP will do.
    pub insecure: bool,
    /// What it is.
    pub spec: SourceSpec,
}

/// The kinds of sources.
#[derive(Debug, Clone)]
pub enum SourceSpec {
    /// A git repository at a reference.
    Git {
        /// Where it is cloned from.
        url: Text,
        /// What is checked out.
        reference: GitRef,
    },
    /// An artifact in a registry.
    Oci {
        /// `oci://…`
        url: Text,
        /// Which one.
        reference: OciRef,
        /// The media type of the layer to take; the first when empty.
        layer_media_type: Option<Text>,
        /// Whether the layer is kept as an archive instead of being unpacked.
        keep_archive: bool,
    },
    /// An index of charts.
    HelmRepository {
        /// Its address.
        url: Text,
        /// HTTP index or registry.
        kind: HelmRepositoryType,
    },
    /// A chart of another source.
    HelmChart(ChartSpec),
    /// An S3-like bucket.
    Bucket {
        /// The server.
        endpoint: Text,
        /// The bucket's name.
        name: Text,
        /// What the keys of its objects begin with.
        prefix: Text,
        /// The region that requests are signed for.
        region: Text,
    },
    /// Made by another controller.
    ExternalArtifact,
}

/// How charts are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HelmRepositoryType {
    /// By an `index.yaml`.
    #[default]
    Default,
    /// By the tags of a registry.
    Oci,
}

/// What of a git repository is taken; the first that is set wins, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitRef {
    /// A commit.
    pub commit: Option<Text>,
    /// A full reference, as in `refs/heads/main`.
    pub name: Option<Text>,
    /// The newest tag in a range.
    pub semver: Option<Text>,
    /// A tag.
    pub tag: Option<Text>,
    /// A branch; `master` when nothing is set.
    pub branch: Option<Text>,
}

/// Which artifact of a registry is taken; the first that is set wins, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OciRef {
    /// By content.
    pub digest: Option<Text>,
    /// The newest tag in a range.
    pub semver: Option<Text>,
    /// Only tags that match this expression are considered for the range.
    pub semver_filter: Option<Text>,
    /// A tag; `latest` when nothing is set.
    pub tag: Option<Text>,
}

// === impl Source ===

impl Source {
    /// Reads a source; `None` when the object is of another kind.
    pub fn read(object: &Node) -> Option<Result<Self, Vec<FieldError>>> {
        let kind = Text::from(object.get("kind")?.as_str()?);
        if !KINDS.contains(&kind.as_str()) {
            return None;
        }
        let read = read_object(object, |id, fields, errors| {
            let spec = SourceSpec::read(&kind, fields, &id, errors)?;
            Some(Self {
                id: SourceRef { kind, id },
                ignore: fields.text("ignore", errors),
                secret: fields.map("secretRef", errors).text("name", errors),
                insecure: fields.bool("insecure", errors),
                spec,
            })
        });
        read.transpose()
    }
}

impl SourceSpec {
    fn read(
        kind: &str,
        spec: &Fields<'_>,
        id: &NamespacedName,
        errors: &mut Errors,
    ) -> Option<Self> {
        Some(match kind {
            "GitRepository" => Self::Git {
                url: spec.required("url", errors),
                reference: GitRef::read(&spec.map("ref", errors), errors),
            },
            "OCIRepository" => Self::read_oci(spec, errors),
            "HelmRepository" => Self::read_helm_repository(spec, errors),
            "HelmChart" => Self::HelmChart(ChartSpec::read(spec, &id.namespace, errors)),
            "Bucket" => Self::Bucket {
                endpoint: spec.required("endpoint", errors),
                name: spec.required("bucketName", errors),
                prefix: spec.text("prefix", errors).unwrap_or_default(),
                region: spec.text("region", errors).unwrap_or_default(),
            },
            "ExternalArtifact" => Self::ExternalArtifact,
            _ => return None,
        })
    }

    fn read_oci(spec: &Fields<'_>, errors: &mut Errors) -> Self {
        let layer = spec.map("layerSelector", errors);
        Self::Oci {
            url: spec.required("url", errors),
            reference: OciRef::read(&spec.map("ref", errors), errors),
            layer_media_type: non_empty(layer.text("mediaType", errors)),
            keep_archive: layer.text("operation", errors).as_deref() == Some("copy"),
        }
    }

    fn read_helm_repository(spec: &Fields<'_>, errors: &mut Errors) -> Self {
        let url = spec.required("url", errors);
        let kind = match spec.text("type", errors).as_deref() {
            Some("oci") => HelmRepositoryType::Oci,
            _ => HelmRepositoryType::Default,
        };
        Self::HelmRepository { url, kind }
    }
}

impl GitRef {
    fn read(fields: &Fields<'_>, errors: &mut Errors) -> Self {
        Self {
            commit: non_empty(fields.text("commit", errors)),
            name: non_empty(fields.text("name", errors)),
            semver: non_empty(fields.text("semver", errors)),
            tag: non_empty(fields.text("tag", errors)),
            branch: non_empty(fields.text("branch", errors)),
        }
    }
}

impl OciRef {
    fn read(fields: &Fields<'_>, errors: &mut Errors) -> Self {
        Self {
            digest: non_empty(fields.text("digest", errors)),
            semver: non_empty(fields.text("semver", errors)),
            semver_filter: non_empty(fields.text("semverFilter", errors)),
            tag: non_empty(fields.text("tag", errors)),
        }
    }
}

// === impl SourceRef ===

impl SourceRef {
    /// Reads a reference; the namespace defaults to that of the object that holds it.
    pub(super) fn read(fields: &Fields<'_>, namespace: &Text, errors: &mut Errors) -> Self {
        Self {
            kind: fields.required("kind", errors),
            id: NamespacedName {
                namespace: non_empty(fields.text("namespace", errors))
                    .unwrap_or_else(|| namespace.clone()),
                name: fields.required("name", errors),
            },
        }
    }
}

impl DataKind {
    pub(super) fn read(fields: &Fields<'_>, errors: &mut Errors) -> Self {
        match fields.required("kind", errors).as_str() {
            "ConfigMap" | "" => Self::ConfigMap,
            "Secret" => Self::Secret,
            _ => {
                errors.push(fields.wrong_kind("kind", "`ConfigMap` or `Secret`"));
                Self::ConfigMap
            }
        }
    }
}
