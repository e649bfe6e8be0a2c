//! The build of a document's artifacts: a unit each, their needs as edges.

use portolan_engine::{Canceller, Context, Event, Failure, Key, Reader, Report, Run, Unit};

use crate::builder::{
    BuildSetup, Builder, CommandBuilder, DockerfileBuilder, Needs, OciBuilder, ShipError,
};
use crate::document::{Artifact, ArtifactSource, Ship};
use crate::observe::{Effort, Summarised, observe};
use crate::outcome::{ArtifactResult, Built, Summary, results};

/// The key of an artifact's unit.
pub(crate) fn key(name: &str) -> Key<Built> {
    Key::from(format!("artifact/{name}").as_str())
}

/// Adds the artifacts of a document to a run: all, or those named and what they need.
///
/// # Errors
/// When a name is not that of an artifact; it is returned.
pub fn plan(ship: &Ship, names: &[String], setup: &BuildSetup, run: &Run) -> Result<(), String> {
    for name in names {
        ship.artifact(name).ok_or_else(|| name.clone())?;
    }
    for artifact in &ship.artifacts {
        let unit = unit(artifact.clone(), setup.clone());
        let is_asked = names.is_empty() || names.contains(&artifact.name);
        let needs = artifact.all_needs().into_iter();
        let needs: Vec<Key> = needs.map(|name| key(name).untyped()).collect();
        run.add(
            key(&artifact.name),
            &needs,
            if is_asked { unit } else { unit.lazy() },
        );
    }
    Ok(())
}

/// Calls a run off as soon as one of its units fails; ends with the run.
pub async fn stop_at_first_failure(mut events: Reader, canceller: Canceller) {
    while let Ok(Some(batch)) = events.next().await {
        if batch
            .iter()
            .any(|record| matches!(record.event, Event::Failed { .. }))
        {
            canceller.cancel();
            return;
        }
    }
}

/// What came of the artifacts that were asked for and of those that they need.
pub fn finish(ship: &Ship, report: &Report) -> Vec<ArtifactResult> {
    results(ship, report)
}

fn unit(artifact: Artifact, setup: BuildSetup) -> Unit<Built> {
    let (asked, run) = (artifact.name.clone(), setup.run.clone());
    observe(
        &asked,
        &run,
        Effort {
            retries: artifact.retries,
            weight: artifact.weight,
        },
        move |context, task| -> Result<Built, Failure> {
            let needs = needs(&artifact, context)?;
            let Artifact {
                name,
                image,
                source,
                ..
            } = artifact.clone();
            let setup = setup.clone();
            let built: Result<Built, ShipError> = match source {
                ArtifactSource::Oci(source) => OciBuilder {
                    name,
                    image,
                    source,
                    setup,
                    needs,
                }
                .build(task),
                ArtifactSource::Command(source) => CommandBuilder {
                    name,
                    image,
                    source,
                    setup,
                    needs,
                }
                .build(task),
                ArtifactSource::Dockerfile(source) => DockerfileBuilder {
                    name,
                    image,
                    source,
                    setup,
                    needs,
                }
                .build(task),
            };
            Ok(built?)
        },
    )
}

/// The images of what an artifact needs, all of which are built by now.
fn needs(artifact: &Artifact, context: &Context) -> Result<Needs, Failure> {
    let mut needs = Needs::new();
    for name in artifact.all_needs() {
        let built = context.need(&key(name))?;
        needs.insert(name.to_owned(), built.digest);
    }
    Ok(needs)
}

impl Summarised for Built {
    fn summary(&self) -> impl serde::Serialize {
        let summary: Summary<'_> = self.summary();
        summary
    }
}
