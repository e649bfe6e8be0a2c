//! What a comparison did not render, because it could not or did not have to.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use portolan_helm::values::Tree;
use portolan_object::Digest;
use portolan_vfs::Vfs;
use portolan_yaml::Text;

use crate::api::{HelmRelease, Kustomization, NamespacedName, SourceRef};
use crate::compare::inputs::{
    ChartInput, FilesInput, InputDifference, Inputs, SideFacts, VariableData, input_differences,
};
use crate::kustomization::generate;
use crate::release::chart::{self, ChartError, Location};
use crate::release::release_unit;
use crate::render::Renderer;
use crate::session::fingerprint::Fingerprint;
use crate::source::artifact::Artifact;
use crate::walk::{Walked, data_ids};

/// How deep directories are read.
const MAX_DEPTH: usize = 32;

/// What was not rendered on a side of a comparison.
#[derive(Debug, Default)]
pub struct NotRendered {
    /// Releases that could not be rendered on a side, with the inputs that differ. None differ where both sides give
    /// the same, whatever that is.
    pub releases: BTreeMap<NamespacedName, Vec<InputDifference>>,
    /// Kustomizations that could not be built on a side, with the inputs that differ.
    pub kustomizations: BTreeMap<NamespacedName, Vec<InputDifference>>,
    /// Releases with equal inputs whose chart would have to be fetched; that was not done.
    pub unfetched: BTreeSet<NamespacedName>,
}

impl NotRendered {
    pub(crate) fn between<'r>(before: &Renderer<'r>, after: &Renderer<'r>) -> Self {
        let is_whole = fail_alike(before, after);
        let failed = before.failed_releases(after);
        let failed = failed.chain(after.failed_releases(before));
        let releases: BTreeSet<&NamespacedName> = failed.collect();
        let releases = releases.into_iter().map(|id| {
            let inputs =
                |side: &Renderer<'_>| side.release_inputs(id, is_whole).unwrap_or_default();
            let differences = input_differences(&inputs(before), &inputs(after));
            (id.clone(), differences)
        });
        let failed = failed_on_a_side(before, after).into_iter();
        let failed = failed.chain(before.refused_otherwise(after));
        let kustomizations = failed.map(|id| {
            let differences = kustomization_differences(before, after, id, is_whole);
            (id.clone(), differences)
        });
        let left_out = after.left_out.iter();
        let unfetched = left_out.filter(|(_, scan)| scan.is_unfetched);
        Self {
            releases: releases.collect(),
            kustomizations: kustomizations.collect(),
            unfetched: unfetched.map(|(id, _)| id.clone()).collect(),
        }
    }
}

/// Whether nothing failed, or the same on both sides: then data that neither side emits is the same on both.
pub(crate) fn fail_alike(before: &Renderer<'_>, after: &Renderer<'_>) -> bool {
    let failed = failed_on_a_side(before, after);
    let is_same = |id| kustomization_differences(before, after, id, true).is_empty();
    failed.into_iter().all(is_same)
}

fn failed_on_a_side<'a>(
    before: &'a Renderer<'_>,
    after: &'a Renderer<'_>,
) -> BTreeSet<&'a NamespacedName> {
    let failed = before.failed_kustomizations();
    failed.chain(after.failed_kustomizations()).collect()
}

fn kustomization_differences(
    before: &Renderer<'_>,
    after: &Renderer<'_>,
    id: &NamespacedName,
    is_whole: bool,
) -> Vec<InputDifference> {
    let inputs = |side: &Renderer<'_>| side.kustomization_inputs(id, is_whole).unwrap_or_default();
    input_differences(&inputs(before), &inputs(after))
}

impl Renderer<'_> {
    /// The releases that are asked for and gave nothing, though the other side does not make them of the same.
    fn failed_releases<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a NamespacedName> {
        let asked = self.releases.iter();
        let asked = asked.filter(|(id, _)| self.demand.releases.includes(id));
        let failed = asked.filter(|(id, release)| {
            let theirs = other.releases.get(*id).and_then(|theirs| theirs.digest);
            let is_skipped = release.digest.is_some() && release.digest == theirs;
            release.objects.is_none() && !is_skipped
        });
        failed.map(|(id, _)| id)
    }

    /// The Kustomizations that were asked for and gave nothing.
    fn failed_kustomizations(&self) -> impl Iterator<Item = &NamespacedName> {
        let walked = self.walker.walk.kustomizations.iter();
        walked
            .filter(|(_, walked)| walked.is_failed())
            .map(|(id, _)| id)
    }

    /// The Kustomizations that Flux takes on one side only, though both can be built.
    fn refused_otherwise<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = &'a NamespacedName> {
        let walked = self.walker.walk.kustomizations.iter();
        let is_otherwise = |(id, walked): &(&NamespacedName, &Walked)| {
            let theirs = other.walker.walk.kustomizations.get(*id);
            theirs.is_some_and(|theirs| theirs.is_refused() != walked.is_refused())
        };
        walked.filter(is_otherwise).map(|(id, _)| id)
    }

    fn facts(&self, is_whole: bool) -> SideFacts<'_> {
        SideFacts {
            capabilities: &self.cluster.capabilities,
            profile: self.cluster.profile,
            is_whole,
        }
    }

    /// The values of a release, as far as they are known.
    pub(crate) fn values_of(&self, id: &NamespacedName) -> Option<Tree> {
        let release = HelmRelease::read(self.definition(id)?.node()).ok()?;
        Some(release_unit::composed(&release, &self.walker.walk.index).values)
    }

    /// Everything that a release is rendered from; `None` if there is no such release.
    ///
    /// `is_whole` says whether data that is not emitted is known not to be, as [`fail_alike`] does.
    pub(crate) fn release_inputs(&self, id: &NamespacedName, is_whole: bool) -> Option<Inputs> {
        let definition = self.definition(id)?;
        let Ok(release) = HelmRelease::read(definition.node()) else {
            return Some(Inputs::of_definition(definition.node()));
        };
        let index = &self.walker.walk.index;
        let composed = release_unit::composed(&release, index);
        let located = chart::locate(&release, index);
        let source = match &located {
            Ok(Location::Tree { source, .. }) => self.cluster.elsewhere(source, index),
            _ => None,
        };
        let chart = located.as_ref().map(|location| ChartInput {
            location,
            source: source.as_ref(),
            files: self.chart_files(location),
        });
        let mut inputs = Inputs::of_release(&release, &composed, chart, &self.facts(is_whole));
        let rendered = self.releases.get(id);
        if let Some(answers) = rendered.and_then(|rendered| rendered.answers.as_ref()) {
            inputs.add_looked_up(answers);
        }
        Some(inputs)
    }

    fn chart_files(&self, location: &Location) -> FilesInput {
        let Location::Tree { source, .. } = location else {
            return FilesInput::Elsewhere;
        };
        self.files_input(source, |artifact| {
            chart::identity(artifact, location).unwrap_or_else(|| content_of(artifact, location))
        })
    }

    /// The files of a source, named by a function where they are at hand.
    fn files_input(&self, source: &SourceRef, name: impl Fn(&Artifact) -> Digest) -> FilesInput {
        let index = &self.walker.walk.index;
        match self.cluster.tree_here(source, index) {
            Some(artifact) => FilesInput::Known(name(artifact)),
            // What is composed of other files is known when it was composed.
            None if source.kind == "ExternalArtifact" => FilesInput::Unknown,
            None => FilesInput::Elsewhere,
        }
    }

    /// Everything that a Kustomization is built from; `None` if there is no such Kustomization.
    fn kustomization_inputs(&self, id: &NamespacedName, is_whole: bool) -> Option<Inputs> {
        let walked = self.walker.walk.kustomizations.get(id)?;
        let index = &self.walker.walk.index;
        let spec = match (&walked.spec, &walked.definition) {
            (Ok(spec), _) => spec,
            (Err(_), Some(definition)) => return Some(Inputs::of_definition(definition.node())),
            (Err(_), None) => return None,
        };
        let source = self.cluster.elsewhere(&spec.source, index);
        let files = self.files_input(&spec.source, |artifact| directory_digest(artifact, spec));
        let known: Vec<_> = data_ids(spec).map(|id| (index.data(&id), id)).collect();
        let data: Vec<VariableData<'_>> = known
            .iter()
            .map(|(data, (kind, name))| (*kind, Text::from(name.to_string()), data.as_deref()))
            .collect();
        let facts = self.facts(is_whole);
        let inputs = Inputs::of_kustomization(spec, source.as_ref(), &files, &data, &facts);
        Some(inputs)
    }
}

impl Walked {
    /// Whether it was asked for and gave nothing.
    pub fn is_failed(&self) -> bool {
        let is_asked = self.unit.is_some() || self.spec.is_err() || self.unavailable.is_some();
        is_asked && self.built.is_none()
    }

    /// Whether it was built, and Flux refuses it for a variable that nothing sets.
    pub fn is_refused(&self) -> bool {
        let mut built = self.built.iter();
        self.missing.is_empty() && built.any(|built| !built.unset.is_empty())
    }
}

/// The digest of a chart's files, where no stamp names them.
fn content_of(artifact: &Artifact, location: &Location) -> Digest {
    let Location::Tree { path, values, .. } = location else {
        return Fingerprint::of("no tree").finish();
    };
    let mut digest = Fingerprint::of("chart content");
    let read = || {
        let files = chart::read_from_tree(artifact, path)?;
        Ok::<_, ChartError>((files, values.read(artifact)?))
    };
    match read() {
        Ok((files, values)) => {
            digest.digest(&chart::digest(&files));
            for text in values.iter().flatten() {
                digest.bytes(text);
            }
        }
        Err(error) => digest.text(&error.to_string()),
    }
    digest.finish()
}

/// A digest of the directory that a Kustomization builds. What its files lead to elsewhere is not part of it.
fn directory_digest(artifact: &Artifact, spec: &Kustomization) -> Digest {
    let directory = generate::directory(spec);
    let mut digest = Fingerprint::of("directory");
    match artifact.identity(&directory) {
        Some(identity) => identity.fingerprint(&mut digest),
        None => add_content(artifact.tree(), &directory, MAX_DEPTH, &mut digest),
    }
    digest.finish()
}

/// Adds the names and texts of all files below a directory.
fn add_content(files: &dyn Vfs, directory: &Utf8Path, depth: usize, digest: &mut Fingerprint) {
    for entry in files.list(directory).unwrap_or_default() {
        let path = directory.join(&entry.name);
        digest.text(path.as_str());
        if entry.is_directory && depth > 0 && !entry.is_symlink {
            add_content(files, &path, depth - 1, digest);
        } else if !entry.is_directory {
            digest.bytes(&files.read(&path).unwrap_or_default());
        }
    }
}
