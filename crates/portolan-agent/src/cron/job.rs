//! A schedule that the node keeps, as it is sent and kept.

use portolan_trigger::{CronSchedule, ScheduleSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kept_book::KeptBook;
use crate::wire;

/// The most schedules of a node.
const MAX_JOBS: usize = 100;

/// The most books of a schedule.
const MAX_BOOKS: usize = 20;

/// A schedule as it is kept across restarts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptJob {
    /// The uuid of the CronJob.
    pub(super) id: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// When slots are, and what becomes of those that cannot start.
    spec: Map<String, Value>,
    /// What each slot runs.
    pub(super) books: Vec<KeptBook>,
    /// Why no slot can start.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) unusable: String,
}

impl KeptJob {
    /// Reads what the server sent. `known` are the schedules before.
    pub(super) fn read(orders: wire::CronOrders, known: &[Self]) -> Vec<Self> {
        let orders = orders.jobs.into_iter().take(MAX_JOBS);
        orders.map(|order| Self::read_one(order, known)).collect()
    }

    fn read_one(order: wire::CronOrder, known: &[Self]) -> Self {
        let spec = serde_json::from_slice(&order.spec).unwrap_or_default();
        let sent = order.books.len();
        let books = order.books.into_iter().take(MAX_BOOKS);
        let books: Vec<KeptBook> = books.filter_map(KeptBook::read).collect();
        let mut job = Self {
            id: order.id,
            namespace: order.namespace,
            name: order.name,
            spec,
            books,
            unusable: order.unusable,
        };
        if job.books.len() < sent {
            job.books.clear();
            "its books are too many or too large to be kept on a node"
                .clone_into(&mut job.unusable);
        }
        if order.keeps_books
            && let Some(before) = known.iter().find(|before| before.id == job.id)
            && !before.books.is_empty()
        {
            job.books.clone_from(&before.books);
            job.unusable.clear();
        }
        if let Err(error) = job.schedule() {
            job.unusable = error;
        }
        job
    }

    /// When its slots are.
    pub(super) fn schedule(&self) -> Result<CronSchedule, String> {
        let keys = ["schedule", "timeZone", "missed", "concurrency", "deadline"];
        let fields = self.spec.iter();
        let fields = fields.filter(|(key, _)| keys.contains(&key.as_str()));
        let fields = fields.map(|(key, value)| (key.clone(), value.clone()));
        let spec: ScheduleSpec = serde_json::from_value(Value::Object(fields.collect()))
            .map_err(|error| format!("this agent cannot read the schedule: {error}"))?;
        CronSchedule::new(&self.id, &spec).map_err(|error| error.to_string())
    }

    /// Whether slots start: nobody suspended it, and there is something to run.
    pub(super) fn is_usable(&self) -> bool {
        self.unusable.is_empty()
            && !self.books.is_empty()
            && self.spec.get("suspend") != Some(&Value::Bool(true))
    }

    /// Whether slots that could not start in time are made up for.
    pub(super) fn makes_up(&self) -> bool {
        self.spec.get("missed").and_then(Value::as_str) == Some("once")
    }
}
