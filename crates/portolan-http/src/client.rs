//! The client: sends a request, follows redirects within limits, tries again when a server is busy.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::redirect::{Attempt, Policy};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

use crate::{Credentials, HttpError, Response, Secret, Tls, shown};

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
    /// How many redirects are followed.
    pub max_redirects: usize,
    /// How often a request is repeated when the server is busy or the connection fails.
    pub retries: u32,
    /// How many answers may be under way at a time.
    pub concurrency: usize,
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

/// A request: GET, or POST when it carries a form.
#[derive(Debug, Clone)]
pub struct Request {
    url: Url,
    headers: Vec<(&'static str, String)>,
    form: Option<Secret>,
    authorization: Authorization,
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
    permits: Arc<Semaphore>,
    retries: u32,
}

/// The longest a busy server may make us wait before the next try.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            tls: Tls::default(),
            proxy: Proxy::default(),
            connect_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_mins(1),
            max_redirects: 10,
            retries: 2,
            concurrency: 8,
        }
    }
}

// === impl Request ===

impl Request {
    /// Asks for an address; user name and password in it are used and not shown.
    pub fn get(url: Url) -> Self {
        Self {
            url,
            headers: Vec::new(),
            form: None,
            authorization: Authorization::None,
        }
    }

    /// Parses an address and asks for it.
    pub fn parse(url: &str) -> Result<Self, HttpError> {
        let bad = || HttpError::BadUrl {
            url: url.to_owned(),
        };
        let url = Url::parse(url).map_err(|_| bad())?;
        match url.scheme() {
            "http" | "https" if url.has_host() => Ok(Self::get(url)),
            _ => Err(bad()),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
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
        let max_redirects = options.max_redirects;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(options.tls.client_config()?)
            .user_agent(concat!("portolan/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(options.connect_timeout)
            .read_timeout(options.idle_timeout)
            .redirect(Policy::custom(move |attempt| {
                follow(attempt, max_redirects)
            }));
        if options.proxy == Proxy::None {
            builder = builder.no_proxy();
        }
        Ok(Self {
            inner: builder.build().map_err(HttpError::Setup)?,
            permits: Arc::new(Semaphore::new(options.concurrency.max(1))),
            retries: options.retries,
        })
    }

    /// Sends a request and returns the answer, whatever its status.
    pub async fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let mut tries = 0;
        loop {
            let outcome = self.send_once(request).await;
            match retry_delay(&outcome, tries) {
                Some(delay) if tries < self.retries => {
                    tracing::debug!(url = %shown(&request.url), ?delay, "trying again");
                    tokio::time::sleep(delay).await;
                    tries += 1;
                }
                _ => return outcome,
            }
        }
    }

    /// Sends a request; any status but success is an error.
    pub async fn fetch(&self, request: &Request) -> Result<Response, HttpError> {
        self.send(request).await?.success()
    }

    async fn send_once(&self, request: &Request) -> Result<Response, HttpError> {
        let permit = self.permit().await;
        tracing::debug!(url = %shown(&request.url), "fetching");
        let mut builder = match &request.form {
            None => self.inner.get(request.url.clone()),
            Some(form) => self
                .inner
                .post(request.url.clone())
                .body(form.expose().to_owned()),
        };
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        builder = match &request.authorization {
            Authorization::None => builder,
            Authorization::Basic(c) => builder.basic_auth(&c.username, Some(c.password.expose())),
            Authorization::Bearer(token) => builder.bearer_auth(token.expose()),
        };
        match builder.send().await {
            Ok(answer) => Ok(Response::new(shown(&request.url), answer, permit)),
            Err(source) => Err(HttpError::Request {
                url: shown(&request.url),
                source: source.without_url(),
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

/// Follows a redirect unless there were too many or it leaves TLS.
fn follow(attempt: Attempt, max_redirects: usize) -> reqwest::redirect::Action {
    if attempt.previous().len() > max_redirects {
        return attempt.error("too many redirects");
    }
    let was_safe = attempt.previous().last().map(Url::scheme) == Some("https");
    if was_safe && attempt.url().scheme() != "https" {
        return attempt.error("redirected from https to plain http");
    }
    attempt.follow()
}

/// How long to wait before another try; `None` when another try cannot help.
fn retry_delay(outcome: &Result<Response, HttpError>, tries: u32) -> Option<Duration> {
    let growing = Duration::from_millis(250) * 4_u32.saturating_pow(tries);
    match outcome {
        Err(HttpError::Request { source, .. }) if source.is_connect() || source.is_timeout() => {
            Some(growing.min(MAX_RETRY_DELAY))
        }
        Ok(response) if matches!(response.status(), 429 | 502 | 503 | 504) => {
            let asked = response.header(RETRY_AFTER.as_str());
            let asked = asked.and_then(|text| text.parse().ok());
            Some(
                asked
                    .map_or(growing, Duration::from_secs)
                    .min(MAX_RETRY_DELAY),
            )
        }
        _ => None,
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
