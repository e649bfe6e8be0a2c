//! Which clusters a test checks, for which versions, and where those were chosen.

use std::fmt::{Display, Write as _};

use portolan_flux::{Chosen, ChosenBy, Cluster};
use serde_json::{Value, json};

use crate::RenderedRepository;

/// What a cluster is judged for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedFor {
    cluster: String,
    path: String,
    kubernetes: Chosen<String>,
    flux: Chosen<String>,
}

impl JudgedFor {
    /// What each cluster is judged for.
    pub fn each(rendered: &RenderedRepository) -> Vec<Self> {
        let clusters = rendered.clusters.iter();
        clusters.map(|(cluster, _)| Self::of(cluster)).collect()
    }

    fn of(cluster: &Cluster) -> Self {
        let Cluster {
            name,
            root,
            kubernetes,
            flux,
            ..
        } = cluster;
        let version = match kubernetes.by {
            ChosenBy::Default => kubernetes.value.release().to_string(),
            _ => {
                let version = kubernetes.value.to_string();
                version.trim_start_matches('v').to_owned()
            }
        };
        Self {
            cluster: name.to_string(),
            path: root.path.to_string(),
            kubernetes: Chosen {
                value: version,
                by: kubernetes.by.clone(),
            },
            flux: Chosen {
                value: flux.value.to_string(),
                by: flux.by.clone(),
            },
        }
    }

    /// `Kubernetes 1.34.1 (talos/talconfig.yaml:3), Flux 2.8.1 (default)`
    fn versions(&self) -> String {
        format!(
            "Kubernetes {}, Flux {}",
            with_source(&self.kubernetes),
            with_source(&self.flux)
        )
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        json!({
            "name": self.cluster,
            "path": self.path,
            "kubernetes": version_json(&self.kubernetes),
            "flux": version_json(&self.flux),
        })
    }

    /// The same as names and values.
    pub fn properties(&self) -> Vec<(String, String)> {
        let of = |name: &str, version: &Chosen<String>| {
            [
                (name.to_owned(), version.value.clone()),
                (format!("{name}.from"), version.by.to_string()),
            ]
        };
        let cluster = [("cluster".to_owned(), self.cluster.clone())];
        let versions = of("kubernetes", &self.kubernetes).into_iter();
        let versions = versions.chain(of("flux", &self.flux));
        cluster.into_iter().chain(versions).collect()
    }

    /// The cluster's name.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }
}

/// A line for each set of versions, with the clusters that have it.
pub fn heading(judged: &[JudgedFor]) -> String {
    let mut sets: Vec<(String, Vec<&str>)> = Vec::new();
    for one in judged {
        let versions = one.versions();
        match sets.iter_mut().find(|(known, _)| *known == versions) {
            Some((_, clusters)) => clusters.push(&one.cluster),
            None => sets.push((versions, vec![&one.cluster])),
        }
    }
    let mut text = String::new();
    for (versions, clusters) in sets {
        let _ = writeln!(text, "testing {} for {versions}", clusters.join(", "));
    }
    text
}

fn with_source(version: &Chosen<impl Display>) -> String {
    format!("{} ({})", version.value, version.by)
}

fn version_json(version: &Chosen<String>) -> Value {
    let place = version.by.place();
    json!({
        "version": version.value,
        "from": version.by.as_str(),
        "file": place.map(|place| place.file.trim_start_matches('/')),
        "line": place.map(|place| place.at.line),
    })
}
