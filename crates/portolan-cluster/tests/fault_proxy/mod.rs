//! A real API server behind a proxy that answers some requests itself, or loses the server's answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http_body_util::BodyExt as _;
use portolan_cluster::{Cluster, kube};
use portolan_testbed::cluster::Cluster as TestCluster;
use portolan_testbed::{HttpServer, Reply, Request};
use tokio::runtime::Handle;

/// What becomes of a request.
pub(crate) enum Fault {
    /// It reaches the server.
    None,
    /// It reaches the server with another target.
    Target(String),
    /// It never reaches the server.
    Answer(Reply),
    /// It reaches the server, and the answer is lost on the way back.
    LostAnswer,
}

/// The proxy.
pub(crate) struct FaultProxy {
    server: HttpServer,
    faults: Arc<AtomicU32>,
}

impl FaultProxy {
    /// Forwards to a cluster what `decide` does not keep; it gets the number of the request.
    pub(crate) async fn start(
        cluster: &TestCluster,
        decide: impl Fn(&Request, u32) -> Fault + Send + Sync + 'static,
    ) -> Self {
        let (client, runtime) = (cluster.client().await, Handle::current());
        let (number, faults) = (AtomicU32::new(0), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&faults);
        let server = HttpServer::start(move |request| {
            let fault = decide(request, number.fetch_add(1, Ordering::SeqCst));
            if !matches!(fault, Fault::None) {
                count.fetch_add(1, Ordering::SeqCst);
            }
            match fault {
                Fault::None => runtime.block_on(pass_on(&client, request, &request.target)),
                Fault::Target(target) => runtime.block_on(pass_on(&client, request, &target)),
                Fault::Answer(reply) => reply,
                Fault::LostAnswer => {
                    let reply = runtime.block_on(pass_on(&client, request, &request.target));
                    reply.cut_after(1)
                }
            }
        });
        Self { server, faults }
    }

    /// The cluster behind it.
    pub(crate) fn cluster(&self) -> Cluster {
        let mut config = kube::Config::new(self.server.url().parse().expect("an address"));
        // As `Cluster::connect` has it.
        config.default_retry = false;
        let client = kube::Client::try_from(config).expect("a client");
        Cluster::from_client(client, &self.server.url())
    }

    /// How many requests did not go their usual way.
    pub(crate) fn faults(&self) -> u32 {
        self.faults.load(Ordering::SeqCst)
    }
}

async fn pass_on(client: &kube::Client, request: &Request, target: &str) -> Reply {
    let mut forwarded = http::Request::builder()
        .method(request.method.as_str())
        .uri(target);
    for name in ["accept", "content-type"] {
        if let Some(value) = request.header(name) {
            forwarded = forwarded.header(name, value);
        }
    }
    let body = kube::client::Body::from(request.body.clone());
    let forwarded = forwarded.body(body).expect("a request");
    let response = client.send(forwarded).await.expect("an answer");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body");
    Reply {
        status,
        ..Reply::ok(body.to_bytes().to_vec())
    }
    .header("content-type", "application/json")
}

/// A refusal as the API server words it.
pub(crate) fn refusal(code: u16, reason: &str) -> Reply {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": reason,
    });
    Reply {
        status: code,
        ..Reply::ok(status.to_string())
    }
    .header("content-type", "application/json")
}
