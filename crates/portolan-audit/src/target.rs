//! What the objects are to run on: the release of Kubernetes, where the way to it begins, and the add-ons' releases.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::lifecycle::{KUBERNETES, Lifecycle};
use crate::release::{BadRelease, Release};
use crate::table::NEWEST;

/// How many releases after the target are looked at unless told otherwise.
pub const LOOK_AHEAD: u16 = 2;

/// The releases that objects are checked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The release of Kubernetes.
    pub kubernetes: Release,
    /// The release that runs now, when the way from it is of interest.
    pub from: Option<Release>,
    /// How many releases after the target are looked at.
    pub look_ahead: u16,
    /// Releases of other components, by name. What is removed from a component that is not here counts as deprecated:
    /// nobody said that the release that removes it is meant.
    pub components: BTreeMap<String, Release>,
}

/// `1.32`, or `flux=2.8.0` for a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetWord {
    /// The component; `k8s` when none was named.
    pub component: String,
    /// Its release.
    pub release: Release,
}

impl Default for Target {
    fn default() -> Self {
        Self::kubernetes(NEWEST)
    }
}

impl Target {
    /// A release of Kubernetes; patch numbers are dropped.
    pub fn kubernetes(release: Release) -> Self {
        Self {
            kubernetes: release.minor(),
            from: None,
            look_ahead: LOOK_AHEAD,
            components: BTreeMap::new(),
        }
    }

    /// Takes in a word of the command line.
    pub fn set(&mut self, word: TargetWord) {
        if word.component == KUBERNETES {
            self.kubernetes = word.release.minor();
        } else {
            self.components.insert(word.component, word.release);
        }
    }

    /// The release a row is to be judged by; `None` when it speaks of a component that was not named.
    pub fn release_for(&self, row: &Lifecycle) -> Option<Release> {
        if row.is_kubernetes() {
            Some(self.kubernetes)
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
    pub fn hops(&self) -> Vec<Release> {
        let mut hop = match self.from {
            Some(from) if from.minor() < self.kubernetes => from.plus(1),
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
    type Err = BadRelease;

    fn from_str(text: &str) -> Result<Self, BadRelease> {
        let (component, release) = text.split_once('=').unwrap_or((KUBERNETES, text));
        let component = match component {
            "kubernetes" => KUBERNETES,
            other => other,
        };
        Ok(Self {
            component: component.to_owned(),
            release: release.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_walked_hop_by_hop() {
        let mut target = Target::kubernetes(Release::new(1, 25, 3));
        assert_eq!(target.hops(), [Release::new(1, 25, 0)]);
        target.from = Some(Release::new(1, 22, 7));
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
