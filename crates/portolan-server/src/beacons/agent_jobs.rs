//! The schedules that each node keeps.

use std::sync::Arc;

use portolan_agent::wire::{CronOrder, CronOrders};
use portolan_kinds::{KindObject, find_kind};
use serde_json::{Map, Value};

use crate::cache::Cache;
use crate::live::{book_uses, is_kept_by_nodes};
use crate::node_choice::Grants;
use crate::runs::{BookName, BookUse, StandingRound, Unready};

/// The most schedules of a node; those whose names come first are taken.
const MAX_JOBS: usize = 100;

/// What of a spec agents have to know.
const FIELDS: [&str; 7] = [
    "schedule",
    "timeZone",
    "missed",
    "concurrency",
    "deadline",
    "mode",
    "suspend",
];

/// The CronJobs that nodes keep.
pub(super) struct AgentJobs {
    /// With the books that each slot runs.
    jobs: Vec<(Arc<KindObject>, Vec<BookUse>)>,
    grants: Grants,
}

impl AgentJobs {
    pub(super) fn new(cache: &Cache) -> Self {
        let jobs = find_kind("CronJob").map_or_else(Vec::new, |kind| cache.objects(kind, None));
        let kept = jobs
            .into_iter()
            .filter(|job| is_kept_by_nodes(job) && job.metadata.deletion_timestamp.is_none());
        let kept = kept.map(|job| {
            let books = book_uses(&job);
            (job, books)
        });
        Self {
            jobs: kept.collect(),
            grants: Grants::new(cache),
        }
    }

    /// The books that slots run.
    pub(super) fn books(&self) -> impl Iterator<Item = BookName> {
        let books = self.jobs.iter().flat_map(|(_, books)| books);
        books.map(|wanted| wanted.name.clone())
    }

    /// What a node keeps; `None` while a book for it is being read.
    pub(super) fn orders(
        &self,
        node: &KindObject,
        round: &mut StandingRound<'_>,
    ) -> Option<CronOrders> {
        let place = self.grants.place_of(node);
        let jobs = self.jobs.iter().filter(|(job, _)| {
            let namespace = job.namespace().unwrap_or_default();
            place.is_granted(namespace)
        });
        let mut orders = CronOrders::default();
        for (job, books) in jobs {
            if orders.jobs.len() == MAX_JOBS {
                break;
            }
            orders.jobs.extend(order(job, books, node, round).ok()?);
        }
        Some(orders)
    }
}

/// A book is not read yet.
struct StillReading;

/// A schedule as a node keeps it; `None` if no book of it is for the node.
fn order(
    job: &KindObject,
    books: &[BookUse],
    node: &KindObject,
    round: &mut StandingRound<'_>,
) -> Result<Option<CronOrder>, StillReading> {
    let mut order = CronOrder {
        id: job.metadata.uuid().to_owned(),
        namespace: job.namespace().unwrap_or_default().to_owned(),
        name: job.name().to_owned(),
        spec: spec_of(job).to_string().into(),
        ..CronOrder::default()
    };
    for wanted in books {
        match round.order(wanted, node) {
            Ok(book) => order.books.push(book),
            Err(Unready::Reading) => return Err(StillReading),
            Err(Unready::Elsewhere(_)) => {}
            Err(Unready::NotNow(why)) => {
                order.keeps_books = true;
                order.unusable = why;
            }
            Err(Unready::Refused(why)) => {
                order.keeps_books = false;
                order.unusable = why;
                break;
            }
        }
    }
    // A slot runs all of its books or none.
    if !order.unusable.is_empty() {
        order.books.clear();
    }
    let is_for_node = !order.books.is_empty() || !order.unusable.is_empty();
    Ok(is_for_node.then_some(order))
}

fn spec_of(job: &KindObject) -> Value {
    let fields = FIELDS.into_iter().filter_map(|field| {
        let value = job.spec.get(field)?;
        Some((field.to_owned(), value.clone()))
    });
    Value::Object(fields.collect::<Map<String, Value>>())
}
