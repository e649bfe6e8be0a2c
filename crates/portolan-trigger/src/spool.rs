//! Which events an agent keeps while no server is there: at most so many and so many bytes. If there are more, the
//! oldest of the least severe are dropped, and counted.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::event::FleetEvent;
use crate::event::FleetSeverity;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpoolLimits {
    /// Events.
    pub events: usize,
    /// Bytes of events as they are stored.
    pub bytes: u64,
}

/// An event that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpoolEntry {
    /// Its number among those of this source.
    pub seq: u64,
    /// How bad it is.
    pub severity: FleetSeverity,
    /// How many bytes it takes.
    pub bytes: u64,
}

/// Events that were dropped; told to the server with the next delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SpoolLoss {
    /// Events without severity.
    pub info: u64,
    /// Warnings.
    pub warning: u64,
    /// Errors.
    pub error: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// The account of a spool: which events it has, and which were dropped. It holds no events itself.
#[derive(Debug, Clone)]
pub struct SpoolLedger {
    limits: SpoolLimits,
    /// By severity, the oldest first.
    kept: [VecDeque<SpoolEntry>; 3],
    bytes: u64,
    loss: SpoolLoss,
}

impl Default for SpoolLimits {
    fn default() -> Self {
        Self {
            events: 10_000,
            bytes: 16 << 20,
        }
    }
}

impl SpoolLedger {
    /// The account of an empty spool.
    pub fn new(limits: SpoolLimits) -> Self {
        Self {
            limits,
            kept: Default::default(),
            bytes: 0,
            loss: SpoolLoss::default(),
        }
    }

    /// Adds an event and gives those that have to be dropped for it, which may be the event itself.
    ///
    /// ```
    /// use portolan_trigger::{FleetSeverity, SpoolEntry, SpoolLedger, SpoolLimits};
    ///
    /// let mut spool = SpoolLedger::new(SpoolLimits { events: 2, bytes: 1_000 });
    /// let entry = |seq, severity| SpoolEntry { seq, severity, bytes: 10 };
    /// assert!(spool.add(entry(1, FleetSeverity::Error)).is_empty());
    /// assert!(spool.add(entry(2, FleetSeverity::Info)).is_empty());
    /// let dropped = spool.add(entry(3, FleetSeverity::Warning));
    /// assert_eq!(dropped, [entry(2, FleetSeverity::Info)]);
    /// assert_eq!(spool.loss().info, 1);
    /// ```
    pub fn add(&mut self, entry: SpoolEntry) -> Vec<SpoolEntry> {
        self.bytes = self.bytes.saturating_add(entry.bytes);
        if let Some(queue) = self.kept.get_mut(entry.severity as usize) {
            queue.push_back(entry);
        }
        let mut dropped = Vec::new();
        while self.len() > self.limits.events || self.bytes > self.limits.bytes {
            let Some(oldest) = self.kept.iter_mut().find_map(VecDeque::pop_front) else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
            self.loss.add(oldest);
            dropped.push(oldest);
        }
        dropped
    }

    /// Forgets events up to a number, which the server has.
    pub fn delivered(&mut self, seq: u64) {
        for queue in &mut self.kept {
            while let Some(first) = queue.front().filter(|first| first.seq <= seq) {
                self.bytes = self.bytes.saturating_sub(first.bytes);
                queue.pop_front();
            }
        }
    }

    /// How many events it has.
    pub fn len(&self) -> usize {
        self.kept.iter().map(VecDeque::len).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was dropped since it was last told.
    pub fn loss(&self) -> SpoolLoss {
        self.loss
    }

    /// Notes that a loss was told; what was dropped since then is still to be told.
    pub fn told(&mut self, loss: SpoolLoss) {
        self.loss.info = self.loss.info.saturating_sub(loss.info);
        self.loss.warning = self.loss.warning.saturating_sub(loss.warning);
        self.loss.error = self.loss.error.saturating_sub(loss.error);
        self.loss.bytes = self.loss.bytes.saturating_sub(loss.bytes);
    }

    /// Takes up a loss that was stored before a restart.
    pub fn restore_loss(&mut self, loss: SpoolLoss) {
        self.loss = loss;
    }
}

impl SpoolLoss {
    /// How many events.
    pub fn events(self) -> u64 {
        self.info + self.warning + self.error
    }

    fn add(&mut self, entry: SpoolEntry) {
        let count = match entry.severity {
            FleetSeverity::Info => &mut self.info,
            FleetSeverity::Warning => &mut self.warning,
            FleetSeverity::Error => &mut self.error,
        };
        *count += 1;
        self.bytes = self.bytes.saturating_add(entry.bytes);
    }
}

impl SpoolEntry {
    /// The entry of an event that takes so many bytes.
    pub fn of(event: &FleetEvent, seq: u64, bytes: u64) -> Self {
        Self {
            seq,
            severity: event.severity,
            bytes,
        }
    }
}
