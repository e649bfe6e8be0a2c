//! A cluster of a repository: where it starts, and which sources its Kustomizations may name.

use std::collections::HashMap;
use std::sync::Arc;

use portolan_engine::Key;
use portolan_helm::{Capabilities, Chart};
use portolan_kustomize::Fetch;
use portolan_yaml::Text;

use crate::api::{Kustomization, NamespacedName, SourceRef, SubstituteReference};
use crate::artifact::Artifact;
use crate::chart::{self, ChartError, Location};
use crate::outside::{Access, Decrypt, SourceStore};
use crate::profile::Profile;
use crate::variables::{Data, Variables};

/// Everything a cluster's render depends on.
pub struct Cluster {
    /// Its name, for keys and messages.
    pub name: Text,
    /// The Kustomization everything starts from.
    pub root: Kustomization,
    /// The trees that can be had.
    pub sources: HashMap<SourceRef, Arc<Artifact>>,
    /// Brings remote bases; without it they are refused.
    pub fetch: Option<Arc<dyn Fetch>>,
    /// Brings trees and charts from elsewhere; without it only what the repository holds can be rendered.
    pub outside: Option<Arc<dyn SourceStore>>,
    /// Opens encrypted objects and files; without it they stay as they are.
    pub decrypt: Option<Arc<dyn Decrypt>>,
    /// Which Flux to reproduce.
    pub profile: Profile,
    /// What the cluster's Kubernetes serves, custom kinds left out.
    pub capabilities: Capabilities,
}

impl Cluster {
    /// The key of the unit that builds a Kustomization for the nth time.
    pub(crate) fn unit_key(&self, id: &NamespacedName, attempt: u32) -> Key {
        let again = if attempt > 1 {
            format!(" ({attempt})")
        } else {
            String::new()
        };
        Key::from(format!("{}/Kustomization/{id}{again}", self.name))
    }

    /// The key of the unit that renders a release.
    pub(crate) fn release_key(&self, id: &NamespacedName) -> Key {
        Key::from(format!("{}/HelmRelease/{id}", self.name))
    }

    /// The key of the unit that loads a chart.
    pub(crate) fn chart_key(&self, location: &Location) -> Key {
        Key::from(format!("{}/Chart/{location}", self.name))
    }

    /// Loads a chart from wherever it lies.
    pub(crate) async fn load_chart(&self, location: &Location) -> Result<Chart, ChartError> {
        let Location::Tree {
            source,
            path,
            values_files,
            ignore_missing_values_files,
        } = location
        else {
            let store = self
                .outside
                .as_ref()
                .ok_or_else(|| ChartError::NotCached(location.to_string()))?;
            let archive = store.chart(location, &Access::default()).await;
            let archive = archive.map_err(|source| ChartError::Fetch {
                chart: location.to_string(),
                source,
            })?;
            return chart::load_archive(&archive, location);
        };
        let tree = self
            .sources
            .get(source)
            .ok_or_else(|| ChartError::Unavailable(source.clone()))?;
        chart::load_from_tree(
            tree.as_ref(),
            path,
            values_files,
            *ignore_missing_values_files,
        )
    }

    /// The variables of a Kustomization from its data in order, and the references that are missing.
    pub(crate) fn variables(
        &self,
        spec: &Kustomization,
        inputs: &[Option<Arc<Data>>],
    ) -> (Option<Variables>, Vec<SubstituteReference>) {
        let Some(post_build) = &spec.post_build else {
            return (None, Vec::new());
        };
        let strict = self.profile.strict_substitution;
        let mut inputs = inputs.iter();
        let (variables, missing) = Variables::collect(post_build, strict, |_, _| {
            inputs
                .next()
                .and_then(Option::as_ref)
                .map(|data| Data::clone(data))
        });
        (Some(variables), missing)
    }
}
