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
mod reference;

mod action;
mod ahead;
mod plan;
mod unified;

mod account_tool;
mod accounts;
mod apt_tool;
mod authorized_keys;
mod blocking;
mod book_repository;
mod boot;
mod cron_schedule;
mod dnf_tool;
mod dpkg_status;
mod fstab;
mod host;
mod local_processes;
mod manifests;
mod openpgp_key;
mod package_system;
mod process;
mod root;
mod rpm_transaction;
mod shadow;
mod shadow_file;
mod share_files;
mod shares;
mod source_tree;
mod state;
mod sysctl_file;
mod text_file;
mod tool;
mod unit;
mod view;

mod facts;
mod modules;

pub use accounts::{Accounts, GroupRecord, UserRecord};
pub use action::{Action, Applied, ModuleError};
pub use ahead::{Ahead, Attributes, PredictedPackage, PredictedPath, Prediction};
pub use book_repository::BookRepository;
pub use boot::{BootMode, MachineRestart, RestartState, boot_id};
pub use definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport, find_module,
};
pub use facts::{FactCache, FactSource};
pub use host::{Account, BookFileError, BookFiles, DEFAULT_TIMEOUT, Host, NoBookFiles};
pub use local_processes::{KEPT_OUTPUT_BYTES, LocalProcesses};
pub use modules::{
    MAX_ARCHIVE_ENTRIES, MAX_BACKUPS, MAX_DOWNLOAD_BYTES, MAX_FILE_BYTES, MAX_TREE_ENTRIES,
    MAX_UNPACKED_BYTES, MODULES,
};
pub use parameters::{ParameterFault, Parameters};
pub use plan::{Change, ChangeKind, Plan, PlannedOutcome, Subject};
pub use process::{Command, Exit, Processes, Program};
pub use reference::reference;
pub use root::{FileKind, Follow, Kept, NewFile, Root, RootError, StagedFile, Status};
pub use share_files::{
    MAX_SHARE_CONTENT, MAX_SHARE_FILES, ShareFile, ShareFiles, ShareFilesError, SharedContent,
};
pub use shares::{
    FetchedShare, LackingNode, LackingNodes, MAX_SHARE_BYTES, NoShares, Publication, ShareError,
    ShareVersion, ShareWait, Shares,
};
pub use unified::{MAX_DIFF_LINES, unified};
pub use view::{Content, Found, View};

/// Texts of the system that modules read and change, apart from the modules for whoever tries hostile ones.
pub mod formats {
    pub use crate::authorized_keys::{KeyLine, with_keys};
    pub use crate::cron_schedule::fault_of_schedule;
    pub use crate::dpkg_status::{AptStep, DpkgPackage, parse_simulation, parse_status};
    pub use crate::fstab::{MountLine, line_of, mounted_type, with_line};
    pub use crate::openpgp_key::{KeyFault, PublicKeys, read_fingerprint};
    pub use crate::rpm_transaction::{DnfStep, RpmPackage, parse_installed, parse_transaction};
    pub use crate::sysctl_file::{SysctlKey, plain_value, value_of, with_value};
    pub use crate::unit::{ActiveState, EnabledState, SystemdUnit, parse_unit};
}
