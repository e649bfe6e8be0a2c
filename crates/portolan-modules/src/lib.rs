//! What a step of a book can do to a server: write files, install packages, start services, run commands.
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
mod words;

mod action;
mod ahead;
mod plan;
mod unified;

mod accounts;
mod host;
mod local_processes;
mod process;
mod root;
mod view;

mod modules;

pub use accounts::{Accounts, GroupRecord, UserRecord};
pub use action::{Action, Applied, ModuleError};
pub use ahead::{Ahead, Attributes, PredictedPackage, PredictedPath, Prediction};
pub use definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport, find_module,
    nearest_module,
};
pub use host::{Account, BookFiles, DEFAULT_TIMEOUT, Host, NoBookFiles};
pub use local_processes::{KEPT_OUTPUT_BYTES, LocalProcesses};
pub use modules::MODULES;
pub use parameters::{ParameterFault, Parameters};
pub use plan::{Change, ChangeKind, Decision, Plan, Subject};
pub use process::{Command, Exit, Processes, Program};
pub use root::{FileKind, Follow, Kept, NewFile, Root, RootError, StagedFile, Status};
pub use unified::{MAX_DIFF_LINES, unified};
pub use view::{Content, Found, View};
pub use words::read_duration;
