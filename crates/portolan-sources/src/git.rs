//! Git repositories at a ref.

use std::time::Duration;

use portolan_git::{CommitId, FetchOptions, Mirror, Tree, Wanted};
use portolan_http::Url;

use crate::error::Naming as _;
use crate::sources::{PinRequest, without_login};
use crate::version_choice::{is_exact, newest};
use crate::{Access, Pin, PinKind, SourceError, Sources};

/// A git repository at a ref.
#[derive(Debug, Clone)]
pub struct GitRequest {
    /// The address: `https://…`.
    pub url: String,
    /// Which commit.
    pub reference: GitRef,
    /// How to reach it.
    pub access: Access,
    /// How long fetching may take, if not as long as usual.
    pub timeout: Option<Duration>,
}

/// Which commit of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitRef {
    /// A commit by its full id.
    Commit(String),
    /// A ref by its full name.
    Name(String),
    /// The newest tag in a version range.
    Semver(String),
    /// A tag.
    Tag(String),
    /// A branch.
    Branch(String),
    /// Whatever the remote's HEAD is.
    Default,
}

/// The files of a commit.
#[derive(Debug, Clone)]
pub struct GitTree {
    /// The commit.
    pub commit: CommitId,
    /// The branch, tag or ref it was reached by; empty for a commit.
    pub reference: String,
    /// Its files.
    pub tree: Tree,
}

/// Commits are pinned by their SHA-1.
const COMMIT_PREFIX: &str = "sha1:";

impl GitRequest {
    fn pin_request(&self) -> PinRequest {
        let url = without_login(&self.url);
        let reference = match &self.reference {
            GitRef::Commit(id) => format!("commit:{id}"),
            GitRef::Name(name) => format!("name:{name}"),
            GitRef::Semver(range) => format!("semver:{range}"),
            GitRef::Tag(tag) => format!("tag:{tag}"),
            GitRef::Branch(branch) => format!("branch:{branch}"),
            GitRef::Default => "HEAD".to_owned(),
        };
        PinRequest {
            key: format!("git {url} {reference}"),
            what: format!("git repository `{url}` {reference}"),
            is_fixed: match &self.reference {
                GitRef::Commit(_) => true,
                GitRef::Tag(tag) => is_exact(tag),
                _ => false,
            },
            url: Url::parse(&self.url)
                .ok()
                .map(|url| portolan_http::shown(&url)),
        }
    }
}

impl Sources {
    /// Brings the files of a commit.
    pub async fn git_tree(&self, request: &GitRequest) -> Result<GitTree, SourceError> {
        let wanted = request.pin_request();
        let _turn = self.turn(&wanted.key).await;
        self.keep_mirror(&self.cache().git_directory(&without_login(&request.url)));
        let mirror = self.mirror(request, &wanted.what)?;
        let find = async {
            let reference = request.reference.clone();
            let (mirror, what) = (mirror.clone(), wanted.what.clone());
            self.reach(request, &wanted, move || {
                find_commit(&mirror, &reference, &what)
            })
            .await
        };
        let pin = self.pin(&wanted, find).await?;
        let hex = pin.digest.strip_prefix(COMMIT_PREFIX);
        let hex = hex.unwrap_or(&pin.digest);
        let commit = hex.parse::<CommitId>().of(&wanted.what)?;
        if !mirror.has(commit) {
            self.refuse_offline(&wanted.what)?;
            self.options().watch.tell(&wanted.what);
            let (mirror, what) = (mirror.clone(), wanted.what.clone());
            self.reach(request, &wanted, move || {
                mirror.fetch(&Wanted::Commit(commit)).of(&what)
            })
            .await?;
        }
        let repository = mirror.repository().of(&wanted.what)?;
        Ok(GitTree {
            commit,
            reference: pin.version,
            tree: repository.tree(commit).of(&wanted.what)?,
        })
    }

    /// Does something with the remote, unless its host is known to be out of reach.
    async fn reach<T: Send + 'static>(
        &self,
        request: &GitRequest,
        wanted: &PinRequest,
        act: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
    ) -> Result<T, SourceError> {
        let hosts = &self.options().http.hosts;
        let Ok(url) = Url::parse(&request.url) else {
            return blocking(act).await;
        };
        let turn = hosts.turn(&url).await;
        let first = turn.map_err(|source| SourceError::Unreachable {
            what: wanted.what.clone(),
            source,
        })?;
        let outcome = blocking(act).await;
        if let Err(error) = &outcome
            && let Some(unreachable) = error.unreachable()
        {
            hosts.add(unreachable);
        }
        if let Some(first) = first {
            first.done();
        }
        outcome
    }

    fn mirror(&self, request: &GitRequest, what: &str) -> Result<Mirror, SourceError> {
        let directory = self.cache().git_directory(&without_login(&request.url));
        let http = &self.options().http;
        let defaults = FetchOptions::default();
        let options = FetchOptions {
            credentials: request.access.credentials.clone(),
            tls: request
                .access
                .tls
                .clone()
                .unwrap_or_else(|| http.tls.clone()),
            proxy: http.proxy,
            progress: request.access.progress.clone(),
            max_bytes: self.limits().git_bytes,
            timeout: request.timeout.unwrap_or(defaults.timeout),
            allow_local: self.options().allow_local_git,
            ..defaults
        };
        Mirror::new(&directory, &request.url, options).of(what)
    }
}

fn find_commit(mirror: &Mirror, reference: &GitRef, what: &str) -> Result<Pin, SourceError> {
    let (wanted, version) = match reference {
        GitRef::Commit(id) => (
            Wanted::Commit(id.parse::<CommitId>().of(what)?),
            String::new(),
        ),
        GitRef::Name(name) => (Wanted::Name(name.clone()), name.clone()),
        GitRef::Tag(tag) => (Wanted::Tag(tag.clone()), tag.clone()),
        GitRef::Branch(branch) => (Wanted::Branch(branch.clone()), branch.clone()),
        GitRef::Default => (Wanted::Default, "HEAD".to_owned()),
        GitRef::Semver(range) => {
            let tag = newest_tag(mirror, range, what)?;
            (Wanted::Tag(tag.clone()), tag)
        }
    };
    let commit = mirror.fetch(&wanted).of(what)?;
    Ok(Pin {
        kind: PinKind::Git,
        url: mirror.url(),
        version,
        digest: format!("{COMMIT_PREFIX}{commit}"),
    })
}

fn newest_tag(mirror: &Mirror, range: &str, what: &str) -> Result<String, SourceError> {
    let refs = mirror.refs().of(what)?;
    let tags = refs
        .iter()
        .filter_map(|r| r.name.strip_prefix("refs/tags/"));
    let newest = newest(tags, range).map_err(|reason| SourceError::BadRange {
        what: what.to_owned(),
        range: range.to_owned(),
        reason,
    })?;
    newest
        .map(str::to_owned)
        .ok_or_else(|| SourceError::NoVersion {
            what: what.to_owned(),
            range: range.to_owned(),
        })
}

/// Runs something that blocks beside the async tasks.
async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
) -> Result<T, SourceError> {
    match tokio::task::spawn_blocking(act).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
