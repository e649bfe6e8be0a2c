//! What happens to a release while it is on its way, and what is right to do about it.

use std::time::Duration;

use portolan_testbed::{Behaviour, Mesh};

/// The image that serves at first.
pub(crate) const OLD: &str = "web:1";
/// The image that is released.
pub(crate) const NEW: &str = "web:2";

/// What is right to do with a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    Promote,
    RollBack,
    Hold,
}

/// A release and what happens to it.
pub(crate) struct Scenario {
    /// A short name, also of its namespaces.
    pub(crate) name: &'static str,
    /// What a reader is told.
    pub(crate) title: &'static str,
    pub(crate) right: Right,
    /// Shares of failed requests of the old and the new revision.
    errors: (f64, f64),
    /// How much the new revision's failures move by themselves from minute to minute.
    noise: f64,
    /// How much later requests of the old revision are counted than those of the new one.
    skew: Duration,
    has_traffic: bool,
    /// What happens later, by the number of steps since the release.
    pub(crate) events: &'static [(f64, Event)],
}

/// Something that happens during a release.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// This share of requests fails whoever answers.
    Incident(f64),
    /// The new revision fails this share of requests from now on.
    NewErrors(f64),
}

const SAME: Scenario = Scenario {
    name: "",
    title: "",
    right: Right::Promote,
    errors: (0.005, 0.005),
    noise: 0.0,
    skew: Duration::ZERO,
    has_traffic: true,
    events: &[],
};

/// Every scenario, in the order of the rows.
pub(crate) const SCENARIOS: [Scenario; 9] = [
    Scenario {
        name: "healthy",
        title: "healthy, 0.5 % errors on both",
        ..SAME
    },
    Scenario {
        name: "no-error",
        title: "no error at all",
        errors: (0.0, 0.0),
        ..SAME
    },
    Scenario {
        name: "incident",
        title: "incident on both, 3 % for six steps",
        events: &[(2.0, Event::Incident(0.03)), (8.0, Event::Incident(0.0))],
        ..SAME
    },
    Scenario {
        name: "skewed",
        title: "incident on both, 30 % for six steps, the old revision counted 5 s later",
        skew: Duration::from_secs(5),
        events: &[(2.0, Event::Incident(0.3)), (8.0, Event::Incident(0.0))],
        ..SAME
    },
    Scenario {
        name: "nine-times",
        title: "0.1 % → 0.9 %, below the line",
        right: Right::RollBack,
        errors: (0.001, 0.009),
        ..SAME
    },
    Scenario {
        name: "broken",
        title: "0.1 % → 20 %",
        right: Right::RollBack,
        errors: (0.001, 0.2),
        ..SAME
    },
    Scenario {
        name: "late",
        title: "0.5 % → 5 %, from the sixth step on",
        right: Right::RollBack,
        events: &[(6.0, Event::NewErrors(0.05))],
        ..SAME
    },
    Scenario {
        name: "noise",
        title: "healthy, errors of the new revision ±50 % by themselves each minute",
        noise: 0.5,
        ..SAME
    },
    Scenario {
        name: "no-traffic",
        title: "no traffic",
        right: Right::Hold,
        has_traffic: false,
        ..SAME
    },
];

impl Scenario {
    /// Sets how requests are answered when the release begins.
    pub(crate) fn begin(&self, mesh: &Mesh, rate: f64, old_slots: &[&str]) {
        let old = Behaviour {
            errors: self.errors.0,
            ..Behaviour::default()
        };
        mesh.set_behaviour(OLD, old);
        mesh.set_behaviour(NEW, self.behaviour(self.errors.1));
        for slot in old_slots {
            mesh.set_skew(slot, self.skew);
        }
        let rate = if self.has_traffic { rate } else { 0.0 };
        mesh.change(|setup| setup.rate = rate);
    }

    /// Lets something happen.
    pub(crate) fn happen(&self, mesh: &Mesh, event: Event) {
        match event {
            Event::Incident(share) => mesh.change(|setup| setup.incident = share),
            Event::NewErrors(share) => mesh.set_behaviour(NEW, self.behaviour(share)),
        }
    }

    fn behaviour(&self, errors: f64) -> Behaviour {
        Behaviour {
            errors,
            noise: self.noise,
            ..Behaviour::default()
        }
    }
}
