//! All modules, in the order of the reference. A module is one file below this, and one line here.

mod attributes;
mod path_state;
mod text_lines;
mod write;

mod apply;
mod archive;
mod assert;
mod block;
mod command;
mod cron;
mod directory;
mod download;
mod fetch;
mod file;
mod git;
mod group;
mod hostname;
mod line;
mod link;
mod mount;
mod package;
mod print;
mod publish;
mod read;
mod reboot;
mod render;
mod repository;
mod service;
mod set;
mod sysctl;
mod user;
mod wait;

use crate::definition::ModuleDefinition;

pub use archive::{MAX_ARCHIVE_ENTRIES, MAX_UNPACKED_BYTES};
pub use directory::MAX_TREE_ENTRIES;
pub use download::MAX_DOWNLOAD_BYTES;
pub use file::MAX_BACKUPS;
pub use write::MAX_FILE_BYTES;

/// All modules.
pub static MODULES: &[&ModuleDefinition] = &[
    &file::FILE,
    &directory::DIRECTORY,
    &link::LINK,
    &line::LINE,
    &block::BLOCK,
    &archive::ARCHIVE,
    &download::DOWNLOAD,
    &package::PACKAGE,
    &repository::REPOSITORY,
    &service::SERVICE,
    &user::USER,
    &group::GROUP,
    &command::COMMAND,
    &sysctl::SYSCTL,
    &cron::CRON,
    &git::GIT,
    &render::RENDER,
    &apply::APPLY,
    &mount::MOUNT,
    &hostname::HOSTNAME,
    &publish::PUBLISH,
    &fetch::FETCH,
    &wait::WAIT,
    &reboot::REBOOT,
    &read::READ,
    &set::SET,
    &assert::ASSERT,
    &print::PRINT,
];
