//! Charts from HTTP repositories and OCI registries.
//!
//! ```text
//!   https://host/charts ──▶ index.yaml ──▶ version ──▶ .tgz (digest checked against the index)
//!   oci://host/charts   ──▶ tags ────────▶ version ──▶ manifest ──▶ chart layer
//! ```

use std::io::Read as _;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use portolan_helm::{IndexEntry, RepoIndex};
use portolan_http::{HttpError, Request, Url};
use portolan_oci::{Digest, Repository};

use crate::archive::GZIP_MAGIC;
use crate::error::Naming as _;
use crate::oci::tag_version;
use crate::sources::{PinRequest, pinned_digest, without_login};
use crate::version_choice::is_exact;
use crate::{Access, OciRef, Pin, PinKind, SourceError, Sources};

/// The layer of a chart in a registry, and what Helm called it before 3.7.
const CHART_LAYERS: [&str; 2] = [
    "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
    "application/tar+gzip",
];

/// A chart by name and version range.
#[derive(Debug, Clone, Default)]
pub struct ChartRequest {
    /// The repository's address: `https://…` or `oci://…`.
    pub repository: String,
    /// The chart's name.
    pub name: String,
    /// A version or range; empty means the newest that is no pre-release.
    pub version: String,
    /// How to reach the repository.
    pub access: Access,
}

/// A chart's archive.
#[derive(Debug, Clone)]
pub struct ChartArchive {
    /// The chosen version.
    pub version: String,
    /// Where it came from.
    pub url: String,
    /// The archive's digest.
    pub digest: Digest,
    /// The archive: a gzip-compressed tar.
    pub content: Vec<u8>,
}

impl ChartRequest {
    fn pin_request(&self) -> PinRequest {
        let repository = without_login(&self.repository);
        let repository = repository.trim_end_matches('/');
        let (name, version) = (&self.name, &self.version);
        PinRequest {
            key: format!("chart {repository} {name} {version}")
                .trim_end()
                .to_owned(),
            what: match version.as_str() {
                "" => format!("chart `{name}` of `{repository}`"),
                _ => format!("chart `{name}` `{version}` of `{repository}`"),
            },
            is_fixed: is_exact(version),
            // An index says where its archives lie, which may be at another host; see `check_archive_place`.
            url: self
                .registry_repository()
                .map(|found| format!("oci://{found}")),
        }
    }
}

impl ChartRequest {
    /// The chart's repository in a registry, if that is where it lies.
    fn registry_repository(&self) -> Option<Repository> {
        self.repository.strip_prefix("oci://")?;
        let base = self.repository.parse::<Repository>().ok()?;
        base.join(&self.name).ok()
    }
}

impl Sources {
    /// Brings a chart.
    pub async fn chart(&self, request: &ChartRequest) -> Result<ChartArchive, SourceError> {
        let wanted = request.pin_request();
        let _turn = self.turn(&wanted.key).await;
        let chart = if request.repository.starts_with("oci://") {
            self.oci_chart(request, &wanted).await?
        } else {
            self.http_chart(request, &wanted).await?
        };
        self.remember_exact(request, &chart, &wanted)?;
        Ok(chart)
    }

    /// Remembers the chosen version under its own name: whoever locks a range asks for that next.
    fn remember_exact(
        &self,
        request: &ChartRequest,
        chart: &ChartArchive,
        wanted: &PinRequest,
    ) -> Result<(), SourceError> {
        let exact = ChartRequest {
            version: chart.version.clone(),
            ..request.clone()
        };
        let exact = exact.pin_request();
        match self.pins().get(&wanted.key) {
            Some(pin) if self.cache().remembered(&exact.key).as_ref() != Some(pin) => {
                self.cache().remember(&exact.key, pin)
            }
            _ => Ok(()),
        }
    }

    async fn http_chart(
        &self,
        request: &ChartRequest,
        wanted: &PinRequest,
    ) -> Result<ChartArchive, SourceError> {
        let pin = self
            .pin(wanted, self.find_http_chart(request, wanted))
            .await?;
        let digest = pinned_digest(&pin, &wanted.what)?;
        let fetch = async {
            self.check_archive_place(request, &pin, wanted).await?;
            let actual = self.download_chart(request, &pin.url, &wanted.what).await?;
            if actual == digest {
                return Ok(());
            }
            Err(SourceError::Changed {
                what: wanted.what.clone(),
                pinned: digest.to_string(),
                actual: actual.to_string(),
            })
        };
        let content = self.content(&digest, &wanted.what, fetch).await?;
        Ok(ChartArchive {
            version: pin.version,
            url: pin.url,
            digest,
            content,
        })
    }

    /// Refuses to download a pinned archive from a place that the repository does not name.
    ///
    /// A lock file comes with a repository, and may be anybody's. The repository's own host will do; for any other, the
    /// index must name the address for the pinned version.
    async fn check_archive_place(
        &self,
        request: &ChartRequest,
        pin: &Pin,
        wanted: &PinRequest,
    ) -> Result<(), SourceError> {
        if same_host(&pin.url, &request.repository) {
            return Ok(());
        }
        let index = self.index(request).await?;
        let entry = index.find(&request.name, &pin.version).ok();
        let named = entry.and_then(|entry| entry.url(&request.repository));
        if named.is_some_and(|url| without_login(&url) == pin.url) {
            return Ok(());
        }
        Err(SourceError::PinnedElsewhere {
            what: wanted.what.clone(),
            url: pin.url.clone(),
        })
    }

    /// Chooses a version by the index; the archive is fetched when the index does not name its digest.
    async fn find_http_chart(
        &self,
        request: &ChartRequest,
        wanted: &PinRequest,
    ) -> Result<Pin, SourceError> {
        let index = self.index(request).await?;
        let found = index.find(&request.name, &request.version);
        let entry = found.map_err(|source| SourceError::Index {
            what: wanted.what.clone(),
            source,
        })?;
        let url = archive_url(entry, request, &wanted.what)?;
        let announced = announced_digest(entry, &wanted.what)?;
        let digest = match &announced {
            Some(digest) if self.cache().contains(digest) => *digest,
            _ => self.download_chart(request, &url, &wanted.what).await?,
        };
        match announced {
            Some(announced) if announced != digest => Err(SourceError::WrongDigest {
                what: wanted.what.clone(),
                announced: announced.to_string(),
                actual: digest.to_string(),
            }),
            _ => Ok(Pin {
                kind: PinKind::Chart,
                url: without_login(&url),
                version: entry.version.clone(),
                digest: digest.to_string(),
            }),
        }
    }

    async fn download_chart(
        &self,
        request: &ChartRequest,
        url: &str,
        what: &str,
    ) -> Result<Digest, SourceError> {
        let mut get = Request::parse(url).of(what)?;
        if let Some(credentials) = &request.access.credentials
            && (request.access.pass_credentials || same_host(url, &request.repository))
        {
            get = get.basic(credentials);
        }
        let limit = self.limits().chart_bytes;
        let downloaded = self.download(&request.access, &get, limit, what).await?;
        Ok(downloaded.digest)
    }

    /// The repository's index, fetched once in a run.
    async fn index(&self, request: &ChartRequest) -> Result<Arc<RepoIndex>, SourceError> {
        let cell = self.index_cell(&request.repository);
        let index = cell.get_or_try_init(|| self.fetch_index(request)).await?;
        Ok(Arc::clone(index))
    }

    async fn fetch_index(&self, request: &ChartRequest) -> Result<Arc<RepoIndex>, SourceError> {
        let shown = without_login(&request.repository);
        let what = format!("the index of the chart repository `{shown}`");
        let client = self.client(&request.access, &what)?;
        let url = index_url(&request.repository).of(&what)?;
        let mut get = Request::get(url).header("accept-encoding", "gzip");
        if let Some(credentials) = &request.access.credentials {
            get = get.basic(credentials);
        }
        let limit = self.limits().index_bytes;
        let response = client.fetch(&get).await.of(&what)?;
        let body = response.bytes(limit).await.of(&what)?;
        let text = inflated(body, limit, &what)?;
        let index = RepoIndex::parse(&text);
        let index = index.map_err(|source| SourceError::Index { what, source })?;
        Ok(Arc::new(index))
    }

    async fn oci_chart(
        &self,
        request: &ChartRequest,
        wanted: &PinRequest,
    ) -> Result<ChartArchive, SourceError> {
        let base = request.repository.parse::<Repository>().of(&wanted.what)?;
        let repository = base.join(&request.name).of(&wanted.what)?;
        let find = async {
            let reference = if is_exact(&request.version) {
                OciRef::Tag(request.version.replace('+', "_"))
            } else {
                OciRef::Semver {
                    range: request.version.clone(),
                    filter: None,
                }
            };
            let chosen = self
                .choose_tag(&repository, &reference, &request.access, &wanted.what)
                .await?;
            self.pin_artifact(&repository, chosen, &request.access, &wanted.what)
                .await
        };
        let pin = self.pin(wanted, find).await?;
        let layer = self
            .pinned_layer(
                &pin,
                &repository,
                &CHART_LAYERS,
                &request.access,
                &wanted.what,
            )
            .await?;
        Ok(ChartArchive {
            version: tag_version(&pin.version),
            url: pin.url,
            digest: layer.digest,
            content: layer.content,
        })
    }
}

/// The address of `index.yaml` below the repository's, its query kept.
fn index_url(repository: &str) -> Result<Url, HttpError> {
    let bad = || HttpError::bad_url(repository);
    let mut url = Url::parse(repository).map_err(|_| bad())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad());
    }
    let path = format!("{}/index.yaml", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn archive_url(
    entry: &IndexEntry,
    request: &ChartRequest,
    what: &str,
) -> Result<String, SourceError> {
    entry
        .url(&request.repository)
        .ok_or_else(|| HttpError::bad_url(""))
        .of(what)
}

/// The digest in the index, which is bare hexadecimal; `None` when it names none, an error in any other form.
fn announced_digest(entry: &IndexEntry, what: &str) -> Result<Option<Digest>, SourceError> {
    let text = entry.digest.trim().to_ascii_lowercase();
    if text.is_empty() {
        return Ok(None);
    }
    let bare = text.strip_prefix("sha256:").unwrap_or(&text);
    let digest = format!("sha256:{bare}").parse();
    digest.map(Some).map_err(|_| SourceError::UnknownDigest {
        what: what.to_owned(),
        digest: entry.digest.clone(),
    })
}

fn same_host(one: &str, two: &str) -> bool {
    match (Url::parse(one), Url::parse(two)) {
        (Ok(one), Ok(two)) => one.origin() == two.origin(),
        _ => false,
    }
}

/// Undoes the compression that the index was sent with.
fn inflated(body: Vec<u8>, limit: u64, what: &str) -> Result<Vec<u8>, SourceError> {
    if !body.starts_with(&GZIP_MAGIC) {
        return Ok(body);
    }
    let mut text = Vec::new();
    let read = MultiGzDecoder::new(body.as_slice())
        .take(limit + 1)
        .read_to_end(&mut text);
    match read {
        Ok(size) if size as u64 > limit => Err(SourceError::TooLarge {
            what: what.to_owned(),
            size: size as u64,
            limit,
        }),
        Ok(_) => Ok(text),
        Err(error) => Err(SourceError::Index {
            what: what.to_owned(),
            source: portolan_helm::IndexError::Unreadable(error.to_string()),
        }),
    }
}
