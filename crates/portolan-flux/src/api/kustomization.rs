//! `Kustomization` of `kustomize.toolkit.fluxcd.io`: a directory of a source, and what is done to it.

use portolan_yaml::{Node, Position, Text};

use super::fields::{Errors, Fields, read_object};
use super::helm_release::CommonMetadata;
use super::{DataKind, FieldError, NamespacedName, SourceRef};

/// What decides a Kustomization's render.
#[derive(Debug, Clone, PartialEq)]
pub struct Kustomization {
    /// Its name.
    pub id: NamespacedName,
    /// The directory to build, as written.
    pub path: Text,
    /// Where the files come from.
    pub source: SourceRef,
    /// Whether Flux leaves it alone.
    pub suspend: bool,
    /// Whether what disappears from the build is deleted.
    pub prune: bool,
    /// Which Kustomizations must be ready first; they decide order, never content.
    pub depends_on: Vec<Dependency>,
    /// The namespace put on every object.
    pub target_namespace: Option<Text>,
    /// Put before every name.
    pub name_prefix: Option<Text>,
    /// Put behind every name.
    pub name_suffix: Option<Text>,
    /// Directories of kustomize components to add.
    pub components: Vec<Text>,
    /// Whether component directories that do not exist are passed over.
    pub ignore_missing_components: bool,
    /// `patches` in kustomize's form.
    pub patches: Option<Node>,
    /// `patchesStrategicMerge`, of the older API.
    pub patches_strategic_merge: Option<Node>,
    /// `patchesJson6902`, of the older API.
    pub patches_json6902: Option<Node>,
    /// `images` in kustomize's form.
    pub images: Option<Node>,
    /// `buildMetadata` in kustomize's form.
    pub build_metadata: Option<Node>,
    /// Variables to put in after the build.
    pub post_build: Option<PostBuild>,
    /// Labels and annotations for every object.
    pub common_metadata: CommonMetadata,
    /// How Secrets are decrypted.
    pub decryption: Option<Decryption>,
}

/// A Kustomization or HelmRelease that must be ready first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Which one.
    pub id: NamespacedName,
    /// The CEL expression that says when it is ready.
    pub ready_expression: Option<Text>,
    /// Where it is named.
    pub at: Position,
}

/// Variables to put in after the build.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PostBuild {
    /// Given in place; they win.
    pub substitute: Vec<(Text, Text)>,
    /// Taken from other objects, later ones win.
    pub from: Vec<SubstituteReference>,
    /// Whether to substitute when there is no variable at all.
    pub strategy: SubstituteStrategy,
}

/// When substitution happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubstituteStrategy {
    /// Only if at least one variable was found.
    #[default]
    WithVariables,
    /// In any case.
    Always,
}

/// An object whose `data` are variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubstituteReference {
    /// ConfigMap or Secret.
    pub kind: DataKind,
    /// Its name, in the Kustomization's namespace.
    pub name: Text,
    /// Whether it may be missing.
    pub optional: bool,
}

/// How Secrets are decrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decryption {
    /// `sops` is the only one there is.
    pub provider: Text,
    /// The Secret with the keys.
    pub secret: Option<Text>,
}

impl Kustomization {
    /// Reads an object of this kind; all that is wrong with it when something is.
    pub fn read(object: &Node) -> Result<Self, Vec<FieldError>> {
        read_object(object, |id, spec, errors| Self {
            path: spec.text("path", errors).unwrap_or_default(),
            source: SourceRef::read(&spec.map("sourceRef", errors), &id.namespace, errors),
            suspend: spec.bool("suspend", errors),
            prune: spec.bool("prune", errors),
            depends_on: Dependency::read_all(spec, &id.namespace, errors),
            target_namespace: non_empty(spec.text("targetNamespace", errors)),
            name_prefix: non_empty(spec.text("namePrefix", errors)),
            name_suffix: non_empty(spec.text("nameSuffix", errors)),
            components: spec.texts("components", errors),
            ignore_missing_components: spec.bool("ignoreMissingComponents", errors),
            patches: spec.node("patches").cloned(),
            patches_strategic_merge: spec.node("patchesStrategicMerge").cloned(),
            patches_json6902: spec.node("patchesJson6902").cloned(),
            images: spec.node("images").cloned(),
            build_metadata: spec.node("buildMetadata").cloned(),
            post_build: PostBuild::read(spec, errors),
            common_metadata: CommonMetadata::read(spec, errors),
            decryption: Decryption::read(spec, errors),
            id,
        })
    }
}

impl Dependency {
    pub(super) fn read_all(spec: &Fields<'_>, namespace: &Text, errors: &mut Errors) -> Vec<Self> {
        let entries = spec.maps("dependsOn", errors);
        let mut dependencies = Vec::with_capacity(entries.len());
        for entry in entries {
            dependencies.push(Self {
                id: NamespacedName {
                    namespace: non_empty(entry.text("namespace", errors))
                        .unwrap_or_else(|| namespace.clone()),
                    name: entry.required("name", errors),
                },
                ready_expression: entry.text("readyExpr", errors),
                at: entry.at(),
            });
        }
        dependencies
    }
}

impl PostBuild {
    fn read(spec: &Fields<'_>, errors: &mut Errors) -> Option<Self> {
        let fields = spec.map("postBuild", errors);
        if !fields.is_present() {
            return None;
        }
        let references = fields.maps("substituteFrom", errors);
        let mut from = Vec::with_capacity(references.len());
        for entry in references {
            from.push(SubstituteReference {
                kind: DataKind::read(&entry, errors),
                name: entry.required("name", errors),
                optional: entry.bool("optional", errors),
            });
        }
        let strategy = match fields.text("substituteStrategy", errors).as_deref() {
            Some("Always") => SubstituteStrategy::Always,
            _ => SubstituteStrategy::WithVariables,
        };
        Some(Self {
            substitute: fields.pairs("substitute", errors),
            from,
            strategy,
        })
    }
}

impl Decryption {
    fn read(spec: &Fields<'_>, errors: &mut Errors) -> Option<Self> {
        let fields = spec.map("decryption", errors);
        if !fields.is_present() {
            return None;
        }
        let secret = fields.map("secretRef", errors);
        Some(Self {
            provider: fields.required("provider", errors),
            secret: secret.text("name", errors),
        })
    }
}

/// Go reads an empty string as not given.
pub(super) fn non_empty(text: Option<Text>) -> Option<Text> {
    text.filter(|text| !text.is_empty())
}
