//! The registry client: sends requests, logs in when asked to, checks what it receives.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portolan_http::{Client, Credentials, HttpError, Request, Response, Secret, Url, host_of};
use serde::Deserialize;

use crate::challenge::Challenge;
use crate::manifest::{Descriptor, Image, Manifest, ManifestContent, Platform, media_type};
use crate::{Digest, DockerConfig, Hasher, Login, OciError, Pointer, Reference, Repository};

/// The largest manifest that is read; the specification tells registries to take at least this much.
const MAX_MANIFEST_BYTES: u64 = 4 * 1024 * 1024;
/// The largest page of a tag list or answer of a token service.
const MAX_LIST_BYTES: u64 = 16 * 1024 * 1024;
/// The most pages of a tag list: a million tags at the usual 1,000 a page.
const MAX_TAG_PAGES: usize = 1000;
/// The most bytes of all pages of a tag list: a million tags of the longest kind in use.
const MAX_TAGS_BYTES: u64 = 64 * 1024 * 1024;

/// How to speak with registries.
#[derive(Debug, Clone)]
pub struct RegistryOptions {
    /// TLS or not.
    pub transport: Transport,
    /// Where logins come from.
    pub logins: Arc<DockerConfig>,
    /// How long all pages of a tag list may take together.
    pub list_timeout: Duration,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        Self {
            transport: Transport::default(),
            logins: Arc::default(),
            list_timeout: Duration::from_mins(5),
        }
    }
}

/// Whether TLS is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Transport {
    /// Plain HTTP for this machine itself, TLS for all others.
    #[default]
    Auto,
    /// Plain HTTP, as `insecure: true` and `--plain-http` ask for.
    Plain,
    /// TLS, even for this machine.
    Tls,
}

/// A client for any number of registries that share logins and transport.
#[derive(Debug)]
pub struct Registry {
    client: Client,
    options: RegistryOptions,
    /// What got us in, by repository, so that a pull of many blobs logs in once.
    authorizations: Mutex<HashMap<Repository, Authorization>>,
}

#[derive(Debug, Clone)]
enum Authorization {
    Basic(Credentials),
    Bearer(Secret),
}

impl Registry {
    /// A client over an HTTP client.
    pub fn new(client: Client, options: RegistryOptions) -> Self {
        Self {
            client,
            options,
            authorizations: Mutex::default(),
        }
    }

    /// All tags of a repository, in the registry's order.
    pub async fn tags(&self, repository: &Repository) -> Result<Vec<String>, OciError> {
        let limit = self.options.list_timeout;
        let listed = tokio::time::timeout(limit, self.list_tags(repository)).await;
        listed.unwrap_or_else(|_| {
            Err(OciError::EndlessTags {
                subject: repository.to_string(),
                reason: format!("it takes longer than {} seconds", limit.as_secs()),
            })
        })
    }

    async fn list_tags(&self, repository: &Repository) -> Result<Vec<String>, OciError> {
        let endless = |reason: String| OciError::EndlessTags {
            subject: repository.to_string(),
            reason,
        };
        let mut url = self.url(repository, "tags/list?n=1000")?;
        let mut tags = Vec::new();
        let mut seen = HashSet::new();
        let mut left = MAX_TAGS_BYTES;
        while seen.insert(url.clone()) {
            if seen.len() > MAX_TAG_PAGES {
                return Err(endless(format!("it has more than {MAX_TAG_PAGES} pages")));
            }
            let request = Request::get(url.clone());
            let response = self.get(repository, request, repository).await?;
            let next = next_page(&response, &url, repository)?;
            let body = response.bytes(MAX_LIST_BYTES.min(left)).await?;
            left = left.saturating_sub(body.len() as u64);
            let page: TagPage = parse(repository, &body)?;
            tags.extend(page.tags.unwrap_or_default());
            match next {
                Some(next) => url = next,
                None => return Ok(tags),
            }
        }
        Err(endless("a page leads back to an earlier one".to_owned()))
    }

    /// The manifest that a reference points at (tag `latest` when it says nothing).
    pub async fn manifest(&self, reference: &Reference) -> Result<Manifest, OciError> {
        let repository = &reference.repository;
        let pointer = match &reference.pointer {
            Some(Pointer::Digest(digest)) => digest.to_string(),
            Some(Pointer::Tag(tag)) => tag.clone(),
            None => "latest".to_owned(),
        };
        let url = self.url(repository, &format!("manifests/{pointer}"))?;
        let request = Request::get(url).header("accept", media_type::ALL.join(", "));
        let response = self.get(repository, request, reference).await?;
        let announced = response.header("docker-content-digest").map(str::parse);
        let expected = match &reference.pointer {
            Some(Pointer::Digest(digest)) => Some(*digest),
            _ => announced.and_then(Result::ok),
        };
        let bytes = response.bytes(MAX_MANIFEST_BYTES).await?;
        check_digest(reference, expected, &Digest::of(&bytes))?;
        Manifest::parse(&reference.to_string(), bytes)
    }

    /// The image that a reference points at: itself, or an index's entry for the platform.
    pub async fn image(
        &self,
        reference: &Reference,
        platform: &Platform,
    ) -> Result<(Manifest, Image), OciError> {
        let manifest = self.manifest(reference).await?;
        let entries = match manifest.content {
            ManifestContent::Image(ref image) => {
                let image = image.clone();
                return Ok((manifest, image));
            }
            ManifestContent::Index(entries) => entries,
        };
        let no_platform = || OciError::NoPlatform {
            subject: reference.to_string(),
            platform: platform.to_string(),
        };
        let entry = choose(&entries, platform).ok_or_else(no_platform)?;
        let chosen = reference.repository.digest(entry.digest);
        let manifest = self.manifest(&chosen).await?;
        match &manifest.content {
            ManifestContent::Image(image) => {
                let image = image.clone();
                Ok((manifest, image))
            }
            ManifestContent::Index(_) => Err(no_platform()),
        }
    }

    /// Hands a blob to `store` piece by piece; when this fails, what was stored so far must be thrown away.
    pub async fn blob(
        &self,
        repository: &Repository,
        descriptor: &Descriptor,
        mut store: impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), OciError> {
        let subject = format!("{repository}@{}", descriptor.digest);
        let url = self.url(repository, &format!("blobs/{}", descriptor.digest))?;
        let mut response = self.get(repository, Request::get(url), &subject).await?;
        let mut hasher = Hasher::default();
        let mut size = 0;
        while let Some(chunk) = response.chunk(descriptor.size).await? {
            let chunk = chunk.as_ref();
            hasher.update(chunk);
            size += chunk.len() as u64;
            store(chunk).map_err(|source| OciError::Store {
                subject: subject.clone(),
                source,
            })?;
        }
        if size != descriptor.size {
            return Err(OciError::SizeMismatch {
                subject,
                expected: descriptor.size,
                actual: size,
            });
        }
        check_digest(&subject, Some(descriptor.digest), &hasher.finish())
    }

    pub(crate) fn url(&self, repository: &Repository, rest: &str) -> Result<Url, OciError> {
        let scheme = match self.options.transport {
            Transport::Plain => "http",
            Transport::Auto if is_this_machine(repository.host()) => "http",
            Transport::Auto | Transport::Tls => "https",
        };
        let host = repository.api_host();
        let name = repository.name();
        let url = format!("{scheme}://{host}/v2/{name}/{rest}");
        Ok(Url::parse(&url).map_err(|_| HttpError::bad_url(&url))?)
    }

    /// Sends a request, logging in first when the registry asks for it; any status but success is an error.
    async fn get(
        &self,
        repository: &Repository,
        request: Request,
        subject: &impl ToString,
    ) -> Result<Response, OciError> {
        let (response, with_login) = self.send(repository, request, subject).await?;
        check_status(response, subject, with_login)
    }

    /// Sends a request, logging in first when the registry asks for it; returns whether a login was sent.
    pub(crate) async fn send(
        &self,
        repository: &Repository,
        request: Request,
        subject: &impl ToString,
    ) -> Result<(Response, bool), OciError> {
        let known = self.authorization(repository);
        let response = self
            .client
            .send(&authorized(&request, known.as_ref()))
            .await?;
        if response.status() != 401 {
            return Ok((response, known.is_some()));
        }
        let (origin, asked) = (response.final_url().origin(), request.url().origin());
        if origin != asked {
            return Err(OciError::ForeignChallenge {
                subject: subject.to_string(),
                host: host_of(response.final_url()),
            });
        }
        let login = self.options.logins.login(repository).await?;
        let with_login = login.is_some();
        let unauthorized = || OciError::Unauthorized {
            subject: subject.to_string(),
            with_login,
        };
        let answer = self.log_in(repository, &response, login).await?;
        let authorization = answer.ok_or_else(unauthorized)?;
        let retried = self
            .client
            .send(&authorized(&request, Some(&authorization)))
            .await?;
        if retried.status() == 401 {
            return Err(unauthorized());
        }
        self.remember(repository, authorization);
        Ok((retried, with_login))
    }

    /// Answers the registry's challenge, `None` when there is no login that could.
    async fn log_in(
        &self,
        repository: &Repository,
        response: &Response,
        login: Option<Login>,
    ) -> Result<Option<Authorization>, OciError> {
        let mut headers = response.headers("www-authenticate");
        match headers.find_map(Challenge::parse) {
            Some(Challenge::Basic) => Ok(match login {
                Some(Login::Basic(credentials)) => Some(Authorization::Basic(credentials)),
                _ => None,
            }),
            Some(Challenge::Bearer {
                realm,
                service,
                scope,
            }) => {
                let default_scope = format!("repository:{}:pull", repository.name());
                let service = TokenService {
                    // The same origin as the registry's, or this challenge would not count.
                    realm: token_url(&realm, response.final_url())?,
                    service,
                    scope: scope.unwrap_or(default_scope),
                };
                service.token(&self.client, login).await
            }
            None => Err(OciError::Challenge {
                challenge: response
                    .header("www-authenticate")
                    .unwrap_or("nothing")
                    .to_owned(),
            }),
        }
    }

    fn authorization(&self, repository: &Repository) -> Option<Authorization> {
        let known = self
            .authorizations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.get(repository).cloned()
    }

    fn remember(&self, repository: &Repository, authorization: Authorization) {
        let mut known = self
            .authorizations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.insert(repository.clone(), authorization);
    }
}

/// Where a registry sends us for tokens.
struct TokenService {
    realm: Url,
    service: Option<String>,
    scope: String,
}

impl TokenService {
    async fn token(
        self,
        client: &Client,
        login: Option<Login>,
    ) -> Result<Option<Authorization>, OciError> {
        let response = client.send(&self.request(login)).await?;
        if matches!(response.status(), 401 | 403) {
            return Ok(None);
        }
        let body = response.success()?.bytes(MAX_LIST_BYTES).await?;
        // The answer holds the token, so the parser's message must not quote it.
        let answer: TokenAnswer = serde_json::from_slice(&body).unwrap_or_default();
        let token = answer.token.or(answer.access_token).unwrap_or_default();
        Ok((!token.is_empty()).then(|| Authorization::Bearer(token.into())))
    }

    fn request(&self, login: Option<Login>) -> Request {
        let service = self.service.as_deref().unwrap_or_default();
        if let Some(Login::IdentityToken(token)) = &login {
            return Request::get(self.realm.clone()).form(&[
                ("grant_type", "refresh_token"),
                ("client_id", "portolan"),
                ("service", service),
                ("scope", &self.scope),
                ("refresh_token", token.expose()),
            ]);
        }
        let mut url = self.realm.clone();
        if self.service.is_some() {
            url.query_pairs_mut().append_pair("service", service);
        }
        url.query_pairs_mut().append_pair("scope", &self.scope);
        match login {
            Some(Login::Basic(credentials)) => Request::get(url).basic(&credentials),
            _ => Request::get(url),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct TagPage {
    tags: Option<Vec<String>>,
}

fn authorized(request: &Request, authorization: Option<&Authorization>) -> Request {
    match authorization {
        None => request.clone(),
        Some(Authorization::Basic(credentials)) => request.clone().basic(credentials),
        Some(Authorization::Bearer(token)) => request.clone().bearer(token),
    }
}

pub(crate) fn check_status(
    response: Response,
    subject: &impl ToString,
    with_login: bool,
) -> Result<Response, OciError> {
    let subject = subject.to_string();
    match response.status() {
        404 => Err(OciError::NotFound { subject }),
        401 | 403 => Err(OciError::Unauthorized {
            subject,
            with_login,
        }),
        _ => Ok(response.success()?),
    }
}

fn check_digest(
    subject: &impl ToString,
    expected: Option<Digest>,
    actual: &Digest,
) -> Result<(), OciError> {
    match expected {
        Some(expected) if expected != *actual => Err(OciError::DigestMismatch {
            subject: subject.to_string(),
            expected,
            actual: *actual,
        }),
        _ => Ok(()),
    }
}

/// The entry for a platform, else the first that is for none in particular.
fn choose<'a>(entries: &'a [Descriptor], platform: &Platform) -> Option<&'a Descriptor> {
    let exact = entries
        .iter()
        .find(|entry| entry.platform.as_ref() == Some(platform));
    exact.or_else(|| entries.iter().find(|entry| entry.platform.is_none()))
}

/// The token service's address; a registry on TLS must not send our password over plain HTTP.
fn token_url(realm: &str, registry: &Url) -> Result<Url, OciError> {
    let bad = || OciError::Challenge {
        challenge: realm.to_owned(),
    };
    let url = Url::parse(realm).map_err(|_| bad())?;
    match (url.scheme(), registry.scheme()) {
        ("https", _) | ("http", "http") => Ok(url),
        _ => Err(bad()),
    }
}

/// The address of the next page from the `Link` header, which must stay on the registry's host.
fn next_page(
    response: &Response,
    current: &Url,
    repository: &Repository,
) -> Result<Option<Url>, OciError> {
    let Some(link) = response.header("link").and_then(next_link) else {
        return Ok(None);
    };
    let next = current.join(link).map_err(|_| HttpError::bad_url(link))?;
    if next.origin() == current.origin() {
        Ok(Some(next))
    } else {
        Err(OciError::ForeignLink {
            subject: repository.to_string(),
        })
    }
}

fn next_link(header: &str) -> Option<&str> {
    let (address, rest) = header.trim().strip_prefix('<')?.split_once('>')?;
    rest.contains("rel=\"next\"").then_some(address)
}

fn parse<'a, T: Deserialize<'a>>(subject: &Repository, text: &'a [u8]) -> Result<T, OciError> {
    serde_json::from_slice(text).map_err(|source| OciError::Parse {
        subject: subject.to_string(),
        source,
    })
}

/// Registries on this machine speak plain HTTP, as Docker and Flux assume too.
fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |ip: std::net::IpAddr| ip.is_loopback();
    host == "localhost" || address.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_this_machine_only() {
        assert!(is_this_machine("localhost") && is_this_machine("127.0.0.1"));
        assert!(is_this_machine("[::1]"));
        assert!(!is_this_machine("localhost.example.com") && !is_this_machine("ghcr.io"));
    }

    #[test]
    fn a_token_service_without_tls_is_refused_by_a_registry_with_it() {
        let registry = Url::parse("https://ghcr.io/v2/").unwrap();
        assert!(token_url("http://ghcr.io/token", &registry).is_err());
        assert!(token_url("https://auth.example/token", &registry).is_ok());
    }

    #[test]
    fn the_next_page_is_taken_from_the_link_header() {
        assert_eq!(
            next_link(r#"</v2/a/tags/list?last=x>; rel="next""#),
            Some("/v2/a/tags/list?last=x")
        );
        assert_eq!(next_link(r#"</v2>; rel="prev""#), None);
    }
}
