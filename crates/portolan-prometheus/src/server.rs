//! A Prometheus server, or something that speaks its query API: how it is reached, and what it answers.

use std::error::Error as _;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use portolan_http::{
    Client, Credentials, HttpError, HttpOptions, KnownHosts, Request, Secret, Tls, Url, shown,
};

use crate::answer::{Answer, Limits, parse_answer};
use crate::series::one_per_replica;

/// How a server is reached.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The address, with `http` or `https` and the path before `/api/v1`, if any.
    pub address: String,
    /// Whom to trust, and the client certificate.
    pub tls: Tls,
    /// Who is asking.
    pub authorization: Authorization,
    /// Headers by name, such as `X-Scope-OrgID`.
    pub headers: Vec<(String, Secret)>,
    /// The longest that a query may take, with its answer.
    pub deadline: Duration,
    /// How much of an answer is looked at.
    pub limits: Limits,
    /// Labels by which replicas of a server tell their series apart.
    pub replica_labels: Vec<String>,
}

/// Who is asking.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Authorization {
    /// Nobody in particular.
    #[default]
    None,
    /// Whoever has a token.
    Bearer(Secret),
    /// A user with a password.
    Basic(Credentials),
}

/// Why a server cannot be set up. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is none.
    #[error("cannot use the address of Prometheus")]
    Address(#[source] HttpError),
    /// The TLS settings or the HTTP client are wrong.
    #[error("cannot set up the connection to Prometheus")]
    Client(#[source] HttpError),
    /// A file with a credential cannot be read.
    #[error("cannot read `{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A server that can be asked.
#[derive(Debug, Clone)]
pub struct Prometheus {
    client: Client,
    /// For addresses that users name.
    users: Client,
    query_url: Url,
    shown_address: String,
    settings: ServerSettings,
}

impl ServerSettings {
    /// Returns the settings of a server that wants nothing but queries.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            tls: Tls::default(),
            authorization: Authorization::None,
            headers: Vec::new(),
            deadline: Duration::from_secs(10),
            limits: Limits::default(),
            // As the Prometheus operator and the ruler of Mimir call it.
            replica_labels: vec!["prometheus_replica".to_owned(), "__replica__".to_owned()],
        }
    }
}

impl Prometheus {
    /// Sets up a server. Nothing is sent.
    pub fn new(settings: ServerSettings) -> Result<Self, ServerError> {
        let parsed = Request::parse(&settings.address).map_err(ServerError::Address)?;
        let mut query_url = parsed.url().clone();
        let path = format!("{}/api/v1/query", query_url.path().trim_end_matches('/'));
        query_url.set_path(&path);
        query_url.set_query(None);
        query_url.set_fragment(None);
        Ok(Self {
            client: client(&settings, true).map_err(ServerError::Client)?,
            users: client(&settings, false).map_err(ServerError::Client)?,
            shown_address: shown(parsed.url()),
            query_url,
            settings,
        })
    }

    /// Returns the address without anything secret.
    pub fn address(&self) -> &str {
        &self.shown_address
    }

    /// Asks a query at a moment, in milliseconds since the start of 1970; now if there is none. Series of replicas are
    /// one series in the answer.
    pub async fn query(&self, query: &str, at: Option<i64>) -> Answer {
        let at = at.map(|at| format!("{}.{:03}", at.div_euclid(1_000), at.rem_euclid(1_000)));
        // The server gives up by itself a little later than we do.
        let seconds = self.settings.deadline.as_secs().max(1).to_string();
        let mut fields = vec![("query", query), ("timeout", &seconds)];
        fields.extend(at.as_deref().map(|at| ("time", at)));
        let request = self.authorized(Request::get(self.query_url.clone()).form(&fields));
        match self.send(&self.client, &request).await {
            Ok((status, body)) => self.read(status, &body),
            Err(answer) => answer,
        }
    }

    /// Gets an address that a user named, with the same deadline and limits, without the login of this server.
    pub(crate) async fn get(&self, url: &str) -> Result<(u16, Vec<u8>), Answer> {
        let request = Request::parse(url).map_err(|error| Answer::Refused(told(&error)))?;
        self.send(&self.users, &request).await
    }

    fn read(&self, status: u16, body: &[u8]) -> Answer {
        match parse_answer(status, body, self.settings.limits) {
            Answer::Series(series) => {
                let labels: Vec<&str> = self
                    .settings
                    .replica_labels
                    .iter()
                    .map(String::as_str)
                    .collect();
                Answer::Series(one_per_replica(series, &labels))
            }
            other => other,
        }
    }

    async fn send(&self, client: &Client, request: &Request) -> Result<(u16, Vec<u8>), Answer> {
        let limit = self.settings.limits.bytes as u64;
        let exchange = async {
            let response = client.send(request).await?;
            let status = response.status();
            Ok((status, response.bytes(limit).await?))
        };
        match tokio::time::timeout(self.settings.deadline, exchange).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(Answer::Slow(format!(
                "no answer from `{}` within {} seconds",
                shown(request.url()),
                self.settings.deadline.as_secs_f64()
            ))),
        }
    }

    fn authorized(&self, request: Request) -> Request {
        let request = match &self.settings.authorization {
            Authorization::None => request,
            Authorization::Bearer(token) => request.bearer(token),
            Authorization::Basic(credentials) => request.basic(credentials),
        };
        let headers = self.settings.headers.iter();
        headers.fold(request, |request, (name, value)| {
            request.secret_header(name, value)
        })
    }
}

fn client(settings: &ServerSettings, link_local: bool) -> Result<Client, HttpError> {
    Client::new(&HttpOptions {
        tls: settings.tls.clone(),
        // A host that is not there is told from one that thinks for long.
        connect_timeout: settings.deadline / 2,
        // The deadline of the whole query comes first.
        idle_timeout: settings.deadline * 2,
        response_timeout: settings.deadline * 2,
        request_timeout: settings.deadline * 2,
        // The next interval is the next try; a repeated query would only be later.
        retries: 0,
        concurrency: 32,
        link_local,
        hosts: KnownHosts::forgetful(),
        ..HttpOptions::default()
    })
}

fn failed(error: &HttpError) -> Answer {
    match error {
        HttpError::TooSlow { .. } => Answer::Slow(told(error)),
        HttpError::TooLarge { .. } => Answer::TooMuch(told(error)),
        _ => Answer::Down(told(error)),
    }
}

/// An error with its causes, in one line. Addresses in it carry nothing secret.
fn told(error: &HttpError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
