//! How a Kustomization may affect others, found without building it.
//!
//! ```text
//! spec.path, spec.components ──▶ Excerpts ──▶ and of where their kustomization files lead ──▶ Outline
//! ```
//!
//! Only a Kustomization whose files are the same on both sides, and which cannot lead to other Kustomizations, has an
//! outline. Its result is the same on both sides unless something that it names differs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use memchr::memmem;
use parking_lot::Mutex;
use portolan_vfs::{Vfs, resolve};
use portolan_yaml::Node;

use crate::api::Kustomization;
use crate::compare::excerpt::Excerpt;
use crate::kustomization::generate;
use crate::kustomization::variables::Variables;

/// Words in files with releases whose charts may come from elsewhere, or be made of more than one directory.
const REMOTE: [&str; 7] = [
    "HelmRepository",
    "OCIRepository",
    "Bucket",
    "HelmChart",
    "ExternalArtifact",
    "chartRef",
    "valuesFile",
];

/// The most places that the files of one Kustomization lie in.
const MAX_PLACES: usize = 64;

/// What stands in the files of a Kustomization.
#[derive(Debug)]
pub(crate) struct Outline {
    excerpts: Vec<Arc<Excerpt>>,
    /// Whether it gives HelmReleases; their charts lie in the repository itself.
    pub(crate) has_releases: bool,
}

/// What is put into a text before it counts.
pub(crate) enum Filling {
    /// It stays as it is.
    Nothing,
    /// Variables with these values.
    Variables(Variables),
    /// Variables that are not all known.
    Unknown,
}

/// Excerpts that were taken; components are part of many Kustomizations.
#[derive(Default)]
pub(crate) struct Excerpts(Mutex<HashMap<Utf8PathBuf, Option<Arc<Excerpt>>>>);

impl Outline {
    /// Of a Kustomization of these files; nothing when there is a doubt.
    pub(crate) fn of(
        spec: &Kustomization,
        files: &dyn Vfs,
        known: &Excerpts,
        is_untouched: impl Fn(&Utf8Path) -> bool,
    ) -> Option<Self> {
        if spec.name_prefix.is_some() || spec.name_suffix.is_some() {
            return None;
        }
        let directory = generate::directory(spec);
        let components = spec.components.iter();
        let mut queue: Vec<_> = components
            .map(|component| resolve(&directory, component))
            .collect();
        queue.push(directory);
        let mut excerpts = vec![Arc::new(own_text(spec)?)];
        let mut seen = BTreeSet::new();
        while let Some(path) = queue.pop() {
            if path.ancestors().any(|above| seen.contains(above)) {
                continue;
            }
            if seen.len() == MAX_PLACES || !is_untouched(&path) {
                return None;
            }
            let excerpt = known.get(files, &path)?;
            queue.extend(excerpt.leads_to().iter().cloned());
            excerpts.push(excerpt);
            seen.insert(path);
        }
        let has_releases = says(&excerpts, "HelmRelease");
        let is_remote = REMOTE.iter().any(|word| says(&excerpts, word));
        let is_sealed = says(&excerpts, "valuesFrom") && says(&excerpts, "Secret");
        (!has_releases || !(is_remote || is_sealed)).then_some(Self {
            excerpts,
            has_releases,
        })
    }

    /// Whether one of some names stands in it, once variables are put in; where they cannot be, any may.
    pub(crate) fn mentions(
        &self,
        names: &BTreeSet<String>,
        filling: impl FnOnce() -> Filling,
    ) -> bool {
        let stands_in = |text: &[u8]| names.iter().any(|name| has_word(text, name));
        let mut texts = self.excerpts.iter().map(|excerpt| excerpt.text());
        if names.is_empty() || texts.any(stands_in) {
            return !names.is_empty();
        }
        let mut composed = self.excerpts.iter().flat_map(|excerpt| excerpt.composed());
        let Some(first) = composed.next() else {
            return false;
        };
        let mut lines = std::iter::once(first).chain(composed);
        match filling() {
            Filling::Nothing => false,
            Filling::Variables(variables) => lines.any(|line| {
                let line = variables.complete_line(line);
                line.is_none_or(|line| stands_in(line.as_bytes()))
            }),
            Filling::Unknown => true,
        }
    }
}

impl Excerpts {
    fn get(&self, files: &dyn Vfs, path: &Utf8PathBuf) -> Option<Arc<Excerpt>> {
        if let Some(known) = self.0.lock().get(path) {
            return known.clone();
        }
        let taken = Excerpt::of(files, path).map(Arc::new);
        self.0.lock().insert(path.clone(), taken.clone());
        taken
    }
}

/// What the Kustomization itself brings: patches, and values of variables.
fn own_text(spec: &Kustomization) -> Option<Excerpt> {
    let patches = [
        &spec.patches,
        &spec.patches_strategic_merge,
        &spec.patches_json6902,
    ];
    let variables = spec.post_build.iter().flat_map(|build| &build.substitute);
    let variables: Vec<Node> = variables
        .map(|(_, value)| Node::string(value.clone()))
        .collect();
    Excerpt::of_nodes(patches.into_iter().flatten().chain(&variables))
}

fn says(excerpts: &[Arc<Excerpt>], word: &str) -> bool {
    let mut texts = excerpts.iter();
    texts.any(|excerpt| memmem::find(excerpt.text(), word.as_bytes()).is_some())
}

/// Whether a name stands in a text by itself, not as a part of a longer one. What has no name may be meant by any.
fn has_word(text: &[u8], name: &str) -> bool {
    if name.is_empty() {
        return true;
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let is_part = |byte: Option<&u8>| byte.is_some_and(is_letter);
    let mut found = memmem::find_iter(text, name.as_bytes());
    found.any(|at| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        !is_part(before) && !is_part(text.get(at + name.len()))
    })
}
