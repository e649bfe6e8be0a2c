//! Which requests belong to the two revisions that are compared.

use std::collections::BTreeMap;

use crate::series::Series;

/// The two arms of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arms {
    /// Their namespace.
    pub namespace: String,
    /// The name of the application.
    pub name: String,
    /// The new revision.
    pub canary: ArmLabels,
    /// The old revision.
    pub stable: ArmLabels,
    /// Labels that every series must have, such as the cluster's name in a server for several clusters.
    pub labels: BTreeMap<String, String>,
}

/// The names of one arm.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArmLabels {
    /// The slot: the name of its Service and of its Deployment.
    pub slot: String,
    /// The revision, as Istio labels it. Series of other revisions do not count; empty counts all.
    pub revision: String,
    /// How many seconds each pod had been ready when the window began. Pods that are not among them count as old ones.
    pub pod_ages: BTreeMap<String, u64>,
}

impl Arms {
    /// Returns the slots of both arms, the canary's first.
    pub(crate) fn slots(&self) -> [&str; 2] {
        [&self.canary.slot, &self.stable.slot]
    }

    /// Returns the values of placeholders for one arm.
    pub(crate) fn placeholders<'a>(
        &'a self,
        arm: &'a ArmLabels,
        role: &'a str,
    ) -> Vec<(&'a str, &'a str)> {
        vec![
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("slot", &arm.slot),
            ("revision", &arm.revision),
            ("arm", role),
        ]
    }
}

impl ArmLabels {
    /// Returns whether a series of Istio can be of this revision. A proxy that got no answer does not know it.
    pub(crate) fn has_revision(&self, series: &Series) -> bool {
        let revision = series.label("destination_canonical_revision");
        let is_told = !matches!(revision, "" | "unknown" | "latest");
        self.revision.is_empty() || !is_told || revision == self.revision
    }
}
