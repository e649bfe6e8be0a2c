//! Skaffold's second event API, for clients that were written for it.
//!
//! ```text
//! journals of a run or of a dev loop's turns ──records──▶ Projection ──▶ states and events in Skaffold's words ──▶ SkaffoldService ──▶ gRPC
//!         DevControl ◀── execute, auto_execute ◀──                                     └──▶ gateway: HTTP and JSON lines
//! ```
//!
//! It is a view of the journal and nothing else: builders and deployers know as little of it as of the other API. Like
//! Skaffold it asks for no token, so it is only there on request and only for this machine; pages of other sites and
//! names that were made to point here are refused.

mod control;
mod gateway;
mod json;
mod outline;
mod projection;
mod service;
mod session_view;
mod turns;
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
use tonic::Status;

pub use control::{DevControl, DevStages};
pub use outline::{OutlinedArtifact, RunOutline};
use service::SkaffoldService;
pub use turns::SkaffoldTurns;
use wire::skaffold_v2_service_server::SkaffoldV2ServiceServer;

/// The types of all messages, for reflection and for JSON.
const DESCRIPTORS: &[u8] = include_bytes!("skaffold/wire/descriptors.bin");

/// Both forms of the API; each is served on a port of its own.
pub(crate) struct SkaffoldApi {
    pub(crate) grpc: Router,
    pub(crate) http: Router,
}

impl SkaffoldApi {
    /// The API of a session; a dev loop has a control.
    pub(crate) fn new(
        turns: SkaffoldTurns,
        control: Option<Arc<DevControl>>,
    ) -> Result<Self, Status> {
        let service = Arc::new(SkaffoldService::new(turns, control));
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
