//! The images of two states of a project, artifact by artifact.

use std::collections::BTreeMap;

use super::ImagePreview;
use crate::document::Ship;

/// An artifact on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedArtifact {
    /// Its name.
    pub name: String,
    /// The repository of its images.
    pub image: String,
    /// What would have been made; `None` if there was no such artifact.
    pub old: Option<ImagePreview>,
    /// What would be made; `None` if there is no such artifact any more.
    pub new: Option<ImagePreview>,
}

/// What is to be said of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageDifference {
    /// The same image.
    Unchanged,
    /// Another image.
    Changed,
    /// There was no such artifact.
    Added,
    /// There is no such artifact any more.
    Removed,
    /// Only a build can tell.
    Unknown,
    /// It cannot be made on one of the sides.
    Failed,
}

impl ComparedArtifact {
    /// How the sides differ; what is unknown is never unchanged.
    pub fn difference(&self) -> ImageDifference {
        use ImagePreview::{Failed, Known, Unknown};
        match (&self.old, &self.new) {
            (Some(Failed(_)), _) | (_, Some(Failed(_))) => ImageDifference::Failed,
            (None, _) => ImageDifference::Added,
            (_, None) => ImageDifference::Removed,
            (Some(Unknown { .. }), _) | (_, Some(Unknown { .. })) => ImageDifference::Unknown,
            (Some(Known(old)), Some(Known(new))) if old == new => ImageDifference::Unchanged,
            (Some(Known(_)), Some(Known(_))) => ImageDifference::Changed,
        }
    }
}

/// Returns both sides in the order of the new document; what is gone comes last.
pub fn compare_artifacts(
    old: Option<&Ship>,
    new: &Ship,
    mut before: BTreeMap<String, ImagePreview>,
    mut after: BTreeMap<String, ImagePreview>,
) -> Vec<ComparedArtifact> {
    let mut compared = Vec::new();
    let sides = std::iter::once(new).chain(old);
    for artifact in sides.flat_map(|ship| &ship.artifacts) {
        let (old, new) = (before.remove(&artifact.name), after.remove(&artifact.name));
        if old.is_some() || new.is_some() {
            compared.push(ComparedArtifact {
                name: artifact.name.clone(),
                image: artifact.image.clone(),
                old,
                new,
            });
        }
    }
    compared
}
