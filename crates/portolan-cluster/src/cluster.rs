//! A connection to an API server: requests with a time limit, retried when the server throttles.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::{self, HeaderName};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use portolan_budget::RetryPolicy;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::access::{Access, config};
use crate::credential_plugin::guard;
use crate::error::{ClusterError, FieldConflict};
use crate::pages::MAX_PAGES;

/// The most bytes an answer may have: a page of the largest metadata, or the metrics of a busy server.
const MAX_ANSWER_BYTES: usize = 128 * 1024 * 1024;

/// The most bytes an answer's length is believed for: a Secret has at most one and a half million.
const MAX_SAID_BYTES: usize = 2 * 1024 * 1024;

/// How long one answer may take unless told otherwise.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often a request is tried again when the server is busy or stumbles.
const REFUSALS: u32 = 4;

/// How often it is tried again when the connection breaks; one that cannot be made is soon given up.
const BREAKS: u32 = 2;

/// The pauses between two tries, whatever went wrong; a server may ask for others, but not for more than the longest.
const PAUSES: RetryPolicy = RetryPolicy::new(Duration::from_millis(250), Duration::from_secs(30));

/// A cluster that can be asked.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    server: Arc<str>,
    requests: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
    patience: Duration,
    max_pages: usize,
}

impl Cluster {
    /// Connects; nothing is sent yet.
    pub async fn connect(access: &Access) -> Result<Self, ClusterError> {
        // Two crates in a tree may each bring a provider; a client asks for the chosen one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = config(access).await?;
        // We retry ourselves: the client's own policy can wait for minutes without a word.
        config.default_retry = false;
        let server = config.cluster_url.to_string();
        let helper = config.auth_info.exec.as_ref();
        let helper = helper.and_then(|exec| exec.command.clone());
        if let (Some(exec), Some(runner)) = (&mut config.auth_info.exec, &access.plugin_runner) {
            guard(exec, runner);
        }
        let client = kube::Client::try_from(config)
            .map_err(|error| ClusterError::no_client(&server, helper.as_deref(), &error))?;
        Ok(Self::from_client(client, &server))
    }

    /// The cluster of a client, at the address that errors name.
    pub fn from_client(client: kube::Client, server: &str) -> Self {
        Self {
            client,
            server: server.trim_end_matches('/').into(),
            requests: Arc::default(),
            writes: Arc::default(),
            patience: PATIENCE,
            max_pages: MAX_PAGES,
        }
    }

    /// The same with another limit to how long one answer may take.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The same with another limit to how many pages a list may have.
    #[must_use]
    pub fn with_max_pages(self, max_pages: usize) -> Self {
        Self { max_pages, ..self }
    }

    pub(crate) fn max_pages(&self) -> usize {
        self.max_pages
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// The namespace that the context names; `default` if it names none.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// How many requests were sent so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How many of them were to change something.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// The client that requests go through, for what kube's runtime does.
    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The server's version, as it says it: `v1.36.3`.
    pub async fn version(&self) -> Result<String, ClusterError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        let version: Version = self.json("/version", "application/json").await?;
        Ok(version.git_version)
    }

    /// An answer read as JSON.
    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        path: &str,
        accept: &str,
    ) -> Result<T, ClusterError> {
        let bytes = self.get(path, accept).await?;
        serde_json::from_slice(&bytes).map_err(|error| ClusterError::Answer {
            path: path.to_owned(),
            message: error.to_string(),
        })
    }

    /// The body of a successful answer.
    pub(crate) async fn get(&self, path: &str, accept: &str) -> Result<Vec<u8>, ClusterError> {
        self.send(&Call::get(path, accept)).await
    }

    /// The body of a successful answer to any call. A call that may have been carried out before its connection broke is
    /// sent again, so every call must bear to be carried out twice.
    pub(crate) async fn send(&self, call: &Call<'_>) -> Result<Vec<u8>, ClusterError> {
        // Each kind of failure has its own limit, so the policy gives the pauses alone.
        let (mut refusals, mut breaks) = (0, 0);
        loop {
            let (error, retry) = match self.attempt(call).await {
                Ok(body) => return Ok(body),
                Err(failed) => failed,
            };
            let asked = match retry {
                Retry::Busy(asked) if refusals < REFUSALS => {
                    refusals += 1;
                    asked
                }
                Retry::Broken if breaks < BREAKS => {
                    breaks += 1;
                    None
                }
                _ => return Err(error),
            };
            let Some(pause) = PAUSES.wait_asked_for(refusals + breaks, asked) else {
                return Err(error);
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// One try, and whether another may go better.
    async fn attempt(&self, call: &Call<'_>) -> Result<Vec<u8>, (ClusterError, Retry)> {
        let path = call.path;
        let answer = tokio::time::timeout(self.patience, self.ask(call)).await;
        let (head, body) = match answer.map_err(|_| self.too_slow(path)) {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                let retry = Retry::after(&error);
                return Err((error, retry));
            }
            Err(error) => return Err((error, Retry::Never)),
        };
        if head.status.is_success() {
            return Ok(body);
        }
        let error = status(path, head.status, &body);
        let retry = match head.status {
            _ if error.refusal().is_some() => Retry::Never,
            status if is_passing(status) => Retry::Busy(retry_after(&head.headers)),
            _ => Retry::Never,
        };
        Err((error, retry))
    }

    async fn ask(&self, call: &Call<'_>) -> Result<(Head, Vec<u8>), ClusterError> {
        let path = call.path;
        let response = self.open_call(call).await?;
        let head = Head {
            status: response.status(),
            headers: response.headers().clone(),
        };
        let mut body = response.into_body();
        let said = number(&head.headers, &header::CONTENT_LENGTH).unwrap_or(0) as usize;
        let mut bytes = Vec::with_capacity(said.min(MAX_SAID_BYTES));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| ClusterError::unreachable(&self.server, &error))?;
            let data = frame.into_data().unwrap_or_default();
            if bytes.len() + data.len() > MAX_ANSWER_BYTES {
                return Err(ClusterError::Answer {
                    path: path.to_owned(),
                    message: format!("it is larger than {MAX_ANSWER_BYTES} bytes"),
                });
            }
            bytes.extend_from_slice(&data);
        }
        Ok((head, bytes))
    }

    /// An answer whose body is still to be read.
    pub(crate) async fn open(
        &self,
        path: &str,
        accept: &str,
    ) -> Result<Response<Body>, ClusterError> {
        self.open_call(&Call::get(path, accept)).await
    }

    async fn open_call(&self, call: &Call<'_>) -> Result<Response<Body>, ClusterError> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.path)
            .header(header::ACCEPT, call.accept);
        let body = match &call.body {
            Some((content_type, bytes)) => {
                request = request.header(header::CONTENT_TYPE, *content_type);
                Body::from(bytes.clone())
            }
            None => Body::empty(),
        };
        let request = request.body(body).map_err(|error| ClusterError::Answer {
            path: call.path.to_owned(),
            message: error.to_string(),
        })?;
        self.count_request();
        if call.method != Method::GET {
            self.writes.fetch_add(1, Ordering::Relaxed);
        }
        self.client
            .send(request)
            .await
            .map_err(|error| ClusterError::unreachable(&self.server, &error))
    }

    pub(crate) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn too_slow(&self, path: &str) -> ClusterError {
        ClusterError::Timeout {
            server: self.server.to_string(),
            path: path.to_owned(),
            after: self.patience,
        }
    }
}

/// One call of the API server.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) accept: &'a str,
    /// The content type and the bytes.
    pub(crate) body: Option<(&'static str, Vec<u8>)>,
}

impl<'a> Call<'a> {
    fn get(path: &'a str, accept: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            accept,
            body: None,
        }
    }
}

/// Whether the same request may succeed a little later.
enum Retry {
    Never,
    /// The server is busy or stumbles, and may say when to come again.
    Busy(Option<Duration>),
    /// The connection broke, as it may in the middle of many good answers, or cannot be made.
    Broken,
}

impl Retry {
    fn after(error: &ClusterError) -> Self {
        match error {
            ClusterError::Unreachable { .. } => Self::Broken,
            _ => Self::Never,
        }
    }
}

struct Head {
    status: StatusCode,
    headers: HeaderMap,
}

/// Statuses of a server that is busy or stumbles.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504)
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    number(headers, &header::RETRY_AFTER).map(Duration::from_secs)
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

pub(crate) fn status(path: &str, status: StatusCode, body: &[u8]) -> ClusterError {
    let path = path.to_owned();
    let answer: Status = serde_json::from_slice(body).unwrap_or_else(|_| Status {
        message: String::from_utf8_lossy(body).chars().take(200).collect(),
        ..Status::default()
    });
    match (status.as_u16(), answer.reason.as_str()) {
        (410, _) => ClusterError::Gone {
            path,
            fresh: Some(answer.metadata.next).filter(|token| !token.is_empty()),
        },
        (409, "AlreadyExists") => ClusterError::Exists { path },
        (409, _) => {
            let conflicts = answer.details.conflicts();
            if conflicts.is_empty() {
                ClusterError::Outdated { path }
            } else {
                ClusterError::Conflict { path, conflicts }
            }
        }
        (422, _) => match answer.details.immutable() {
            Some(fields) => ClusterError::Immutable { path, fields },
            None => ClusterError::Status {
                path,
                code: 422,
                message: answer.message,
            },
        },
        (code, _) => ClusterError::Status {
            path,
            code,
            message: answer.message,
        },
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    message: String,
    reason: String,
    metadata: StatusMetadata,
    details: Details,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct StatusMetadata {
    #[serde(rename = "continue")]
    next: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    causes: Vec<Cause>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
    field: String,
}

/// What validation says of a field that cannot be changed: `spec.selector: Invalid value: …: field is immutable`.
const IMMUTABLE: [&str; 5] = [
    "immutable",
    "may not change once set",
    "cannot change roleRef",
    "updates to statefulset spec for fields other than",
    "updates to parameters are forbidden",
];

impl Details {
    /// The fields that cannot be changed, if that is all that is wrong.
    fn immutable(&self) -> Option<Vec<String>> {
        let is_immutable = |cause: &Cause| {
            let mut words = IMMUTABLE.iter();
            words.any(|word| cause.message.contains(word))
        };
        let causes = &self.causes;
        let is_all = !causes.is_empty() && causes.iter().all(is_immutable);
        is_all.then(|| causes.iter().map(|cause| cause.field.clone()).collect())
    }

    /// Who else has which fields. The server says it in a sentence: `conflict with "kubectl-edit" using v1`.
    fn conflicts(self) -> Vec<FieldConflict> {
        let causes = self.causes.into_iter();
        causes
            .filter(|cause| cause.reason == "FieldManagerConflict")
            .map(|cause| FieldConflict {
                manager: cause.message.split('"').nth(1).unwrap_or("?").to_owned(),
                field: cause.field,
            })
            .collect()
    }
}
