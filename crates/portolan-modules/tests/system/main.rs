//! Modules that change the system, tried below temporary roots and in namespaces. What they share is in `bed.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may end where something unexpected happens"
)]

mod accounts;
mod bed;
mod command;
mod cron;
mod dnf;
mod git;
mod packages;
mod repositories;
mod services;
mod settings;
mod waiting;
