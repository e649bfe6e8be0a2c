//! A chart rendered for a cluster: with its version and kinds, its objects for `lookup`, the time and real random numbers.

use std::fs::File;
use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use portolan_cluster::{Cluster, ClusterError, MemberError, ServedKinds};
use portolan_helm::storage::StoredHook;
use portolan_helm::values::Tree;
use portolan_helm::{
    Capabilities, Chart, Lookup, LookupQuery, Manifest, OutputOptions, Package, Release,
    ReportedVersion, TemplateInput, lookup_list, template,
};
use portolan_yaml::{Dialect, Text, from_json, parse, to_json, write_kustomize};
use serde_json::Value;
use tokio::runtime::Handle;

use crate::error::HelmReleaseError;

/// Changes an object of a chart before it is recorded and applied; says whether it did.
pub type EditObject = Arc<dyn Fn(&mut Value) -> bool + Send + Sync>;

/// What a chart gives for a cluster.
#[derive(Debug, Default)]
pub(crate) struct LiveRender {
    /// All objects but hooks, as a record has them.
    pub(crate) manifest: String,
    /// The same, read.
    pub(crate) objects: Vec<Value>,
    pub(crate) hooks: Vec<StoredHook>,
    /// The objects of `crds/`.
    pub(crate) definitions: Vec<Value>,
    pub(crate) notes: String,
    pub(crate) warnings: Vec<String>,
}

/// A chart, and what it is rendered with.
pub(crate) struct LiveInput {
    pub(crate) chart: Arc<Chart>,
    pub(crate) values: Tree,
    pub(crate) release: Release,
    pub(crate) edit: EditObject,
}

/// Renders a chart with what the cluster has.
pub(crate) async fn render(
    cluster: &Arc<Cluster>,
    input: LiveInput,
) -> Result<LiveRender, HelmReleaseError> {
    let mut capabilities = capabilities(cluster).await?;
    if !input.release.is_upgrade {
        // Its own definitions are made before its objects.
        let definitions = definitions(input.chart.package())?;
        capabilities.add_api_versions(definitions.iter().flat_map(kinds_of_definition));
    }
    let lookup = Arc::new(ClusterLookup {
        cluster: Arc::clone(cluster),
        runtime: Handle::current(),
        failure: Mutex::new(None),
    });
    let asked: Arc<dyn Lookup> = lookup.clone();
    let template_input = TemplateInput {
        values: input.values,
        capabilities: Arc::new(capabilities),
        now: now(),
        live_seed: Some(seed()?),
        lookup: Some(asked),
        ..TemplateInput::new(input.release)
    };
    let (chart, edit) = (input.chart, input.edit);
    // Templates wait for the cluster when they look something up.
    let rendered = tokio::task::spawn_blocking(move || -> Result<LiveRender, HelmReleaseError> {
        let mut rendered = template(&chart, &template_input)
            .map_err(|error| HelmReleaseError::Chart(Box::new(error)))?;
        let mut objects = Vec::new();
        for manifest in &mut rendered.manifests {
            objects.extend(edited(manifest, &edit)?);
        }
        for hook in &mut rendered.hooks {
            edited(&mut hook.manifest, &edit)?;
        }
        let mut definitions = Vec::new();
        for file in &rendered.crds {
            definitions.extend(read(&file.path, &file.content.to_text())?);
        }
        let options = OutputOptions {
            no_hooks: true,
            ..OutputOptions::default()
        };
        Ok(LiveRender {
            // Nothing is asked for by name.
            manifest: rendered.to_text(&options).unwrap_or_default(),
            objects,
            hooks: rendered.hooks.iter().map(StoredHook::from).collect(),
            definitions,
            notes: rendered.notes,
            warnings: rendered.warnings,
        })
    });
    let rendered = rendered.await;
    let failure = lookup
        .failure
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(failure) = failure {
        return Err(HelmReleaseError::Lookup(failure));
    }
    match rendered {
        Ok(rendered) => rendered,
        Err(panic) => Err(HelmReleaseError::Objects(vec![format!(
            "panicked: {panic}"
        )])),
    }
}

/// The objects of a manifest; its text is written anew if one of them was changed.
fn edited(manifest: &mut Manifest, edit: &EditObject) -> Result<Vec<Value>, HelmReleaseError> {
    let mut objects = read(&manifest.source, &manifest.text)?;
    let changed: Vec<bool> = objects.iter_mut().map(|object| edit(object)).collect();
    if changed.contains(&true) {
        let mut text = String::new();
        for object in &objects {
            let written = from_json(&object.to_string()).ok();
            let written = written.and_then(|node| write_kustomize(&node).ok());
            if !text.is_empty() {
                text.push_str("---\n");
            }
            text.push_str(&written.unwrap_or_default());
        }
        manifest.text = Text::from(text);
    }
    Ok(objects)
}

/// The objects of a text of YAML documents; lists are taken apart.
///
/// # Errors
/// When it is not YAML, in the parser's words.
pub fn parse_objects(text: &str) -> Result<Vec<Value>, String> {
    let documents =
        parse(text.to_owned(), Dialect::Helm).map_err(|errors| errors.first().message.clone())?;
    let mut objects = Vec::new();
    for document in documents.iter().filter(|document| !document.is_null()) {
        let json = to_json(document).map_err(|error| error.to_string())?;
        let value: Value = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        let kind = value["kind"].as_str().unwrap_or_default();
        match value.get("items").and_then(Value::as_array) {
            Some(items) if kind.ends_with("List") => objects.extend(items.iter().cloned()),
            _ => objects.push(value),
        }
    }
    Ok(objects)
}

/// The definitions in `crds/` of a chart and of all its subcharts: what may be served when its objects are made.
fn definitions(package: &Package) -> Result<Vec<Value>, HelmReleaseError> {
    let mut found = Vec::new();
    let files = package.files.iter();
    for file in files.filter(|file| file.name.starts_with("crds/") && is_manifest(&file.name)) {
        found.extend(read(&file.name, &file.content.to_text())?);
    }
    for subchart in &package.subcharts {
        found.extend(definitions(subchart)?);
    }
    Ok(found)
}

fn is_manifest(name: &str) -> bool {
    [".yaml", ".yml", ".json"]
        .iter()
        .any(|end| name.to_lowercase().ends_with(end))
}

fn read(name: &str, text: &str) -> Result<Vec<Value>, HelmReleaseError> {
    parse_objects(text).map_err(|message| HelmReleaseError::Manifest(name.to_owned(), message))
}

/// What a definition serves, as `Capabilities.APIVersions` has it.
fn kinds_of_definition(definition: &Value) -> Vec<String> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
    let versions = spec["versions"].as_array().into_iter().flatten();
    versions
        .flat_map(|version| {
            let version = format!("{group}/{}", text(&version["name"]));
            [format!("{version}/{kind}"), version]
        })
        .collect()
}

async fn capabilities(cluster: &Cluster) -> Result<Capabilities, HelmReleaseError> {
    let version = cluster.version().await?;
    let kube_version = ReportedVersion::parse(&version).map_err(|error| ClusterError::Answer {
        path: "/version".to_owned(),
        message: error.to_string(),
    })?;
    Ok(Capabilities {
        kube_version,
        api_versions: cluster.api_versions().await?,
    })
}

/// Objects of the cluster for `lookup`. What it cannot answer fails the whole render: an empty answer would be taken for
/// the truth.
struct ClusterLookup {
    cluster: Arc<Cluster>,
    runtime: Handle,
    failure: Mutex<Option<ClusterError>>,
}

impl Lookup for ClusterLookup {
    fn lookup(&self, query: &LookupQuery<'_>) -> Option<Tree> {
        match self.runtime.block_on(self.ask(query)) {
            Ok(found) => found,
            Err(error) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                None
            }
        }
    }
}

impl ClusterLookup {
    async fn ask(&self, query: &LookupQuery<'_>) -> Result<Option<Tree>, ClusterError> {
        let mut kinds = ServedKinds::new(&self.cluster);
        let resource = match kinds.kind(query.api_version, query.kind).await {
            Ok(resource) => resource,
            Err(MemberError::Cluster(error)) => return Err(error),
            Err(_) => return Ok(None),
        };
        if !query.name.is_empty() {
            let found = self
                .cluster
                .read(&resource, query.namespace, query.name)
                .await?;
            return Ok(found.as_ref().and_then(tree));
        }
        let namespace = Some(query.namespace).filter(|namespace| !namespace.is_empty());
        let mut items = Vec::new();
        let mut asked = resource.query(namespace);
        asked.labels.clear();
        let list = self.cluster.list_whole(&asked, |mut object: Value| {
            object["apiVersion"] = query.api_version.into();
            object["kind"] = query.kind.into();
            items.extend(tree(&object));
        });
        list.await?;
        Ok(Some(lookup_list(query, items)))
    }
}

fn tree(object: &Value) -> Option<Tree> {
    let node = from_json(&object.to_string()).ok()?;
    Some(Tree::from_node(&node))
}

/// A seed that nobody can guess.
pub(crate) fn seed() -> Result<String, HelmReleaseError> {
    let mut bytes = [0; 32];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(HelmReleaseError::Random)?;
    Ok(portolan_digest::hex(&bytes))
}

fn now() -> i128 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or_default()
}
