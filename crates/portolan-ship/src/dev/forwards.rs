//! The forwarded ports of a session, each kept by a task of its own.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use portolan_cluster::{Cluster, ForwardEvent, ForwardOptions, PodTarget};
use portolan_engine::with_causes;

use super::event::{DevEvent, DevEvents};
use crate::document::ForwardRule;

/// So many connections may be open on one port.
const MAX_CONNECTIONS: usize = 64;

/// How often a port that is in use is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(3);

/// Forwards a port for as long as it is polled.
pub(super) async fn forward(
    cluster: Cluster,
    rule: ForwardRule,
    namespace: String,
    events: DevEvents,
) -> Infallible {
    let resource = rule.resource.clone();
    let trouble = |why: String| DevEvent::ForwardTrouble {
        resource: rule.resource.clone(),
        why,
    };
    // Reading the document has looked at it.
    let Some(target) = PodTarget::parse(&namespace, &resource) else {
        return std::future::pending().await;
    };
    let mut is_told = false;
    loop {
        let options = ForwardOptions {
            target: target.clone(),
            port: rule.port,
            local: rule.local.unwrap_or(rule.port),
            max_connections: MAX_CONNECTIONS,
        };
        let bound = match cluster.port_forward(options.clone()).await {
            // Nobody chose the number: another one serves as well.
            Err(error) if rule.local.is_none() && is_taken(&error) => {
                let any = ForwardOptions {
                    local: 0,
                    ..options
                };
                cluster.port_forward(any).await
            }
            bound => bound,
        };
        let error = match bound {
            Ok(forward) => {
                events.tell(DevEvent::Forwarding {
                    resource: resource.clone(),
                    port: rule.port,
                    address: forward.address().to_string(),
                });
                let (events, resource) = (events.clone(), resource.clone());
                return forward
                    .serve(move |event| {
                        let resource = resource.clone();
                        events.tell(match event {
                            ForwardEvent::Pod(pod) => DevEvent::ForwardedTo { resource, pod },
                            ForwardEvent::Failed(why) => DevEvent::ForwardTrouble { resource, why },
                        });
                    })
                    .await;
            }
            Err(error) => error,
        };
        if !std::mem::replace(&mut is_told, true) {
            let local = rule.local.unwrap_or(rule.port);
            let why = format!(
                "cannot listen on the local port {local}: {}",
                with_causes(&error)
            );
            events.tell(trouble(why));
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

/// Whether another port may be free: this one is in use, or only for the superuser.
fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
    )
}
