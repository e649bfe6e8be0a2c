//! TaskBooks: what a server should be like, in steps, and how they are taken on one node or many.
//!
//! ```text
//! book.yaml ──compile──▶ Book ──NodeRun (one node)──▶ a StepReport for each step, one NodeState
//!                         │         │  plan, apply: portolan-modules
//!                         │         └─ StepJournal: what was begun and what was done, on disk before and after
//!                         └──advance(RunState, Observed) (many nodes)──▶ RunState, RunEffects: whom to send what
//! ```
//!
//! The crate does not know where it runs: a local run and an agent give it a [`NodeHost`], a server gives the state
//! machine what it observed. It prints nothing.

#![warn(missing_docs)]

mod fault;

mod book;
mod book_files;
mod compile;
mod decision;
mod git_includes;
mod input;
mod known;
mod named_files;
mod text;
mod tree_files;
mod variable_files;

mod execute;
mod journal;
mod outcome;

mod alone;
mod facts;
mod local;

mod inventory;

mod barriers;
mod compliance;
mod fleet_run;
mod plan_document;
mod run_report;
mod why;

mod convert;

pub use alone::needs_others;
pub use barriers::Barriers;
pub use book::{
    AskedFleet, Barrier, Block, Book, DEFAULT_INTERVAL, DEFAULT_TIMEOUT, Gate, HandlerPolicy,
    Included, Input, InputKind, Items, MAX_ITEMS, ModuleCall, OnUnknown, Retries, RunOn,
    RunOptions, Share, Step, StepOptions, Unreachable, Work, batch_sizes,
};
pub use book_files::{DirectoryFiles, MAX_FILE_BYTES, MemoryFiles, RecordedFiles};
pub use compile::{BookSource, TagSelection, compile};
pub use compliance::{ComplianceRun, NodeCompliance, compliance};
pub use convert::{ConversionError, ConversionNote, ConvertedPlay, convert_playbook};
pub use decision::{Decision, DecisionError, Fleet, FleetQueryError, NoFleet};
pub use execute::{
    NodeHost, NodeOutcome, NodeRequest, NodeRun, NodeStop, ResultError, RunMode, SideOutcome,
};
pub use facts::{CUSTOM_FACTS, gather_facts};
pub use fault::{BookFault, Place};
pub use fleet_run::{
    Arrival, BarrierScope, Cancel, GatePlan, GateReply, GateState, NodeEnd, NodeEvent,
    NodeProgress, NodeReport, Observed, Permits, ReportWindow, RunEffect, RunEnd, RunPlan,
    RunState, Stage, UnreachablePolicy, advance,
};
pub use git_includes::{GitIncludes, IncludePolicy, MAX_REPOSITORIES};
pub use input::{InputFault, bind_inputs};
pub use inventory::{AnsibleInventory, ExpectedNode, ImportedInventory, SameName, VariableFile};
pub use journal::{
    JournalEntry, JournalError, JournalState, MAX_JOURNAL_BYTES, MAX_RECORD_BYTES, Progress,
    ReadJournal, StepJournal, StepKey, read_journal,
};
pub use known::fact_types;
pub use local::{LocalError, LocalOutcome, LocalRun, NodeLock, check_local};
pub use named_files::named_files;
pub use outcome::{NodeState, PlannedChange, StepError, StepReport, StepState};
pub use plan_document::{
    PlannedBook, plan_differences, plan_digest, plan_document, plan_of, plan_refusal, planned_steps,
};
pub use run_report::{NodePart, RunReport};
pub use text::{MAX_FUEL, MAX_TEXT_BYTES, TextError, TextRenderer, scope_of};
pub use tree_files::TreeFiles;
pub use variable_files::{
    FileVariable, MAX_VARIABLE_FILE_BYTES, is_fleet_object, read_variable_file,
};
pub use why::{RunExplanation, WhyError, explain};
