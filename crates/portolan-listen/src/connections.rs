//! The open connections: limits in total and per client, and which connection is closed for a new one.
//!
//! A connection without a complete request costs its owner nothing, so at a limit the one that has waited longest is
//! closed. A client that opens many and sends nothing thus replaces its own connections, and others are still
//! answered.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::activity::Activity;
use crate::client::{Allowance, Client};
use crate::limits::Limits;

/// How many clients are remembered for their rate of requests; beyond it, those without a connection are forgotten.
const MAX_CLIENTS: usize = 4096;

/// The open connections.
pub(crate) struct Connections {
    limits: Limits,
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By number: the oldest first.
    open: BTreeMap<u64, Open>,
    next: u64,
    clients: HashMap<Client, Counted>,
}

struct Open {
    client: Client,
    activity: Arc<Activity>,
}

struct Counted {
    connections: usize,
    allowance: Allowance,
}

/// A connection's place; free again when it is dropped.
pub(crate) struct Place {
    connections: Arc<Connections>,
    number: u64,
    pub(crate) client: Client,
    pub(crate) activity: Arc<Activity>,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            places: Arc::new(Semaphore::new(limits.connections.max(1))),
            limits,
            state: Mutex::default(),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A place for a new connection; `None` when every connection that could make room has a request in flight.
    pub(crate) async fn admit(self: &Arc<Self>, client: Client) -> Option<Place> {
        if !self.make_room(client) {
            return None;
        }
        // Whoever makes room is closed by its own task: a moment at most.
        let permit = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let activity = Arc::new(Activity::new(
            self.limits.header_time,
            self.limits.idle_time,
        ));
        let number = self.state().enter(client, &activity, &self.limits);
        Some(Place {
            connections: Arc::clone(self),
            number,
            client,
            activity,
            _permit: permit,
        })
    }

    /// Closes the connection that has waited longest, if there is one.
    pub(crate) fn evict_oldest(&self) -> bool {
        self.state().evict(|_| true)
    }

    fn make_room(&self, client: Client) -> bool {
        let mut state = self.state();
        let of_client = state.clients.get(&client);
        let of_client = of_client.map_or(0, |counted| counted.connections);
        if of_client >= self.limits.connections_per_client.max(1) {
            return state.evict(|open| open.client == client);
        }
        state.open.len() < self.limits.connections.max(1) || state.evict(|_| true)
    }

    /// Whether a client may send another request now.
    pub(crate) fn may_ask(&self, client: Client) -> bool {
        let now = Instant::now();
        let Limits {
            requests_per_second,
            request_burst,
            ..
        } = self.limits;
        let mut state = self.state();
        let counted = state.clients.get_mut(&client);
        counted.is_none_or(|counted| {
            counted
                .allowance
                .take(requests_per_second, request_burst, now)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enter(&mut self, client: Client, activity: &Arc<Activity>, limits: &Limits) -> u64 {
        let now = Instant::now();
        if self.clients.len() >= MAX_CLIENTS {
            self.forget_clients(limits, now);
        }
        let counted = self.clients.entry(client).or_insert_with(|| Counted {
            connections: 0,
            allowance: Allowance::full(limits.request_burst, now),
        });
        counted.connections += 1;
        let number = self.next;
        self.next += 1;
        let activity = Arc::clone(activity);
        self.open.insert(number, Open { client, activity });
        number
    }

    /// Forgets clients that are gone: first those whose rate tells nothing any more, then all.
    fn forget_clients(&mut self, limits: &Limits, now: Instant) {
        let (per_second, burst) = (limits.requests_per_second, limits.request_burst);
        let is_open = |counted: &Counted| counted.connections > 0;
        self.clients.retain(|_, counted| {
            is_open(counted) || !counted.allowance.is_full(per_second, burst, now)
        });
        if self.clients.len() >= MAX_CLIENTS {
            self.clients.retain(|_, counted| is_open(counted));
        }
    }

    fn evict(&mut self, among: impl Fn(&Open) -> bool) -> bool {
        let mut open = self.open.iter();
        let evicted = open.find(|(_, open)| among(open) && open.activity.evict());
        let Some(number) = evicted.map(|(number, _)| *number) else {
            return false;
        };
        self.leave(number);
        true
    }

    fn leave(&mut self, number: u64) {
        let open = self.open.remove(&number);
        let counted = open.and_then(|open| self.clients.get_mut(&open.client));
        if let Some(counted) = counted {
            counted.connections -= 1;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // One that made room for another has left already.
        self.connections.state().leave(self.number);
    }
}
