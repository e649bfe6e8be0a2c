//! What a run is changing at the moment: beacons that watch the same are paused, so that a run does not set off what
//! would start it again.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::span::later;

/// How long beacons stay paused after a run: events of the kernel and of the service manager come a little late.
const SETTLE: Duration = Duration::from_secs(2);

/// What runs on a node are changing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TouchedByRun {
    paths: BTreeSet<String>,
    services: BTreeSet<String>,
    /// When the run ended; without it, it is under way.
    ended: Option<Timestamp>,
}

/// What a beacon watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeaconSubject {
    /// A file, or a directory and everything below it.
    Path(String),
    /// A service.
    Service(String),
    /// Whatever a TaskBook looks at: nothing of it counts while a run is at work.
    Everything,
    /// Something that no step changes by its name: a disk, a port, the result of a command.
    Other,
}

impl TouchedByRun {
    /// Adds a path that a step writes.
    pub fn path(&mut self, path: &str) {
        self.paths.insert(plain_path(path));
    }

    /// Adds a service that a step starts, stops or changes.
    pub fn service(&mut self, name: &str) {
        self.services.insert(unit(name).to_owned());
    }

    /// Notes that the run has ended.
    pub fn end(&mut self, now: Timestamp) {
        self.ended = Some(now);
    }

    /// Notes that the run goes on.
    pub fn go_on(&mut self) {
        self.ended = None;
    }

    /// Whether the run is under way.
    pub fn is_at_work(&self) -> bool {
        self.ended.is_none()
    }

    /// Whether the run has ended, and what it changed had time to be seen.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.ended.is_some_and(|ended| is_settled(ended, now))
    }

    /// Whether a beacon is paused: what it watches is what a run changes, above it or below it.
    ///
    /// ```
    /// use portolan_trigger::{BeaconSubject, TouchedByRun};
    ///
    /// let mut run = TouchedByRun::default();
    /// run.path("/etc/web/web.conf");
    /// run.service("web");
    /// let now = "2026-11-18T09:00:00Z".parse()?;
    /// assert!(run.pauses(&BeaconSubject::Path("/etc/web".into()), now));
    /// assert!(run.pauses(&BeaconSubject::Service("web.service".into()), now));
    /// assert!(!run.pauses(&BeaconSubject::Path("/etc/webmail".into()), now));
    /// run.end(now);
    /// assert!(!run.pauses(&BeaconSubject::Service("web".into()), "2026-11-18T09:00:03Z".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pauses(&self, subject: &BeaconSubject, now: Timestamp) -> bool {
        !self.is_over(now) && (*subject == BeaconSubject::Everything || self.changes(subject))
    }

    /// Whether what a beacon watches is what the run changes, or has changed.
    pub fn changes(&self, subject: &BeaconSubject) -> bool {
        match subject {
            BeaconSubject::Path(path) => {
                let watched = plain_path(path);
                self.paths
                    .iter()
                    .any(|touched| is_below(touched, &watched) || is_below(&watched, touched))
            }
            BeaconSubject::Service(name) => self.services.contains(unit(name)),
            BeaconSubject::Everything => !self.paths.is_empty() || !self.services.is_empty(),
            BeaconSubject::Other => false,
        }
    }
}

/// A clock that went back must not pause a beacon for ever.
fn is_settled(ended: Timestamp, now: Timestamp) -> bool {
    now < ended || later(ended, SETTLE) <= now
}

fn is_below(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || directory == "/")
}

/// A path without doubled or final slashes and without `.`.
fn plain_path(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    let joined: Vec<&str> = parts.collect();
    format!("/{}", joined.join("/"))
}

fn unit(name: &str) -> &str {
    name.strip_suffix(".service").unwrap_or(name)
}
