//! The client: sends a request, follows redirects within limits, tries again when a server is busy.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_budget::RetryPolicy;
use reqwest::header::RETRY_AFTER;
use reqwest::redirect::{Attempt, Policy};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

use crate::link_local::{OffLink, refused_url};
use crate::response::Pace;
use crate::upload::{Sent, Upload};
use crate::{
    Credentials, HttpError, KnownHosts, Response, Secret, Tls, Unreachable, UnreachableReason,
    host_of, shown,
};

/// How a [`Client`] behaves.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Whom to trust.
    pub tls: Tls,
    /// Whether proxies are used.
    pub proxy: Proxy,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long a server may stay silent in the middle of an answer.
    pub idle_timeout: Duration,
    /// How long a server may take to begin its answer, redirects included.
    pub response_timeout: Duration,
    /// How long a request may take in all, its answer included.
    pub request_timeout: Duration,
    /// How many bytes a second an answer must bring on average, once it has lasted for [`HttpOptions::slow_start`].
    pub slowest_rate: u64,
    /// How long an answer may be slower than [`HttpOptions::slowest_rate`].
    pub slow_start: Duration,
    /// How many redirects are followed.
    pub max_redirects: usize,
    /// How often a request is repeated when the server is busy or the connection fails.
    pub retries: u32,
    /// How many answers may be under way at a time.
    pub concurrency: usize,
    /// Whether addresses of the machine's own link are called, such as those of a cloud's metadata.
    pub link_local: bool,
    /// What is known of hosts; clients that share it try a host that cannot be reached once.
    pub hosts: KnownHosts,
}

/// Where proxies come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Proxy {
    /// From `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
    #[default]
    Environment,
    /// No proxy, whatever the environment says.
    None,
}

/// A request: GET, or POST when it carries a form or JSON; HEAD, POST and PUT for whoever stores something.
#[derive(Debug, Clone)]
pub struct Request {
    url: Url,
    store: Option<Store>,
    headers: Vec<(&'static str, String)>,
    secret_headers: Vec<(String, Secret)>,
    form: Option<Secret>,
    authorization: Authorization,
    hides_path: bool,
}

/// What a request that stores something does.
#[derive(Debug, Clone)]
enum Store {
    /// Asks whether it is there.
    Head,
    /// Begins.
    Post,
    /// Sends a body.
    Put(Upload),
    /// Deletes.
    Delete,
}

#[derive(Debug, Clone)]
enum Authorization {
    None,
    Basic(Credentials),
    Bearer(Secret),
}

/// A shared, cheap-to-clone HTTP client.
#[derive(Debug, Clone)]
pub struct Client {
    inner: reqwest::Client,
    /// For requests that carry a form: a redirect would send its secrets along, so none leaves the origin.
    same_origin: reqwest::Client,
    /// For requests that carry a body, whose answer begins when it was sent.
    uploads: reqwest::Client,
    idle_timeout: Duration,
    permits: Arc<Semaphore>,
    retries: u32,
    response_timeout: Duration,
    pace: Pace,
    link_local: bool,
    hosts: KnownHosts,
}

tokio::task_local! {
    /// The address that the task's request has come to by redirects; errors of the connection do not say.
    static ASKED: RefCell<Url>;
}

/// An attempt to connect that took longer than this is not repeated: the next one would take as long.
const QUICK_FAILURE: Duration = Duration::from_secs(3);

/// The pauses between two tries; a busy server may ask for others, but not for more than the longest.
const RETRY: RetryPolicy =
    RetryPolicy::new(Duration::from_millis(250), Duration::from_secs(10)).factor(4_000);

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            tls: Tls::default(),
            proxy: Proxy::default(),
            connect_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_mins(1),
            response_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_mins(30),
            slowest_rate: 1024,
            slow_start: Duration::from_mins(1),
            max_redirects: 10,
            retries: 2,
            concurrency: 8,
            link_local: true,
            hosts: KnownHosts::default(),
        }
    }
}

// === impl Request ===

impl Request {
    /// The address asked for.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Asks for an address; user name and password in it are used and not shown.
    pub fn get(url: Url) -> Self {
        Self {
            url,
            store: None,
            headers: Vec::new(),
            secret_headers: Vec::new(),
            form: None,
            authorization: Authorization::None,
            hides_path: false,
        }
    }

    /// Shows nothing of the address but its host, in logs and errors: of incoming webhooks the path is the secret.
    #[must_use]
    pub fn hide_path(mut self) -> Self {
        self.hides_path = true;
        self
    }

    /// The address as it may be shown.
    fn shown(&self) -> String {
        if self.hides_path {
            return format!("{}://{}/…", self.url.scheme(), host_of(&self.url));
        }
        shown(&self.url)
    }

    /// Asks whether something is at an address.
    pub fn head(url: Url) -> Self {
        Self {
            store: Some(Store::Head),
            ..Self::get(url)
        }
    }

    /// Posts nothing to an address.
    pub fn post(url: Url) -> Self {
        Self {
            store: Some(Store::Post),
            ..Self::get(url)
        }
    }

    /// Puts a body at an address.
    pub fn put(url: Url, body: Upload) -> Self {
        Self {
            store: Some(Store::Put(body)),
            ..Self::get(url)
        }
    }

    /// Deletes what is at an address.
    pub fn delete(url: Url) -> Self {
        Self {
            store: Some(Store::Delete),
            ..Self::get(url)
        }
    }

    /// Parses an address and asks for it.
    pub fn parse(url: &str) -> Result<Self, HttpError> {
        let bad = || HttpError::bad_url(url);
        let parsed = Url::parse(url).map_err(|_| bad())?;
        match parsed.scheme() {
            "http" | "https" if parsed.has_host() => Ok(Self::get(parsed)),
            _ => Err(bad()),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds a header whose value may be secret. It is sent to whatever host the server redirects to.
    #[must_use]
    pub fn secret_header(mut self, name: impl Into<String>, value: &Secret) -> Self {
        self.secret_headers.push((name.into(), value.clone()));
        self
    }

    /// Posts form fields; they may hold secrets.
    #[must_use]
    pub fn form(mut self, fields: &[(&str, &str)]) -> Self {
        let mut text = url::form_urlencoded::Serializer::new(String::new());
        text.extend_pairs(fields);
        self.form = Some(text.finish().into());
        self.header("content-type", "application/x-www-form-urlencoded")
    }

    /// Posts JSON; it may hold secrets.
    #[must_use]
    pub fn json(mut self, text: impl Into<Secret>) -> Self {
        self.form = Some(text.into());
        self.header("content-type", "application/json")
    }

    /// Sends a user name and password, but never to another host that the server redirects to.
    #[must_use]
    pub fn basic(mut self, credentials: &Credentials) -> Self {
        self.authorization = Authorization::Basic(credentials.clone());
        self
    }

    /// Sends a bearer token, but never to another host that the server redirects to.
    #[must_use]
    pub fn bearer(mut self, token: &Secret) -> Self {
        self.authorization = Authorization::Bearer(token.clone());
        self
    }
}

// === impl Client ===

impl Client {
    /// Sets up a client.
    pub fn new(options: &HttpOptions) -> Result<Self, HttpError> {
        let tls = options.tls.client_config()?;
        let build = |within_origin: bool, read_timeout: Option<Duration>| {
            let (max_redirects, hosts) = (options.max_redirects, options.hosts.clone());
            let link_local = options.link_local;
            let mut builder = reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .user_agent(concat!("portolan/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(options.connect_timeout)
                .redirect(Policy::custom(move |attempt| {
                    if within_origin && leaves_origin(&attempt) {
                        return attempt
                            .error("redirected to another host with a login in the request");
                    }
                    if let Some(refused) = refused_url(attempt.url()).filter(|_| !link_local) {
                        return attempt.error(refused);
                    }
                    follow(attempt, max_redirects, &hosts)
                }));
            if let Some(read_timeout) = read_timeout {
                builder = builder.read_timeout(read_timeout);
            }
            if !link_local {
                builder = builder.dns_resolver(Arc::new(OffLink));
            }
            if options.proxy == Proxy::None {
                builder = builder.no_proxy();
            }
            builder.build().map_err(HttpError::Setup)
        };
        Ok(Self {
            inner: build(false, Some(options.idle_timeout))?,
            same_origin: build(true, Some(options.idle_timeout))?,
            uploads: build(true, None)?,
            idle_timeout: options.idle_timeout,
            permits: Arc::new(Semaphore::new(options.concurrency.max(1))),
            retries: options.retries,
            response_timeout: options.response_timeout,
            pace: Pace {
                whole: options.request_timeout,
                slowest_rate: options.slowest_rate,
                slow_start: options.slow_start,
            },
            link_local: options.link_local,
            hosts: options.hosts.clone(),
        })
    }

    /// Sends a request and returns the answer, whatever its status.
    ///
    /// A host that turned out to be out of reach is not asked again.
    pub async fn send(&self, request: &Request) -> Result<Response, HttpError> {
        if let Some(refused) = refused_url(&request.url).filter(|_| !self.link_local) {
            return Err(unreachable(request.shown(), refused));
        }
        let turn = self.hosts.turn(&request.url).await;
        let first = turn.map_err(|source| unreachable(request.shown(), source))?;
        let outcome = self.send_patiently(request).await;
        let outcome = outcome.map_err(|error| self.unreachable_if_silent(request, error));
        if let Err(HttpError::Unreachable { source, .. }) = &outcome {
            self.hosts.add(source);
        }
        if let Some(first) = first {
            first.done();
        }
        outcome
    }

    /// A server that takes connections and never answers is as good as none: nobody else need wait for it.
    fn unreachable_if_silent(&self, request: &Request, error: HttpError) -> HttpError {
        match error {
            HttpError::TooSlow { received: 0, .. } if !self.hosts.is_forgetful() => {
                let host = host_of(&request.url);
                let why = UnreachableReason::TimedOut;
                unreachable(request.shown(), Unreachable { host, why })
            }
            error => error,
        }
    }

    async fn send_patiently(&self, request: &Request) -> Result<Response, HttpError> {
        let policy = RETRY.attempts(self.retries.saturating_add(1));
        let mut failures = 1;
        loop {
            let started = Instant::now();
            let outcome = self.send_once(request).await;
            let delay = match may_pass(&outcome, started.elapsed()) {
                MayPass::Never => None,
                MayPass::Later(asked) => policy.wait_asked_for(failures, asked),
            };
            let Some(delay) = delay else { return outcome };
            tracing::debug!(url = %request.shown(), ?delay, "trying again");
            tokio::time::sleep(delay).await;
            failures += 1;
        }
    }

    /// Sends a request; any status but success is an error.
    pub async fn fetch(&self, request: &Request) -> Result<Response, HttpError> {
        self.send(request).await?.success()
    }

    async fn send_once(&self, request: &Request) -> Result<Response, HttpError> {
        let permit = self.permit().await;
        tracing::debug!(url = %request.shown(), "fetching");
        let sent = Sent::default();
        let url = || request.url.clone();
        let mut builder = match (&request.store, &request.form) {
            (Some(Store::Head), _) => self.inner.head(url()),
            (Some(Store::Delete), _) => self.same_origin.delete(url()),
            (Some(Store::Post), _) => self.same_origin.post(url()).header("content-length", 0),
            (Some(Store::Put(body)), _) => self
                .uploads
                .put(url())
                .header("content-length", body.length())
                .body(body.body(sent.clone())),
            (None, None) => self.inner.get(url()),
            (None, Some(form)) => self
                .same_origin
                .post(request.url.clone())
                .body(form.expose().to_owned()),
        };
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        for (name, value) in &request.secret_headers {
            builder = builder.header(name, value.expose());
        }
        builder = match &request.authorization {
            Authorization::None => builder,
            Authorization::Basic(c) => builder.basic_auth(&c.username, Some(c.password.expose())),
            Authorization::Bearer(token) => builder.bearer_auth(token.expose()),
        };
        let started = Instant::now();
        let answered = ASKED.scope(RefCell::new(request.url.clone()), async {
            let outcome = builder.send().await;
            (outcome, ASKED.with(|asked| asked.borrow().clone()))
        });
        let too_slow = async {
            match &request.store {
                Some(Store::Put(body)) => {
                    let (idle, answer) = (self.idle_timeout, self.response_timeout);
                    sent.stalled(body.length(), idle, answer).await;
                }
                _ => tokio::time::sleep(self.response_timeout).await,
            }
        };
        tokio::select! {
            biased;
            answered = answered => match answered {
                (Ok(answer), _) => {
                    let url = request.shown();
                    Ok(Response::new(url, answer, permit, started, self.pace))
                }
                (Err(source), last) => Err(request_error(request.shown(), &last, source)),
            },
            () = too_slow => Err(match &request.store {
                Some(Store::Put(_)) => HttpError::StuckUpload {
                    url: request.shown(),
                    sent: sent.bytes(),
                    elapsed: started.elapsed(),
                },
                _ => HttpError::TooSlow {
                    url: request.shown(),
                    received: 0,
                    elapsed: started.elapsed(),
                },
            }),
        }
    }

    async fn permit(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed")
    }
}

/// Tells a host that cannot be reached from other failures; it may be one that a server redirected to.
fn request_error(asked: String, last: &Url, source: reqwest::Error) -> HttpError {
    if let Some(found) = Unreachable::from_causes(&source, last) {
        return unreachable(asked, found);
    }
    HttpError::Request {
        url: asked,
        source: source.without_url(),
    }
}

fn unreachable(asked: String, source: Unreachable) -> HttpError {
    HttpError::Unreachable { url: asked, source }
}

fn leaves_origin(attempt: &Attempt) -> bool {
    let previous = attempt.previous().last();
    previous.is_some_and(|previous| previous.origin() != attempt.url().origin())
}

/// Follows a redirect unless there were too many, it leaves TLS, or it leads to a host that cannot be reached.
fn follow(attempt: Attempt, max_redirects: usize, hosts: &KnownHosts) -> reqwest::redirect::Action {
    if attempt.previous().len() > max_redirects {
        return attempt.error("too many redirects");
    }
    let was_safe = attempt.previous().last().map(Url::scheme) == Some("https");
    if was_safe && attempt.url().scheme() != "https" {
        return attempt.error("redirected from https to plain http");
    }
    if let Err(unreachable) = hosts.check(attempt.url()) {
        return attempt.error(unreachable);
    }
    // Nobody asks for this outside of a request.
    let _ = ASKED.try_with(|asked| *asked.borrow_mut() = attempt.url().clone());
    attempt.follow()
}

/// Whether another try can help.
enum MayPass {
    Never,
    /// It can, and the server may say after how long.
    Later(Option<Duration>),
}

fn may_pass(outcome: &Result<Response, HttpError>, took: Duration) -> MayPass {
    match outcome {
        Err(HttpError::Unreachable { .. }) if took < QUICK_FAILURE => MayPass::Later(None),
        Err(HttpError::Request { source, .. }) if source.is_connect() || source.is_timeout() => {
            MayPass::Later(None)
        }
        Ok(response) if matches!(response.status(), 429 | 502 | 503 | 504) => {
            let asked = response.header(RETRY_AFTER.as_str());
            let asked = asked.and_then(|text| text.parse().ok());
            MayPass::Later(asked.map(Duration::from_secs))
        }
        _ => MayPass::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_are_requested() {
        for bad in ["file:///etc/passwd", "ftp://x/y", "no address", "http:"] {
            let error = Request::parse(bad).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("`{bad}` is not an http or https address")
            );
        }
    }
}
