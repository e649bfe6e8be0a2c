//! All kinds, one file each.

mod beacon;
mod cluster_role;
mod cluster_role_binding;
mod cluster_variable;
mod cluster_variables_binding;
mod config;
mod cron_job;
mod event;
mod namespace;
mod node;
mod node_grant;
mod node_group;
mod repository;
mod role;
mod role_binding;
mod run;
mod secret;
mod share;
mod task_book;
mod trigger;
mod variable;
mod webhook;

pub use trigger::trigger_rules;

use crate::definition::KindDefinition;

/// Every kind, by name.
pub const KINDS: [&KindDefinition; 22] = [
    &beacon::DEFINITION,
    &cluster_role::DEFINITION,
    &cluster_role_binding::DEFINITION,
    &cluster_variable::DEFINITION,
    &cluster_variables_binding::DEFINITION,
    &config::DEFINITION,
    &cron_job::DEFINITION,
    &event::DEFINITION,
    &namespace::DEFINITION,
    &node::DEFINITION,
    &node_grant::DEFINITION,
    &node_group::DEFINITION,
    &repository::DEFINITION,
    &role::DEFINITION,
    &role_binding::DEFINITION,
    &run::DEFINITION,
    &secret::DEFINITION,
    &share::DEFINITION,
    &task_book::DEFINITION,
    &trigger::DEFINITION,
    &variable::DEFINITION,
    &webhook::DEFINITION,
];
