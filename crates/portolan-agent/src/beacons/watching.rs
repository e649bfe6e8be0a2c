//! Looks at what is watched: every interval, and when the kernel hints at a change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use portolan_modules::Host;
use portolan_trigger::{BeaconEdge, BeaconState, BeaconSubject, FleetSeverity};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::NodeBeacons;
use super::check::{Sight, look, unknown};
use super::drift::look_at_drift;
use super::file_watch::FileWatch;
use super::order::{KeptOrder, Subject};
use super::spool::BeaconNotice;
use crate::activity::NodeActivity;
use crate::failpoint::failpoint;
use crate::wire;

/// Looks at the same time: the others wait.
const AT_ONCE: usize = 4;

/// How often a beacon that a run holds is asked for again.
const HELD: Duration = Duration::from_millis(500);

/// How long files of a book may take to come before that is told.
const FILES_TIME: Duration = Duration::from_mins(1);

/// How long a book may be compared with the node.
const DRIFT_TIME: Duration = Duration::from_mins(5);

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
    /// The run that has changed what is watched, until that was seen.
    run: Option<String>,
    /// Since when files of its book are missing.
    missing_since: Option<Instant>,
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
                () = self.activity.changed.notified() => watching.mark_runs(),
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
            match self.watched.get_mut(&order.id) {
                Some(known) if known.order == *order => {}
                // The same Beacon with another state of its book: what it has told is still told.
                Some(known) => {
                    known.order = order.clone();
                    known.due = Instant::now();
                    known.is_stale |= known.is_looked_at;
                    known.missing_since = None;
                }
                None => {
                    let watched = Watched {
                        state: inner.spool.state(&order.id),
                        order: order.clone(),
                        due: Instant::now(),
                        is_looked_at: false,
                        is_stale: false,
                        run: None,
                        missing_since: None,
                    };
                    self.watched.insert(order.id.clone(), watched);
                }
            }
        }
        drop(inner);
        self.beacons.told.notify_one();
        let paths: Vec<Utf8PathBuf> = self
            .watched
            .values()
            .filter_map(|one| self.path(one))
            .collect();
        self.files.retain(&paths);
        let subjects = self.watched.values().map(Watched::subject_of_runs);
        self.beacons.activity.watch(subjects.collect());
    }

    /// Marks beacons whose subjects are, or were, changed by runs. They are looked at when the runs have ended.
    fn mark_runs(&mut self) {
        let (now, soon) = (Timestamp::now(), Instant::now() + HELD);
        let activity = &self.beacons.activity;
        for watched in self.watched.values_mut() {
            let mark = activity.mark(&watched.subject_of_runs(), now);
            if mark.run.is_some() {
                watched.run = mark.run;
                watched.due = watched.due.min(soon);
            }
        }
        activity.forget_ended(now);
    }

    /// Forgets on the disk what runs have changed, once everybody who watches it has seen that.
    fn forget_runs(&self) {
        if self.watched.values().all(|one| one.run.is_none()) {
            self.beacons.activity.forget_file();
        }
    }

    /// Whether a book is being compared.
    fn is_comparing(&self) -> bool {
        let mut watched = self.watched.values();
        watched.any(|one| one.is_looked_at && one.is_drift())
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
        let is_comparing = self.is_comparing();
        let waiting = self.watched.values().filter(|one| !one.is_looked_at);
        let waiting = waiting.filter(|one| !(is_comparing && one.is_drift()));
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
        self.mark_runs();
        let is_expired = self.beacons.is_expired();
        for (_, id) in due {
            if self.looks.len() >= AT_ONCE {
                return;
            }
            let is_comparing = self.is_comparing();
            let Some(watched) = self.watched.get_mut(&id) else {
                continue;
            };
            if is_expired {
                watched.due = now + watched.order.spec.interval();
            } else if watched.is_drift() && (is_comparing || watched.waits_for_files(self.beacons))
            {
                // One book at a time; the others are due when it is done.
            } else if watched.is_held(&self.beacons.activity) {
                watched.due = now + HELD;
            } else {
                watched.is_looked_at = true;
                watched.is_stale = false;
                watched.due = now + watched.order.spec.interval();
                self.begin_look(id);
            }
        }
    }

    fn begin_look(&mut self, id: String) {
        let Some(watched) = self.watched.get(&id) else {
            return;
        };
        if let Some(path) = self.path(watched) {
            // Before the look, so that no change is between the two.
            self.files.watch(&path);
        }
        let (host, order) = (Arc::clone(&self.host), watched.order.clone());
        if !watched.is_drift() {
            self.looks
                .spawn_blocking(move || (id, look(&order.spec.subject, &host)));
            return;
        }
        let files = Arc::clone(&self.beacons.files);
        let stop = host.stop.child_token();
        let ended = stop.clone();
        let look = move || look_at_drift(&order, &host, &files, &stop);
        self.looks.spawn(async move {
            let mut look = tokio::task::spawn_blocking(look);
            let seen = tokio::select! {
                seen = &mut look => seen,
                () = tokio::time::sleep(DRIFT_TIME) => {
                    ended.cancel();
                    look.await
                }
            };
            let seen = seen.unwrap_or_else(|_| unknown("the agent failed; its log says why"));
            (id, seen)
        });
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
        self.mark_runs();
        let Some(watched) = self.watched.get_mut(id) else {
            return;
        };
        watched.is_looked_at = false;
        if watched.is_stale {
            watched.due = watched.due.min(Instant::now() + SETTLE);
        }
        let now = Timestamp::now();
        if watched.is_held(&self.beacons.activity) {
            // A run began to change it while it was looked at.
            watched.due = Instant::now() + HELD;
            return;
        }
        let mut state = watched.state.clone();
        let edge = state.read(&watched.order.spec.edge(), &sight.reading, now);
        let remembered = (id.to_owned(), state.clone());
        let mut inner = self.beacons.inner();
        let written = match &edge {
            Some(edge) => {
                failpoint("beacon-before-event");
                let mut notice = notice(&watched.order, edge, sight, now);
                notice.run.clone_from(&watched.run);
                if notice.run.is_none() {
                    notice.during = self.beacons.activity.at_work();
                }
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
        // One that must be seen several times keeps its mark until it counts.
        if watched.state.has_settled_on(&sight.reading) {
            watched.run = None;
        }
        let is_new = inner.see(&watched.order, &watched.state, sight, now);
        drop(inner);
        if is_new || edge.is_some() {
            self.beacons.told.notify_one();
        }
        self.forget_runs();
    }
}

impl Watched {
    fn is_drift(&self) -> bool {
        matches!(self.order.spec.subject, Subject::Drift { .. })
    }

    fn subject_of_runs(&self) -> BeaconSubject {
        self.order.spec.subject.changed_by_runs()
    }

    /// Whether a run changes what is watched, so that it must not be looked at yet.
    fn is_held(&self, activity: &NodeActivity) -> bool {
        let mark = activity.mark(&self.subject_of_runs(), Timestamp::now());
        mark.is_held
    }

    /// Whether files of the book are on their way; those that do not come in time are told.
    fn waits_for_files(&mut self, beacons: &NodeBeacons) -> bool {
        let Some(book) = &self.order.book else {
            return false;
        };
        if book.has_files(&beacons.files) != Ok(false) {
            self.missing_since = None;
            return false;
        }
        let now = Instant::now();
        let since = *self.missing_since.get_or_insert(now);
        let waits = now < since + FILES_TIME;
        if waits {
            self.due = now + HELD;
        }
        waits
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
            condition: order
                .spec
                .subject
                .shown(state.settled().unwrap_or(&sight.reading.condition))
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
    let subject = &order.spec.subject;
    let shown = subject.shown(&edge.now);
    let before = edge.before.as_deref().map(|before| subject.shown(before));
    let told = json!({
        "condition": shown, "normal": is_normal, "changed": edge.is_change,
        "before": before, "labels": order.spec.labels,
    });
    if let Value::Object(told) = told {
        data.extend(told);
    }
    let subject = subject.in_words();
    let summary = match before {
        Some(before) if edge.is_change && before == shown => {
            format!("{subject} is {shown}, in another way than before")
        }
        Some(before) if edge.is_change => format!("{subject} is {shown} and was {before}"),
        _ => format!("{subject} is {shown}"),
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
        run: None,
        during: None,
        id: None,
    }
}
