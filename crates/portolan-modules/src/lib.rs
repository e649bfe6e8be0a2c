//! What a step of a TaskBook can do to a server: write files, install packages, start services, run commands.
//!
//! ```text
//! parameters ──parse──▶ Action ──plan(View)──▶ Plan ──apply(Host)──▶ Applied ──verify(Host)──▶ as planned, or an error
//!                                  │ looks, changes nothing        │ looks again, then acts
//!                                  ▼                               ▼
//!                        Host (root, programs, book's files) and what earlier steps will have changed (Ahead)
//! ```
//!
//! [`find_module`] is the way in: a [`ModuleDefinition`] says which parameters a module has and makes an [`Action`]
//! of them. The crate does not know books, runs, conditions or templates: it gets parameters as they are after
//! rendering, and gives back what would change or was changed.

#![warn(missing_docs)]

mod definition;
mod parameters;

mod action;
mod ahead;
mod plan;

mod host;
mod process;

mod modules;

pub use action::{Action, Applied, ModuleError};
pub use ahead::{Ahead, PredictedPath, Prediction};
pub use definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport, find_module,
    nearest_module,
};
pub use host::{Account, BookFiles, Host, View};
pub use modules::MODULES;
pub use parameters::{ParameterFault, Parameters};
pub use plan::{Change, ChangeKind, Decision, Plan, Subject};
pub use process::{Command, Exit, Processes, Program};
