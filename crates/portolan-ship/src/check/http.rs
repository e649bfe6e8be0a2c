//! A request over HTTP that must be answered well, tried until it is or the time is up.

use std::sync::Arc;
use std::time::Duration;

use portolan_cluster::{Cluster, ForwardOptions, PodTarget};
use portolan_engine::with_causes;
use portolan_http::{Client, HttpOptions, KnownHosts, Request};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::{CheckError, Passed, Verifier};
use crate::document::{HttpCheck, HttpTarget};
use crate::task::Task;

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(250);

/// How long one answer may take.
const ONE_ANSWER: Duration = Duration::from_secs(10);

/// How many connections of a forwarded port there may be at once.
const MAX_CONNECTIONS: usize = 4;

/// The most bytes of an answer that are looked at.
const MAX_ANSWER: u64 = 4 << 20;

/// Sends requests.
pub(super) struct HttpVerifier {
    pub(super) namespace: Option<String>,
    pub(super) check: HttpCheck,
    pub(super) cluster: Option<Arc<Cluster>>,
}

impl Verifier for HttpVerifier {
    fn verify(&self, task: &Task) -> Result<Passed, CheckError> {
        Handle::current().block_on(async {
            tokio::select! {
                passed = self.reach(task) => passed,
                () = task.token().cancelled() => Err(CheckError::Cancelled),
            }
        })
    }
}

impl HttpVerifier {
    /// Asks where it is to be asked; a port is forwarded for as long.
    async fn reach(&self, task: &Task) -> Result<Passed, CheckError> {
        let (resource, port, path) = match &self.check.target {
            HttpTarget::Url(url) => return self.wait(url, task).await,
            HttpTarget::Forward {
                resource,
                port,
                path,
            } => (resource, *port, path),
        };
        let cluster = self.cluster.as_ref().ok_or(CheckError::NoCluster)?;
        let namespace = self.namespace.as_deref();
        let namespace = namespace.unwrap_or_else(|| cluster.default_namespace());
        // The document was read, and so was this.
        let target = PodTarget::parse(namespace, resource).ok_or(CheckError::NoCluster)?;
        let options = ForwardOptions {
            target,
            port,
            local: 0,
            max_connections: MAX_CONNECTIONS,
        };
        let forward = cluster.port_forward(options).await;
        let forward = forward.map_err(CheckError::Forward)?;
        let url = format!("http://{}{path}", forward.address());
        tokio::select! {
            passed = self.wait(&url, task) => passed.map_err(|error| error.instead_of(&url, &format!("{resource}:{port}{path}"))),
            never = forward.serve(|_| {}) => match never {},
        }
    }

    async fn wait(&self, url: &str, task: &Task) -> Result<Passed, CheckError> {
        let deadline = Instant::now() + self.check.within;
        loop {
            let why = match self.ask(url).await {
                Ok(()) => return Ok(Passed { is_cached: false }),
                Err(why) => why,
            };
            if Instant::now() + PAUSE >= deadline {
                return Err(CheckError::Http {
                    url: url.to_owned(),
                    seconds: self.check.within.as_secs(),
                    why,
                });
            }
            task.progress(0, None, why);
            sleep(PAUSE).await;
        }
    }

    /// Asks once; says what is wrong with the answer.
    async fn ask(&self, url: &str) -> Result<(), String> {
        // What cannot be reached now may be reached in a moment.
        let options = HttpOptions {
            retries: 0,
            response_timeout: ONE_ANSWER,
            request_timeout: ONE_ANSWER,
            hosts: KnownHosts::forgetful(),
            ..HttpOptions::default()
        };
        let told = |error| with_causes(&error);
        let client = Client::new(&options).map_err(told)?;
        let request = Request::parse(url).map_err(told)?;
        let answer = client.send(&request).await.map_err(told)?;
        let status = answer.status();
        if status != self.check.status {
            return Err(format!(
                "its status is {status} and not {}",
                self.check.status
            ));
        }
        let Some(wanted) = &self.check.contains else {
            return Ok(());
        };
        let body = answer.bytes(MAX_ANSWER).await.map_err(told)?;
        if String::from_utf8_lossy(&body).contains(wanted) {
            Ok(())
        } else {
            Err(format!("its body does not contain `{wanted}`"))
        }
    }
}
