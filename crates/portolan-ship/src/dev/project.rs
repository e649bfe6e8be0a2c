//! What a changed file means: which artifacts are built again, which steps are deployed again, which files are copied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_image::Ignore;

use super::changed_files::FileChanges;
use crate::check::CheckResult;
use crate::deploy::{StepResult, StepStatus};
use crate::document::{Artifact, ArtifactSource, Ship, SyncRule};
use crate::outcome::BuildResult;
use crate::render::RenderedStep;
use crate::skaffold::DevStages;

/// A project, and what of it is in the cluster.
pub struct DevProject {
    /// The document.
    pub ship: Arc<Ship>,
    /// Its directory.
    directory: Utf8PathBuf,
    /// The document's file.
    file: Utf8PathBuf,
    /// The image of each artifact, by its name.
    images: BTreeMap<String, String>,
    /// Artifacts that could not be built the last time.
    failed: BTreeSet<String>,
    /// The steps that are in the cluster, with the images in them.
    deployed: BTreeMap<String, (RenderedStep, Vec<String>)>,
}

/// What changed files mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirtySet {
    /// Whether the document is read again, and everything with it.
    pub document: bool,
    /// The artifacts to build, with those that need them.
    pub artifacts: BTreeSet<String>,
    /// Files to copy, by the index of their rule, relative to the directory of the artifact.
    pub files: BTreeMap<usize, BTreeSet<String>>,
}

impl DirtySet {
    /// What of it these stages deal with.
    #[must_use]
    pub fn for_stages(mut self, stages: DevStages) -> Self {
        if !stages.build {
            self.artifacts.clear();
        }
        if !stages.sync {
            self.files.clear();
        }
        self
    }

    /// The artifacts of these to build: all of them if the document changed. What has to be built in place of a copy is built
    /// as well.
    pub fn to_build(
        &self,
        uncopied: impl IntoIterator<Item = String>,
        deployed: &BTreeSet<String>,
        stages: DevStages,
    ) -> BTreeSet<String> {
        if !stages.build {
            return BTreeSet::new();
        }
        if self.document {
            return deployed.clone();
        }
        let mut names = self.artifacts.clone();
        names.extend(uncopied);
        names.intersection(deployed).cloned().collect()
    }

    /// Whether nothing is to be built of these artifacts, and nothing copied.
    pub fn is_idle(&self, deployed: &BTreeSet<String>, stages: DevStages) -> bool {
        self.to_build([], deployed, stages).is_empty() && self.files.is_empty()
    }
}

impl DevProject {
    /// A project of which nothing is in the cluster.
    pub fn new(ship: Arc<Ship>, directory: &Utf8Path, file: &Utf8Path) -> Self {
        Self {
            ship,
            directory: directory.to_owned(),
            file: file.to_owned(),
            images: BTreeMap::new(),
            failed: BTreeSet::new(),
            deployed: BTreeMap::new(),
        }
    }

    /// Takes a new state of the document. What is in the cluster stays known.
    pub fn replace_document(&mut self, ship: Arc<Ship>) {
        let names: BTreeSet<&str> = ship.artifacts.iter().map(|it| it.name.as_str()).collect();
        self.images.retain(|name, _| names.contains(name.as_str()));
        self.failed.retain(|name| names.contains(name.as_str()));
        self.ship = ship;
    }

    /// The image of each artifact.
    pub fn images(&self) -> &BTreeMap<String, String> {
        &self.images
    }

    /// What changed files mean.
    pub fn dirty(&self, changes: &FileChanges) -> DirtySet {
        let mut dirty = DirtySet::default();
        if changes.is_partial {
            let names = self.ship.artifacts.iter().map(|it| it.name.clone());
            dirty.artifacts = names.collect();
            dirty.document = true;
            return dirty;
        }
        let rules = self.rules();
        for path in &changes.paths {
            dirty.document |= *path == self.file;
            for artifact in &self.ship.artifacts {
                if let Some(file) = self.file_of(artifact, path) {
                    match matching(&rules, &artifact.name, &file) {
                        Some(rule) => drop(dirty.files.entry(rule).or_default().insert(file)),
                        None if holds_copied(&rules, &artifact.name, &file) => {}
                        None if reads(artifact, &file) => {
                            dirty.artifacts.insert(artifact.name.clone());
                        }
                        None => {}
                    }
                }
            }
        }
        if !dirty.artifacts.is_empty() || dirty.document {
            dirty.artifacts.extend(self.failed.iter().cloned());
        }
        self.add_dependents(&mut dirty.artifacts);
        // An image that is built anew has the files already.
        let is_built = |rule: &usize| {
            let rule = self.ship.dev.sync.get(*rule);
            rule.is_some_and(|rule| dirty.artifacts.contains(&rule.artifact))
        };
        dirty.files.retain(|rule, _| !is_built(rule));
        dirty
    }

    /// Takes the results of a build.
    pub fn take_built(&mut self, result: &BuildResult) {
        for artifact in &result.artifacts {
            match artifact.image.as_ref().filter(|_| artifact.is_good()) {
                Some(image) => {
                    self.failed.remove(&artifact.name);
                    self.images.insert(artifact.name.clone(), image.clone());
                }
                None => drop(self.failed.insert(artifact.name.clone())),
            }
        }
    }

    /// Takes the results of tests. What did not pass is not deployed, and is built and tested again with the next change.
    pub fn take_tested(&mut self, tests: &[CheckResult]) {
        let bad = tests.iter().filter(|test| !test.is_good());
        self.failed
            .extend(bad.filter_map(|test| test.artifact.clone()));
    }

    /// The steps that are not in the cluster as they are now: their objects or images differ.
    pub fn stale_steps(&self, steps: &[RenderedStep]) -> Vec<RenderedStep> {
        let is_stale = |step: &&RenderedStep| {
            let known = self.deployed.get(&step.step.name);
            known.is_none_or(|(known, images)| {
                known.objects != step.objects
                    || known.step != step.step
                    || *images != self.images_of(step)
            })
        };
        steps.iter().filter(is_stale).cloned().collect()
    }

    /// The steps that are deployed now: those that differ, if every image in them was built. They need only each other:
    /// what else they need is in the cluster.
    pub fn deployable(&self, steps: &[RenderedStep]) -> Vec<RenderedStep> {
        let has_images = |step: &RenderedStep| {
            let mut names = step.artifacts.iter();
            names.all(|name| self.images.contains_key(name) && !self.failed.contains(name))
        };
        let mut stale = self.stale_steps(steps);
        stale.retain(has_images);
        let names: BTreeSet<String> = stale.iter().map(|step| step.step.name.clone()).collect();
        for step in &mut stale {
            step.step.needs.retain(|need| names.contains(need));
        }
        stale
    }

    /// Takes the results of a deployment.
    pub fn take_deployed(&mut self, steps: &[RenderedStep], results: &[StepResult]) {
        for result in results {
            let name = &result.name;
            let Some(step) = steps.iter().find(|step| step.step.name == *name) else {
                continue;
            };
            if result.status == StepStatus::Deployed {
                let known = (step.clone(), self.images_of(step));
                self.deployed.insert(name.clone(), known);
            } else {
                self.deployed.remove(name);
            }
        }
    }

    /// The directory that an artifact is built from.
    pub fn directory_of(&self, artifact: &str) -> Option<Utf8PathBuf> {
        let artifact = self.ship.artifact(artifact)?;
        Some(clean(&self.directory.join(source_directory(artifact))))
    }

    fn images_of(&self, step: &RenderedStep) -> Vec<String> {
        let names = step.artifacts.iter();
        names
            .filter_map(|name| self.images.get(name).cloned())
            .collect()
    }

    /// A path relative to the directory that an artifact is built from; `None` if it is not in there.
    fn file_of(&self, artifact: &Artifact, path: &Utf8Path) -> Option<String> {
        let directory = clean(&self.directory.join(source_directory(artifact)));
        let file = path.strip_prefix(directory).ok()?;
        Some(file.as_str().to_owned())
    }

    fn rules(&self) -> Vec<(&SyncRule, Option<Ignore>)> {
        let rules = self.ship.dev.sync.iter();
        rules
            .map(|rule| (rule, only(&[rule.from.as_str()])))
            .collect()
    }

    fn add_dependents(&self, names: &mut BTreeSet<String>) {
        loop {
            let needing = self.ship.artifacts.iter().filter(|artifact| {
                let mut needs = artifact.all_needs().into_iter();
                !names.contains(&artifact.name) && needs.any(|need| names.contains(need))
            });
            let needing: Vec<String> = needing.map(|artifact| artifact.name.clone()).collect();
            if needing.is_empty() {
                return;
            }
            names.extend(needing);
        }
    }
}

/// The directory of an artifact's files, relative to the document's.
fn source_directory(artifact: &Artifact) -> &str {
    match &artifact.source {
        ArtifactSource::Oci(oci) => &oci.context,
        ArtifactSource::Command(command) => &command.directory,
        ArtifactSource::Dockerfile(dockerfile) => &dockerfile.context,
    }
}

/// Whether a file may be an input of an artifact. The key decides: one more is only looked at in vain.
fn reads(artifact: &Artifact, file: &str) -> bool {
    let ArtifactSource::Command(command) = &artifact.source else {
        return true;
    };
    let patterns: Vec<&str> = command.inputs.iter().map(String::as_str).collect();
    patterns.is_empty() || is_in(only(&patterns).as_ref(), file)
}

/// The rule that copies a file of an artifact.
fn matching(rules: &[(&SyncRule, Option<Ignore>)], artifact: &str, file: &str) -> Option<usize> {
    rules
        .iter()
        .position(|(rule, pattern)| rule.artifact == artifact && is_in(pattern.as_ref(), file))
}

/// Whether a path is a directory of files that a rule copies: that it is new or gone is told of its files, too.
fn holds_copied(rules: &[(&SyncRule, Option<Ignore>)], artifact: &str, file: &str) -> bool {
    let directory = format!("{file}/");
    let mut rules = rules.iter().filter(|(rule, _)| rule.artifact == artifact);
    rules.any(|(rule, _)| rule.fixed_part().starts_with(&directory))
}

/// Leaves out everything but what these patterns name.
fn only(patterns: &[&str]) -> Option<Ignore> {
    let taken: Vec<String> = patterns
        .iter()
        .map(|pattern| format!("!{pattern}"))
        .collect();
    let all = std::iter::once("**").chain(taken.iter().map(String::as_str));
    Ignore::new(all).ok()
}

fn is_in(pattern: Option<&Ignore>, file: &str) -> bool {
    pattern.is_some_and(|pattern| pattern.is_left_out(file) == Ok(false))
}

/// Without `.` and `..`, which paths of events do not have.
fn clean(path: &Utf8Path) -> Utf8PathBuf {
    let mut clean = Utf8PathBuf::new();
    for part in path.components() {
        match part.as_str() {
            "." => {}
            ".." => drop(clean.pop()),
            part => clean.push(part),
        }
    }
    clean
}
