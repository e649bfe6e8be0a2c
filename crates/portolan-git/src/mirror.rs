//! Mirrors: Portolan's own bare repositories with what was fetched from one address, ref by ref and without history.
//!
//! Any number of processes may use a mirror: it is created in a temporary directory and moved into place, and a lock
//! file beside it lets only one process fetch at a time.

use std::fmt;
use std::fs::File;
use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use gix::bstr::ByteSlice as _;
use gix::credentials::{helper::Action, protocol::Outcome};
use gix::progress::Discard;
use gix::protocol::handshake::Ref;
use gix::protocol::transport::client::blocking_io::{Transport, http};
use gix::remote::{Direction, fetch::Shallow, ref_map};
use portolan_http::{ByteProgress, Credentials, Proxy, Tls, Unreachable, Url};

use crate::bounded::{Allowance, BoundedHttp};
use crate::nearest::nearest;
use crate::watched::{Watched, watch};
use crate::{CommitId, GitError, Repository};

/// How to reach a remote repository.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// The login, if the remote wants one.
    pub credentials: Option<Credentials>,
    /// Whom to trust.
    pub tls: Tls,
    /// Whether proxies are used.
    pub proxy: Proxy,
    /// How long a server may stay silent, and how long a whole fetch may take.
    pub timeout: Duration,
    /// The most bytes that a fetch may bring.
    pub max_bytes: u64,
    /// The most bytes that the list of the remote's refs may have.
    pub max_ref_bytes: u64,
    /// Is told of the bytes that have come.
    pub progress: ByteProgress,
    /// Whether `file://` addresses are fetched from, for mirrors on this machine and tests.
    pub allow_local: bool,
}

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// What to fetch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The remote's own default branch.
    Default,
    /// A branch.
    Branch(String),
    /// A tag.
    Tag(String),
    /// A ref by its full name, such as `refs/pull/12/head`.
    Name(String),
    /// A commit by its full id.
    Commit(CommitId),
}

/// A branch or tag of a remote.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteRef {
    /// The full name: `refs/heads/main`, `refs/tags/v1`.
    pub name: String,
    /// The commit it leads to, annotated tags followed.
    pub commit: CommitId,
}

/// A mirror of one remote repository.
#[derive(Debug, Clone)]
pub struct Mirror {
    url: String,
    directory: Utf8PathBuf,
    options: FetchOptions,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            credentials: None,
            tls: Tls::default(),
            proxy: Proxy::default(),
            timeout: Duration::from_mins(10),
            max_bytes: 1024 * 1024 * 1024,
            max_ref_bytes: 64 * 1024 * 1024,
            progress: ByteProgress::default(),
            allow_local: false,
        }
    }
}

// === impl Wanted ===

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default branch"),
            Self::Branch(name) => write!(f, "branch `{name}`"),
            Self::Tag(name) => write!(f, "tag `{name}`"),
            Self::Name(name) => write!(f, "ref `{name}`"),
            Self::Commit(id) => write!(f, "commit `{id}`"),
        }
    }
}

impl Wanted {
    /// What to ask the remote for, and where to keep it.
    fn refspec(&self) -> String {
        let keep = |from: &str, below: &str| format!("+{from}:refs/portolan/{below}");
        match self {
            Self::Default => keep("HEAD", "HEAD"),
            Self::Branch(name) => keep(&format!("refs/heads/{name}"), &format!("heads/{name}")),
            Self::Tag(name) => keep(&format!("refs/tags/{name}"), &format!("tags/{name}")),
            Self::Name(name) => keep(name, name.strip_prefix("refs/").unwrap_or(name)),
            Self::Commit(id) => format!("{id}:refs/portolan/commits/{id}"),
        }
    }

    /// The short name, to look for similar ones.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Branch(name) | Self::Tag(name) | Self::Name(name) => Some(name),
            Self::Default | Self::Commit(_) => None,
        }
    }
}

// === impl Mirror ===

impl Mirror {
    /// Names a mirror; nothing is read or written yet.
    pub fn new(directory: &Utf8Path, url: &str, options: FetchOptions) -> Result<Self, GitError> {
        let shown = shown(url);
        let is_local = url.starts_with("file://");
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let is_allowed = is_web || (is_local && options.allow_local);
        if !is_allowed {
            return Err(GitError::Scheme { url: shown });
        }
        Ok(Self {
            url: url.to_owned(),
            directory: directory.to_owned(),
            options,
        })
    }

    /// The remote's address, without user name and password.
    pub fn url(&self) -> String {
        shown(&self.url)
    }

    /// The mirror as a repository, if something was fetched before.
    pub fn repository(&self) -> Result<Repository, GitError> {
        Repository::open(&self.directory)
    }

    /// Whether a commit with its files is here already.
    pub fn has(&self, commit: CommitId) -> bool {
        let repository = self.repository();
        repository.is_ok_and(|repository| repository.tree(commit).is_ok())
    }

    /// The branches and tags of the remote, sorted by name.
    pub fn refs(&self) -> Result<Vec<RemoteRef>, GitError> {
        let mirror = self.clone();
        self.watched(move |_| mirror.list_refs())
    }

    /// Fetches one ref or commit without its history and returns the commit.
    pub fn fetch(&self, wanted: &Wanted) -> Result<CommitId, GitError> {
        let (mirror, wanted) = (self.clone(), wanted.clone());
        self.watched(move |stop| {
            let repository = mirror.create()?;
            let _turn = mirror.lock()?;
            match mirror.fetch_spec(&repository.local(), &wanted.refspec(), stop) {
                Ok(id) => peel(&repository.local(), id, &wanted),
                Err(failed) => Err(mirror.explain(&wanted, failed)),
            }
        })
    }

    /// Does something with the remote within the limits on time and size.
    fn watched<T: Send + 'static>(
        &self,
        act: impl FnOnce(&AtomicBool) -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, GitError> {
        let url = shown(&self.url);
        match watch(&self.directory, &self.options, act) {
            Watched::Ended(outcome) => outcome,
            Watched::TooSlow => Err(GitError::TooSlow {
                url,
                seconds: self.options.timeout.as_secs(),
            }),
            Watched::Garbled => Err(GitError::Garbled { url }),
            Watched::TooLarge => Err(GitError::TooLarge {
                url,
                limit: self.options.max_bytes,
            }),
        }
    }

    fn list_refs(&self) -> Result<Vec<RemoteRef>, GitError> {
        let repository = self.create()?.local();
        let specs = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
        let listed = self.connection(&repository, &specs, |connection, _| {
            connection.ref_map(Discard, ref_map::Options::default())
        });
        let (map, _) = listed.map_err(|failed| self.fetch_error("branches and tags", failed))?;
        let mut refs: Vec<RemoteRef> = map.remote_refs.iter().filter_map(remote_ref).collect();
        refs.sort();
        Ok(refs)
    }

    fn fetch_spec(
        &self,
        repository: &gix::Repository,
        spec: &str,
        stop: &AtomicBool,
    ) -> Result<gix::ObjectId, FailedFetch> {
        let outcome = self.connection(repository, &[spec], |connection, allowance| {
            let prepared = connection.prepare_fetch(Discard, ref_map::Options::default())?;
            allowance.renew(self.options.max_bytes);
            prepared
                .with_shallow(Shallow::DepthAtRemote(NonZeroU32::MIN))
                .receive(Discard, stop)
        })?;
        let mapping = outcome.ref_map.mappings.first();
        let id = mapping.and_then(|mapping| mapping.remote.as_id());
        let nothing = || std::io::Error::other("the remote sent nothing");
        id.map(ToOwned::to_owned)
            .ok_or_else(|| FailedFetch::Gix(gix::Error::from_error(nothing())))
    }

    /// Opens a connection with our TLS, login and limits and does something over it.
    fn connection<T>(
        &self,
        repository: &gix::Repository,
        specs: &[&str],
        act: impl FnOnce(Connection<'_, '_, '_>, &Allowance) -> gix::Result<T>,
    ) -> Result<T, FailedFetch> {
        let allowance = Allowance::new(self.options.max_ref_bytes);
        self.connect(repository, specs, &allowance, act)
            .map_err(|source| match allowance.exceeded() {
                Some(limit) => FailedFetch::TooLarge { limit },
                None => FailedFetch::Gix(source),
            })
    }

    fn connect<T>(
        &self,
        repository: &gix::Repository,
        specs: &[&str],
        allowance: &Allowance,
        act: impl FnOnce(Connection<'_, '_, '_>, &Allowance) -> gix::Result<T>,
    ) -> gix::Result<T> {
        let remote = repository
            .remote_at(self.url.as_str())?
            .with_fetch_tags(gix::remote::fetch::Tags::None)
            .with_refspecs(specs.iter().copied(), Direction::Fetch)?;
        let credentials = self.options.credentials.as_ref();
        let options = self.http_options()?;
        let connection = if self.is_local() {
            remote.connect(Direction::Fetch)?
        } else {
            let (url, version) = remote.sanitized_url_and_version(Direction::Fetch)?;
            let client = BoundedHttp::new(allowance);
            let transport = http::Transport::new_http(client, url, version, false);
            remote.to_connection_with_transport(Box::new(transport) as Box<dyn Transport + Send>)
        };
        let connection = connection
            .with_credentials(|action| Ok(answer(credentials, &self.url, action)))
            .with_transport_options(Box::new(options));
        act(connection, allowance)
    }

    fn is_local(&self) -> bool {
        self.url.starts_with("file://")
    }

    fn http_options(&self) -> gix::Result<http::Options> {
        let tls = self.options.tls.client_config();
        let tls = tls.map_err(gix::Error::from_error)?;
        let timeout = self.options.timeout;
        let proxy = self.options.proxy;
        let backend = http::reqwest::Options {
            configure_client: Some(Box::new(move |client| {
                let client = client
                    .tls_backend_preconfigured(tls.clone())
                    .connect_timeout(CONNECT_TIMEOUT.min(timeout))
                    .timeout(timeout);
                Ok(match proxy {
                    Proxy::Environment => client,
                    Proxy::None => client.no_proxy(),
                })
            })),
            configure_request: None,
        };
        Ok(http::Options {
            user_agent: Some(concat!("git/portolan-", env!("CARGO_PKG_VERSION")).to_owned()),
            backend: Some(Arc::new(Mutex::new(backend))),
            ..http::Options::default()
        })
    }

    /// Opens the mirror, making it first when it is not there.
    fn create(&self) -> Result<Repository, GitError> {
        if !self.directory.join("HEAD").exists() {
            self.initialise()?;
        }
        self.repository()
    }

    fn initialise(&self) -> Result<(), GitError> {
        let parent = self.directory.parent().unwrap_or(Utf8Path::new("."));
        std::fs::create_dir_all(parent).map_err(|source| self.error(source))?;
        let fresh = tempfile::tempdir_in(parent).map_err(|source| self.error(source))?;
        gix::ThreadSafeRepository::init_opts(
            fresh.path(),
            gix::create::Kind::Bare,
            gix::create::Options::default(),
            gix::open::Options::isolated(),
        )
        .map_err(|source| self.error(std::io::Error::other(source)))?;
        match std::fs::rename(fresh.path(), &self.directory) {
            // Somebody else was quicker; theirs is as good.
            Err(_) if self.directory.join("HEAD").exists() => Ok(()),
            result => result.map_err(|source| self.error(source)),
        }
    }

    fn lock(&self) -> Result<File, GitError> {
        let lock = File::create(self.directory.with_extension("lock"));
        let lock = lock.map_err(|source| self.error(source))?;
        lock.lock().map_err(|source| self.error(source))?;
        Ok(lock)
    }

    /// Finds out whether the ref is missing, and which names look like it.
    fn explain(&self, wanted: &Wanted, failed: FailedFetch) -> GitError {
        let error = self.fetch_error(wanted, failed);
        let (GitError::Fetch { .. }, Some(name)) = (&error, wanted.name()) else {
            return error;
        };
        let Ok(refs) = self.list_refs() else {
            return error;
        };
        let spec = wanted.refspec();
        let is_listed = |r: &RemoteRef| spec.starts_with(&format!("+{}:", r.name));
        if refs.iter().any(is_listed) {
            return error;
        }
        let short = |r: RemoteRef| {
            let name = r.name.strip_prefix("refs/heads/").unwrap_or(&r.name);
            name.strip_prefix("refs/tags/").unwrap_or(name).to_owned()
        };
        GitError::UnknownRemoteRef {
            url: shown(&self.url),
            wanted: wanted.to_string(),
            nearest: nearest(name, refs.into_iter().map(short)),
        }
    }

    fn fetch_error(&self, wanted: &(impl ToString + ?Sized), failed: FailedFetch) -> GitError {
        let url = shown(&self.url);
        let source = match failed {
            FailedFetch::TooLarge { limit } => return GitError::TooLarge { url, limit },
            FailedFetch::Gix(source) => source,
        };
        if source.is_unauthenticated() {
            let with_login = self.options.credentials.is_some();
            return GitError::Unauthorized { url, with_login };
        }
        let wanted = wanted.to_string();
        let address = Url::parse(&self.url).ok();
        let unreachable = address.and_then(|address| Unreachable::from_causes(&source, &address));
        match unreachable {
            Some(source) => GitError::Unreachable {
                url,
                wanted,
                source,
            },
            None => GitError::Fetch {
                url,
                wanted,
                source: Box::new(source),
            },
        }
    }

    fn error(&self, source: std::io::Error) -> GitError {
        GitError::Mirror {
            directory: self.directory.clone(),
            source,
        }
    }
}

type Connection<'a, 'auth, 'repo> =
    gix::remote::Connection<'a, 'auth, 'repo, Box<dyn Transport + Send>>;

/// Why a remote gave no answer that can be used.
enum FailedFetch {
    /// It sent more than it may.
    TooLarge { limit: u64 },
    /// What gix said.
    Gix(gix::Error),
}

fn peel(
    repository: &gix::Repository,
    id: gix::ObjectId,
    wanted: &Wanted,
) -> Result<CommitId, GitError> {
    let object = repository.find_object(id);
    let commit = object.and_then(gix::Object::peel_to_commit);
    commit
        .map(|commit| CommitId(commit.id))
        .map_err(|source| GitError::NotACommit {
            revision: wanted.to_string(),
            source: Box::new(source),
        })
}

fn remote_ref(advertised: &Ref) -> Option<RemoteRef> {
    let (name, target, peeled) = advertised.unpack();
    Some(RemoteRef {
        name: name.to_str().ok()?.to_owned(),
        commit: CommitId(peeled.or(target)?.to_owned()),
    })
}

/// Answers gix's wish for a login with ours, never with a prompt or a helper program.
///
/// A host that the remote redirected to gets none.
fn answer(credentials: Option<&Credentials>, url: &str, action: Action) -> Option<Outcome> {
    let Action::Get(context) = action else {
        return None;
    };
    let credentials = credentials?;
    let asking = context.url.as_ref()?.to_str().ok()?;
    let (asking, own) = (Url::parse(asking).ok()?, Url::parse(url).ok()?);
    if asking.origin() != own.origin() {
        return None;
    }
    Some(Outcome {
        identity: gix::sec::identity::Account {
            username: credentials.username.clone(),
            password: credentials.password.expose().to_owned(),
            oauth_refresh_token: None,
        },
        next: context.into(),
    })
}

/// An address without user name and password.
fn shown(url: &str) -> String {
    match portolan_http::Url::parse(url) {
        Ok(url) => portolan_http::shown(&url),
        Err(_) => url.to_owned(),
    }
}
