//! A kustomization file, parsed into what a build needs.

use portolan_yaml::{Node, Text};

use crate::config::{FieldSpec, read_specs};
use crate::error::{Error, Result};
use crate::load::decode::{Fields, Strictness, list};
use crate::load::deprecation::{Deprecation, deprecated};
use crate::resource::selector::Selector;
use crate::transform::{Image, NameVariable, Patch, ReplacementEntry, Replica, read_image};

/// What the file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    /// `kind: Kustomization`: builds its own resources.
    #[default]
    Kustomization,
    /// `kind: Component`: runs on the resources of the one that names it.
    Component,
}

/// The fields of a kustomization file, deprecated forms folded into their successors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kustomization {
    pub(crate) role: Role,
    pub(crate) resources: Vec<Text>,
    pub(crate) components: Vec<Text>,
    pub(crate) crds: Vec<Text>,
    pub(crate) configurations: Vec<Text>,
    pub(crate) generators: Vec<Text>,
    pub(crate) transformers: Vec<Text>,
    pub(crate) validators: Vec<Text>,
    pub(crate) namespace: Text,
    pub(crate) name_prefix: Text,
    pub(crate) name_suffix: Text,
    pub(crate) common_labels: Vec<(Text, Text)>,
    pub(crate) labels: Vec<LabelEntry>,
    pub(crate) common_annotations: Vec<(Text, Text)>,
    pub(crate) strategic_merges: Vec<Text>,
    pub(crate) json_patches: Vec<Patch>,
    pub(crate) patches: Vec<Patch>,
    pub(crate) images: Vec<Image>,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) replacements: Vec<ReplacementEntry>,
    pub(crate) variables: Vec<NameVariable>,
    pub(crate) config_maps: Vec<GeneratorArgs>,
    pub(crate) secrets: Vec<GeneratorArgs>,
    pub(crate) generator_options: Option<GeneratorOptions>,
    pub(crate) charts: Vec<ChartArgs>,
    pub(crate) chart_home: Text,
    pub(crate) sort: Option<SortOptions>,
    pub(crate) metadata: Vec<Text>,
    pub(crate) openapi: Vec<(Text, Text)>,
    /// The deprecated fields that the file uses.
    pub(crate) deprecated: Vec<Deprecation>,
}

/// An entry of `labels`.
#[derive(Debug, Clone)]
pub(crate) struct LabelEntry {
    pub(crate) pairs: Vec<(Text, Text)>,
    pub(crate) include_selectors: bool,
    pub(crate) include_templates: bool,
    pub(crate) fields: Vec<FieldSpec>,
}

/// An entry of `configMapGenerator` or `secretGenerator`.
#[derive(Debug, Clone, Default)]
pub(crate) struct GeneratorArgs {
    pub(crate) name: Text,
    pub(crate) namespace: Text,
    pub(crate) behavior: Text,
    pub(crate) literals: Vec<Text>,
    pub(crate) files: Vec<Text>,
    pub(crate) envs: Vec<Text>,
    pub(crate) options: Option<GeneratorOptions>,
    /// Secrets only.
    pub(crate) secret_type: Text,
}

/// `generatorOptions`, or the `options` of one generator.
#[derive(Debug, Clone, Default)]
pub(crate) struct GeneratorOptions {
    pub(crate) labels: Vec<(Text, Text)>,
    pub(crate) annotations: Vec<(Text, Text)>,
    pub(crate) disable_hash: bool,
    pub(crate) is_immutable: bool,
}

/// An entry of `helmCharts`.
#[derive(Debug, Clone, Default)]
pub struct ChartArgs {
    /// The chart's name.
    pub name: Text,
    /// The version to pull.
    pub version: Text,
    /// The repository to pull from, when the chart is not in the chart home.
    pub repository: Text,
    /// The release name; empty for a generated one.
    pub release: Text,
    /// The release namespace.
    pub namespace: Text,
    /// A values file in place of the chart's own.
    pub values_file: Text,
    /// More values files, over the first.
    pub additional_values_files: Vec<Text>,
    /// Values in the kustomization file.
    pub values_inline: Option<Node>,
    /// How inline values meet the values file: `merge`, `override` or `replace`.
    pub values_merge: Text,
    /// Whether CRDs are part of the output.
    pub include_crds: bool,
    /// Whether hooks are left out.
    pub skip_hooks: bool,
    /// Whether tests are left out.
    pub skip_tests: bool,
    /// API versions the cluster is said to serve.
    pub api_versions: Vec<Text>,
    /// The Kubernetes version to render for.
    pub kube_version: Text,
    /// A template for the release name.
    pub name_template: Text,
    /// Whether development versions count.
    pub devel: bool,
}

/// `sortOptions`.
#[derive(Debug, Clone)]
pub(crate) struct SortOptions {
    pub(crate) order: Text,
    /// `orderFirst` and `orderLast`.
    pub(crate) legacy: Option<(Vec<Text>, Vec<Text>)>,
}

const NAMES: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "openapi",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "commonLabels",
    "labels",
    "commonAnnotations",
    "patchesStrategicMerge",
    "patchesJson6902",
    "patches",
    "images",
    "imageTags",
    "replacements",
    "replicas",
    "vars",
    "sortOptions",
    "resources",
    "components",
    "crds",
    "bases",
    "configMapGenerator",
    "secretGenerator",
    "helmGlobals",
    "helmCharts",
    "helmChartInflationGenerator",
    "generatorOptions",
    "configurations",
    "generators",
    "transformers",
    "validators",
    "buildMetadata",
];

impl Kustomization {
    /// Reads a kustomization file's content.
    pub(crate) fn read(document: &Node, strictness: Strictness) -> Result<Self> {
        let fields = Fields::read(document, "Kustomization", NAMES, strictness)?;
        let role = read_role(&fields)?;
        let mut resources = fields.texts("resources")?;
        resources.extend(fields.texts("bases")?);
        let mut images = each(&fields, "images", read_image)?;
        images.extend(each(&fields, "imageTags", read_image)?);
        let (mut charts, home) = read_charts(&fields)?;
        charts.extend(each(
            &fields,
            "helmChartInflationGenerator",
            read_old_chart,
        )?);
        Ok(Self {
            role,
            resources,
            deprecated: deprecated(&fields),
            components: fields.texts("components")?,
            crds: fields.texts("crds")?,
            configurations: fields.texts("configurations")?,
            generators: fields.texts("generators")?,
            transformers: fields.texts("transformers")?,
            validators: fields.texts("validators")?,
            namespace: fields.text("namespace")?,
            name_prefix: fields.text("namePrefix")?,
            name_suffix: fields.text("nameSuffix")?,
            common_labels: fields.pairs("commonLabels")?,
            labels: each(&fields, "labels", read_label)?,
            common_annotations: fields.pairs("commonAnnotations")?,
            strategic_merges: fields.texts("patchesStrategicMerge")?,
            json_patches: each(&fields, "patchesJson6902", Patch::read)?,
            patches: each(&fields, "patches", Patch::read)?,
            images,
            replicas: each(&fields, "replicas", Replica::read)?,
            replacements: each(&fields, "replacements", ReplacementEntry::read)?,
            variables: each(&fields, "vars", NameVariable::read)?,
            config_maps: each(&fields, "configMapGenerator", GeneratorArgs::read)?,
            secrets: each(&fields, "secretGenerator", GeneratorArgs::read_secret)?,
            generator_options: read_options(&fields, "generatorOptions")?,
            charts,
            chart_home: home,
            sort: read_sort(&fields)?,
            metadata: fields.texts("buildMetadata")?,
            openapi: fields.pairs("openapi")?,
        })
    }
}

/// Checks `apiVersion` and `kind`, and that there is anything besides them.
fn read_role(fields: &Fields<'_>) -> Result<Role> {
    if let Some(metadata) = fields.get("metadata") {
        let names = ["name", "namespace", "labels", "annotations"];
        let metadata = Fields::read(metadata, "ObjectMeta", &names, fields.strictness())?;
        metadata.text("name")?;
        metadata.pairs("labels")?;
    }
    let (version, kind) = (fields.text("apiVersion")?, fields.text("kind")?);
    let role = match kind.as_str() {
        "" | "Kustomization" => Role::Kustomization,
        "Component" => Role::Component,
        _ => {
            return Err(Error::field(
                "kustomization file",
                "kind should be Kustomization or Component",
            ));
        }
    };
    let required = match role {
        Role::Kustomization => "kustomize.config.k8s.io/v1beta1",
        Role::Component => "kustomize.config.k8s.io/v1alpha1",
    };
    if !version.is_empty() && version.as_str() != required {
        let problem = format!("apiVersion for {kind} should be {required}");
        return Err(Error::field("kustomization file", problem));
    }
    if NAMES
        .iter()
        .skip(2)
        .all(|name| fields.get(name).is_none_or(is_zero))
    {
        return Err(Error::refused("kustomization.yaml is empty"));
    }
    Ok(role)
}

/// What Go decodes to the zero value: empty texts count as absent, empty lists and maps do not.
fn is_zero(node: &Node) -> bool {
    node.is_null() || node.as_str() == Some("")
}

fn each<T>(
    fields: &Fields<'_>,
    name: &'static str,
    read: fn(&Node, Strictness) -> Result<T>,
) -> Result<Vec<T>> {
    list(fields.get(name), name)?
        .map(|node| read(node, fields.strictness()))
        .collect()
}

fn read_label(node: &Node, strictness: Strictness) -> Result<LabelEntry> {
    let names = ["pairs", "includeSelectors", "includeTemplates", "fields"];
    let fields = Fields::read(node, "Label", &names, strictness)?;
    Ok(LabelEntry {
        pairs: fields.pairs("pairs")?,
        include_selectors: fields.flag("includeSelectors")?,
        include_templates: fields.flag("includeTemplates")?,
        fields: read_specs(&fields, "fields")?,
    })
}

fn read_options(fields: &Fields<'_>, name: &str) -> Result<Option<GeneratorOptions>> {
    let Some(node) = fields.get(name) else {
        return Ok(None);
    };
    let names = [
        "labels",
        "annotations",
        "disableNameSuffixHash",
        "immutable",
    ];
    let fields = Fields::read(node, "GeneratorOptions", &names, fields.strictness())?;
    Ok(Some(GeneratorOptions {
        labels: fields.pairs("labels")?,
        annotations: fields.pairs("annotations")?,
        disable_hash: fields.flag("disableNameSuffixHash")?,
        is_immutable: fields.flag("immutable")?,
    }))
}

fn read_sort(fields: &Fields<'_>) -> Result<Option<SortOptions>> {
    let Some(node) = fields.get("sortOptions") else {
        return Ok(None);
    };
    let names = ["order", "legacySortOptions"];
    let fields = Fields::read(node, "SortOptions", &names, fields.strictness())?;
    let legacy = match fields.get("legacySortOptions") {
        None => None,
        Some(node) => {
            let names = ["orderFirst", "orderLast"];
            let fields = Fields::read(node, "LegacySortOptions", &names, fields.strictness())?;
            Some((fields.texts("orderFirst")?, fields.texts("orderLast")?))
        }
    };
    Ok(Some(SortOptions {
        order: fields.text("order")?,
        legacy,
    }))
}

// === impl GeneratorArgs ===

/// `name` and so on; `metadata` is where a generator file has its name.
const GENERATOR: &[&str] = &[
    "name",
    "namespace",
    "behavior",
    "literals",
    "files",
    "envs",
    "env",
    "options",
    "type",
    "metadata",
];

impl GeneratorArgs {
    pub(crate) fn read(node: &Node, strictness: Strictness) -> Result<Self> {
        Self::read_fields(node, strictness, false)
    }

    pub(crate) fn read_secret(node: &Node, strictness: Strictness) -> Result<Self> {
        Self::read_fields(node, strictness, true)
    }

    fn read_fields(node: &Node, strictness: Strictness, is_secret: bool) -> Result<Self> {
        let known = match (strictness, is_secret) {
            (Strictness::Lenient, _) => GENERATOR.len(),
            (Strictness::Strict | Strictness::KnownFields, true) => GENERATOR.len() - 1,
            (Strictness::Strict | Strictness::KnownFields, false) => GENERATOR.len() - 2,
        };
        let names = GENERATOR.get(..known).unwrap_or(GENERATOR);
        let fields = Fields::read(node, "GeneratorArgs", names, strictness)?;
        let mut envs = fields.texts("envs")?;
        let env = fields.text("env")?;
        if !env.is_empty() && strictness != Strictness::Lenient {
            envs.push(env);
        }
        let mut args = Self {
            name: fields.text("name")?,
            namespace: fields.text("namespace")?,
            behavior: fields.text("behavior")?,
            literals: fields.texts("literals")?,
            files: fields.texts("files")?,
            envs,
            options: read_options(&fields, "options")?,
            secret_type: fields.text("type")?,
        };
        if let Some(metadata) = fields.get("metadata") {
            let metadata = Fields::read(
                metadata,
                "ObjectMeta",
                &["name", "namespace"],
                Strictness::Lenient,
            )?;
            if args.name.is_empty() {
                args.name = metadata.text("name")?;
            }
            if args.namespace.is_empty() {
                args.namespace = metadata.text("namespace")?;
            }
        }
        Ok(args)
    }
}

// === charts ===

fn read_charts(fields: &Fields<'_>) -> Result<(Vec<ChartArgs>, Text)> {
    let mut home = Text::default();
    if let Some(node) = fields.get("helmGlobals") {
        let globals = Fields::read(
            node,
            "HelmGlobals",
            &["chartHome", "configHome"],
            fields.strictness(),
        )?;
        home = globals.text("chartHome")?;
    }
    for node in list(
        fields.get("helmChartInflationGenerator"),
        "helmChartInflationGenerator",
    )? {
        let old = Fields::read(node, "HelmChartArgs", &["chartHome"], Strictness::Lenient)?
            .text("chartHome")?;
        if home.is_empty() {
            home = old;
        }
    }
    Ok((each(fields, "helmCharts", ChartArgs::read)?, home))
}

fn read_old_chart(node: &Node, strictness: Strictness) -> Result<ChartArgs> {
    let names = [
        "chartName",
        "chartVersion",
        "chartRepoUrl",
        "chartHome",
        "chartRepoName",
        "helmBin",
        "helmHome",
        "values",
        "valuesLocal",
        "valuesMerge",
        "releaseName",
        "releaseNamespace",
        "extraArgs",
    ];
    let fields = Fields::read(node, "HelmChartArgs", &names, strictness)?;
    Ok(ChartArgs {
        name: fields.text("chartName")?,
        version: fields.text("chartVersion")?,
        repository: fields.text("chartRepoUrl")?,
        values_file: fields.text("values")?,
        values_inline: fields.get("valuesLocal").cloned(),
        values_merge: fields.text("valuesMerge")?,
        release: fields.text("releaseName")?,
        ..ChartArgs::default()
    })
}

const CHART: &[&str] = &[
    "name",
    "version",
    "repo",
    "releaseName",
    "namespace",
    "additionalValuesFiles",
    "valuesFile",
    "valuesInline",
    "valuesMerge",
    "includeCRDs",
    "skipHooks",
    "apiVersions",
    "kubeVersion",
    "nameTemplate",
    "skipTests",
    "debug",
    "devel",
];

impl ChartArgs {
    pub(crate) fn read(node: &Node, strictness: Strictness) -> Result<Self> {
        let fields = Fields::read(node, "HelmChart", CHART, strictness)?;
        Ok(Self {
            name: fields.text("name")?,
            version: fields.text("version")?,
            repository: fields.text("repo")?,
            release: fields.text("releaseName")?,
            namespace: fields.text("namespace")?,
            values_file: fields.text("valuesFile")?,
            additional_values_files: fields.texts("additionalValuesFiles")?,
            values_inline: fields.get("valuesInline").cloned(),
            values_merge: fields.text("valuesMerge")?,
            include_crds: fields.flag("includeCRDs")?,
            skip_hooks: fields.flag("skipHooks")?,
            skip_tests: fields.flag("skipTests")?,
            api_versions: fields.texts("apiVersions")?,
            kube_version: fields.text("kubeVersion")?,
            name_template: fields.text("nameTemplate")?,
            devel: fields.flag("devel")?,
        })
    }
}

/// A selector in a field, if it is there.
pub(crate) fn read_selector(fields: &Fields<'_>, name: &str) -> Result<Option<Selector>> {
    fields
        .get(name)
        .map(|node| Selector::read(node, fields.strictness()))
        .transpose()
}
