//! Graphs of units with keys, one outcome for each unit, and the journal of events.
//!
//! A [`Unit`] is one piece of work with a [`Key`], the keys it needs, and a function. A [`Run`] runs units as soon as
//! their needs are done, within the [`Limits`] of their class; units may add units and ask for outputs while they
//! run. A [`Key`] may fix the type of its unit's output. A failed unit skips only the units that need it. The
//! [`Report`] has exactly one [`Outcome`] for every unit, and the [`Journal`] records everything as numbered events
//! that any number of readers follow at their own pace.
//!
//! ```
//! use portolan_engine::{Failure, Journal, JournalOptions, Key, Limits, Run, Unit};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let journal = Journal::in_memory(JournalOptions::default());
//! let run = Run::new(Limits::default(), journal.clone());
//!
//! // A synchronous unit computes; it runs on a thread.
//! run.add("source", &[], Unit::cpu(|_| Ok(20)));
//! // An asynchronous unit waits; nobody asked for this one before `sum` does.
//! run.add("extra", &[], Unit::io(|_| async { Ok(22) }).lazy());
//! // A unit reads what it needs, and may add units and wait for others.
//! run.add("sum", &["source".into()], Unit::io(|cx| async move {
//!     let source = cx.need::<i32>(&"source".into())?;
//!     let extra = cx.output::<i32>(&"extra".into()).await?;
//!     cx.add("print", &[], Unit::cpu(|cx| { cx.log("found while running"); Ok(()) }));
//!     Ok(*source + *extra)
//! }));
//! // A failure is the end of its unit and of those that need it, and of nothing else.
//! run.add("broken", &[], Unit::cpu(|_| Err::<(), _>(Failure::message("no such file"))));
//! run.add("publish", &["sum".into(), "broken".into()], Unit::cpu(|_| Ok(())));
//!
//! let report = run.finish().await;
//! assert_eq!(report.output::<i32>(&Key::from("sum")).as_deref(), Some(&42));
//! assert_eq!(
//!     report.to_string(),
//!     "`broken` failed: no such file\n  skipped `publish`\n4 done, 1 failed, 1 skipped, 0 cancelled",
//! );
//!
//! // Everything that happened, from the first event on.
//! journal.close();
//! let mut reader = journal.after(0);
//! while let Some(batch) = reader.next().await? {
//!     for record in batch.iter() {
//!         assert!(record.to_json().starts_with(r#"{"seq":"#));
//!     }
//! }
//! assert_eq!(reader.position(), journal.last());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Results`] keeps outputs by the [`Digest`] of their inputs, so the same work is done only once; [`Fingerprint`]
//! says how a value is hashed.
//!
//! This crate does not know what units do: no repository, no cluster, no terminal. It starts no process, reads no
//! environment and no wall clock; durations and pauses come from tokio's timer.

#![warn(missing_docs)]

mod context;
mod executor;
mod failure;
mod graph;
mod journal;
mod key;
mod life;
mod outcome;
mod publish;
mod report;
mod results;
mod retry;
mod run;
mod run_id;
mod state;
mod unit;
mod unit_log;
pub mod wire;

pub use context::Context;
pub use failure::{Failure, WaitError, causes, with_causes};
pub use journal::{
    Batch, Durability, History, Journal, JournalError, JournalFiles, JournalOptions, MemorySink,
    ReadError, Reader, Sink,
};
pub use key::{Key, Untyped};
pub use outcome::Outcome;
pub use portolan_digest::{Digest, FieldHasher, Fingerprint, fingerprint};
pub use publish::{DomainEvent, MAX_PUBLISHED_BYTES, PublishError, Publisher};
pub use report::{Counts, Report, Root, UnitReport};
pub use results::{ResultCounts, ResultLimits, ResultSlot, Results};
pub use retry::Retry;
pub use run::{Canceller, Run};
pub use run_id::RunId;
pub use state::{Phase, RunPhase, RunState, State, UnitState};
pub use tokio_util::sync::CancellationToken;
pub use unit::{Class, Limits, Output, Unit};
pub use wire::{Event, Line, Progress, Record};
