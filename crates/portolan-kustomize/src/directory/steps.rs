//! The transformers of a kustomization in kustomize's order, then its validators.

use std::sync::Arc;

use portolan_budget::Budget;
use portolan_yaml::{Node, Position, Text};

use super::{Accumulator, Directory};
use crate::config::{Config, FieldSpec, Section, merge_specs};
use crate::error::{During, Error, Located, Result};
use crate::load::kustomization::LabelEntry;
use crate::resource::TRANSFORMATIONS;
use crate::resource::provenance::Provenance;
use crate::resource::set::ResourceSet;
use crate::transform::{
    NamespaceArgs, SubjectMode, add_prefix, add_suffix, apply_json_patch, apply_patch,
    apply_strategic_merges, replace, set_annotations, set_images, set_labels, set_namespace,
    set_replicas,
};
use crate::value::cost::RESOURCE_STEPS;

/// A transformer of the kustomization: its name and what it does.
struct Step<'s> {
    name: &'static str,
    run: Run<'s>,
}

enum Run<'s> {
    /// Changes all resources.
    All(Transform<'s, ()>),
    /// Changes some, and tells which. There can be thousands of these: none may look at every resource.
    Some(Transform<'s, Vec<usize>>),
}

type Transform<'s, T> = Box<dyn Fn(&mut ResourceSet) -> Result<T> + 's>;

impl<'s> Step<'s> {
    fn all(name: &'static str, run: impl Fn(&mut ResourceSet) -> Result<()> + 's) -> Self {
        let run = Run::All(Box::new(run));
        Self { name, run }
    }

    fn some(name: &'static str, run: impl Fn(&mut ResourceSet) -> Result<Vec<usize>> + 's) -> Self {
        let run = Run::Some(Box::new(run));
        Self { name, run }
    }
}

impl Directory<'_, '_> {
    pub(super) fn run_transformers(&self, accumulator: &mut Accumulator) -> Result<()> {
        let config = accumulator.config.clone();
        let set = &mut accumulator.set;
        for step in self.builtin_steps(&config)? {
            self.run_step(&step, set).during_exceeded(|| {
                let file = self.loader.root().join(self.file_name);
                format!("running {} of `{file}`", step.name)
            })?;
        }
        set.drop_empty();
        for (plugin, provenance) in self.plugins(&self.kustomization.transformers)? {
            plugin.transform(set, self.schema(), self.budget())?;
            set.drop_empty();
            self.note_step(set, plugin.kind(), 0..set.len())?;
            note_provenance(set, provenance.as_ref(), self.budget())?;
        }
        Ok(())
    }

    fn run_step(&self, step: &Step<'_>, set: &mut ResourceSet) -> Result<()> {
        match &step.run {
            Run::All(run) => {
                set.drop_empty();
                self.budget().step(set.len() as u64 * RESOURCE_STEPS)?;
                run(set)?;
                self.note_step(set, step.name, 0..set.len())?;
            }
            // What a patch empties stays until the last of them: dropping moves all that follow.
            Run::Some(run) => {
                let changed = run(set)?;
                self.note_step(set, step.name, changed)?;
            }
        }
        note_provenance(set, self.builtin(step.name).as_ref(), self.budget())
    }

    fn note_step(
        &self,
        set: &mut ResourceSet,
        name: &'static str,
        positions: impl IntoIterator<Item = usize>,
    ) -> Result<()> {
        let step = self.step(name);
        for position in positions {
            self.budget().allocate(size_of_val(&step))?;
            if let Some(resource) = set.get_mut(position) {
                resource.transformations.push(Arc::clone(&step));
            }
        }
        Ok(())
    }

    /// An error about something that stands in the kustomization file.
    fn located(&self, at: Position, error: Error) -> Error {
        Error::Located(Box::new(Located {
            file: self.loader.root().join(self.file_name),
            at,
            error,
        }))
    }

    /// The steps that the fields of the kustomization ask for, in kustomize's order.
    fn builtin_steps<'s>(&'s self, config: &'s Config) -> Result<Vec<Step<'s>>> {
        let (kustomization, schema) = (&self.kustomization, self.schema());
        let mut steps: Vec<Step<'s>> = Vec::new();
        if !kustomization.strategic_merges.is_empty() {
            let patches = self.load_strategic_merges(&kustomization.strategic_merges, "")?;
            steps.push(Step::some("PatchStrategicMergeTransformer", move |set| {
                apply_strategic_merges(set, &patches, schema, self.budget())
            }));
        }
        for patch in &kustomization.patches {
            let locate = |error: Error| self.located(patch.at, error);
            let loaded = self.load_patch(patch).map_err(locate)?;
            let target = patch.target.as_ref();
            steps.push(Step::some("PatchTransformer", move |set| {
                apply_patch(set, &loaded, target, schema, self.budget()).map_err(locate)
            }));
        }
        if !kustomization.namespace.is_empty() {
            let args = NamespaceArgs {
                namespace: kustomization.namespace.clone(),
                specs: config.specs(Section::Namespace),
                unset_only: false,
                subjects: SubjectMode::DefaultOnly,
            };
            steps.push(Step::all("NamespaceTransformer", move |set| {
                set_namespace(set, &args, schema)
            }));
        }
        if !kustomization.name_prefix.is_empty() {
            let specs = config.specs(Section::NamePrefix);
            let prefix = &kustomization.name_prefix;
            steps.push(Step::all("PrefixTransformer", move |set| {
                add_prefix(set, prefix, &specs, schema, self.budget())
            }));
        }
        if !kustomization.name_suffix.is_empty() {
            let specs = config.specs(Section::NameSuffix);
            let suffix = &kustomization.name_suffix;
            steps.push(Step::all("SuffixTransformer", move |set| {
                add_suffix(set, suffix, &specs, schema, self.budget())
            }));
        }
        self.label_steps(config, &mut steps)?;
        if !kustomization.common_annotations.is_empty() {
            let specs = config.specs(Section::CommonAnnotations);
            let pairs = &kustomization.common_annotations;
            steps.push(Step::all("AnnotationsTransformer", move |set| {
                set_annotations(set, pairs, &specs, self.budget())
            }));
        }
        self.late_steps(config, &mut steps)?;
        Ok(steps)
    }

    fn label_steps<'s>(&'s self, config: &Config, steps: &mut Vec<Step<'s>>) -> Result<()> {
        let kustomization = &self.kustomization;
        if kustomization.labels.is_empty() && kustomization.common_labels.is_empty() {
            return Ok(());
        }
        for entry in &kustomization.labels {
            let specs = label_specs(entry, config)?;
            steps.push(Step::all("LabelTransformer", move |set| {
                set_labels(set, &entry.pairs, &specs, self.budget())
            }));
        }
        let specs = config.specs(Section::CommonLabels);
        let pairs = &kustomization.common_labels;
        steps.push(Step::all("LabelTransformer", move |set| {
            set_labels(set, pairs, &specs, self.budget())
        }));
        Ok(())
    }

    /// What runs after names and labels are set.
    fn late_steps<'s>(&'s self, config: &Config, steps: &mut Vec<Step<'s>>) -> Result<()> {
        let (kustomization, schema) = (&self.kustomization, self.schema());
        for patch in &kustomization.json_patches {
            let (target, loaded) = self.load_json_patch(patch)?;
            steps.push(Step::some("PatchJson6902Transformer", move |set| {
                apply_json_patch(set, &loaded, target, schema, self.budget())
            }));
        }
        for replica in &kustomization.replicas {
            let specs = config.specs(Section::Replicas);
            steps.push(Step::some("ReplicaCountTransformer", move |set| {
                set_replicas(set, replica, &specs, schema)
            }));
        }
        for image in &kustomization.images {
            let specs = config.specs(Section::Images);
            steps.push(Step::all("ImageTagTransformer", move |set| {
                set_images(set, image, &specs, self.budget())
            }));
        }
        if !kustomization.replacements.is_empty() {
            let replacements = self.load_replacements(&kustomization.replacements)?;
            steps.push(Step::all("ReplacementTransformer", move |set| {
                replace(set, &replacements, schema, self.budget())
            }));
        }
        Ok(())
    }

    pub(super) fn run_validators(&self, accumulator: &mut Accumulator) -> Result<()> {
        for (plugin, _) in self.plugins(&self.kustomization.validators)? {
            let before = accumulator.set.clone();
            plugin.transform(&mut accumulator.set, self.schema(), self.budget())?;
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

/// Writes the step into the annotations of what is left, if the build wants that.
fn note_provenance(
    set: &mut ResourceSet,
    provenance: Option<&Provenance>,
    budget: &Budget,
) -> Result<()> {
    let Some(provenance) = provenance else {
        return Ok(());
    };
    for position in 0..set.len() {
        if let Some(resource) = set.get_mut(position).filter(|one| !one.is_empty()) {
            let known = resource.annotation(TRANSFORMATIONS);
            // The annotation is written anew with every step.
            budget.allocate(known.map_or(0, |text| text.len()))?;
            provenance.note_transformation(resource)?;
        }
    }
    Ok(())
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
        gvk: crate::resource::id::Gvk::default(),
        path: Text::from_static("metadata/labels"),
        create: true,
    };
    merge_specs(&mut specs, vec![own])?;
    Ok(specs)
}
