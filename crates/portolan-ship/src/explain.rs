//! What an artifact is made of, and whether and why it would be built: found out without building it.

use portolan_digest::Digest;
use portolan_engine::{Context, Failure, Key, Outcome, Report, Run, Unit, with_causes};
use serde::Serialize;

use crate::builder::{
    BuildSetup, CommandBuilder, DockerfileBuilder, Needs, OciBuilder, Prospect, ShipError,
};
use crate::document::{Artifact, ArtifactSource, Ship};
use crate::observe::{ONCE, Summarised, observe};
use crate::outcome::reference;

/// How many changes are named.
const TOLD: usize = 1000;

/// What a build of an artifact would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactExplanation {
    /// Its name.
    pub name: String,
    /// The image that is there; none if it would be built.
    pub digest: Option<String>,
    /// Why it would be built.
    pub because: Vec<String>,
    /// How many files it is made of.
    pub files: usize,
    /// How many settings, variables, versions and images it is made of.
    pub settings: usize,
    /// The name of all that together.
    pub key: String,
}

/// What a build would do with an artifact, for a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactPlan {
    /// Its name.
    pub name: String,
    /// `cached` if the image is there, `build` if it would be built, `failed` if that cannot be found out.
    pub status: &'static str,
    /// The image that is there.
    pub image: Option<String>,
    /// Why it would be built.
    pub because: Vec<String>,
    /// Why it cannot be found out.
    pub error: Option<String>,
}

/// Adds the looks at artifacts and at what they need to a run.
///
/// # Errors
/// When a name is not that of an artifact; it is returned.
pub fn plan_explain(
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
        let needs = artifact.all_needs().into_iter();
        let needs: Vec<Key> = needs.map(|need| key(need).untyped()).collect();
        let unit = if names.contains(&artifact.name) {
            unit
        } else {
            unit.lazy()
        };
        run.add(key(&artifact.name), &needs, unit);
    }
    Ok(())
}

/// What was found out about an artifact, or why it could not be.
pub fn finish_explain(name: &str, report: &Report) -> Result<ArtifactExplanation, String> {
    if let Some(found) = report.output(&key(name)) {
        return Ok(ArtifactExplanation::clone(&found));
    }
    let root = report.roots().into_iter().next();
    Err(root.map_or("it was called off".to_owned(), |root| {
        with_causes(root.failure.error())
    }))
}

/// What a build would do with each artifact that was looked at, in the document's order.
pub fn finish_plans(ship: &Ship, report: &Report) -> Vec<ArtifactPlan> {
    let plans = ship.artifacts.iter().filter_map(|artifact| {
        let unit = report.get(&key(&artifact.name).untyped())?;
        let mut plan = ArtifactPlan {
            name: artifact.name.clone(),
            status: "failed",
            image: None,
            because: Vec::new(),
            error: None,
        };
        match (&unit.outcome, report.output(&key(&artifact.name))) {
            (_, Some(found)) => {
                let digest = found.digest.as_deref().and_then(|it| it.parse().ok());
                plan.image = digest.map(|digest| reference(&artifact.image, &digest));
                plan.status = if plan.image.is_some() {
                    "cached"
                } else {
                    "build"
                };
                plan.because.clone_from(&found.because);
            }
            (Outcome::Failed(failure), None) => plan.error = Some(with_causes(failure.error())),
            (Outcome::Skipped { because }, None) => {
                let name = because.as_str().trim_start_matches("explain/");
                plan.error = Some(format!("it needs `{name}`, which cannot be read"));
            }
            _ => plan.error = Some("it was called off".to_owned()),
        }
        Some(plan)
    });
    plans.collect()
}

fn key(name: &str) -> Key<ArtifactExplanation> {
    Key::from(format!("explain/{name}").as_str())
}

fn unit(artifact: Artifact, setup: &BuildSetup) -> Unit<ArtifactExplanation> {
    let (setup, run) = (setup.clone(), setup.run.clone());
    let name = format!("explain-{}", artifact.name);
    observe(
        &name,
        &run,
        ONCE,
        move |context, task| -> Result<ArtifactExplanation, Failure> {
            let (needs, stale) = needs(&artifact, context)?;
            let Artifact {
                name,
                image,
                source,
                ..
            } = artifact.clone();
            let setup = setup.clone();
            let look: Result<Prospect, ShipError> = match source {
                ArtifactSource::Oci(source) => OciBuilder {
                    name: name.clone(),
                    image,
                    source,
                    setup,
                    needs,
                }
                .look(task),
                ArtifactSource::Command(source) => CommandBuilder {
                    name: name.clone(),
                    image,
                    source,
                    setup,
                    needs,
                }
                .look(task),
                ArtifactSource::Dockerfile(source) => DockerfileBuilder {
                    name: name.clone(),
                    image,
                    source,
                    setup,
                    needs,
                }
                .look(task),
            };
            Ok(explanation(name, &look?, stale))
        },
    )
}

/// The images of what it needs, and which of those would be built first.
fn needs(artifact: &Artifact, context: &Context) -> Result<(Needs, Vec<String>), Failure> {
    let (mut needs, mut stale) = (Needs::new(), Vec::new());
    for name in artifact.all_needs() {
        let found = context.need(&key(name))?;
        match found
            .digest
            .as_deref()
            .and_then(|digest| digest.parse().ok())
        {
            Some(digest) => {
                needs.insert(name.to_owned(), digest);
            }
            // An image that nothing is: what is made of it is not there either.
            None => {
                needs.insert(name.to_owned(), Digest::of(name.as_bytes()));
                stale.push(format!("{name} would be built first"));
            }
        }
    }
    Ok((needs, stale))
}

fn explanation(name: String, look: &Prospect, stale: Vec<String>) -> ArtifactExplanation {
    let (files, settings) = look.inputs.counts();
    let is_there = look.image.is_some() && stale.is_empty();
    let because = if is_there {
        Vec::new()
    } else if stale.is_empty() {
        look.inputs.first_changes_since(look.last.as_deref(), TOLD)
    } else {
        stale
    };
    ArtifactExplanation {
        name,
        digest: look
            .image
            .filter(|_| is_there)
            .map(|digest| digest.to_string()),
        because,
        files,
        settings,
        key: look.key.hex(),
    }
}

impl Summarised for ArtifactExplanation {
    fn summary(&self) -> impl Serialize {
        serde_json::json!({ "digest": self.digest })
    }
}
