//! A whole cluster: its Kustomizations, then the releases they emit.
//!
//! ```text
//! walk ──▶ HelmReleases ──▶ charts (each loaded once) ──▶ capabilities ──▶ releases, all at once
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use portolan_engine::{Context, Failure, Key, Unit, WaitError};
use portolan_helm::values::Tree;
use portolan_helm::{Capabilities, Chart, ChartFile, Package};
use portolan_object::{Object, Origin, defined_kinds};
use portolan_yaml::{Dialect, Text};

use crate::api::{FieldError, HelmRelease, NamespacedName};
use crate::chart::{self, ChartError, Location};
use crate::cluster::Cluster;
use crate::index::{Emitter, Index};
use crate::release;
use crate::values::{Composed, compose};
use crate::walk::{self, Walk};

/// The API group of HelmReleases.
const RELEASE_GROUP: &str = "helm.toolkit.fluxcd.io";

/// How far a cluster is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Kustomizations only.
    Kustomizations,
    /// Releases too.
    Releases,
}

/// A HelmRelease and what became of it.
#[derive(Debug)]
pub struct RenderedRelease {
    /// The object that defines it.
    pub definition: Object,
    /// Who emitted it.
    pub emitter: Emitter,
    /// What it says, or what is wrong with what it says.
    pub spec: Result<Arc<HelmRelease>, Vec<FieldError>>,
    /// Its values, and what of them was not to be had.
    pub composed: Composed,
    /// Where its chart lies.
    pub location: Option<Location>,
    /// Why its chart is not to be had.
    pub chart_error: Option<ChartError>,
    /// The unit that rendered it, if any did.
    pub unit: Option<Key>,
    /// What it gave.
    pub objects: Option<Arc<Vec<Object>>>,
}

/// Everything that a cluster's repository declares, rendered.
#[derive(Debug, Default)]
pub struct Rendering {
    /// The Kustomizations.
    pub walk: Walk,
    /// The releases, by name.
    pub releases: BTreeMap<NamespacedName, RenderedRelease>,
}

/// Renders a cluster; one unit does the walking and adds all others.
pub fn cluster_unit(cluster: Arc<Cluster>, depth: Depth) -> Unit {
    Unit::io(move |cx| async move { render(&cx, &cluster, depth).await })
}

async fn render(cx: &Context, cluster: &Arc<Cluster>, depth: Depth) -> Result<Rendering, Failure> {
    let walk = walk::walk(cx, cluster).await?;
    let mut rendering = Rendering {
        walk,
        releases: BTreeMap::new(),
    };
    if depth == Depth::Releases {
        rendering.releases = declared_releases(&rendering.walk.index);
        let charts = load_charts(cx, cluster, &mut rendering.releases).await?;
        let capabilities = Arc::new(capabilities(cluster, &rendering.walk.index, &charts));
        render_releases(cx, cluster, &capabilities, &mut rendering.releases).await?;
    }
    Ok(rendering)
}

/// Every HelmRelease that was emitted; of several with one name, the first emitter's.
fn declared_releases(index: &Index) -> BTreeMap<NamespacedName, RenderedRelease> {
    let mut releases = BTreeMap::new();
    for (emitter, object) in index.of_kind(RELEASE_GROUP, "HelmRelease") {
        let id = NamespacedName::new(object.namespace().to_owned(), object.name().to_owned());
        releases
            .entry(id)
            .or_insert_with(|| declared_release(object, emitter, index));
    }
    releases
}

fn declared_release(object: &Object, emitter: &Emitter, index: &Index) -> RenderedRelease {
    let spec = HelmRelease::read(object.node()).map(Arc::new);
    let composed = spec.as_ref().map(|spec| {
        compose(spec, |kind, name| {
            let name = NamespacedName {
                namespace: spec.id.namespace.clone(),
                name: Text::from(name),
            };
            index.data(&(kind, name)).map(|data| data.as_ref().clone())
        })
    });
    let (location, chart_error) = match spec.as_ref().ok().map(|spec| chart::locate(spec, index)) {
        Some(Ok(location)) => (Some(location), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    RenderedRelease {
        definition: object.clone(),
        emitter: emitter.clone(),
        composed: composed.unwrap_or_default(),
        spec,
        location,
        chart_error,
        unit: None,
        objects: None,
    }
}

/// Loads every chart once; a release whose chart fails to load is told why.
async fn load_charts(
    cx: &Context,
    cluster: &Arc<Cluster>,
    releases: &mut BTreeMap<NamespacedName, RenderedRelease>,
) -> Result<HashMap<Location, Arc<Chart>>, WaitError> {
    let locations: BTreeSet<Location> = releases
        .values()
        .filter_map(|release| release.location.clone())
        .collect();
    for location in &locations {
        let (cluster, wanted) = (Arc::clone(cluster), location.clone());
        cx.add(
            cluster.chart_key(location),
            &[],
            Unit::io(move |_| async move { Ok(cluster.load_chart(&wanted).await?) }),
        );
    }
    let mut charts = HashMap::new();
    for location in locations {
        match cx.output::<Chart>(&cluster.chart_key(&location)).await {
            Ok(chart) => {
                charts.insert(location, chart);
            }
            Err(cancelled @ WaitError::Cancelled { .. }) => return Err(cancelled),
            // The chart's unit says why; releases that need it are skipped because of it.
            Err(_) => {}
        }
    }
    Ok(charts)
}

/// What the cluster serves: its Kubernetes, and every custom kind that the repository brings.
fn capabilities(
    cluster: &Cluster,
    index: &Index,
    charts: &HashMap<Location, Arc<Chart>>,
) -> Capabilities {
    let mut capabilities = cluster.capabilities.clone();
    let mut served = BTreeSet::new();
    for (_, object) in index.of_kind("apiextensions.k8s.io", "CustomResourceDefinition") {
        add_served(&mut served, object);
    }
    for chart in charts.values() {
        for file in crd_files(chart.package()) {
            let documents =
                portolan_yaml::parse_bytes(&file.content, Dialect::Kustomize).unwrap_or_default();
            for object in documents
                .into_iter()
                .filter_map(|node| Object::new(node, Origin::default()).ok())
            {
                add_served(&mut served, &object);
            }
        }
    }
    capabilities.add_api_versions(served);
    capabilities
}

/// The files of a chart's `crds/` directory and of those of its subcharts.
fn crd_files(package: &Package) -> Vec<&ChartFile> {
    let mut files: Vec<_> = package
        .files
        .iter()
        .filter(|file| file.name.starts_with("crds/"))
        .collect();
    files.extend(
        package
            .subcharts
            .iter()
            .flat_map(|subchart| crd_files(subchart)),
    );
    files
}

fn add_served(served: &mut BTreeSet<String>, definition: &Object) {
    for kind in defined_kinds(definition.node()) {
        let api_version = kind.gvk.api_version();
        served.insert(format!("{api_version}/{}", kind.gvk.kind));
        served.insert(api_version);
    }
}

async fn render_releases(
    cx: &Context,
    cluster: &Arc<Cluster>,
    capabilities: &Arc<Capabilities>,
    releases: &mut BTreeMap<NamespacedName, RenderedRelease>,
) -> Result<(), WaitError> {
    for (id, release) in releases.iter_mut() {
        let (Ok(spec), Some(location)) = (&release.spec, &release.location) else {
            continue;
        };
        let key = cluster.release_key(id);
        let chart_key = cluster.chart_key(location);
        let values = release.composed.values.clone();
        let unit = release_unit(cluster, spec, chart_key.clone(), values, capabilities);
        cx.add(key.clone(), &[chart_key], unit);
        release.unit = Some(key);
    }
    for release in releases.values_mut() {
        let Some(key) = &release.unit else { continue };
        match cx.output::<Vec<Object>>(key).await {
            Ok(objects) => release.objects = Some(objects),
            Err(cancelled @ WaitError::Cancelled { .. }) => return Err(cancelled),
            Err(_) => {}
        }
    }
    Ok(())
}

fn release_unit(
    cluster: &Arc<Cluster>,
    spec: &Arc<HelmRelease>,
    chart_key: Key,
    values: Tree,
    capabilities: &Arc<Capabilities>,
) -> Unit {
    let (profile, spec, capabilities) =
        (cluster.profile, Arc::clone(spec), Arc::clone(capabilities));
    Unit::cpu(move |cx| {
        let chart = cx.need::<Chart>(&chart_key)?;
        Ok(release::render(
            &spec,
            &chart,
            values,
            &capabilities,
            profile,
        )?)
    })
}
