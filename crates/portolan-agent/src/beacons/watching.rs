//! Looks at what is watched: every interval, and when the kernel hints at a change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use portolan_modules::Host;
use portolan_trigger::{BeaconEdge, BeaconState, FleetSeverity};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::NodeBeacons;
use super::check::{Sight, look};
use super::file_watch::FileWatch;
use super::order::{KeptOrder, Subject};
use super::spool::BeaconNotice;
use crate::failpoint::failpoint;
use crate::wire;

/// Looks at the same time: the others wait.
const AT_ONCE: usize = 4;

/// How long a file is left alone after a hint: whoever changes it is often not done yet. This also bounds how often one
/// beacon tells something.
const SETTLE: Duration = Duration::from_millis(200);

/// How long something that could not be written waits.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// How often the server hears that a beacon still looks.
const REFRESH_SECONDS: i64 = 60;

/// Everything that is watched.
struct Watching<'b> {
    beacons: &'b NodeBeacons,
    /// By the id of the order.
    watched: BTreeMap<String, Watched>,
    files: FileWatch,
    looks: JoinSet<(String, Sight)>,
    host: Arc<Host>,
}

struct Watched {
    order: KeptOrder,
    state: BeaconState,
    due: Instant,
    is_looked_at: bool,
    /// Whether something happened while it was looked at.
    is_stale: bool,
}

impl NodeBeacons {
    /// Watches until the future is dropped.
    pub(crate) async fn watch(&self) -> Infallible {
        let host = Host::local(Arc::clone(&self.root));
        // Commands that are under way end with this future.
        let _stop = host.stop.clone().drop_guard();
        let mut watching = Watching {
            beacons: self,
            watched: BTreeMap::new(),
            files: FileWatch::new(),
            looks: JoinSet::new(),
            host: Arc::new(host),
        };
        watching.take_orders();
        loop {
            watching.begin_looks();
            let next = watching.next_due();
            tokio::select! {
                () = self.ordered.notified() => watching.take_orders(),
                () = sleep_until(next) => {}
                hint = watching.files.next() => {
                    watching.hint(&hint);
                }
                Some(ended) = watching.looks.join_next() => match ended {
                    Ok((id, sight)) => watching.seen(&id, &sight),
                    // A look that panicked has no id: all are looked at again when their time comes.
                    Err(error) => {
                        tracing::error!(%error, "a look at something that is watched has failed");
                        watching.forget_looks();
                    }
                },
            }
        }
    }

    /// Whether the certificate of the node has ended.
    fn is_expired(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default() >= self.inner().expires
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

impl Watching<'_> {
    /// Begins to watch what is new, and ends to watch what is gone. What did not change is left alone.
    fn take_orders(&mut self) {
        let mut inner = self.beacons.inner();
        let orders = Arc::clone(&inner.orders);
        let is_ordered = |id: &str| orders.iter().any(|order| order.id == id);
        if let Err(error) = inner.spool.retain(is_ordered) {
            tracing::warn!(%error, "what ended beacons remember cannot be forgotten");
        }
        let named = |namespace: &str, name: &str| {
            let mut orders = orders.iter();
            orders.any(|order| order.namespace == namespace && order.name == name)
        };
        inner
            .sights
            .retain(|(namespace, name), _| named(namespace, name));
        inner.sights_version += 1;
        self.watched.retain(|id, _| is_ordered(id));
        for order in orders.iter() {
            let state = || inner.spool.state(&order.id);
            self.watched
                .entry(order.id.clone())
                .or_insert_with(|| Watched {
                    state: state(),
                    order: order.clone(),
                    due: Instant::now(),
                    is_looked_at: false,
                    is_stale: false,
                });
        }
        drop(inner);
        self.beacons.told.notify_one();
        let paths: Vec<Utf8PathBuf> = self
            .watched
            .values()
            .filter_map(|one| self.path(one))
            .collect();
        self.files.retain(&paths);
    }

    /// Where a watched file is on the machine.
    fn path(&self, watched: &Watched) -> Option<Utf8PathBuf> {
        match &watched.order.spec.subject {
            Subject::File { path, .. } => Some(self.host.root.machine_path(path.as_str().into())),
            _ => None,
        }
    }

    /// When the next look is due, unless as many as may are under way.
    fn next_due(&self) -> Option<Instant> {
        let waiting = self.watched.values().filter(|one| !one.is_looked_at);
        let due = waiting.map(|one| one.due).min();
        due.filter(|_| self.looks.len() < AT_ONCE)
    }

    fn begin_looks(&mut self) {
        let now = Instant::now();
        let mut due: Vec<(Instant, String)> = self
            .watched
            .iter()
            .filter(|(_, one)| !one.is_looked_at && one.due <= now)
            .map(|(id, one)| (one.due, id.clone()))
            .collect();
        if due.is_empty() {
            return;
        }
        due.sort();
        let is_expired = self.beacons.is_expired();
        for (_, id) in due {
            let Some(watched) = self.watched.get_mut(&id) else {
                continue;
            };
            if is_expired {
                watched.due = now + watched.order.spec.interval();
                continue;
            }
            if self.looks.len() >= AT_ONCE {
                return;
            }
            watched.is_looked_at = true;
            watched.is_stale = false;
            watched.due = now + watched.order.spec.interval();
            let subject = watched.order.spec.subject.clone();
            let path = self.watched.get(&id).and_then(|watched| self.path(watched));
            if let Some(path) = path {
                // Before the look, so that no change is between the two.
                self.files.watch(&path);
            }
            let host = Arc::clone(&self.host);
            self.looks.spawn_blocking(move || {
                let sight = look(&subject, &host);
                (id, sight)
            });
        }
    }

    fn hint(&mut self, hint: &super::file_watch::Hint) {
        let soon = Instant::now() + SETTLE;
        let root = Arc::clone(&self.host.root);
        for watched in self.watched.values_mut() {
            if let Subject::File { path, .. } = &watched.order.spec.subject
                && hint.concerns(&root.machine_path(path.as_str().into()))
            {
                watched.due = watched.due.min(soon);
                watched.is_stale |= watched.is_looked_at;
            }
        }
    }

    fn forget_looks(&mut self) {
        if self.looks.is_empty() {
            for watched in self.watched.values_mut() {
                watched.is_looked_at = false;
            }
        }
    }

    /// Takes note of what was seen. What cannot be written is looked at again, as if it had not been seen.
    fn seen(&mut self, id: &str, sight: &Sight) {
        let Some(watched) = self.watched.get_mut(id) else {
            return;
        };
        watched.is_looked_at = false;
        if watched.is_stale {
            watched.due = watched.due.min(Instant::now() + SETTLE);
        }
        let now = Timestamp::now();
        let mut state = watched.state.clone();
        let edge = state.read(&watched.order.spec.edge(), &sight.reading, now);
        let remembered = (id.to_owned(), state.clone());
        let mut inner = self.beacons.inner();
        let written = match &edge {
            Some(edge) => {
                failpoint("beacon-before-event");
                let notice = notice(&watched.order, edge, sight, now);
                let written = inner.spool.tell_and_remember(&notice, remembered);
                failpoint("beacon-after-event");
                written
            }
            None if state.settled() != watched.state.settled() => inner.spool.remember(remembered),
            None => Ok(()),
        };
        if let Err(error) = written {
            tracing::warn!(%error, beacon = watched.order.name, "what a beacon saw cannot be written");
            watched.due = Instant::now() + TRY_AGAIN;
            return;
        }
        watched.state = state;
        let is_new = inner.see(&watched.order, &watched.state, sight, now);
        drop(inner);
        if is_new || edge.is_some() {
            self.beacons.told.notify_one();
        }
    }
}

impl super::Inner {
    /// Keeps what a beacon sees; whether the server should hear of it.
    fn see(
        &mut self,
        order: &KeptOrder,
        state: &BeaconState,
        sight: &Sight,
        now: Timestamp,
    ) -> bool {
        let seconds = now.as_second().div_euclid(REFRESH_SECONDS) * REFRESH_SECONDS;
        let last_seen = Timestamp::from_second(seconds).unwrap_or(now);
        let seen = wire::BeaconSight {
            namespace: order.namespace.clone(),
            name: order.name.clone(),
            condition: state
                .settled()
                .unwrap_or(&sight.reading.condition)
                .to_owned(),
            is_normal: sight.reading.is_normal,
            last_seen: last_seen.to_string(),
        };
        let key = (order.namespace.clone(), order.name.clone());
        let is_new = self.sights.get(&key) != Some(&seen);
        if is_new {
            self.sights.insert(key, seen);
            self.sights_version += 1;
        }
        is_new
    }
}

fn notice(order: &KeptOrder, edge: &BeaconEdge, sight: &Sight, now: Timestamp) -> BeaconNotice {
    let is_normal = sight.reading.is_normal;
    let mut data = sight.data.clone();
    let told = json!({
        "condition": edge.now, "normal": is_normal, "changed": edge.is_change,
        "before": edge.before, "labels": order.spec.labels,
    });
    if let Value::Object(told) = told {
        data.extend(told);
    }
    let subject = order.spec.subject.in_words();
    let summary = match (&edge.before, edge.is_change) {
        (Some(before), true) => format!("{subject} is {} and was {before}", edge.now),
        _ => format!("{subject} is {}", edge.now),
    };
    BeaconNotice {
        namespace: order.namespace.clone(),
        beacon: order.name.clone(),
        subject: order.spec.subject.word().to_owned(),
        severity: if is_normal {
            FleetSeverity::Info
        } else {
            order.spec.severity
        },
        time: now,
        summary: summary.chars().take(1_000).collect(),
        data,
    }
}
