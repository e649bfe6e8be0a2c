//! What happens during a pretended release.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The traffic and the errors of a release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Requests a second, of both arms together.
    pub requests_per_second: f64,
    /// The share of bad requests of the stable arm.
    pub stable_bad: f64,
    /// The share of bad requests of the canary.
    pub canary_bad: f64,
    /// From which minute on the canary has its share; before it has that of the stable arm.
    #[serde(default)]
    pub canary_bad_from: u32,
    /// How much the bad share of each arm moves by itself from minute to minute: 0.5 is ±50 %.
    #[serde(default)]
    pub arm_noise: f64,
    /// How much the bad share of both arms moves together.
    #[serde(default)]
    pub shared_noise: f64,
    /// An incident that hits both arms.
    #[serde(default)]
    pub incident: Option<Incident>,
    /// By how many seconds the canary's window is ahead of the stable arm's.
    #[serde(default)]
    pub skew_seconds: f64,
}

/// A time in which both arms fail more often.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Incident {
    /// The minute in which it begins.
    pub from: f64,
    /// For how many minutes it lasts.
    pub minutes: f64,
    /// The share of bad requests meanwhile.
    pub bad: f64,
}

/// There is no such scenario.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no scenario is named `{name}`; there are {}", known.join(", "))]
pub struct UnknownScenario {
    name: String,
    known: Vec<String>,
}

/// Numbers that no traffic has.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("`{field}` is {value}; it must be a number from 0 to {most}")]
pub struct BadScenario {
    field: &'static str,
    value: f64,
    most: f64,
}

/// A run of the largest scenario takes milliseconds.
const MOST_REQUESTS_PER_SECOND: f64 = 1_000_000.0;

impl Scenario {
    /// Returns an error when no traffic has these numbers.
    pub fn check(&self) -> Result<(), BadScenario> {
        let incident = self.incident.unwrap_or(Incident {
            from: 0.0,
            minutes: 0.0,
            bad: 0.0,
        });
        for (field, value, most) in [
            (
                "requestsPerSecond",
                self.requests_per_second,
                MOST_REQUESTS_PER_SECOND,
            ),
            ("stableBad", self.stable_bad, 1.0),
            ("canaryBad", self.canary_bad, 1.0),
            ("armNoise", self.arm_noise, 10.0),
            ("sharedNoise", self.shared_noise, 10.0),
            ("skewSeconds", self.skew_seconds, 3_600.0),
            ("incident.from", incident.from, 3_600.0),
            ("incident.minutes", incident.minutes, 3_600.0),
            ("incident.bad", incident.bad, 1.0),
        ] {
            if !(0.0..=most).contains(&value) {
                return Err(BadScenario { field, value, most });
            }
        }
        Ok(())
    }

    fn new(name: &str, requests_per_second: f64, stable_bad: f64, canary_bad: f64) -> Self {
        Self {
            name: name.to_owned(),
            requests_per_second,
            stable_bad,
            canary_bad,
            canary_bad_from: 0,
            arm_noise: 0.0,
            shared_noise: 0.0,
            incident: None,
            skew_seconds: 0.0,
        }
    }

    /// Returns the scenarios that are known by name.
    pub fn known() -> Vec<Self> {
        let healthy = |name: &str, rps| Self::new(name, rps, 0.005, 0.005);
        let shared_incident = Incident {
            from: 3.0,
            minutes: 6.0,
            bad: 0.03,
        };
        vec![
            healthy("healthy-100rps", 100.0),
            healthy("healthy-20rps", 20.0),
            healthy("healthy-2rps", 2.0),
            healthy("healthy-0.05rps", 0.05),
            Self::new("no-errors", 50.0, 0.0, 0.0),
            Self {
                incident: Some(shared_incident),
                ..healthy("shared-incident", 50.0)
            },
            Self {
                incident: Some(Incident {
                    from: 3.5,
                    minutes: 0.5,
                    bad: 0.3,
                }),
                skew_seconds: 5.0,
                ..healthy("skewed-incident", 50.0)
            },
            Self::new("stable-at-1.2-percent", 100.0, 0.012, 0.012),
            Self {
                shared_noise: 0.5,
                ..healthy("shared-noise", 100.0)
            },
            Self {
                arm_noise: 0.5,
                ..healthy("noisy-arms-20rps", 20.0)
            },
            Self {
                arm_noise: 0.5,
                ..healthy("noisy-arms-200rps", 200.0)
            },
            Self {
                arm_noise: 0.5,
                ..healthy("noisy-arms-2000rps", 2000.0)
            },
            Self::new("9x-below-the-line", 50.0, 0.001, 0.009),
            Self::new("20x", 50.0, 0.001, 0.02),
            Self::new("200x", 50.0, 0.001, 0.2),
            Self::new("3x-100rps", 100.0, 0.005, 0.015),
            Self::new("3x-5rps", 5.0, 0.005, 0.015),
            Self {
                canary_bad_from: 6,
                ..Self::new("late-3x", 100.0, 0.005, 0.015)
            },
            Self::edge("edge-tolerated", 200.0, 1.25),
            Self::edge("edge-harmful", 20.0, 2.0),
        ]
    }

    /// A canary whose odds of a bad request are exactly this multiple of the stable arm's.
    fn edge(name: &str, requests_per_second: f64, odds: f64) -> Self {
        let stable = 0.005_f64;
        let canary = odds * stable / (1.0 - stable + odds * stable);
        Self::new(name, requests_per_second, stable, canary)
    }

    /// Returns the scenario of a name.
    pub fn named(name: &str) -> Result<Self, UnknownScenario> {
        let known = Self::known();
        let found = known.iter().find(|scenario| scenario.name == name);
        found.cloned().ok_or_else(|| UnknownScenario {
            name: name.to_owned(),
            known: known.into_iter().map(|scenario| scenario.name).collect(),
        })
    }
}
