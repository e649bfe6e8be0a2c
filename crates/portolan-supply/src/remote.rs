//! Remote sources and charts for portolan-flux.
//!
//! Everything is fetched on the threads of the process's one runtime; what computes runs elsewhere and never blocks a
//! download.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use portolan_engine::Context;
use portolan_flux::api::{GitRef, OciRef, Source, SourceSpec};
use portolan_flux::{
    Access as Asked, Advised, ChartArchive, Location, OciReference, OutsideCause, OutsideError,
    SourceStore,
};
use portolan_http::ByteProgress;
use portolan_sources::{
    Access, BucketRequest, ChartRequest, GitRef as WantedCommit, GitRequest, OciRef as WantedTag,
    OciRequest, SourceError, Sources,
};
use portolan_vfs::{Memory, Vfs};

use crate::address::{over_https, same_repository};
use crate::lazy_runtime::LazyRuntime;
use crate::login;
use crate::netrc::Netrc;

/// What the progress of a download counts.
const BYTES: &str = "bytes";

/// The file that an artifact is kept as when its source asks not to unpack it.
const KEPT_ARCHIVE: &str = "/artifact.tgz";

/// The repository that is rendered, and the addresses it is known by.
#[derive(Clone)]
pub struct OwnTree {
    /// The addresses of its git remotes.
    pub urls: Vec<String>,
    /// The work tree.
    pub files: Arc<dyn Vfs>,
}

/// Brings sources and charts.
pub struct Remote {
    pub(crate) world: Arc<World>,
    own: Option<OwnTree>,
}

/// What is the same for all trees of a repository that are rendered in one run.
pub(crate) struct World {
    pub(crate) sources: Arc<Sources>,
    netrc: Netrc,
    /// Where it is fetched.
    runtime: LazyRuntime,
    failures: Mutex<BTreeSet<String>>,
    /// The same without a network, for what has to be at hand.
    offline: OnceLock<Arc<Self>>,
}

/// Why a source cannot be fetched at all.
#[derive(Debug, thiserror::Error)]
enum RemoteError {
    /// Another controller makes it in the cluster.
    #[error("{0} is made by another controller in the cluster")]
    MadeInCluster(String),
    /// It is a chart or an index of charts.
    #[error("{0} has no files")]
    NoFiles(String),
    /// A digest is none.
    #[error("`{0}` is no digest")]
    BadDigest(String),
    /// The work was dropped with its runtime.
    #[error("fetching was stopped")]
    Stopped,
}

impl Remote {
    /// Brings what the given sources reach, with the user's logins, on a runtime.
    pub fn new(
        sources: Arc<Sources>,
        netrc: Netrc,
        own: Option<OwnTree>,
        runtime: LazyRuntime,
    ) -> Self {
        Self {
            world: Arc::new(World::new(sources, netrc, runtime)),
            own,
        }
    }

    /// The same without a network.
    fn offline(&self) -> Self {
        let world = &self.world;
        let offline = world.offline.get_or_init(|| {
            let sources = Arc::new(world.sources.offline());
            let runtime = world.runtime.clone();
            Arc::new(World::new(sources, world.netrc.clone(), runtime))
        });
        Self {
            world: Arc::clone(offline),
            own: self.own.clone(),
        }
    }

    /// The same for another tree of the repository, such as an older commit's.
    #[must_use]
    pub fn with_own_files(&self, files: &Arc<dyn Vfs>) -> Self {
        let own = self.own.as_ref().map(|own| OwnTree {
            urls: own.urls.clone(),
            files: Arc::clone(files),
        });
        Self {
            world: Arc::clone(&self.world),
            own,
        }
    }

    /// What could not be fetched so far: the errors' own words, without their causes.
    pub fn failures(&self) -> BTreeSet<String> {
        self.world.failures.lock().clone()
    }

    /// Writes a failure down on its way to whoever asked, and adds advice where there is some.
    fn noted(&self, error: OutsideError) -> OutsideError {
        self.world.failures.lock().insert(error.to_string());
        let known = error.downcast_ref::<SourceError>();
        let cause = known.and_then(cause);
        match known.and_then(SourceError::hint).map(str::to_owned) {
            Some(hint) => Advised { error, hint, cause }.into(),
            None => error,
        }
    }

    /// How a source is reached.
    pub(crate) fn access(&self, asked: &Asked, url: &str) -> Access {
        login::access(asked, url, &self.world.netrc)
    }

    /// How a source is reached by a unit, which is told of the bytes that have come.
    fn watched_access(&self, cx: &Context, asked: &Asked, url: &str) -> Access {
        let cx = cx.clone();
        Access {
            progress: ByteProgress::new(move |done, total| cx.progress(done, total, BYTES)),
            ..self.access(asked, url)
        }
    }

    /// Lets something be fetched and awaits it on the caller's own runtime.
    async fn fetch<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, OutsideError>
    where
        T: Send + 'static,
        E: Into<OutsideError> + Send + 'static,
    {
        let task = self.world.runtime.get()?.spawn(work);
        task.await
            .map_err(|_| RemoteError::Stopped)?
            .map_err(|error| self.noted(error.into()))
    }

    /// Waits for something that is fetched, on a thread that may wait.
    pub(crate) fn wait<T: Send, E: Into<OutsideError> + Send>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, OutsideError> {
        let fetched = self.world.runtime.wait(work)?;
        fetched.map_err(|error| self.noted(error.into()))
    }

    async fn git(
        &self,
        cx: &Context,
        url: &str,
        reference: &GitRef,
        asked: &Asked,
    ) -> Result<Arc<dyn Vfs>, OutsideError> {
        if let Some(own) = &self.own
            && own.urls.iter().any(|own| same_repository(own, url))
        {
            return Ok(Arc::clone(&own.files));
        }
        let url = over_https(url);
        let request = GitRequest {
            access: self.watched_access(cx, asked, &url),
            reference: commit(reference),
            url,
            timeout: None,
        };
        let sources = Arc::clone(&self.world.sources);
        let tree = self
            .fetch(async move { sources.git_tree(&request).await })
            .await?;
        Ok(Arc::new(tree.tree))
    }

    async fn artifact(
        &self,
        request: OciRequest,
        keep: bool,
    ) -> Result<Arc<dyn Vfs>, OutsideError> {
        let sources = Arc::clone(&self.world.sources);
        let work = async move {
            let artifact = sources.oci_artifact(&request).await?;
            if keep {
                let mut files = Memory::new();
                files.insert(KEPT_ARCHIVE, artifact.content);
                return Ok::<_, OutsideError>(files);
            }
            Ok(artifact.files(sources.limits())?)
        };
        Ok(Arc::new(self.fetch(work).await?))
    }

    async fn bucket(&self, request: BucketRequest) -> Result<Arc<dyn Vfs>, OutsideError> {
        let sources = Arc::clone(&self.world.sources);
        let bucket = self
            .fetch(async move { sources.bucket(&request).await })
            .await?;
        Ok(Arc::new(bucket.files))
    }

    async fn repository_chart(&self, request: ChartRequest) -> Result<ChartArchive, OutsideError> {
        let sources = Arc::clone(&self.world.sources);
        let chart = self
            .fetch(async move { sources.chart(&request).await })
            .await?;
        Ok(ChartArchive {
            digest: chart.digest.to_string().into(),
            tag: portolan_yaml::Text::default(),
            content: chart.content.into(),
        })
    }

    async fn registry_chart(&self, request: OciRequest) -> Result<ChartArchive, OutsideError> {
        let sources = Arc::clone(&self.world.sources);
        let chart = self
            .fetch(async move { sources.oci_artifact(&request).await })
            .await?;
        Ok(ChartArchive {
            digest: chart.digest.to_string().into(),
            tag: chart.tag.into(),
            content: chart.content.into(),
        })
    }
}

impl SourceStore for Remote {
    fn tree<'a>(
        &'a self,
        cx: &'a Context,
        source: &'a Source,
        access: &'a Asked,
    ) -> BoxFuture<'a, Result<Arc<dyn Vfs>, OutsideError>> {
        Box::pin(async move {
            match &source.spec {
                SourceSpec::Git { url, reference, .. } => {
                    self.git(cx, url, reference, access).await
                }
                SourceSpec::Oci {
                    url,
                    reference,
                    layer_media_type,
                    keep_archive,
                    ..
                } => {
                    let request = OciRequest {
                        url: url.to_string(),
                        reference: tag(reference)?,
                        media_type: layer_media_type.as_ref().map(ToString::to_string),
                        access: self.watched_access(cx, access, url),
                    };
                    self.artifact(request, *keep_archive).await
                }
                SourceSpec::Bucket {
                    endpoint,
                    name,
                    prefix,
                    region,
                } => {
                    let request = BucketRequest {
                        endpoint: endpoint.to_string(),
                        bucket: name.to_string(),
                        prefix: prefix.to_string(),
                        region: region.to_string(),
                        access: self.watched_access(cx, access, &format!("https://{endpoint}")),
                    };
                    self.bucket(request).await
                }
                SourceSpec::ExternalArtifact => {
                    Err(RemoteError::MadeInCluster(source.id.to_string()).into())
                }
                SourceSpec::HelmRepository { .. } | SourceSpec::HelmChart(_) => {
                    Err(RemoteError::NoFiles(source.id.to_string()).into())
                }
            }
        })
    }

    fn chart<'a>(
        &'a self,
        cx: &'a Context,
        location: &'a Location,
        access: &'a Asked,
    ) -> BoxFuture<'a, Result<ChartArchive, OutsideError>> {
        Box::pin(async move {
            match location {
                Location::Repository {
                    url, name, version, ..
                } => {
                    let request = ChartRequest {
                        repository: url.to_string(),
                        name: name.to_string(),
                        version: version.to_string(),
                        access: self.watched_access(cx, access, url),
                    };
                    self.repository_chart(request).await
                }
                Location::Registry {
                    url,
                    reference,
                    layer,
                    tracks_digest,
                    ..
                } => {
                    if let (false, Some(request)) = (tracks_digest, chart_request(url, reference)) {
                        let access = self.watched_access(cx, access, url);
                        return self
                            .repository_chart(ChartRequest { access, ..request })
                            .await;
                    }
                    let request = OciRequest {
                        url: url.to_string(),
                        reference: wanted_tag(reference)?,
                        media_type: layer.as_ref().map(ToString::to_string),
                        access: self.watched_access(cx, access, url),
                    };
                    self.registry_chart(request).await
                }
                Location::Tree { source, .. } => {
                    Err(RemoteError::NoFiles(source.to_string()).into())
                }
            }
        })
    }

    fn chart_at_hand<'a>(
        &'a self,
        cx: &'a Context,
        location: &'a Location,
        access: &'a Asked,
    ) -> BoxFuture<'a, Option<ChartArchive>> {
        Box::pin(async move { self.offline().chart(cx, location, access).await.ok() })
    }
}

/// Brings sources, but of charts only those that are in the cache: for whoever wants to list what there is.
pub struct ChartsAtHand(pub Arc<Remote>);

/// A chart is not in the cache, and nobody asked for it to be fetched.
#[derive(Debug, thiserror::Error)]
#[error("chart `{0}` is not in the cache")]
struct NotAtHand(String);

impl SourceStore for ChartsAtHand {
    fn tree<'a>(
        &'a self,
        cx: &'a Context,
        source: &'a Source,
        access: &'a Asked,
    ) -> BoxFuture<'a, Result<Arc<dyn Vfs>, OutsideError>> {
        self.0.tree(cx, source, access)
    }

    fn chart<'a>(
        &'a self,
        cx: &'a Context,
        location: &'a Location,
        access: &'a Asked,
    ) -> BoxFuture<'a, Result<ChartArchive, OutsideError>> {
        Box::pin(async move {
            let archive = self.0.chart_at_hand(cx, location, access).await;
            archive.ok_or_else(|| NotAtHand(location.to_string()).into())
        })
    }

    fn chart_at_hand<'a>(
        &'a self,
        cx: &'a Context,
        location: &'a Location,
        access: &'a Asked,
    ) -> BoxFuture<'a, Option<ChartArchive>> {
        self.0.chart_at_hand(cx, location, access)
    }
}

impl World {
    fn new(sources: Arc<Sources>, netrc: Netrc, runtime: LazyRuntime) -> Self {
        Self {
            sources,
            netrc,
            runtime,
            failures: Mutex::default(),
            offline: OnceLock::new(),
        }
    }
}

/// What keeps other things from being fetched as well.
fn cause(error: &SourceError) -> Option<OutsideCause> {
    if let Some(unreachable) = error.unreachable() {
        return Some(OutsideCause::Unreachable {
            host: unreachable.host.clone(),
            why: unreachable.why.to_string(),
        });
    }
    if let Some(failing) = error.failing_host() {
        return Some(OutsideCause::Failing(failing));
    }
    matches!(error, SourceError::Offline { .. }).then_some(OutsideCause::Offline)
}

/// A chart of an `oci://` HelmRepository: by name and version, as in one with an index.
fn chart_request(url: &str, reference: &OciReference) -> Option<ChartRequest> {
    let OciReference::Range {
        range,
        filter: None,
    } = reference
    else {
        return None;
    };
    let (repository, name) = url.rsplit_once('/')?;
    Some(ChartRequest {
        repository: repository.to_owned(),
        name: name.to_owned(),
        version: range.to_string(),
        access: Access::default(),
    })
}

fn commit(reference: &GitRef) -> WantedCommit {
    let text = |field: &Option<portolan_yaml::Text>| field.as_ref().map(ToString::to_string);
    let by_commit = text(&reference.commit).map(WantedCommit::Commit);
    by_commit
        .or_else(|| text(&reference.name).map(WantedCommit::Name))
        .or_else(|| text(&reference.semver).map(WantedCommit::Semver))
        .or_else(|| text(&reference.tag).map(WantedCommit::Tag))
        .or_else(|| text(&reference.branch).map(WantedCommit::Branch))
        .unwrap_or_else(|| WantedCommit::Branch("master".to_owned()))
}

fn tag(reference: &OciRef) -> Result<WantedTag, RemoteError> {
    wanted_tag(&OciReference::from(reference.clone()))
}

fn wanted_tag(reference: &OciReference) -> Result<WantedTag, RemoteError> {
    Ok(match reference {
        OciReference::Digest(digest) => {
            let read = digest
                .parse()
                .map_err(|_| RemoteError::BadDigest(digest.to_string()));
            WantedTag::Digest(read?)
        }
        OciReference::Range { range, filter } => WantedTag::Semver {
            range: range.to_string(),
            filter: filter.as_ref().map(ToString::to_string),
        },
        OciReference::Tag(tag) => WantedTag::Tag(tag.to_string()),
    })
}
