//! What the objects will run on: the release of Kubernetes, the release that an upgrade starts from, and the add-ons'
//! releases.

use std::collections::BTreeMap;
use std::str::FromStr;

use portolan_object::{KubeVersion, KubeVersionError};

use crate::lifecycle::{KUBERNETES, Lifecycle};
use crate::release::{BadRelease, Release};
use crate::table::NEWEST;

/// How many releases after the target are looked at unless told otherwise.
pub const LOOK_AHEAD: u32 = 2;

/// The releases that objects are checked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The release of Kubernetes.
    pub kubernetes: KubeVersion,
    /// The release that runs now, when the way from it is of interest.
    pub from: Option<KubeVersion>,
    /// How many releases after the target are looked at.
    pub look_ahead: u32,
    /// Releases of other components, by name. What is removed from a component that is not here counts as deprecated:
    /// nobody said that the release that removes it is meant.
    pub components: BTreeMap<String, Release>,
}

/// `1.32`, or `flux=2.8.0` for a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetWord {
    /// A release of Kubernetes.
    Kubernetes(KubeVersion),
    /// A release of another component.
    Component(String, Release),
}

/// Why a word names no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTarget {
    /// It names no release of Kubernetes.
    #[error(transparent)]
    Kubernetes(#[from] KubeVersionError),
    /// It names no release of the component.
    #[error(transparent)]
    Component(#[from] BadRelease),
}

impl Default for Target {
    fn default() -> Self {
        Self::kubernetes(KubeVersion::DEFAULT)
    }
}

impl Target {
    /// A release of Kubernetes.
    pub fn kubernetes(release: KubeVersion) -> Self {
        Self {
            kubernetes: release,
            from: None,
            look_ahead: LOOK_AHEAD,
            components: BTreeMap::new(),
        }
    }

    /// Takes in a word of the command line.
    pub fn set(&mut self, word: TargetWord) {
        match word {
            TargetWord::Kubernetes(release) => self.kubernetes = release,
            TargetWord::Component(name, release) => {
                self.components.insert(name, release);
            }
        }
    }

    /// The release of Kubernetes, to be compared with those of rows.
    pub(crate) fn release(&self) -> Release {
        self.kubernetes.into()
    }

    /// The release a row is to be judged by; `None` when it speaks of a component that was not named.
    pub fn release_for(&self, row: &Lifecycle) -> Option<Release> {
        if row.is_kubernetes() {
            Some(self.release())
        } else {
            self.components.get(&*row.component).copied()
        }
    }

    /// What to say when the table cannot know the target.
    pub fn warning(&self) -> Option<String> {
        (self.kubernetes > NEWEST).then(|| {
            format!(
                "the table knows Kubernetes up to {NEWEST}; what {} changes beyond that is not seen",
                self.kubernetes
            )
        })
    }

    /// The minor releases on the way to the target, without the one it starts from; the target alone without one.
    pub fn hops(&self) -> Vec<KubeVersion> {
        let mut hop = match self.from {
            Some(from) if from < self.kubernetes => from.plus(1),
            _ => self.kubernetes,
        };
        let mut hops = Vec::new();
        // No way is longer than this; a wild number must not fill the memory.
        while hop < self.kubernetes && hops.len() < 200 {
            hops.push(hop);
            hop = hop.plus(1);
        }
        hops.push(self.kubernetes);
        hops
    }
}

impl FromStr for TargetWord {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        match text.split_once('=') {
            None => Ok(Self::Kubernetes(text.parse()?)),
            Some((KUBERNETES | "kubernetes", release)) => Ok(Self::Kubernetes(release.parse()?)),
            Some((component, release)) => {
                Ok(Self::Component(component.to_owned(), release.parse()?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_walked_hop_by_hop() {
        let mut target = Target::kubernetes(KubeVersion::new(1, 25));
        assert_eq!(target.hops(), [KubeVersion::new(1, 25)]);
        target.from = Some(KubeVersion::new(1, 22));
        let hops: Vec<String> = target.hops().iter().map(ToString::to_string).collect();
        assert_eq!(hops, ["1.23", "1.24", "1.25"]);
    }

    #[test]
    fn a_target_newer_than_the_table_warns() {
        assert_eq!(Target::default().warning(), None);
        let newer = Target::kubernetes(NEWEST.plus(2));
        assert!(newer.warning().unwrap().contains("up to"));
    }

    #[test]
    fn words_name_components() {
        let mut target = Target::default();
        target.set("1.31.2".parse().unwrap());
        target.set("flux=2.8.0".parse().unwrap());
        assert_eq!(target.kubernetes.to_string(), "1.31");
        assert_eq!(target.components["flux"].to_string(), "2.8");
        assert!("flux=new".parse::<TargetWord>().is_err());
    }
}
