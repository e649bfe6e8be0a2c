//! Asks a fleet server, and sends it what happens in other jobs.
//!
//! ```text
//! job ──publish──▶ EventPublisher (queue of fixed length) ──▶ EventDelivery ──FleetClient──▶ Event of the server
//!                        │ full: counted                          └── pauses while the server cannot be asked
//!                        ▼
//!                  DeliveryState: sent, lost, waiting, and why
//! ```
//!
//! A job publishes and goes on; it never waits for the server. The name of an event follows from what it is about, so an
//! event that is published twice, or sent again because an answer was lost, is one Event of the server. This crate
//! does not know what the events mean.

#![warn(missing_docs)]

mod client;
mod delivery;
mod job_event;
mod node_client;
mod server_files;

pub use client::{FleetClient, FleetCredential, FleetError, FleetMethod, ObjectPath};
pub use delivery::{DeliveryState, DeliveryTrouble, EventDelivery, EventPublisher, EventTarget};
pub use job_event::{JobEvent, MAX_EVENT_AGE};
pub use node_client::LabelChange;
pub use server_files::{FleetServerFiles, ServerFilesError};
