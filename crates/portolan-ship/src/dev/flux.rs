//! Flux objects that would undo what a session deploys: suspended while it lasts.
//!
//! ```text
//! session: file written, locked ──▶ suspended ──▶ … ──▶ resumed, file emptied and removed
//! guard:   waits for the lock ─────────────────(session was killed)──▶ resumed
//! ```
//!
//! The file in the store says what is suspended, before it is. A lock ends with its process, so a guard that gets it
//! knows that the session is over; if it was killed, the file still has entries. A session that begins does the same
//! for files that nobody holds, as after a power cut.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_cluster::{Cluster, ClusterError, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::render::RenderedStep;

/// Who changes them, as the cluster keeps it. Flux takes fields back that `kubectl` has set, and leaves others.
const MANAGER: &str = "portolan-dev";

/// How files of suspended objects begin.
const FILE: &str = "dev-suspended-";

/// The longest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// How often a guard tries to resume, and the pause between.
const TRIES: u32 = 60;
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// A Kustomization or `HelmRelease` that manages an object of the project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FluxOwner {
    resource: Resource,
    namespace: String,
    name: String,
}

/// Why Flux could not be suspended or resumed.
#[derive(Debug, thiserror::Error)]
pub enum FluxError {
    /// The file of suspended objects cannot be kept.
    #[error("cannot keep `{path}`, which says what is suspended")]
    File {
        /// The file.
        path: Utf8PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The cluster does not do it.
    #[error("cannot change `spec.suspend` of the {owner}")]
    Cluster {
        /// The object.
        owner: FluxOwner,
        /// Why not.
        #[source]
        source: ClusterError,
    },
}

/// Objects that are suspended; the file is locked while this lives.
pub struct SuspendedFlux {
    path: Utf8PathBuf,
    file: File,
    owners: Vec<FluxOwner>,
}

/// What is done about a file whose session still runs.
#[derive(Clone, Copy)]
enum IfRunning {
    Wait,
    LeaveAlone,
}

/// The Flux objects that manage objects of these steps in the cluster.
pub async fn flux_owners(
    cluster: &Cluster,
    steps: &[RenderedStep],
) -> Result<BTreeSet<FluxOwner>, ClusterError> {
    let mut owners = BTreeSet::new();
    let (resources, _) = cluster.resources().await?;
    let is_flux = |resource: &&Resource| resource.api_version.contains(".toolkit.fluxcd.io/");
    if !resources.iter().any(|resource| is_flux(&resource)) {
        return Ok(owners);
    }
    for step in steps {
        for object in &step.objects {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
            let mut known = resources.iter();
            let known = known.find(|it| it.api_version == version && it.kind == kind);
            let Some(resource) = known else { continue };
            let namespace = match object["metadata"]["namespace"].as_str() {
                _ if !resource.namespaced => String::new(),
                Some(namespace) => namespace.to_owned(),
                None => {
                    let namespace = step.step.namespace.clone();
                    namespace.unwrap_or_else(|| cluster.default_namespace().to_owned())
                }
            };
            let name = text(&object["metadata"]["name"]);
            let found = cluster.read(resource, &namespace, &name).await?;
            owners.extend(found.and_then(|found| owner(&found, &resources)));
        }
    }
    Ok(owners)
}

/// The Flux object whose labels an object has.
fn owner(object: &Value, resources: &[Resource]) -> Option<FluxOwner> {
    let labels = &object["metadata"]["labels"];
    let kinds = [
        ("kustomize.toolkit.fluxcd.io", "Kustomization"),
        ("helm.toolkit.fluxcd.io", "HelmRelease"),
    ];
    kinds.into_iter().find_map(|(group, kind)| {
        let label = |part: &str| labels[format!("{group}/{part}")].as_str();
        let (name, namespace) = (label("name")?, label("namespace")?);
        let of_group = |version: &str| version.split('/').next() == Some(group);
        let mut known = resources.iter();
        let resource = known.find(|it| it.kind == kind && of_group(&it.api_version))?;
        Some(FluxOwner {
            resource: resource.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    })
}

// === impl FluxOwner ===

impl fmt::Display for FluxOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, namespace, name) = (&self.resource.kind, &self.namespace, &self.name);
        write!(f, "{kind} {namespace}/{name}")
    }
}

impl FluxOwner {
    /// Whether it is suspended; one that is gone needs no care.
    async fn is_suspended(&self, cluster: &Cluster) -> Result<bool, FluxError> {
        let found = cluster.read(&self.resource, &self.namespace, &self.name);
        let found = found.await.map_err(|source| self.failed(source))?;
        Ok(found.is_none_or(|found| found["spec"]["suspend"] == true))
    }

    async fn set_suspended(&self, cluster: &Cluster, suspend: bool) -> Result<(), FluxError> {
        let place = (self.namespace.as_str(), self.name.as_str());
        let patch = json!({"spec": {"suspend": suspend}});
        match cluster.merge(&self.resource, place, &patch, MANAGER).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_missing() => Ok(()),
            Err(source) => Err(self.failed(source)),
        }
    }

    fn failed(&self, source: ClusterError) -> FluxError {
        FluxError::Cluster {
            owner: self.clone(),
            source,
        }
    }
}

// === impl SuspendedFlux ===

impl SuspendedFlux {
    /// Writes down what is to be suspended, in a store. Those that are suspended already are somebody else's to resume.
    pub async fn prepare(
        cluster: &Cluster,
        store: &Utf8Path,
        owners: impl IntoIterator<Item = FluxOwner>,
    ) -> Result<Self, FluxError> {
        let mut ours = Vec::new();
        for owner in owners {
            if !owner.is_suspended(cluster).await? {
                ours.push(owner);
            }
        }
        let path = store.join(format!("{FILE}{}.json", std::process::id()));
        let failed = |source| FluxError::File {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(store).map_err(failed)?;
        let mut file = File::create(&path).map_err(failed)?;
        file.try_lock().map_err(|error| failed(error.into()))?;
        let text = serde_json::to_vec(&ours).map_err(|error| failed(error.into()))?;
        file.write_all(&text).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        Ok(Self {
            path,
            file,
            owners: ours,
        })
    }

    /// The file, for a guard.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// What is suspended.
    pub fn owners(&self) -> &[FluxOwner] {
        &self.owners
    }

    /// Suspends all of them.
    pub async fn suspend(&self, cluster: &Cluster) -> Result<(), FluxError> {
        for owner in &self.owners {
            owner.set_suspended(cluster, true).await?;
        }
        Ok(())
    }

    /// Resumes all of them; what cannot be resumed now stays in the file.
    pub async fn resume(mut self, cluster: &Cluster) -> Result<Vec<FluxOwner>, FluxError> {
        for owner in &self.owners {
            owner.set_suspended(cluster, false).await?;
        }
        // A guard that waits for the lock must find nothing to do.
        let emptied = self
            .file
            .set_len(0)
            .and_then(|()| fs::remove_file(&self.path));
        emptied.map_err(|source| FluxError::File {
            path: self.path.clone(),
            source,
        })?;
        Ok(std::mem::take(&mut self.owners))
    }

    /// The objects of a file whose session is over. `None` if it is not, or has resumed them.
    fn left(path: &Utf8Path, running: IfRunning) -> io::Result<Option<Self>> {
        let mut file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        match running {
            IfRunning::Wait => file.lock()?,
            IfRunning::LeaveAlone if file.try_lock().is_err() => return Ok(None),
            IfRunning::LeaveAlone => {}
        }
        let mut text = Vec::new();
        file.rewind()?;
        (&file).take(MAX_FILE_BYTES).read_to_end(&mut text)?;
        let owners: Vec<FluxOwner> = serde_json::from_slice(&text).unwrap_or_default();
        Ok((!owners.is_empty()).then(|| Self {
            path: path.to_owned(),
            file,
            owners,
        }))
    }
}

/// Resumes what killed sessions of a store have left suspended, and returns it.
pub async fn resume_left(cluster: &Cluster, store: &Utf8Path) -> Result<Vec<FluxOwner>, FluxError> {
    let mut resumed = Vec::new();
    let entries = store.read_dir_utf8().into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().starts_with(FILE)) {
        let path = entry.path().to_owned();
        let left = SuspendedFlux::left(&path, IfRunning::LeaveAlone);
        let left = left.map_err(|source| FluxError::File { path, source })?;
        if let Some(left) = left {
            resumed.extend(left.resume(cluster).await?);
        }
    }
    Ok(resumed)
}

/// Waits until the session of a file is over, and resumes what it has left suspended. For a process of its own.
///
/// `connect` is only called if there is something to do.
pub async fn guard_suspended<F>(path: &Utf8Path, connect: impl Fn() -> F) -> Result<(), String>
where
    F: Future<Output = Result<Cluster, ClusterError>>,
{
    let mut last = String::new();
    for _ in 0..TRIES {
        let left = SuspendedFlux::left(path, IfRunning::Wait).map_err(|error| error.to_string())?;
        let Some(left) = left else { return Ok(()) };
        last = match connect().await {
            Err(error) => error.to_string(),
            Ok(cluster) => match left.resume(&cluster).await {
                Ok(_) => return Ok(()),
                Err(error) => error.to_string(),
            },
        };
        tokio::time::sleep(TRY_AGAIN).await;
    }
    Err(last)
}
