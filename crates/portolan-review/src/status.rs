//! The results of Kustomizations and releases, as one word and one sentence each.

use std::collections::HashMap;

use portolan_flux::api::NamespacedName;
use portolan_object::{Finding, OwnerKind, Severity};

/// How one of them fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// It was built.
    Ready,
    /// It was built; something outside of the repository has to happen before Flux can.
    Noted,
    /// Flux would refuse it.
    Failed,
}

/// What is wrong with the things of one cluster, by kind and name.
#[derive(Debug, Default)]
pub struct Statuses(HashMap<(OwnerKind, NamespacedName), (Health, String)>);

impl Statuses {
    /// Sums up problems: of several, the gravest counts, and of those the first.
    pub fn of(problems: Vec<Finding>) -> Self {
        let mut statuses = HashMap::new();
        for problem in problems {
            let health = match problem.severity {
                Severity::Error => Health::Failed,
                Severity::Warning | Severity::Note => Health::Noted,
            };
            let message = problem.message();
            let Some(owner) = problem.owner else { continue };
            let id = NamespacedName::new(owner.namespace, owner.name);
            let entry = statuses
                .entry((owner.kind, id))
                .or_insert((Health::Ready, String::new()));
            if health > entry.0 {
                *entry = (health, message);
            }
        }
        Self(statuses)
    }

    /// How a thing fared.
    pub fn health(&self, kind: OwnerKind, id: &NamespacedName) -> Health {
        self.0
            .get(&(kind, id.clone()))
            .map_or(Health::Ready, |(health, _)| *health)
    }

    /// What is wrong with a thing, if anything is.
    pub fn message(&self, kind: OwnerKind, id: &NamespacedName) -> Option<&str> {
        let (_, message) = self.0.get(&(kind, id.clone()))?;
        Some(message)
    }
}

impl Health {
    /// Whether Flux would take it.
    pub fn is_ready(self) -> bool {
        self != Self::Failed
    }

    /// The sign before its name in a tree.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Ready => "✓ ",
            Self::Noted => "▲ ",
            Self::Failed => "✗ ",
        }
    }
}
