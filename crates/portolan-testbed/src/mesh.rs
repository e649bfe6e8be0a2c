//! Simulated metrics of an Istio mesh: requests are sent all the time, and Prometheus scrapes the simulated proxies
//! that count them.
//!
//! ```text
//! routes (weights, pods) ──requests at some rate──▶ callers: reporter="source"
//!                                              └──▶ pods:    reporter="destination"
//! Prometheus ──GET /targets, /metrics/NAME──▶ the same as a mesh's proxies would answer
//! ```
//!
//! How a pod behaves is looked up by its image, its revision or its slot. A route without endpoints, or with a pod that
//! refuses connections, is seen by callers only, as in a mesh.

mod counters;
mod requests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::{HttpServer, Reply};
use requests::State;

/// How requests flow.
#[derive(Debug, Clone)]
pub struct MeshSetup {
    /// Requests a second to each route.
    pub rate: f64,
    /// How many proxies call; each is a target of its own.
    pub callers: usize,
    /// How often a caller tries again when an answer is bad. Every try is counted by a pod, the last one by the caller.
    pub retries: u32,
    /// The share of requests whose callers are outside of the mesh, so that only pods count them.
    pub outside: f64,
    /// Whether failures are gRPC's: HTTP status 200 with a gRPC status.
    pub grpc: bool,
    /// The share of requests that fail whoever answers, as when something behind all of them is broken.
    pub incident: f64,
    /// How long the noise of a slot stays the same.
    pub noise_period: Duration,
    /// Where chance begins.
    pub seed: u64,
}

/// How a pod answers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Behaviour {
    /// The share of requests that fail.
    pub errors: f64,
    /// The share of requests that take 800 ms instead of 20 ms.
    pub slow: f64,
    /// The share of requests whose connection is refused.
    pub refused: f64,
    /// How much the share of failures moves by itself: 0.5 is up to half more or less, the same for a whole slot.
    pub noise: f64,
}

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MeshRoute {
    /// The namespace of the route and of what it leads to.
    pub namespace: String,
    /// Slots (names of Services) with their weights.
    pub weights: Vec<(String, u32)>,
    /// The pods behind all of them.
    pub pods: Vec<MeshPod>,
}

/// A pod that answers requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MeshPod {
    /// Its name.
    pub name: String,
    /// The Service that it is an endpoint of.
    pub slot: String,
    /// The workload that it belongs to, as Istio names it; the slot if it is empty.
    pub workload: String,
    /// Its revision, as Istio labels it.
    pub revision: String,
    /// The image of its first container.
    pub image: String,
}

/// Requests that flow until it is dropped.
pub struct Mesh {
    shared: Arc<Shared>,
    server: HttpServer,
    ticker: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    is_stopped: AtomicBool,
}

/// How often requests are made up. A scrape sees whole ticks.
const TICK: Duration = Duration::from_millis(20);

impl Default for MeshSetup {
    fn default() -> Self {
        Self {
            rate: 50.0,
            callers: 1,
            retries: 0,
            outside: 0.0,
            grpc: false,
            incident: 0.0,
            noise_period: Duration::from_mins(1),
            seed: 1,
        }
    }
}

impl Mesh {
    /// Starts a mesh without routes.
    ///
    /// # Panics
    /// When this machine has no free port.
    pub fn start(setup: MeshSetup) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(setup)),
            is_stopped: AtomicBool::new(false),
        });
        let served = Arc::clone(&shared);
        let server = HttpServer::start(move |request| served.answer(request.path()));
        shared.state().address = server.host();
        let ticking = Arc::clone(&shared);
        let ticker = std::thread::spawn(move || ticking.run());
        Self {
            shared,
            server,
            ticker: Some(ticker),
        }
    }

    /// The address that lists the targets, for [`PrometheusSetup`](crate::PrometheusSetup).
    pub fn targets_url(&self) -> String {
        format!("{}/targets", self.server.url())
    }

    /// Replaces all routes, by names of their own.
    pub fn set_routes(&self, routes: BTreeMap<String, MeshRoute>) {
        self.shared.state().set_routes(routes);
    }

    /// Sets how pods behave that have this image, revision or slot.
    pub fn set_behaviour(&self, of: &str, behaviour: Behaviour) {
        self.shared
            .state()
            .behaviours
            .insert(of.to_owned(), behaviour);
    }

    /// Changes how requests flow.
    pub fn change(&self, change: impl FnOnce(&mut MeshSetup)) {
        change(&mut self.shared.state().setup);
    }

    /// Counts requests to a slot this much later than they happen, as if its scrapes lay in the past.
    pub fn set_skew(&self, slot: &str, late: Duration) {
        self.shared.state().skews.insert(slot.to_owned(), late);
    }

    /// Starts the counters of a target again from zero, as a restart of its proxy does.
    pub fn restart_target(&self, target: &str) {
        self.shared.state().restart(target);
    }

    /// Lets scrapes of a target fail from now on, or no longer.
    pub fn fail_scrapes(&self, target: &str, fails: bool) {
        let mut state = self.shared.state();
        if fails {
            state.failing.insert(target.to_owned());
        } else {
            state.failing.remove(target);
        }
    }

    /// All requests and the bad ones that were sent to a slot so far, as their callers see them.
    pub fn sent(&self, slot: &str) -> (u64, u64) {
        let state = self.shared.state();
        state.sent.get(slot).copied().unwrap_or_default()
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut last = Instant::now();
        while !self.is_stopped.load(Ordering::SeqCst) {
            std::thread::sleep(TICK);
            let now = Instant::now();
            self.state().advance(now, now - last);
            last = now;
        }
    }

    fn answer(&self, path: &str) -> Reply {
        if path == "/targets" {
            return self.targets();
        }
        let target = path.strip_prefix("/metrics/").unwrap_or_default();
        let state = self.state();
        match state.counters.text(target) {
            _ if state.failing.contains(target) => Reply::status(500),
            Some(text) => Reply::ok(text).header("content-type", "text/plain; version=0.0.4"),
            None => Reply::status(404),
        }
    }

    fn targets(&self) -> Reply {
        let state = self.state();
        let targets: Vec<_> = state.counters.targets().map(|(name, namespace)| {
            json!({
                // Prometheus wants host and port; the path tells which proxy it is.
                "targets": [state.address],
                "labels": {"__metrics_path__": format!("/metrics/{name}"), "instance": format!("{name}:15020"), "namespace": namespace, "pod": name},
            })
        }).collect();
        Reply::ok(json!(targets).to_string()).header("content-type", "application/json")
    }
}
