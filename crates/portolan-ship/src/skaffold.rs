//! Skaffold's second event API, for clients that were written for it.
//!
//! ```text
//! journal ──records──▶ Projection ──▶ states and events in Skaffold's words ──▶ SkaffoldService ──▶ gRPC
//!                                                                                      └──▶ gateway: HTTP and JSON lines
//! ```
//!
//! It is a view of the journal and nothing else: builders and deployers know as little of it as of the other API. Like
//! Skaffold it asks for no token, so it is only there on request and only for this machine; pages of other sites and
//! names that were made to point here are refused.

mod gateway;
mod json;
mod outline;
mod projection;
mod service;
/// The messages, generated from `proto/skaffold_v2.proto`.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::restriction,
    reason = "generated"
)]
mod wire {
    include!("skaffold/wire/proto.v2.rs");
}

use std::sync::Arc;

use axum::Router;
use portolan_engine::Journal;
use tonic::Status;

pub use outline::{OutlinedArtifact, RunOutline};
use service::SkaffoldService;
use wire::skaffold_v2_service_server::SkaffoldV2ServiceServer;

/// The types of all messages, for reflection and for JSON.
const DESCRIPTORS: &[u8] = include_bytes!("skaffold/wire/descriptors.bin");

/// Both forms of the API; each is served on a port of its own.
pub(crate) struct SkaffoldApi {
    pub(crate) grpc: Router,
    pub(crate) http: Router,
}

impl SkaffoldApi {
    pub(crate) fn new(journal: &Journal, outline: RunOutline) -> Result<Self, Status> {
        let service = Arc::new(SkaffoldService::new(journal.clone(), outline));
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
        };
        let failed = |error: tonic_reflection::server::Error| Status::internal(error.to_string());
        let grpc = Router::new()
            .route_service(
                "/proto.v2.SkaffoldV2Service/{method}",
                SkaffoldV2ServiceServer::from_arc(Arc::clone(&service)),
            )
            .route_service(
                "/grpc.reflection.v1.ServerReflection/{method}",
                reflection().build_v1().map_err(failed)?,
            )
            .route_service(
                "/grpc.reflection.v1alpha.ServerReflection/{method}",
                reflection().build_v1alpha().map_err(failed)?,
            );
        Ok(Self {
            grpc,
            http: gateway::router(service)?,
        })
    }
}
