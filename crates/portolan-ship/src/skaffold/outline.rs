//! What the projection knows of a document: the names that Skaffold's clients expect.

use serde::{Deserialize, Serialize};

use super::wire;
use crate::document::{ArtifactSource, DeploySource, Ship};

/// What a run is about; kept in its directory, for readers that come when it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunOutline {
    /// The name of the run.
    pub run: String,
    /// Its artifacts, in the document's order.
    pub artifacts: Vec<OutlinedArtifact>,
    /// Its deploy steps, in the document's order: name and Skaffold's number of the kind.
    deployers: Vec<(String, i32)>,
    /// The names of its tests and verifications.
    checks: Vec<String>,
    /// Whether more runs follow in the same process.
    pub is_dev: bool,
}

/// One artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutlinedArtifact {
    /// Its name in the document.
    pub name: String,
    /// The image, by which Skaffold's clients know it.
    pub image: String,
    builder: i32,
    context: String,
    dockerfile: String,
}

impl RunOutline {
    /// The same for a turn of a dev loop, which other runs follow.
    #[must_use]
    pub fn of_dev_loop(self) -> Self {
        Self {
            is_dev: true,
            ..self
        }
    }

    /// What a document declares.
    pub fn of(ship: &Ship, run: &str) -> Self {
        let artifacts = ship.artifacts.iter().map(|artifact| {
            let (builder, context, dockerfile) = match &artifact.source {
                ArtifactSource::Oci(source) => (
                    wire::BuilderType::UnknownBuilderType,
                    source.context.clone(),
                    String::new(),
                ),
                ArtifactSource::Command(source) => (
                    wire::BuilderType::Custom,
                    source.directory.clone(),
                    String::new(),
                ),
                ArtifactSource::Dockerfile(source) => (
                    wire::BuilderType::Docker,
                    source.context.clone(),
                    source.file.clone(),
                ),
            };
            OutlinedArtifact {
                name: artifact.name.clone(),
                image: artifact.image.clone(),
                builder: builder.into(),
                context,
                dockerfile,
            }
        });
        let deployers = ship.deploy.iter().map(|step| {
            let kind = match &step.source {
                DeploySource::Manifests(_) | DeploySource::Flux(_) => wire::DeployerType::Kubectl,
                DeploySource::Kustomize(_) => wire::DeployerType::Kustomize,
                DeploySource::Helm(_) => wire::DeployerType::Helm,
                DeploySource::Git(_) | DeploySource::Rollout(_) => {
                    wire::DeployerType::UnknownDeployerType
                }
            };
            (step.name.clone(), kind.into())
        });
        let tests = ship.tests.iter().map(|test| test.name.clone());
        let verifications = ship.verify.iter().map(|check| check.name.clone());
        Self {
            run: run.to_owned(),
            artifacts: artifacts.collect(),
            deployers: deployers.collect(),
            checks: tests.chain(verifications).collect(),
            is_dev: false,
        }
    }

    /// Whether both runs are about the same document.
    pub(super) fn declares_the_same(&self, other: &Self) -> bool {
        let Self {
            artifacts,
            deployers,
            checks,
            ..
        } = self;
        (artifacts, deployers, checks) == (&other.artifacts, &other.deployers, &other.checks)
    }

    pub(super) fn metadata(&self) -> wire::Metadata {
        let artifacts = self
            .artifacts
            .iter()
            .map(|artifact| wire::build_metadata::Artifact {
                r#type: artifact.builder,
                name: artifact.image.clone(),
                context: artifact.context.clone(),
                dockerfile: artifact.dockerfile.clone(),
            });
        let mut deployers: Vec<wire::deploy_metadata::Deployer> = Vec::new();
        for (_, kind) in &self.deployers {
            match deployers.iter_mut().find(|known| known.r#type == *kind) {
                Some(known) => known.count += 1,
                None => deployers.push(wire::deploy_metadata::Deployer {
                    r#type: *kind,
                    count: 1,
                }),
            }
        }
        wire::Metadata {
            build: Some(wire::BuildMetadata {
                artifacts: artifacts.collect(),
                r#type: wire::BuildType::Local.into(),
                ..Default::default()
            }),
            deploy: Some(wire::DeployMetadata {
                deployers,
                cluster: wire::ClusterType::UnknownClusterType.into(),
            }),
            test: Some(wire::TestMetadata::default()),
            run_id: self.run.clone(),
            render: Some(wire::RenderMetadata::default()),
            ..Default::default()
        }
    }

    /// An artifact, and its place in the document.
    pub(super) fn artifact(&self, name: &str) -> Option<(usize, &OutlinedArtifact)> {
        let mut artifacts = self.artifacts.iter().enumerate();
        artifacts.find(|(_, artifact)| artifact.name == name)
    }

    /// The place of a deploy step in the document.
    pub(super) fn deployer(&self, name: &str) -> Option<usize> {
        self.deployers.iter().position(|(known, _)| known == name)
    }
}
