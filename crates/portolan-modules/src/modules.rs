//! All modules, in the order of the reference. A module is one file below this, and one line here.

mod command;
mod cron;
mod git;
mod group;
mod hostname;
mod mount;
mod reboot;
mod sysctl;
mod user;
mod wait;

use crate::definition::ModuleDefinition;

/// All modules.
pub static MODULES: &[&ModuleDefinition] = &[
    &user::USER,
    &group::GROUP,
    &command::COMMAND,
    &sysctl::SYSCTL,
    &cron::CRON,
    &git::GIT,
    &mount::MOUNT,
    &hostname::HOSTNAME,
    &wait::WAIT,
    &reboot::REBOOT,
];
