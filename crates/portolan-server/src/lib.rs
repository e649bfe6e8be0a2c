//! The API server: objects of all kinds over HTTP and JSON, on a store.
//!
//! ```text
//! request ──▶ http ──▶ ApiServer ─────────────────────────────────▶ Objects ──▶ Store
//!                       who asks? (Tokens)   may they? (Access)         │ one watch
//!                       what was done: AuditLog                         ▼
//!                                                          Cache ──▶ watches, rights
//! ```
//!
//! The entry point is [`ApiServer::start`], which opens a data directory, makes what a first start needs, and gives
//! the router for `portolan-listen`. `http` reads requests and writes answers and holds no rules; [`ApiServer`] holds
//! the order in which a request is checked; `objects` knows how objects are stored and nothing of users.

mod clock;
mod error;
mod keys;

mod record;
mod seal;
mod vault;

mod field_selector;
mod object_message;
mod objects;
mod page;

mod blobs;
mod cache;
mod events;
mod watching;

mod access;
mod anchor;
mod audit;
mod node_access;
mod rate;
mod token;

mod authorities;
mod enrolments;
mod fleet_identity;
mod foreign_certificate;
mod join_tokens;
mod membership;
mod peer;
mod shared_key;
mod strict_json;

mod agents;
mod beacons;
mod controllers;
mod live;
mod node_choice;
mod repositories;
mod repository_source;
mod runs;
mod shares;
mod upkeep;

mod backups;
mod history;
mod server;
mod server_clocks;
mod server_hosts;
mod server_store;
mod setup;
mod status;

mod http;
mod limits;
mod openapi;

mod beacon_list;
mod contexts;
mod request_key;
mod share_list;

pub use anchor::verify_server_audit;
pub use audit::{AuditError, verify_audit};
pub use backups::BackupOptions;
pub use beacon_list::{beacon_rows, cron_rows};
pub use clock::{ManualTime, SystemTimeSource, TimeSource};
pub use contexts::{FleetContext, FleetContexts, FleetContextsError};
pub use error::{ApiError, RefusalReason};
pub use fleet_identity::CertificateUpkeep;
pub use foreign_certificate::ForeignCertificateError;
pub use http::{fuzz_enrolment, fuzz_grpc_object, fuzz_request};
pub use limits::listen_limits;
pub use portolan_client::{
    FleetClient, FleetCredential, FleetError, FleetMethod, LabelChange, ObjectPath,
};
pub use request_key::request_key;
pub use seal::{KeyEncryptionKey, SealError};
pub use server::{ApiServer, ServerOptions, StartError, StartedServer};
pub use server_hosts::ServerHosts;
pub use server_store::{ServerStore, ServerStoreError};
pub use setup::{DataDirectory, FirstStart, create_private};
pub use share_list::share_rows;
pub use shared_key::SharedKeyError;
pub use vault::VaultOptions;
