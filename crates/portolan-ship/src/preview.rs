//! The images that a build would make, found out without giving them names: for comparisons of two states of a project.

mod compare;

pub use compare::{ComparedArtifact, ImageDifference, compare_artifacts};

use portolan_digest::Digest;
use portolan_engine::{Context, Failure, Key, Outcome, Report, Run, Unit, with_causes};
use serde::Serialize;

use crate::builder::{BuildSetup, Needs, OciBuilder};
use crate::document::{Artifact, ArtifactSource, Ship};
use crate::observe::{ONCE, Summarised, observe};

/// The image that a build of an artifact would make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImagePreview {
    /// It would be this one.
    Known(Digest),
    /// Only a build can tell: a program makes it, or what it is built on.
    Unknown {
        /// The artifact that must be built to know it.
        until: String,
    },
    /// It cannot be made, for this reason.
    Failed(String),
}

/// Adds a look at each artifact of a document to a run: all, or those named and what they need.
///
/// # Errors
/// When a name is not that of an artifact; it is returned.
pub fn plan_preview(
    ship: &Ship,
    names: &[String],
    setup: &BuildSetup,
    run: &Run,
) -> Result<(), String> {
    for name in names {
        ship.artifact(name).ok_or_else(|| name.clone())?;
    }
    for artifact in &ship.artifacts {
        let unit = unit(artifact.clone(), setup);
        let is_asked = names.is_empty() || names.contains(&artifact.name);
        let needs = base(artifact).into_iter();
        let needs: Vec<Key> = needs.map(|name| key(name).untyped()).collect();
        let unit = if is_asked { unit } else { unit.lazy() };
        run.add(key(&artifact.name), &needs, unit);
    }
    Ok(())
}

/// What was found out about an artifact; `None` if it is not in the run.
pub fn finish_preview(name: &str, report: &Report) -> Option<ImagePreview> {
    let key = key(name);
    let unit = report.get(&key.untyped())?;
    Some(match &unit.outcome {
        Outcome::Done(_) => {
            let found = report.output(&key)?;
            match &found.0 {
                Ok(digest) => ImagePreview::Known(*digest),
                Err(until) => ImagePreview::Unknown {
                    until: until.clone(),
                },
            }
        }
        Outcome::Failed(failure) => ImagePreview::Failed(with_causes(failure.error())),
        Outcome::Skipped { because } => {
            let name = because.as_str().trim_start_matches("preview/");
            ImagePreview::Failed(format!("it is built on `{name}`, which cannot be made"))
        }
        Outcome::Cancelled => ImagePreview::Failed("it was called off".to_owned()),
    })
}

/// A digest, or the artifact that must be built to know it.
#[derive(Debug)]
struct Found(Result<Digest, String>);

fn key(name: &str) -> Key<Found> {
    Key::from(format!("preview/{name}").as_str())
}

/// The artifact that an image of files is built on.
fn base(artifact: &Artifact) -> Option<&str> {
    use crate::document::BaseImage;
    match &artifact.source {
        ArtifactSource::Oci(source) => match &source.base {
            BaseImage::Artifact(name) => Some(name),
            _ => None,
        },
        ArtifactSource::Command(_) | ArtifactSource::Dockerfile(_) => None,
    }
}

fn unit(artifact: Artifact, setup: &BuildSetup) -> Unit<Found> {
    let (setup, run) = (setup.clone(), setup.run.clone());
    let name = format!("preview-{}", artifact.name);
    let work = move |context: &Context, task: &crate::task::Task| -> Result<Found, Failure> {
        let ArtifactSource::Oci(source) = artifact.source.clone() else {
            return Ok(Found(Err(artifact.name.clone())));
        };
        let mut needs = Needs::new();
        if let Some(base) = base(&artifact) {
            match &context.need(&key(base))?.0 {
                Ok(digest) => drop(needs.insert(base.to_owned(), *digest)),
                Err(until) => return Ok(Found(Err(until.clone()))),
            }
        }
        let builder = OciBuilder {
            name: artifact.name.clone(),
            image: artifact.image.clone(),
            source,
            setup: setup.clone(),
            needs,
        };
        Ok(Found(Ok(builder.preview(task)?.digest)))
    };
    observe(&name, &run, ONCE, work)
}

impl Summarised for Found {
    fn summary(&self) -> impl Serialize {
        let digest = self.0.as_ref().ok().map(ToString::to_string);
        serde_json::json!({ "digest": digest })
    }
}
