//! `HelmRelease` of `helm.toolkit.fluxcd.io`: a chart, its values, and what is done to the result.

use portolan_yaml::{Node, Text};

use super::fields::{Errors, Fields, read_object};
use super::kustomization::{Dependency, non_empty};
use super::{DataKind, FieldError, NamespacedName, SourceRef};

/// What decides a HelmRelease's render.
#[derive(Debug, Clone)]
pub struct HelmRelease {
    /// Its name.
    pub id: NamespacedName,
    /// The chart to render.
    pub chart: Chart,
    /// Whether Flux leaves it alone.
    pub suspend: bool,
    /// Which HelmReleases must be ready first.
    pub depends_on: Vec<Dependency>,
    /// The release's name, when given.
    pub release_name: Option<Text>,
    /// The namespace of the release, when not its own.
    pub target_namespace: Option<Text>,
    /// Where Helm keeps the release's record, when not its own namespace.
    pub storage_namespace: Option<Text>,
    /// Values taken from other objects, in order.
    pub values_from: Vec<ValuesReference>,
    /// Values given in place.
    pub values: Option<Node>,
    /// What happens to the chart's `crds/` directory.
    pub crds: CrdsPolicy,
    /// Whether hooks are left out.
    pub disable_hooks: bool,
    /// Whether the chart's schema is not asked.
    pub disable_schema_validation: bool,
    /// Kustomize steps on the rendered manifests.
    pub post_renderers: Vec<PostRenderer>,
    /// Labels and annotations for every object.
    pub common_metadata: CommonMetadata,
}

/// Where the chart comes from.
#[derive(Debug, Clone)]
pub enum Chart {
    /// `spec.chart`: a HelmChart is made from it.
    Spec(ChartSpec),
    /// `spec.chartRef`: an OCIRepository, HelmChart or ExternalArtifact holds it.
    Reference(SourceRef),
}

/// A chart in a source.
#[derive(Debug, Clone)]
pub struct ChartSpec {
    /// The chart's name in a repository, or its path in a tree.
    pub chart: Text,
    /// Which versions will do; empty is the newest.
    pub version: Text,
    /// Where it lies.
    pub source: SourceRef,
    /// Files that replace the chart's `values.yaml`, merged in order.
    pub values_files: Vec<Text>,
    /// Whether those that do not exist are passed over.
    pub ignore_missing_values_files: bool,
}

/// What happens to the chart's `crds/` directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CrdsPolicy {
    /// They are applied (the default, and `CreateReplace`).
    #[default]
    Apply,
    /// They are left out.
    Skip,
}

/// An object that holds values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuesReference {
    /// ConfigMap or Secret.
    pub kind: DataKind,
    /// Its name, in the HelmRelease's namespace.
    pub name: Text,
    /// The key whose text is read.
    pub key: Text,
    /// Where the text is put; the whole text is values when empty.
    pub target_path: Option<Text>,
    /// Whether the text is put in as it is, without reading it as `--set` would.
    pub literal: bool,
    /// Whether it may be missing.
    pub optional: bool,
}

/// One kustomize step on the rendered manifests.
#[derive(Debug, Clone)]
pub struct PostRenderer {
    /// `patches` in kustomize's form.
    pub patches: Option<Node>,
    /// `patchesStrategicMerge`, of the older API.
    pub patches_strategic_merge: Option<Node>,
    /// `patchesJson6902`, of the older API.
    pub patches_json6902: Option<Node>,
    /// `images` in kustomize's form.
    pub images: Option<Node>,
}

/// Labels and annotations for every object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommonMetadata {
    /// Labels, in the order given.
    pub labels: Vec<(Text, Text)>,
    /// Annotations, in the order given.
    pub annotations: Vec<(Text, Text)>,
}

// === impl HelmRelease ===

impl HelmRelease {
    /// Reads an object of this kind; all that is wrong with it when something is.
    pub fn read(object: &Node) -> Result<Self, Vec<FieldError>> {
        read_object(object, |id, spec, errors| {
            let install = spec.map("install", errors);
            Self {
                chart: Chart::read(spec, &id, errors),
                suspend: spec.bool("suspend", errors),
                depends_on: Dependency::read_all(spec, &id.namespace, errors),
                release_name: non_empty(spec.text("releaseName", errors)),
                target_namespace: non_empty(spec.text("targetNamespace", errors)),
                storage_namespace: non_empty(spec.text("storageNamespace", errors)),
                values_from: ValuesReference::read_all(spec, errors),
                values: spec.node("values").cloned(),
                crds: CrdsPolicy::read(&install, errors),
                disable_hooks: install.bool("disableHooks", errors),
                disable_schema_validation: install.bool("disableSchemaValidation", errors),
                post_renderers: PostRenderer::read_all(spec, errors),
                common_metadata: CommonMetadata::read(spec, errors),
                id,
            }
        })
    }
}

// === impl Chart ===

impl Chart {
    fn read(spec: &Fields<'_>, id: &NamespacedName, errors: &mut Errors) -> Self {
        let reference = spec.map("chartRef", errors);
        if reference.is_present() {
            return Self::Reference(SourceRef::read(&reference, &id.namespace, errors));
        }
        let chart = spec.map("chart", errors);
        let chart = chart.map("spec", errors);
        Self::Spec(ChartSpec::read(&chart, &id.namespace, errors))
    }
}

impl ChartSpec {
    pub(super) fn read(fields: &Fields<'_>, namespace: &Text, errors: &mut Errors) -> Self {
        let source = fields.map("sourceRef", errors);
        Self {
            chart: fields.required("chart", errors),
            version: fields.text("version", errors).unwrap_or_default(),
            source: SourceRef::read(&source, namespace, errors),
            values_files: fields.texts("valuesFiles", errors),
            ignore_missing_values_files: fields.bool("ignoreMissingValuesFiles", errors),
        }
    }
}

impl CrdsPolicy {
    fn read(action: &Fields<'_>, errors: &mut Errors) -> Self {
        match action.text("crds", errors).as_deref() {
            Some("Skip") => Self::Skip,
            _ => Self::Apply,
        }
    }
}

impl ValuesReference {
    /// Which object it names, in the namespace of its release.
    pub(crate) fn data_id(&self, namespace: &Text) -> (DataKind, NamespacedName) {
        let name = NamespacedName {
            namespace: namespace.clone(),
            name: self.name.clone(),
        };
        (self.kind, name)
    }

    fn read_all(spec: &Fields<'_>, errors: &mut Errors) -> Vec<Self> {
        let entries = spec.maps("valuesFrom", errors);
        let mut references = Vec::with_capacity(entries.len());
        for entry in entries {
            references.push(Self {
                kind: DataKind::read(&entry, errors),
                name: entry.required("name", errors),
                key: non_empty(entry.text("valuesKey", errors))
                    .unwrap_or(Text::from_static("values.yaml")),
                target_path: non_empty(entry.text("targetPath", errors)),
                literal: entry.bool("literal", errors),
                optional: entry.bool("optional", errors),
            });
        }
        references
    }
}

impl PostRenderer {
    fn read_all(spec: &Fields<'_>, errors: &mut Errors) -> Vec<Self> {
        let mut renderers = Vec::new();
        for entry in spec.maps("postRenderers", errors) {
            let kustomize = entry.map("kustomize", errors);
            if kustomize.is_present() {
                renderers.push(Self {
                    patches: kustomize.node("patches").cloned(),
                    patches_strategic_merge: kustomize.node("patchesStrategicMerge").cloned(),
                    patches_json6902: kustomize.node("patchesJson6902").cloned(),
                    images: kustomize.node("images").cloned(),
                });
            }
        }
        renderers
    }
}

impl CommonMetadata {
    pub(super) fn read(spec: &Fields<'_>, errors: &mut Errors) -> Self {
        let fields = spec.map("commonMetadata", errors);
        Self {
            labels: fields.pairs("labels", errors),
            annotations: fields.pairs("annotations", errors),
        }
    }
}
