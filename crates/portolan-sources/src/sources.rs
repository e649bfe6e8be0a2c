//! The entry point: turns requests into pins, and pins into content.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_helm::RepoIndex;
use portolan_http::{Client, HttpOptions, Request, Tls, Url};
use portolan_oci::{Digest, ReferenceError};
use tokio::sync::OnceCell;

use crate::cache::cache_error;
use crate::error::Naming as _;
use crate::{Access, Cache, Limits, Lock, Options, Pin, Pinning, SourceError};

/// Everything remote, behind one cache and one lock.
#[derive(Debug)]
pub struct Sources {
    cache: Cache,
    options: Options,
    lock: Mutex<Lock>,
    /// What was asked for in this run: the lock file of the next one.
    used: Mutex<Lock>,
    /// One client for each set of TLS settings: reading the machine's certificates takes a while.
    clients: Mutex<HashMap<Tls, Client>>,
    /// One turn for each request, so that many askers cost one download.
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    indexes: Mutex<HashMap<String, Arc<OnceCell<Arc<RepoIndex>>>>>,
    /// Git mirrors that are read from in this run; nobody removes them meanwhile.
    mirrors_in_use: Mutex<HashMap<Utf8PathBuf, File>>,
    /// What was resolved in this run: nobody needs to be told of its download again.
    resolved: Mutex<HashSet<String>>,
}

/// A request as the lock file and error messages name it.
#[derive(Debug, Clone)]
pub(crate) struct PinRequest {
    /// The lock file's key.
    pub(crate) key: String,
    /// What errors call it.
    pub(crate) what: String,
    /// Whether it can only ever mean one content, so that it need not be resolved twice.
    pub(crate) is_fixed: bool,
    /// Where its content must come from; `None` when the remote itself says.
    pub(crate) url: Option<String>,
}

/// A content that has come.
pub(crate) struct Downloaded {
    pub(crate) digest: Digest,
    pub(crate) size: u64,
}

impl Sources {
    /// Opens a cache directory with the pins of a lock file; nothing is read or written yet.
    pub fn open(cache_directory: &Utf8Path, lock: Lock, options: Options) -> Self {
        Self {
            cache: Cache::new(cache_directory),
            options,
            lock: Mutex::new(lock),
            used: Mutex::default(),
            clients: Mutex::default(),
            turns: Mutex::default(),
            indexes: Mutex::default(),
            mirrors_in_use: Mutex::default(),
            resolved: Mutex::default(),
        }
    }

    /// The same cache and lock with every network access refused.
    #[must_use]
    pub fn offline(&self) -> Self {
        let options = Options {
            offline: true,
            ..self.options.clone()
        };
        let lock = held(&self.lock).clone();
        Self::open(self.cache.root(), lock, options)
    }

    /// The pins of everything asked for so far: what to write into `portolan.lock`.
    pub fn pins(&self) -> Lock {
        held(&self.used).clone()
    }

    /// The cache.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Bounds on what is fetched and unpacked.
    pub fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// Waits until nobody else is busy with the same request.
    pub(crate) async fn turn(&self, key: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = Arc::clone(held(&self.turns).entry(key.to_owned()).or_default());
        turn.lock_owned().await
    }

    /// The pin of a request: from the lock, from what the cache remembers, or found by asking the remote.
    pub(crate) async fn pin<F>(&self, wanted: &PinRequest, find: F) -> Result<Pin, SourceError>
    where
        F: Future<Output = Result<Pin, SourceError>>,
    {
        let pin = if let Some(known) = self.known_pin(wanted)? {
            known
        } else {
            self.refuse_offline(&wanted.what)?;
            tracing::info!(what = %wanted.what, "resolving");
            self.options.watch.tell(&wanted.what);
            held(&self.resolved).insert(wanted.what.clone());
            let found = find.await?;
            self.cache.remember(&wanted.key, &found)?;
            found
        };
        held(&self.used).insert(wanted.key.clone(), pin.clone());
        Ok(pin)
    }

    fn known_pin(&self, wanted: &PinRequest) -> Result<Option<Pin>, SourceError> {
        let pinning = self.options.pinning;
        let locked = held(&self.lock).get(&wanted.key).cloned();
        if let Some(locked) = locked
            && pinning != Pinning::Update
        {
            wanted.check_place(&locked)?;
            return Ok(Some(locked));
        }
        if pinning == Pinning::Require {
            let what = wanted.what.clone();
            return Err(SourceError::NotPinned { what });
        }
        let may_remember = self.options.offline || (wanted.is_fixed && pinning != Pinning::Update);
        Ok(may_remember
            .then(|| self.cache.remembered(&wanted.key))
            .flatten())
    }

    /// The content of a digest, fetched when the cache does not have it.
    pub(crate) async fn content<F>(
        &self,
        digest: &Digest,
        what: &str,
        fetch: F,
    ) -> Result<Vec<u8>, SourceError>
    where
        F: Future<Output = Result<(), SourceError>>,
    {
        if let Some(content) = self.cache.get(digest)? {
            return Ok(content);
        }
        self.refuse_offline(what)?;
        if !held(&self.resolved).contains(what) {
            self.options.watch.tell(what);
        }
        fetch.await?;
        let content = self.cache.get(digest)?;
        content.ok_or_else(|| {
            let gone = std::io::Error::other("an entry vanished right after it was written");
            cache_error(self.cache.root().to_owned(), gone)
        })
    }

    pub(crate) fn refuse_offline(&self, what: &str) -> Result<(), SourceError> {
        if self.options.offline {
            let what = what.to_owned();
            return Err(SourceError::Offline { what });
        }
        Ok(())
    }

    /// Downloads into the cache.
    pub(crate) async fn download(
        &self,
        access: &Access,
        request: &Request,
        limit: u64,
        what: &str,
    ) -> Result<Downloaded, SourceError> {
        let client = self.client(access, what)?;
        let mut response = client.fetch(request).await.of(what)?;
        let mut incoming = self.cache.incoming()?;
        let mut size = 0;
        while let Some(chunk) = response.chunk(limit).await.of(what)? {
            let chunk = chunk.as_ref();
            size += chunk.len() as u64;
            access.progress.report(size, response.length());
            incoming
                .write(chunk)
                .map_err(|source| cache_error(self.cache.root().to_owned(), source))?;
        }
        let digest = incoming.finish()?;
        Ok(Downloaded { digest, size })
    }

    /// The HTTP client for a source's TLS settings.
    pub(crate) fn client(&self, access: &Access, what: &str) -> Result<Client, SourceError> {
        let tls = access.tls.as_ref().unwrap_or(&self.options.http.tls);
        let mut clients = held(&self.clients);
        if let Some(client) = clients.get(tls) {
            return Ok(client.clone());
        }
        let options = HttpOptions {
            tls: tls.clone(),
            ..self.options.http.clone()
        };
        let client = Client::new(&options).of(what)?;
        clients.insert(tls.clone(), client.clone());
        Ok(client)
    }

    /// Keeps a git mirror from being removed while this run lasts.
    pub(crate) fn keep_mirror(&self, directory: &Utf8Path) {
        let mut in_use = held(&self.mirrors_in_use);
        // A cache that cannot be written cannot be emptied either.
        if !in_use.contains_key(directory)
            && let Ok(file) = Cache::use_mirror(directory)
        {
            in_use.insert(directory.to_owned(), file);
        }
    }

    /// The place of a repository's index, read once in a run.
    pub(crate) fn index_cell(&self, repository: &str) -> Arc<OnceCell<Arc<RepoIndex>>> {
        let mut indexes = held(&self.indexes);
        Arc::clone(indexes.entry(repository.to_owned()).or_default())
    }
}

impl PinRequest {
    /// Refuses a pin that takes the content from elsewhere: a lock file comes with a repository, and may be anybody's.
    fn check_place(&self, pin: &Pin) -> Result<(), SourceError> {
        match &self.url {
            Some(url) if url.trim_end_matches('/') != pin.url.trim_end_matches('/') => {
                Err(SourceError::PinnedElsewhere {
                    what: self.what.clone(),
                    url: pin.url.clone(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// Locks a mutex; one that a panic left behind holds nothing that could be half-written.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An address without user name and password, for keys and messages.
pub(crate) fn without_login(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut parsed) if !parsed.username().is_empty() || parsed.password().is_some() => {
            // Both fail only for addresses that cannot carry credentials at all.
            let _ = parsed.set_username("");
            let _ = parsed.set_password(None);
            parsed.into()
        }
        _ => url.to_owned(),
    }
}

/// Reads a pinned digest; a lock file edited by hand may hold anything.
pub(crate) fn pinned_digest(pin: &Pin, what: &str) -> Result<Digest, SourceError> {
    pin.digest
        .parse::<Digest>()
        .map_err(ReferenceError::from)
        .of(what)
}
