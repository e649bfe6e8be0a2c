//! Built-in generators and transformers that are written as resources: the entries of `generators`, `transformers` and
//! `validators`.

use portolan_budget::Budget;
use portolan_yaml::{Node, Text};

use crate::config::{FieldSpec, read_specs};
use crate::directory::Directory;
use crate::error::{During, Error, Result};
use crate::generate::{Generated, generate};
use crate::load::decode::{Fields, Strictness, list};
use crate::load::kustomization::{ChartArgs, GeneratorArgs, read_selector};
use crate::resource::hash::add_hashes;
use crate::resource::selector::Selector;
use crate::resource::set::ResourceSet;
use crate::resource::{Origin, Resource};
use crate::schema::Schema;
use crate::transform::{
    Image, LoadedPatch, NamespaceArgs, Patch, Replacement, ReplacementEntry, Replica, SubjectMode,
    ValueAdd, add_prefix, add_suffix, add_value, apply_json_patch, apply_patch,
    apply_strategic_merges, read_image, replace, set_annotations, set_images, set_labels,
    set_namespace, set_replicas,
};
use crate::value::jsonpatch::JsonPatch;

/// A plugin with its configuration read.
#[derive(Debug)]
pub(crate) struct Plugin {
    kind: &'static str,
    action: Action,
}

#[derive(Debug)]
enum Action {
    ConfigMap(GeneratorArgs),
    Secret(GeneratorArgs),
    Chart(Box<ChartArgs>, Text),
    ServiceAccount(Node),
    Annotations(Vec<(Text, Text)>, Vec<FieldSpec>),
    Labels(Vec<(Text, Text)>, Vec<FieldSpec>),
    Hash,
    Image(Image, Vec<FieldSpec>),
    Namespace(NamespaceArgs),
    JsonPatch(Selector, JsonPatch),
    StrategicMerges(Vec<Resource>),
    Patch(LoadedPatch, Option<Selector>),
    Prefix(Text, Vec<FieldSpec>),
    Suffix(Text, Vec<FieldSpec>),
    PrefixSuffix(Text, Text, Vec<FieldSpec>),
    Replacements(Vec<Replacement>),
    Replica(Replica, Vec<FieldSpec>),
    ValueAdd(ValueAdd),
}

impl Plugin {
    /// Reads the configuration; only built-in kinds are known.
    pub(crate) fn read(resource: &Resource, directory: &Directory<'_, '_>) -> Result<Self> {
        let gvk = resource.gvk();
        if !gvk.group.is_empty() || gvk.version.as_str() != "builtin" {
            return Err(Error::ExternalPlugin(Box::new(resource.id())));
        }
        let (kind, read) = READERS
            .iter()
            .find(|(kind, _)| *kind == gvk.kind.as_str())
            .ok_or_else(|| Error::refused(format!("unable to load builtin {gvk}")))?;
        let action = read(&resource.node, directory)
            .during(|| format!("plugin {} fails configuration", resource.id()))?;
        Ok(Self { kind, action })
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Makes the plugin's resources.
    pub(crate) fn generate(&self, directory: &Directory<'_, '_>) -> Result<Vec<Resource>> {
        let made = |kind, args| {
            let origin = directory.step(self.kind);
            generate(
                kind,
                args,
                &directory.loader,
                origin,
                directory.build.budget,
            )
        };
        match &self.action {
            Action::ConfigMap(args) => Ok(vec![made(Generated::ConfigMap, args)?]),
            Action::Secret(args) => Ok(vec![made(Generated::Secret, args)?]),
            Action::Chart(args, home) => directory.render_chart(args, home),
            Action::ServiceAccount(node) => Ok(vec![Resource::new(
                node.clone(),
                directory.step(self.kind),
            )?]),
            _ => Err(Error::refused(format!(
                "plugin {} not a generator",
                self.kind
            ))),
        }
    }

    /// Changes the resources.
    pub(crate) fn transform(
        &self,
        set: &mut ResourceSet,
        schema: &Schema,
        budget: &Budget,
    ) -> Result<()> {
        match &self.action {
            Action::Annotations(pairs, specs) => set_annotations(set, pairs, specs, budget),
            Action::Labels(pairs, specs) => set_labels(set, pairs, specs, budget),
            Action::Hash => add_hashes(set, schema),
            Action::Image(image, specs) => set_images(set, image, specs, budget),
            Action::Namespace(args) => set_namespace(set, args, schema),
            Action::JsonPatch(target, patch) => {
                apply_json_patch(set, patch, target, schema, budget).map(drop)
            }
            Action::StrategicMerges(patches) => {
                apply_strategic_merges(set, patches, schema, budget).map(drop)
            }
            Action::Patch(patch, target) => {
                apply_patch(set, patch, target.as_ref(), schema, budget).map(drop)
            }
            Action::Prefix(prefix, specs) => add_prefix(set, prefix, specs, schema, budget),
            Action::Suffix(suffix, specs) => add_suffix(set, suffix, specs, schema, budget),
            Action::PrefixSuffix(prefix, suffix, specs) => {
                add_prefix(set, prefix, specs, schema, budget)?;
                add_suffix(set, suffix, specs, schema, budget)
            }
            Action::Replacements(replacements) => replace(set, replacements, schema, budget),
            Action::Replica(replica, specs) => set_replicas(set, replica, specs, schema).map(drop),
            Action::ValueAdd(args) => add_value(set, args, schema, budget),
            Action::ConfigMap(_)
            | Action::Secret(_)
            | Action::Chart(..)
            | Action::ServiceAccount(_) => Err(Error::refused(format!(
                "plugin {} not a transformer",
                self.kind
            ))),
        }
    }
}

type Read = fn(&Node, &Directory<'_, '_>) -> Result<Action>;

const READERS: &[(&str, Read)] = &[
    ("ConfigMapGenerator", |node, _| {
        Ok(Action::ConfigMap(GeneratorArgs::read(
            node,
            Strictness::Lenient,
        )?))
    }),
    ("SecretGenerator", |node, _| {
        Ok(Action::Secret(GeneratorArgs::read_secret(
            node,
            Strictness::Lenient,
        )?))
    }),
    ("HelmChartInflationGenerator", |node, _| {
        let globals = fields(node, &["chartHome"])?;
        let chart = ChartArgs::read(node, Strictness::Lenient)?;
        Ok(Action::Chart(Box::new(chart), globals.text("chartHome")?))
    }),
    ("IAMPolicyGenerator", read_service_account),
    ("AnnotationsTransformer", |node, _| {
        let fields = fields(node, &["annotations", "fieldSpecs"])?;
        Ok(Action::Annotations(
            fields.pairs("annotations")?,
            read_specs(&fields, "fieldSpecs")?,
        ))
    }),
    ("LabelTransformer", |node, _| {
        let fields = fields(node, &["labels", "fieldSpecs"])?;
        Ok(Action::Labels(
            fields.pairs("labels")?,
            read_specs(&fields, "fieldSpecs")?,
        ))
    }),
    ("HashTransformer", |_, _| Ok(Action::Hash)),
    ("ImageTagTransformer", |node, _| {
        let fields = fields(node, &["imageTag", "fieldSpecs"])?;
        let image = fields
            .get("imageTag")
            .map(|node| read_image(node, Strictness::Lenient));
        Ok(Action::Image(
            image.transpose()?.unwrap_or_default(),
            read_specs(&fields, "fieldSpecs")?,
        ))
    }),
    ("NamespaceTransformer", read_namespace),
    ("PatchJson6902Transformer", read_json_patch),
    ("PatchStrategicMergeTransformer", |node, directory| {
        let fields = fields(node, &["paths", "patches"])?;
        let paths = fields.texts("paths")?;
        let patches = fields.text("patches")?;
        Ok(Action::StrategicMerges(
            directory.load_strategic_merges(&paths, &patches)?,
        ))
    }),
    ("PatchTransformer", |node, directory| {
        let patch = Patch::read(node, Strictness::Lenient)?;
        Ok(Action::Patch(directory.load_patch(&patch)?, patch.target))
    }),
    ("PrefixTransformer", |node, _| {
        let fields = fields(node, &["prefix", "fieldSpecs"])?;
        Ok(Action::Prefix(
            fields.text("prefix")?,
            needed_specs(&fields)?,
        ))
    }),
    ("SuffixTransformer", |node, _| {
        let fields = fields(node, &["suffix", "fieldSpecs"])?;
        Ok(Action::Suffix(
            fields.text("suffix")?,
            needed_specs(&fields)?,
        ))
    }),
    ("PrefixSuffixTransformer", |node, _| {
        let fields = fields(node, &["prefix", "suffix", "fieldSpecs"])?;
        Ok(Action::PrefixSuffix(
            fields.text("prefix")?,
            fields.text("suffix")?,
            needed_specs(&fields)?,
        ))
    }),
    ("ReplacementTransformer", |node, directory| {
        let fields = fields(node, &["replacements"])?;
        let entries = list(fields.get("replacements"), "replacements")?
            .map(|node| ReplacementEntry::read(node, Strictness::Lenient))
            .collect::<Result<Vec<_>>>()?;
        Ok(Action::Replacements(directory.load_replacements(&entries)?))
    }),
    ("ReplicaCountTransformer", |node, _| {
        let fields = fields(node, &["replica", "fieldSpecs"])?;
        let replica = fields
            .get("replica")
            .map(|node| Replica::read(node, Strictness::Lenient))
            .transpose()?;
        let replica = replica.unwrap_or_else(|| Replica {
            name: Text::default(),
            count: 0,
        });
        Ok(Action::Replica(replica, read_specs(&fields, "fieldSpecs")?))
    }),
    ("ValueAddTransformer", |node, directory| {
        let mut args = ValueAdd::read(node)?;
        if args.value.is_empty() {
            args.value = directory
                .loader
                .root()
                .file_name()
                .unwrap_or_default()
                .into();
        }
        if !args.target_file.is_empty() {
            let content = directory.loader.load(&args.target_file)?;
            let document = crate::load::read::parse_config(
                &content,
                &args.target_file,
                directory.build.budget,
            )?;
            args.targets.extend(ValueAdd::read_file(&document)?);
        }
        args.check()?;
        Ok(Action::ValueAdd(args))
    }),
];

fn fields<'n>(node: &'n Node, names: &[&'static str]) -> Result<Fields<'n>> {
    Fields::read(node, "plugin", names, Strictness::Lenient)
}

fn needed_specs(fields: &Fields<'_>) -> Result<Vec<FieldSpec>> {
    if !fields.has("fieldSpecs") {
        return Err(Error::refused("fieldSpecs is not expected to be nil"));
    }
    read_specs(fields, "fieldSpecs")
}

fn read_namespace(node: &Node, _: &Directory<'_, '_>) -> Result<Action> {
    let own = fields(
        node,
        &[
            "metadata",
            "fieldSpecs",
            "unsetOnly",
            "setRoleBindingSubjects",
        ],
    )?;
    let namespace = match own.get("metadata") {
        Some(metadata) => fields(metadata, &["namespace"])?.text("namespace")?,
        None => Text::default(),
    };
    Ok(Action::Namespace(NamespaceArgs {
        namespace,
        specs: read_specs(&own, "fieldSpecs")?,
        unset_only: own.flag("unsetOnly")?,
        subjects: SubjectMode::parse(&own.text("setRoleBindingSubjects")?)?,
    }))
}

fn read_json_patch(node: &Node, directory: &Directory<'_, '_>) -> Result<Action> {
    let fields = fields(node, &["target", "path", "jsonOp"])?;
    let patch = Patch {
        path: fields.text("path")?,
        text: fields.text("jsonOp")?,
        target: read_selector(&fields, "target")?,
        ..Patch::default()
    };
    let (target, loaded) = directory.load_json_patch(&patch)?;
    Ok(Action::JsonPatch(target.clone(), loaded))
}

/// A Kubernetes service account tied to one of Google's.
fn read_service_account(node: &Node, directory: &Directory<'_, '_>) -> Result<Action> {
    let own = fields(node, &["cloud", "kubernetesService", "serviceAccount"])?;
    let cloud = own.text("cloud")?;
    if cloud.as_str() != "gke" {
        return Err(Error::refused(format!(
            "cloud provider {cloud} not supported yet"
        )));
    }
    let read = |name, inner: &[&'static str]| match own.get(name) {
        Some(node) => fields(node, inner),
        None => Err(Error::refused(format!("`{name}` is missing"))),
    };
    let service = read("kubernetesService", &["name", "namespace"])?;
    let account = read("serviceAccount", &["name", "projectId"])?;
    let namespace = service.text("namespace")?;
    let mut manifest = format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  annotations:\n    iam.gke.io/gcp-service-account: {}@{}.iam.gserviceaccount.com\n  name: {}\n",
        account.text("name")?,
        account.text("projectId")?,
        service.text("name")?,
    );
    if !namespace.is_empty() {
        manifest.extend(["  namespace: ", namespace.as_str(), "\n"]);
    }
    let origin = Origin {
        file: "IAMPolicyGenerator".into(),
        ..Origin::default()
    };
    let made =
        crate::load::read::read_resources(manifest.as_bytes(), &origin, directory.build.budget)?;
    match made.into_iter().next() {
        Some(resource) => Ok(Action::ServiceAccount(resource.node)),
        None => Err(Error::refused("nothing was generated")),
    }
}
