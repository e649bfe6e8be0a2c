//! Simulated requests: who is called, what the answer is, who counts it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, Poisson};

use super::counters::{Counted, Counters};
use super::{Behaviour, MeshPod, MeshRoute, MeshSetup};

/// Everything that flows and is counted.
pub(super) struct State {
    pub(super) setup: MeshSetup,
    pub(super) behaviours: BTreeMap<String, Behaviour>,
    pub(super) skews: BTreeMap<String, Duration>,
    pub(super) failing: BTreeSet<String>,
    pub(super) counters: Counters,
    /// Host and port that all targets are scraped at.
    pub(super) address: String,
    /// All requests and the bad ones, by slot, as callers see them.
    pub(super) sent: BTreeMap<String, (u64, u64)>,
    routes: BTreeMap<String, MeshRoute>,
    /// What is counted later, because of a skew; each slot's in order of time.
    late: BTreeMap<String, VecDeque<(Instant, Counted)>>,
    /// How much the failures of a slot are more or less than usual, and until when.
    noise: BTreeMap<String, (Instant, f64)>,
    chance: StdRng,
}

/// The namespace that callers run in.
const CALLERS: &str = "istio-system";

const FAST: u32 = 20;
const SLOW: u32 = 800;

/// What became of one try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tried {
    Good,
    Bad,
    /// Nobody answered: the pod does not know of it.
    NotArrived,
}

impl State {
    pub(super) fn new(setup: MeshSetup) -> Self {
        let chance = StdRng::seed_from_u64(setup.seed);
        let mut state = Self {
            setup,
            behaviours: BTreeMap::new(),
            skews: BTreeMap::new(),
            failing: BTreeSet::new(),
            counters: Counters::default(),
            address: String::new(),
            sent: BTreeMap::new(),
            routes: BTreeMap::new(),
            late: BTreeMap::new(),
            noise: BTreeMap::new(),
            chance,
        };
        state.set_routes(BTreeMap::new());
        state
    }

    pub(super) fn set_routes(&mut self, routes: BTreeMap<String, MeshRoute>) {
        let mut targets: BTreeMap<String, String> = (0..self.setup.callers)
            .map(|number| (caller(number), CALLERS.to_owned()))
            .collect();
        for route in routes.values() {
            let pods = route.pods.iter();
            targets.extend(pods.map(|pod| (pod.name.clone(), route.namespace.clone())));
        }
        self.counters.set_targets(&targets);
        self.routes = routes;
    }

    pub(super) fn restart(&mut self, target: &str) {
        self.counters.restart(target);
    }

    /// Lets requests flow for some time.
    pub(super) fn advance(&mut self, now: Instant, elapsed: Duration) {
        self.count_late(now);
        let expected = self.setup.rate * elapsed.as_secs_f64();
        let Ok(distribution) = Poisson::new(expected) else {
            return; // A rate of zero.
        };
        let routes = std::mem::take(&mut self.routes);
        for route in routes.values() {
            let arrived: f64 = distribution.sample(&mut self.chance);
            for _ in 0..arrived as u64 {
                self.request(route, now);
            }
        }
        self.routes = routes;
    }

    fn request(&mut self, route: &MeshRoute, now: Instant) {
        let Some(slot) = self.pick_slot(route) else {
            return;
        };
        let is_outside = self.chance.random_bool(share(self.setup.outside));
        let pods: Vec<&MeshPod> = route.pods.iter().filter(|pod| pod.slot == slot).collect();
        let mut last = (Tried::NotArrived, FAST, None);
        for _ in 0..=self.setup.retries {
            last = self.attempt(route, &pods, now);
            if last.0 == Tried::Good {
                break;
            }
        }
        let (tried, took, pod) = last;
        let sent = self.sent.entry(slot.clone()).or_default();
        sent.0 += 1;
        sent.1 += u64::from(tried != Tried::Good);
        if !is_outside {
            let number = self.chance.random_range(0..self.setup.callers.max(1));
            let labels = self.labels("source", route, &slot, pod, tried);
            self.count(
                &slot,
                now,
                Counted {
                    target: caller(number),
                    labels,
                    milliseconds: took,
                },
            );
        }
    }

    /// Sends a request to one of the pods, which counts it if it arrives.
    fn attempt<'a>(
        &mut self,
        route: &MeshRoute,
        pods: &[&'a MeshPod],
        now: Instant,
    ) -> (Tried, u32, Option<&'a MeshPod>) {
        if pods.is_empty() {
            return (Tried::NotArrived, FAST, None);
        }
        let pod = pods[self.chance.random_range(0..pods.len())];
        let behaviour = self.behaviour(pod);
        if self.chance.random_bool(share(behaviour.refused)) {
            return (Tried::NotArrived, FAST, None);
        }
        let errors = behaviour.errors * self.noise(&pod.slot, behaviour.noise, now);
        let errors = share(errors + self.setup.incident);
        let tried = if self.chance.random_bool(errors) {
            Tried::Bad
        } else {
            Tried::Good
        };
        let took = if self.chance.random_bool(share(behaviour.slow)) {
            SLOW
        } else {
            FAST
        };
        let labels = self.labels("destination", route, &pod.slot, Some(pod), tried);
        let target = pod.name.clone();
        self.count(
            &pod.slot,
            now,
            Counted {
                target,
                labels,
                milliseconds: took,
            },
        );
        (tried, took, Some(pod))
    }

    fn pick_slot(&mut self, route: &MeshRoute) -> Option<String> {
        let total: u32 = route.weights.iter().map(|(_, weight)| weight).sum();
        let mut at = self.chance.random_range(0..total.max(1));
        for (slot, weight) in &route.weights {
            if at < *weight {
                return Some(slot.clone());
            }
            at -= weight;
        }
        None
    }

    fn behaviour(&self, pod: &MeshPod) -> Behaviour {
        let by = [&pod.image, &pod.revision, &pod.slot];
        let known = by.into_iter().find_map(|key| self.behaviours.get(key));
        known.copied().unwrap_or_default()
    }

    /// How much more or less than usual a slot fails now.
    fn noise(&mut self, slot: &str, noise: f64, now: Instant) -> f64 {
        if noise <= 0.0 {
            return 1.0;
        }
        let (until, factor) = self.noise.get(slot).copied().unwrap_or((now, 1.0));
        if until > now {
            return factor;
        }
        let fresh = 1.0 + noise * self.chance.random_range(-1.0..=1.0);
        self.noise
            .insert(slot.to_owned(), (now + self.setup.noise_period, fresh));
        fresh
    }

    fn labels(
        &self,
        reporter: &str,
        route: &MeshRoute,
        slot: &str,
        pod: Option<&MeshPod>,
        tried: Tried,
    ) -> String {
        let namespace = &route.namespace;
        let revision = pod.map_or("unknown", |pod| pod.revision.as_str());
        let workload = pod.map(|pod| pod.workload.as_str());
        let workload = workload.filter(|name| !name.is_empty()).unwrap_or(slot);
        let (code, grpc, flags) = match tried {
            Tried::NotArrived => ("503", if self.setup.grpc { "14" } else { "" }, "UF"),
            Tried::Bad if self.setup.grpc => ("200", "14", "-"),
            Tried::Bad => ("500", "", "-"),
            Tried::Good => ("200", if self.setup.grpc { "0" } else { "" }, "-"),
        };
        format!(
            "reporter=\"{reporter}\",source_workload=\"gateway\",source_workload_namespace=\"{CALLERS}\",\
             destination_workload=\"{workload}\",destination_workload_namespace=\"{namespace}\",\
             destination_service_name=\"{slot}\",destination_service_namespace=\"{namespace}\",\
             destination_service=\"{slot}.{namespace}.svc.cluster.local\",\
             destination_canonical_revision=\"{revision}\",destination_version=\"{revision}\",\
             request_protocol=\"http\",response_code=\"{code}\",grpc_response_status=\"{grpc}\",response_flags=\"{flags}\""
        )
    }

    fn count(&mut self, slot: &str, now: Instant, counted: Counted) {
        match self.skews.get(slot) {
            Some(late) if !late.is_zero() => {
                let queue = self.late.entry(slot.to_owned()).or_default();
                queue.push_back((now + *late, counted));
            }
            _ => self.counters.count(&counted),
        }
    }

    fn count_late(&mut self, now: Instant) {
        for queue in self.late.values_mut() {
            while queue.front().is_some_and(|(due, _)| *due <= now) {
                if let Some((_, counted)) = queue.pop_front() {
                    self.counters.count(&counted);
                }
            }
        }
    }
}

/// The name of a proxy that calls.
fn caller(number: usize) -> String {
    format!("gateway-{number}")
}

fn share(value: f64) -> f64 {
    value.clamp(0.0, 1.0)
}
