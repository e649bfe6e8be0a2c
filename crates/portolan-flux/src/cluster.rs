//! A cluster of a repository: where it starts, and where its Kustomizations and releases find their files.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use portolan_budget::Budget;
use portolan_engine::{Context, Failure, Key, Unit};
use portolan_helm::{Capabilities, Package, ReportedVersion};
use portolan_kustomize::Fetch;
use portolan_object::{Digest, Producer};
use portolan_secret::KnownSecrets;
use portolan_yaml::Text;

use crate::api::{Kustomization, NamespacedName, Source, SourceRef, SourceSpec};
use crate::release::chart::{self, ChartError, Location};
use crate::release::chart_dependencies;
use crate::release::chart_places::{ChartPlaces, ChartTree};
use crate::release::loaded_chart::LoadedChart;
use crate::session::Session;
use crate::session::fingerprint::Fingerprint;
use crate::source::artifact::Artifact;
use crate::source::artifact_generator::{self, Recipe};
use crate::source::mapped_sources::MappedSources;
use crate::source::outside::{Access, ChartArchive, Decrypt, SourceStore};
use crate::version::chosen::Chosen;
use crate::version::flux_version::FluxVersion;
use crate::version::profile::Profile;
use crate::walk::index::Index;

/// Everything a cluster's render depends on.
pub struct Cluster {
    /// Its name, for messages.
    pub name: Text,
    /// The Kustomization everything starts from.
    pub root: Kustomization,
    /// The repository itself, by the source that its root names.
    pub sources: HashMap<SourceRef, Arc<Artifact>>,
    /// Trees that the user lets stand for other sources.
    pub mapped: MappedSources,
    /// Brings remote bases; without it they are refused.
    pub fetch: Option<Arc<dyn Fetch>>,
    /// Brings trees and charts from elsewhere; without it only what the repository holds can be rendered.
    pub outside: Option<Arc<dyn SourceStore>>,
    /// Opens encrypted objects and files; without it they stay as they are.
    pub decrypt: Option<Arc<dyn Decrypt>>,
    /// Learns the values of Secrets that something is made of.
    pub secrets: Option<Arc<KnownSecrets>>,
    /// What controllers make out of objects of the repository that the built-in table does not know.
    pub producers: Arc<[Producer]>,
    /// The Flux version to emulate.
    pub flux: Chosen<FluxVersion>,
    /// What that Flux does differently from others, with the feature gates of the repository.
    pub profile: Profile,
    /// The Kubernetes version reported to charts.
    pub kubernetes: Chosen<ReportedVersion>,
    /// What the cluster's Kubernetes serves, custom kinds left out.
    pub capabilities: Arc<Capabilities>,
    /// Where results are kept and found.
    pub session: Arc<Session>,
    /// What each Kustomization and release may use.
    pub budget: Budget,
}

/// Where the files of a source are.
#[derive(Clone)]
pub(crate) enum Files {
    /// At hand.
    Here(Arc<Artifact>),
    /// A unit brings them.
    Remote(Key<Artifact>),
}

impl Files {
    /// Waits for the files if they are on their way.
    pub(crate) async fn wait(&self, cx: &Context) -> Result<Arc<Artifact>, Failure> {
        match self {
            Self::Here(artifact) => Ok(Arc::clone(artifact)),
            Self::Remote(key) => Ok(cx.output(key).await?),
        }
    }

    /// Tells files apart before they are there.
    pub(crate) fn fingerprint(&self, key: &mut Fingerprint) {
        match self {
            Self::Here(artifact) => key.number(artifact.number()),
            Self::Remote(unit) => key.text(unit.as_str()),
        }
    }
}

impl Cluster {
    /// Where the files of a source are; `None` when the repository does not say, or nobody may bring them.
    pub(crate) fn files(&self, cx: &Context, source: &SourceRef, index: &Index) -> Option<Files> {
        if let Some(artifact) = self.at_hand(source) {
            return Some(Files::Here(Arc::clone(artifact)));
        }
        if let Some(recipe) = artifact_generator::recipe(source, index) {
            return self.composed(cx, source, recipe, index);
        }
        let declared = index.source(source)?;
        if self.is_this_repository(&declared, index) {
            return self.own().map(|own| Files::Here(Arc::clone(own)));
        }
        let outside = Arc::clone(self.outside.as_ref()?);
        let access = access(&declared, index);
        let key = source_key(&declared);
        let session = Arc::clone(&self.session);
        let unit = Unit::io(move |cx| async move {
            let tree = outside.tree(&cx, &declared, &access).await;
            let tree = tree.map_err(|source| SourceError {
                id: declared.id.clone(),
                source,
            })?;
            Ok(Artifact::pack(tree, declared.ignore.as_deref(), &session)?)
        });
        cx.add(key.clone(), &[], unit);
        Some(Files::Remote(key))
    }

    /// The tree of a source that needs no fetching: one at hand, or the repository itself under another address.
    pub(crate) fn tree_here(&self, source: &SourceRef, index: &Index) -> Option<&Arc<Artifact>> {
        let own = || self.own().filter(|_| self.is_own(source, index));
        self.at_hand(source).or_else(own)
    }

    /// The declaration of a source whose files have to be fetched.
    pub(crate) fn elsewhere(&self, source: &SourceRef, index: &Index) -> Option<Source> {
        let is_made_here = || artifact_generator::recipe(source, index).is_some();
        if self.tree_here(source, index).is_some() || is_made_here() {
            return None;
        }
        index.source(source)
    }

    /// A tree that an `ArtifactGenerator` composes of other sources.
    fn composed(
        &self,
        cx: &Context,
        artifact: &SourceRef,
        recipe: Recipe,
        index: &Index,
    ) -> Option<Files> {
        let mut inputs = Fingerprint::of("ExternalArtifact");
        inputs.add(&recipe);
        let mut sources = Vec::new();
        let mut own = HashSet::new();
        for (alias, source) in &recipe.sources {
            // An artifact made of artifacts would have to be followed without end.
            if source.kind == "ExternalArtifact" {
                return None;
            }
            let files = self.files(cx, source, index)?;
            files.fingerprint(&mut inputs);
            sources.push((alias.clone(), files));
            if self.is_own(source, index) {
                own.insert(alias.to_string());
            }
        }
        let key = unit_key(&artifact.kind, &artifact.id, &inputs.finish());
        let session = Arc::clone(&self.session);
        let unit = Unit::io(move |cx| async move {
            let mut trees = HashMap::new();
            for (alias, files) in sources {
                trees.insert(alias, files.wait(&cx).await?);
            }
            let made = cx.compute(move || recipe.compose(&trees)).await?;
            let copied = made.copied_from.into_iter();
            let copied = copied.filter(|(_, (alias, _))| own.contains(alias));
            let copied = copied.map(|(to, (_, from))| (to, from)).collect();
            let packed = Artifact::pack(Arc::new(made.files), None, &session)?;
            Ok(packed.with_files_copied_from(copied))
        });
        cx.add(key.clone(), &[], unit);
        Some(Files::Remote(key))
    }

    /// The repository's own tree.
    pub(crate) fn own(&self) -> Option<&Arc<Artifact>> {
        self.sources.get(&self.root.source)
    }

    /// Whether a source is the repository that is rendered.
    pub(crate) fn is_own(&self, source: &SourceRef, index: &Index) -> bool {
        let is_declared = |declared| self.is_this_repository(&declared, index);
        *source == self.root.source || index.source(source).is_some_and(is_declared)
    }

    /// Whether another GitRepository object means the repository that is rendered: same address, same reference.
    fn is_this_repository(&self, declared: &Source, index: &Index) -> bool {
        let git = |source: &Source| match &source.spec {
            SourceSpec::Git { url, reference } => Some((address(url), reference.clone())),
            _ => None,
        };
        let own = index.source(&self.root.source);
        let own = own.as_ref().and_then(git);
        own.is_some() && own == git(declared)
    }

    /// Loads a chart from wherever it lies, or finds it loaded.
    pub(crate) async fn load_chart(
        &self,
        cx: &Context,
        location: &Location,
        files: Option<Files>,
        access: &Access,
    ) -> Result<Arc<LoadedChart>, Failure> {
        if let Location::Tree { source, .. } = location {
            let files = files.ok_or_else(|| ChartError::Unavailable(source.clone()))?;
            let artifact = files.wait(cx).await?;
            return self.load_tree_chart(cx, location, artifact).await;
        }
        let archive = self.fetch_chart(cx, location, access).await?;
        let mut digest = Fingerprint::of("archive");
        digest.text(&archive.digest);
        digest.optional(location.tracks_digest().then_some(&archive.tag));
        if let Location::Repository { values, .. } | Location::Registry { values, .. } = location {
            digest.add(values);
        }
        digest.bytes(&archive.content);
        let location = location.clone();
        let assemble = move || {
            let package = chart::assemble_archive(&archive, &location)?;
            Ok((package, ChartPlaces::default()))
        };
        let elsewhere = Fingerprint::of("elsewhere").finish();
        self.keep_chart(cx, digest.finish(), elsewhere, assemble)
            .await
    }

    async fn fetch_chart(
        &self,
        cx: &Context,
        location: &Location,
        access: &Access,
    ) -> Result<ChartArchive, ChartError> {
        let outside = self
            .outside
            .as_ref()
            .ok_or_else(|| ChartError::NotCached(location.to_string()))?;
        let archive = outside.chart(cx, location, access).await;
        archive.map_err(|source| ChartError::Fetch {
            chart: location.to_string(),
            source,
        })
    }

    async fn load_tree_chart(
        &self,
        cx: &Context,
        location: &Location,
        artifact: Arc<Artifact>,
    ) -> Result<Arc<LoadedChart>, Failure> {
        let Location::Tree { path, values, .. } = location.clone() else {
            return Err(ChartError::NotCached(location.to_string()).into());
        };
        let identity = chart::identity(&artifact, location);
        let is_own = self.own().is_some_and(|own| Arc::ptr_eq(own, &artifact));
        let is_own = is_own || artifact.is_copied();
        let mut place_digest = Fingerprint::of("directory of a chart");
        place_digest.flag(is_own);
        place_digest.flag(artifact.is_copied());
        place_digest.text(&path);
        let place_digest = place_digest.finish();
        if let Some(known) = self.known_chart(identity, place_digest).await {
            return Ok(known);
        }
        let read = cx.compute(move || {
            let tree = artifact.as_ref();
            let files = chart::read_from_tree(tree, &path)?;
            let local = chart_dependencies::read_local(tree, &path)?;
            let texts = values.read(tree)?;
            let digest = identity.unwrap_or_else(|| {
                let mut digest = Fingerprint::of("chart in a tree");
                digest.digest(&chart::digest(&files));
                for one in &local {
                    one.fingerprint(&mut digest);
                }
                digest.add(&values);
                for text in texts.iter().flatten() {
                    digest.bytes(text);
                }
                digest.finish()
            });
            let assemble = move || {
                let mut tree = ChartTree::new(chart::in_tree(&path));
                tree.add(&chart::in_tree(&path), &files);
                for one in &local {
                    one.add_to(&mut tree);
                }
                let mut package = chart::assemble(files, &path)?;
                chart_dependencies::add_local(&mut package, &path, local)?;
                chart::replace_values(&mut package, &values, &texts)?;
                let places = if is_own {
                    ChartPlaces::find(&package, &tree, |path| artifact.path_in_repository(path))
                } else {
                    ChartPlaces::default()
                };
                Ok((package, places))
            };
            Ok::<_, ChartError>((digest, assemble))
        });
        let (digest, assemble) = read.await?;
        self.keep_chart(cx, digest, place_digest, assemble).await
    }

    /// A chart that the session knows by the identity of its files.
    async fn known_chart(
        &self,
        identity: Option<Digest>,
        place_digest: Digest,
    ) -> Option<Arc<LoadedChart>> {
        let key = chart_key(identity?, place_digest);
        self.session.charts(&key).await.find(|_| true)
    }

    /// The chart with this digest: found, or assembled now.
    async fn keep_chart(
        &self,
        cx: &Context,
        digest: Digest,
        place_digest: Digest,
        assemble: impl FnOnce() -> Result<(Package, ChartPlaces), ChartError> + Send + 'static,
    ) -> Result<Arc<LoadedChart>, Failure> {
        let key = chart_key(digest, place_digest);
        let slot = self.session.charts(&key).await;
        if let Some(chart) = slot.find(|_| true) {
            return Ok(chart);
        }
        let (mut package, places) = cx.compute(assemble).await?;
        for missing in chart_dependencies::remote(&package) {
            let archive = self.fetch_chart(cx, &missing, &Access::default()).await?;
            let subchart = chart::assemble_archive(&archive, &missing)?;
            package.subcharts.push(Arc::new(subchart));
        }
        let chart = cx
            .compute(move || Arc::new(LoadedChart::new(package, places, digest, place_digest)))
            .await;
        Ok(slot.keep(chart))
    }
}

/// The key of a chart with these files in this place.
fn chart_key(digest: Digest, place_digest: Digest) -> Digest {
    let mut key = Fingerprint::of("chart in its place");
    key.digest(&digest);
    key.digest(&place_digest);
    key.finish()
}

/// Why the files of a source are not to be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot fetch {id}")]
pub(crate) struct SourceError {
    pub(crate) id: SourceRef,
    #[source]
    source: crate::source::outside::OutsideError,
}

/// The key of a unit: what it is for, and enough of its inputs' digest to tell it from others for the same object.
pub(crate) fn unit_key<T>(kind: &str, id: &NamespacedName, inputs: &Digest) -> Key<T> {
    let digest = inputs.to_string();
    let short = digest.get(..12).unwrap_or(&digest);
    Key::from(format!("{kind}/{id}#{short}"))
}

/// How a source is reached, with the Secret that it names if the repository holds it.
pub(crate) fn access(source: &Source, index: &Index) -> Access {
    let name = source.secret.clone().map(|name| NamespacedName {
        namespace: source.id.id.namespace.clone(),
        name,
    });
    let secret = name.and_then(|name| index.data(&(crate::api::DataKind::Secret, name)));
    Access {
        secret,
        insecure: source.insecure,
    }
}

/// The key of the unit that fetches a source.
pub(crate) fn source_key(source: &Source) -> Key<Artifact> {
    unit_key(&source.id.kind, &source.id.id, &source_digest(source))
}

fn source_digest(source: &Source) -> Digest {
    let mut key = Fingerprint::of("source");
    key.add(&source.spec);
    key.optional(source.ignore.as_ref());
    key.finish()
}

/// A repository's address without what does not tell repositories apart.
fn address(url: &str) -> String {
    let url = url.trim_end_matches('/').trim_end_matches(".git");
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    rest.replacen(':', "/", 1).to_lowercase()
}
