//! The build of one directory: load, accumulate, generate, run components, transform, validate.
//!
//! ```text
//! resources ─▶ configurations, crds ─▶ generators ─▶ components ─▶ transformers ─▶ validators ─▶ vars
//!     │ each a file, or a directory that goes through the same steps first
//! ```

use std::sync::Arc;

use portolan_yaml::{Dialect, Node, Text};

use crate::chart::render_chart;
use crate::config::{Config, FieldSpec, Section, merge_specs, read_config, read_crds};
use crate::error::{During, Error, Result};
use crate::fetch::RepoSpec;
use crate::generate::{Generated, generate, merge_options};
use crate::kustomization::{GeneratorArgs, Kustomization, LabelEntry, Role};
use crate::loader::Loader;
use crate::options::Options;
use crate::plugin::Plugin;
use crate::provenance::Provenance;
use crate::read::{parse_config, read_resources};
use crate::resource::{Origin, Resource};
use crate::schema::{BUILTIN_VERSION, Schema};
use crate::set::ResourceSet;
use crate::transform::{
    LoadedPatch, NamespaceArgs, Patch, Replacement, ReplacementEntry, SubjectMode, VariableSet,
    add_prefix, add_suffix, apply_json_patch, apply_patch, apply_strategic_merges, read_json_patch,
    replace, set_annotations, set_images, set_labels, set_namespace, set_replicas,
};

const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// What one build shares between its directories.
pub(crate) struct Build<'a> {
    pub(crate) options: &'a Options<'a>,
    pub(crate) schema: Schema,
}

/// What was accumulated so far.
#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    pub(crate) set: ResourceSet,
    pub(crate) config: Config,
    pub(crate) variables: VariableSet,
}

/// One directory with its kustomization.
pub(crate) struct Directory<'b, 'a> {
    pub(crate) build: &'b Build<'a>,
    pub(crate) loader: Loader<'a>,
    pub(crate) kustomization: Kustomization,
    file_name: &'static str,
    /// The place for `buildMetadata` annotations, if the build wants any.
    provenance: Option<Provenance>,
    /// The namespace that charts inherit from the kustomizations above.
    chart_namespace: Text,
}

// === loading ===

impl<'b, 'a> Directory<'b, 'a> {
    /// The directory that is built.
    pub(crate) fn root(build: &'b Build<'a>, loader: Loader<'a>) -> Result<Self> {
        let directory = match build.options.kustomization {
            Some(document) => Self {
                kustomization: read_kustomization(document, &loader)?,
                file_name: FILE_NAMES[0],
                build,
                loader,
                provenance: None,
                chart_namespace: Text::default(),
            },
            None => Self::load(build, loader)?,
        };
        let wants_metadata = !directory.kustomization.metadata.is_empty();
        Ok(Self {
            provenance: wants_metadata.then(Provenance::default),
            ..directory
        })
    }

    fn load(build: &'b Build<'a>, loader: Loader<'a>) -> Result<Self> {
        let mut found = FILE_NAMES
            .into_iter()
            .filter_map(|name| loader.load(name).ok().map(|content| (name, content)));
        let Some((file_name, content)) = found.next() else {
            return Err(Error::MissingKustomization(loader.root().to_owned()));
        };
        if found.next().is_some() {
            return Err(Error::ManyKustomizations(loader.root().to_owned()));
        }
        let document = parse_config(&content, loader.path_of(file_name).as_str())?;
        let kustomization = read_kustomization(&document, &loader)?;
        Ok(Self {
            build,
            loader,
            kustomization,
            file_name,
            provenance: None,
            chart_namespace: Text::default(),
        })
    }

    fn schema(&self) -> &'b Schema {
        &self.build.schema
    }

    /// Takes over `openapi`, unless a schema was set before.
    pub(crate) fn set_schema(&self) -> Result<()> {
        let get = |name: &str| {
            let pair = self
                .kustomization
                .openapi
                .iter()
                .find(|(key, _)| key.as_str() == name);
            pair.map(|(_, value)| value)
        };
        let schema = self.schema();
        let path = get("path")
            .map(|path| self.loader.load(path).map(|content| (path, content)))
            .transpose()?;
        if schema.is_decided() {
            return Ok(());
        }
        match (path, get("version")) {
            (Some(_), Some(_)) => Err(Error::refused(
                "builtin version and custom schema provided, cannot use both",
            )),
            (Some((path, content)), None) => {
                let document =
                    portolan_yaml::parse_one_bytes(&content, Dialect::Helm).map_err(|source| {
                        Error::Yaml {
                            file: path.to_string(),
                            source,
                        }
                    })?;
                schema.decide_custom(&document);
                Ok(())
            }
            (None, Some(version)) if version.as_str() == BUILTIN_VERSION => {
                schema.decide_builtin();
                Ok(())
            }
            (None, Some(version)) if !version.is_empty() => Err(Error::refused(
                "the specified OpenAPI version is not built in",
            )),
            (None, _) => Ok(()),
        }
    }
}

fn read_kustomization(document: &Node, loader: &Loader<'_>) -> Result<Kustomization> {
    Kustomization::read(document).during(|| {
        format!(
            "failed to read kustomization file under `{}`",
            loader.root()
        )
    })
}

// === accumulating ===

impl<'a> Directory<'_, 'a> {
    /// Builds the directory on top of what was accumulated: nothing, or a parent's resources for a component.
    pub(crate) fn accumulate(&self, mut accumulator: Accumulator) -> Result<Accumulator> {
        let kustomization = &self.kustomization;
        self.add_resources(&mut accumulator, &kustomization.resources)
            .during(|| "accumulating resources".to_owned())?;
        self.merge_configs(&mut accumulator.config)?;
        self.run_generators(&mut accumulator)?;
        let mut accumulator = self.run_components(accumulator)?;
        self.run_transformers(&mut accumulator)?;
        self.run_validators(&mut accumulator)?;
        let Accumulator { set, variables, .. } = &mut accumulator;
        variables.add(&kustomization.variables, set, self.schema())?;
        Ok(accumulator)
    }

    /// The built-in field specs, those of the configuration files, and those that definitions of CRDs imply.
    fn merge_configs(&self, config: &mut Config) -> Result<()> {
        let mut files = Config::Empty;
        for path in &self.kustomization.configurations {
            files.merge(read_config(&parse_config(&self.loader.load(path)?, path)?)?)?;
        }
        let mut own = Config::Builtin;
        own.merge(files)?;
        config.merge(own)?;
        for path in &self.kustomization.crds {
            let definitions = read_crds(&parse_config(&self.loader.load(path)?, path)?)?;
            config
                .merge(definitions)
                .during(|| format!("loading CRDs `{path}`"))?;
        }
        Ok(())
    }

    fn add_resources(&self, accumulator: &mut Accumulator, paths: &[Text]) -> Result<()> {
        for path in paths {
            let as_file = match self.read_file(path) {
                Ok(resources) => {
                    let added = resources
                        .into_iter()
                        .try_for_each(|resource| accumulator.set.append(resource, self.schema()));
                    match added.during(|| format!("merging resources from `{path}`")) {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            self.add_directory(accumulator, path, as_file)?;
        }
        Ok(())
    }

    fn read_file(&self, path: &str) -> Result<Vec<Resource>> {
        if RepoSpec::parse(path).is_some_and(|spec| spec.is_surely_git()) {
            return Err(Error::refused("URL is a git repository"));
        }
        let content = self.loader.load(path)?;
        let origin = Origin {
            file: self.loader.path_of(path),
            ..Origin::default()
        };
        let mut resources = read_resources(&content, &origin)?;
        if let Some(provenance) = &self.provenance {
            let place = provenance.join(path);
            resources
                .iter_mut()
                .try_for_each(|resource| place.set_origin(resource))?;
        }
        Ok(resources)
    }

    fn add_directory(
        &self,
        accumulator: &mut Accumulator,
        path: &str,
        as_file: Error,
    ) -> Result<()> {
        let loader = match self.loader.open(path) {
            Ok(loader) => loader,
            // A broken file is what it is; that it is no directory either says nothing.
            Err(_) if matches!(as_file, Error::Yaml { .. }) => return Err(as_file),
            Err(source) => return Err(neither(path, as_file, source)),
        };
        let built = self
            .open_directory(loader, path, Role::Kustomization)
            .and_then(|directory| {
                let root = directory.loader.root().to_owned();
                let built = directory.accumulate(Accumulator::default());
                let built = built.during(|| format!("recursed accumulation of path `{root}`"))?;
                accumulator
                    .absorb(built, self.schema())
                    .during(|| format!("recursed merging from path `{root}`"))
            });
        built.map_err(|source| neither(path, as_file, source))
    }

    fn open_directory(&self, loader: Loader<'a>, path: &str, role: Role) -> Result<Self> {
        let root = loader.root().to_owned();
        let mut directory = Directory::load(self.build, loader)
            .during(|| format!("couldn't make target for path `{root}`"))?;
        directory.provenance = self
            .provenance
            .as_ref()
            .map(|provenance| provenance.join(path));
        directory.chart_namespace = self.inherited_namespace();
        directory.set_schema()?;
        match (role, directory.kustomization.role) {
            (Role::Component, Role::Kustomization) => Err(Error::refused(format!(
                "expected kind 'Component' for path `{root}` but got 'Kustomization'"
            ))),
            (Role::Kustomization, Role::Component) => Err(Error::refused(format!(
                "expected kind != 'Component' for path `{root}`"
            ))),
            _ => Ok(directory),
        }
    }

    /// Components run one after the other, each on everything so far.
    fn run_components(&self, accumulator: Accumulator) -> Result<Accumulator> {
        let mut accumulator = accumulator;
        for path in &self.kustomization.components {
            let run = |accumulator: Accumulator| {
                let loader = self.loader.open(path)?;
                let directory = self.open_directory(loader, path, Role::Component)?;
                directory.accumulate(accumulator)
            };
            accumulator = run(accumulator).during(|| format!("accumulating component `{path}`"))?;
        }
        Ok(accumulator)
    }
}

fn neither(path: &str, as_file: Error, source: Error) -> Error {
    Error::NeitherFileNorDirectory {
        path: path.to_owned(),
        as_file: Box::new(as_file),
        source: Box::new(source),
    }
}

impl Accumulator {
    fn absorb(&mut self, other: Self, schema: &Schema) -> Result<()> {
        self.set.append_all(other.set, schema)?;
        self.config.merge(other.config)?;
        self.variables.merge(other.variables)
    }
}

// === generators ===

impl Directory<'_, '_> {
    fn run_generators(&self, accumulator: &mut Accumulator) -> Result<()> {
        let kustomization = &self.kustomization;
        let made = [
            (
                Generated::ConfigMap,
                "ConfigMapGenerator",
                &kustomization.config_maps,
            ),
            (Generated::Secret, "SecretGenerator", &kustomization.secrets),
        ];
        for (kind, name, generators) in made {
            for args in generators {
                let resource = self.generate(kind, name, args)?;
                let provenance = self.builtin(name);
                self.add_generated(accumulator, vec![resource], provenance.as_ref())?;
            }
        }
        for chart in &kustomization.charts {
            let resources = self.render_chart(chart, &kustomization.chart_home)?;
            let provenance = self.builtin("HelmChartInflationGenerator");
            self.add_generated(accumulator, resources, provenance.as_ref())?;
        }
        for (plugin, provenance) in self.plugins(&kustomization.generators)? {
            let resources = plugin.generate(self)?;
            self.add_generated(accumulator, resources, provenance.as_ref())?;
        }
        Ok(())
    }

    fn generate(
        &self,
        kind: Generated,
        step: &'static str,
        args: &GeneratorArgs,
    ) -> Result<Resource> {
        let options = self.kustomization.generator_options.as_ref();
        let args = GeneratorArgs {
            options: merge_options(args.options.as_ref(), options),
            ..args.clone()
        };
        generate(kind, &args, &self.loader, self.step(step))
    }

    pub(crate) fn render_chart(
        &self,
        chart: &crate::kustomization::ChartArgs,
        home: &Text,
    ) -> Result<Vec<Resource>> {
        let mut chart = chart.clone();
        if chart.namespace.is_empty() {
            chart.namespace = self.inherited_namespace();
        }
        let origin = self.step("HelmChartInflationGenerator");
        render_chart(
            &chart,
            home,
            &self.loader,
            self.build.options.charts,
            &origin,
        )
    }

    /// The namespace that charts here get when they name none.
    fn inherited_namespace(&self) -> Text {
        if self.kustomization.namespace.is_empty() {
            return self.chart_namespace.clone();
        }
        self.kustomization.namespace.clone()
    }

    fn add_generated(
        &self,
        accumulator: &mut Accumulator,
        resources: Vec<Resource>,
        provenance: Option<&Provenance>,
    ) -> Result<()> {
        let mut generated = ResourceSet::default();
        for mut resource in resources {
            if let Some(provenance) = provenance {
                provenance.note_origin(&mut resource)?;
            }
            generated.append(resource, self.schema())?;
        }
        accumulator.set.absorb_all(generated, self.schema())
    }

    fn builtin(&self, kind: &str) -> Option<Provenance> {
        self.provenance
            .as_ref()
            .map(|provenance| provenance.builtin(self.file_name, kind))
    }

    /// The origin of what a step of this kustomization makes or changes.
    pub(crate) fn step(&self, step: &'static str) -> Arc<Origin> {
        Arc::new(Origin {
            file: self.loader.root().join(self.file_name),
            step: Text::from_static(step),
            ..Origin::default()
        })
    }

    /// The plugins of `generators`, `transformers` or `validators`, each with its provenance.
    fn plugins(&self, entries: &[Text]) -> Result<Vec<(Plugin, Option<Provenance>)>> {
        let mut accumulator = Accumulator::default();
        let mut paths = Vec::new();
        for entry in entries {
            let origin = Origin {
                file: self.loader.root().join(self.file_name),
                ..Origin::default()
            };
            match read_resources(entry.as_bytes(), &origin) {
                Err(_) => paths.push(entry.clone()),
                Ok(resources) => {
                    for mut resource in resources {
                        if let Some(provenance) = &self.provenance {
                            provenance.join(self.file_name).set_origin(&mut resource)?;
                        }
                        accumulator.set.append(resource, self.schema())?;
                    }
                }
            }
        }
        self.add_resources(&mut accumulator, &paths)?;
        let mut plugins = Vec::new();
        for resource in &accumulator.set {
            let provenance = self.plugin_provenance(resource);
            plugins.push((Plugin::read(resource, self)?, provenance));
        }
        Ok(plugins)
    }

    fn plugin_provenance(&self, resource: &Resource) -> Option<Provenance> {
        let provenance = self.provenance.as_ref()?;
        let file = resource.origin.file.strip_prefix(self.loader.root()).ok()?;
        Some(provenance.join(file.as_str()).plugin(resource))
    }
}

// === transformers ===

/// A step over all resources: its name and what it does.
type Step<'s> = Box<dyn FnMut(&mut ResourceSet) -> Result<()> + 's>;

impl Directory<'_, '_> {
    fn run_transformers(&self, accumulator: &mut Accumulator) -> Result<()> {
        let config = accumulator.config.clone();
        for (name, mut step) in self.builtin_steps(&config)? {
            step(&mut accumulator.set)?;
            self.finish_step(&mut accumulator.set, name, self.builtin(name).as_ref())?;
        }
        for (plugin, provenance) in self.plugins(&self.kustomization.transformers)? {
            plugin.transform(&mut accumulator.set, self.schema())?;
            self.finish_step(&mut accumulator.set, plugin.kind(), provenance.as_ref())?;
        }
        Ok(())
    }

    fn finish_step(
        &self,
        set: &mut ResourceSet,
        name: &'static str,
        provenance: Option<&Provenance>,
    ) -> Result<()> {
        set.drop_empty();
        let step = self.step(name);
        for position in 0..set.len() {
            let Some(resource) = set.get_mut(position) else {
                continue;
            };
            resource.transformations.push(Arc::clone(&step));
            if let Some(provenance) = provenance {
                provenance.note_transformation(resource)?;
            }
        }
        Ok(())
    }

    /// The steps that the fields of the kustomization ask for, in kustomize's order.
    fn builtin_steps<'s>(&'s self, config: &'s Config) -> Result<Vec<(&'static str, Step<'s>)>> {
        let (kustomization, schema) = (&self.kustomization, self.schema());
        let mut steps: Vec<(&'static str, Step<'s>)> = Vec::new();
        if !kustomization.strategic_merges.is_empty() {
            let patches = self.load_strategic_merges(&kustomization.strategic_merges, "")?;
            steps.push((
                "PatchStrategicMergeTransformer",
                Box::new(move |set| apply_strategic_merges(set, &patches, schema)),
            ));
        }
        for patch in &kustomization.patches {
            let loaded = self.load_patch(patch)?;
            let target = patch.target.as_ref();
            steps.push((
                "PatchTransformer",
                Box::new(move |set| apply_patch(set, &loaded, target, schema)),
            ));
        }
        if !kustomization.namespace.is_empty() {
            let args = NamespaceArgs {
                namespace: kustomization.namespace.clone(),
                specs: config.specs(Section::Namespace),
                unset_only: false,
                subjects: SubjectMode::DefaultOnly,
            };
            steps.push((
                "NamespaceTransformer",
                Box::new(move |set| set_namespace(set, &args, schema)),
            ));
        }
        if !kustomization.name_prefix.is_empty() {
            let specs = config.specs(Section::NamePrefix);
            let prefix = &kustomization.name_prefix;
            steps.push((
                "PrefixTransformer",
                Box::new(move |set| add_prefix(set, prefix, &specs, schema)),
            ));
        }
        if !kustomization.name_suffix.is_empty() {
            let specs = config.specs(Section::NameSuffix);
            let suffix = &kustomization.name_suffix;
            steps.push((
                "SuffixTransformer",
                Box::new(move |set| add_suffix(set, suffix, &specs, schema)),
            ));
        }
        self.label_steps(config, &mut steps)?;
        if !kustomization.common_annotations.is_empty() {
            let specs = config.specs(Section::CommonAnnotations);
            let pairs = &kustomization.common_annotations;
            steps.push((
                "AnnotationsTransformer",
                Box::new(move |set| set_annotations(set, pairs, &specs)),
            ));
        }
        self.late_steps(config, &mut steps)?;
        Ok(steps)
    }

    fn label_steps<'s>(
        &'s self,
        config: &Config,
        steps: &mut Vec<(&'static str, Step<'s>)>,
    ) -> Result<()> {
        let kustomization = &self.kustomization;
        if kustomization.labels.is_empty() && kustomization.common_labels.is_empty() {
            return Ok(());
        }
        for entry in &kustomization.labels {
            let specs = label_specs(entry, config)?;
            steps.push((
                "LabelTransformer",
                Box::new(move |set| set_labels(set, &entry.pairs, &specs)),
            ));
        }
        let specs = config.specs(Section::CommonLabels);
        let pairs = &kustomization.common_labels;
        steps.push((
            "LabelTransformer",
            Box::new(move |set| set_labels(set, pairs, &specs)),
        ));
        Ok(())
    }

    /// What runs after names and labels are set.
    fn late_steps<'s>(
        &'s self,
        config: &Config,
        steps: &mut Vec<(&'static str, Step<'s>)>,
    ) -> Result<()> {
        let (kustomization, schema) = (&self.kustomization, self.schema());
        for patch in &kustomization.json_patches {
            let (target, loaded) = self.load_json_patch(patch)?;
            steps.push((
                "PatchJson6902Transformer",
                Box::new(move |set| apply_json_patch(set, &loaded, target, schema)),
            ));
        }
        for replica in &kustomization.replicas {
            let specs = config.specs(Section::Replicas);
            steps.push((
                "ReplicaCountTransformer",
                Box::new(move |set| set_replicas(set, replica, &specs, schema)),
            ));
        }
        for image in &kustomization.images {
            let specs = config.specs(Section::Images);
            steps.push((
                "ImageTagTransformer",
                Box::new(move |set| set_images(set, image, &specs)),
            ));
        }
        if !kustomization.replacements.is_empty() {
            let replacements = self.load_replacements(&kustomization.replacements)?;
            steps.push((
                "ReplacementTransformer",
                Box::new(move |set| replace(set, &replacements)),
            ));
        }
        Ok(())
    }

    fn run_validators(&self, accumulator: &mut Accumulator) -> Result<()> {
        for (plugin, _) in self.plugins(&self.kustomization.validators)? {
            let before = accumulator.set.clone();
            plugin.transform(&mut accumulator.set, self.schema())?;
            let is_same = before.len() == accumulator.set.len()
                && before.iter().zip(&accumulator.set).all(|(old, new)| {
                    old.history.previous == new.history.previous
                        && is_same_validated(&old.node, &new.node)
                });
            if !is_same {
                return Err(Error::refused(
                    "validator shouldn't modify the resource map",
                ));
            }
        }
        Ok(())
    }
}

/// Equal but for the label that validators leave.
fn is_same_validated(old: &Node, new: &Node) -> bool {
    const LABEL: &str = "validated-by";
    if old == new {
        return true;
    }
    let mut stripped = new.clone();
    let labels = stripped
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("labels"));
    if let Some(labels) = labels.and_then(Node::as_map_mut) {
        labels.remove(LABEL);
    }
    *old == stripped
}

fn label_specs(entry: &LabelEntry, config: &Config) -> Result<Vec<FieldSpec>> {
    let mut specs = entry.fields.clone();
    merge_specs(&mut specs, config.specs(Section::Labels))?;
    if entry.include_selectors {
        merge_specs(&mut specs, config.specs(Section::CommonLabels))?;
        return Ok(specs);
    }
    if entry.include_templates {
        merge_specs(&mut specs, config.specs(Section::TemplateLabels))?;
    }
    let own = FieldSpec {
        gvk: crate::id::Gvk::default(),
        path: Text::from_static("metadata/labels"),
        create: true,
    };
    merge_specs(&mut specs, vec![own])?;
    Ok(specs)
}

// === files of transformers ===

impl Directory<'_, '_> {
    pub(crate) fn load_patch(&self, patch: &Patch) -> Result<LoadedPatch> {
        let inline = patch.text.trim();
        let (content, file) = match (inline, patch.path.as_str()) {
            ("", "") => return Err(Error::refused("must specify one of patch and path")),
            ("", path) => {
                let content = self.loader.load(path);
                let content =
                    content.during(|| format!("failed to get the patch file from path({path})"))?;
                (content, self.loader.path_of(path))
            }
            (inline, "") => (
                inline.as_bytes().to_vec(),
                self.loader.root().join(self.file_name),
            ),
            _ => {
                return Err(Error::refused(
                    "patch and path can't be set at the same time",
                ));
            }
        };
        LoadedPatch::read(
            &content,
            patch,
            &Origin {
                file,
                ..Origin::default()
            },
        )
    }

    pub(crate) fn load_json_patch<'p>(
        &self,
        patch: &'p Patch,
    ) -> Result<(&'p crate::selector::Selector, crate::jsonpatch::JsonPatch)> {
        let target = patch
            .target
            .as_ref()
            .filter(|target| !target.id.name.is_empty());
        let Some(target) = target else {
            return Err(Error::refused("must specify the target name"));
        };
        let content = match (patch.text.as_str(), patch.path.as_str()) {
            ("", "") => return Err(Error::refused("empty file path and empty jsonOp")),
            ("", path) => self.loader.load(path)?,
            (text, "") => text.as_bytes().to_vec(),
            _ => {
                return Err(Error::refused(
                    "must specify a file path or jsonOp, not both",
                ));
            }
        };
        let origin = Origin {
            file: self.loader.path_of(&patch.path),
            ..Origin::default()
        };
        match read_json_patch(&content, &origin)?.filter(|patch| !patch.is_empty()) {
            Some(loaded) => Ok((target, loaded)),
            None => Err(Error::refused("patch appears to be empty")),
        }
    }

    /// Entries are patches themselves, or files of patches; `inline` holds more.
    pub(crate) fn load_strategic_merges(
        &self,
        entries: &[Text],
        inline: &str,
    ) -> Result<Vec<Resource>> {
        let mut patches = Vec::new();
        for entry in entries {
            let origin = Origin {
                file: self.loader.root().join(self.file_name),
                ..Origin::default()
            };
            if let Ok(inline) = read_resources(entry.as_bytes(), &origin) {
                patches.extend(inline);
            } else {
                let origin = Origin {
                    file: self.loader.path_of(entry),
                    ..Origin::default()
                };
                patches.extend(read_resources(&self.loader.load(entry)?, &origin)?);
            }
        }
        if !inline.is_empty() {
            let origin = Origin {
                file: self.loader.root().join(self.file_name),
                ..Origin::default()
            };
            patches.extend(read_resources(inline.as_bytes(), &origin)?);
        }
        if patches.is_empty() {
            return Err(Error::refused("patch appears to be empty"));
        }
        Ok(patches)
    }

    pub(crate) fn load_replacements(
        &self,
        entries: &[ReplacementEntry],
    ) -> Result<Vec<Replacement>> {
        let mut all = Vec::new();
        for entry in entries {
            if let Some(inline) = &entry.inline {
                all.push(inline.clone());
            } else {
                let document = parse_config(&self.loader.load(&entry.path)?, &entry.path)?;
                all.extend(Replacement::read_file(&document)?);
            }
        }
        Ok(all)
    }
}
