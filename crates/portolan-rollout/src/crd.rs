//! The definitions of the kinds, for an API server.
//!
//! They are files, in `crd/`, because people read and review them as such. Tests hold them against the types in `spec` and
//! against each other: every field of the one is a field of the other, and what they must refuse is refused.

/// Returns the `CustomResourceDefinition` of `IstioCanaryDeployment` as YAML.
pub fn crd_yaml() -> &'static str {
    include_str!("crd/istiocanarydeployments.yaml")
}

/// Returns the definitions of `RolloutAnalysis` and `ClusterRolloutAnalysis`, which the former may refer to, as YAML.
pub fn analysis_crds_yaml() -> [&'static str; 2] {
    [
        include_str!("crd/rolloutanalyses.yaml"),
        include_str!("crd/clusterrolloutanalyses.yaml"),
    ]
}
