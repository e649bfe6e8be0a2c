//! Runs of TaskBooks over connected agents.
//!
//! ```text
//! request: compile, bind inputs, choose nodes, freeze ──▶ store: run/<uuid>/… and the Run (its creation is the commit)
//! RunController (owner of the shard) ──advance──▶ store ──then──▶ RunOrder, RunStop, RunAck ──▶ AgentHub ──▶ agents
//!                    ▲                                                                          │
//!                    └──────────────────────── RunReport, connected, left ◀─────────────────────┘
//! ```
//!
//! Every change of a run is in the store, under the fence of the shard, before what it allows is sent, and before a report is
//! acknowledged. What is sent may be sent again at any time: agents answer from their journals.

mod active;
mod answer;
mod approved_plan;
mod book_source;
mod circles;
mod controller;
mod exec;
mod files;
mod fired;
mod frozen;
mod keys;
mod news;
mod plan;
mod produced;
mod record;
mod request;
mod sealed;
mod side;
mod standing;
mod step_news;
mod target;
mod variable_files;
mod variable_patterns;
mod variable_secrets;
mod variable_sources;
mod variables;
mod wish;

pub(crate) use circles::{check_circles, write_without_circle};
pub(crate) use controller::{RunController, RunInput, is_over};
pub(crate) use exec::ExecRequest;
pub(crate) use files::FileQuestion;
pub(crate) use fired::{BookNodes, FiredRun, FiredRunOutcome, MadeBy};
pub(crate) use request::{Repetition, RunRequest};
pub(crate) use standing::{BookName, BookUse, KeptFiles, StandingBooks, StandingRound, Unready};
pub(crate) use variable_patterns::VariablePatterns;
pub(crate) use wish::RunWish;
