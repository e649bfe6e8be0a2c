//! The lines on which a field may depend: similar lines in the files from which the object is made.
//!
//! ```text
//! object ──▶ its file, kustomization files and what they name
//! release ─▶ chart's template and defaults, HelmRelease, objects its values come from
//! owner ───▶ Kustomization that builds it, objects its variables come from
//! ancestors ▶ whatever emitted the owner, and so on up to the root: each may patch or fill in the next
//! ```

mod line;

use std::collections::HashSet;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_flux::api::{DataKind, Kustomization, NamespacedName};
use portolan_flux::{Cluster, Emitter, Location, RenderedRelease, Rendering, named_files};
use portolan_object::{Act, Object, Origin};
use portolan_vfs::{Vfs, resolve};
use portolan_yaml::Node;

use super::field_query::FieldQuery;
use crate::RenderedRepository;
use crate::chart_info::ChartInfo;
use crate::inventory::PlacedObject;

/// What a file has to do with an object; later ones stand behind earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// A template printed it.
    Template,
    /// It is a default of the chart.
    Default,
    /// It is a value of the release.
    Value,
    /// A kustomization file changed it.
    Change,
    /// It stands there.
    Source,
    /// The Kustomization that builds it says so.
    Declaration,
    /// It is a variable.
    Variable,
}

/// A piece of a line that may decide the field.
#[derive(Debug, Clone)]
pub(super) struct CandidateLine {
    pub(super) file: Utf8PathBuf,
    /// From 1.
    pub(super) line: usize,
    /// The line as it is.
    pub(super) text: String,
    pub(super) role: Role,
    /// What the file belongs to: `ConfigMap flux-system/settings`.
    pub(super) of: String,
    /// Whether its text is secret.
    pub(super) is_secret: bool,
    /// The file with this piece changed.
    pub(super) changed: Arc<str>,
}

/// Files that are larger are data, not declarations.
const MAX_FILE_BYTES: usize = 512 * 1024;

/// How many lines are tried at most.
const MAX_CANDIDATES: usize = 300;

/// The lines to try, and where variables are said to be put in.
pub(super) fn candidates(
    placed: &PlacedObject<'_>,
    field: &FieldQuery,
    value: &Node,
    rendered: &RenderedRepository,
) -> (Vec<CandidateLine>, Vec<CandidateLine>) {
    let mut files = Files {
        vfs: rendered.files(),
        seen: HashSet::new(),
        emitters: HashSet::new(),
        found: Vec::new(),
        substitutions: Vec::new(),
    };
    let cluster = rendered
        .clusters
        .iter()
        .find(|(cluster, _)| std::ptr::eq(cluster.as_ref(), placed.cluster));
    if let Some((cluster, rendering)) = cluster {
        files.gather(placed, cluster, rendering);
    }
    let wanted = line::Wanted::new(field.last_key(), value);
    let mut candidates = Vec::new();
    for file in &files.found {
        for piece in line::pieces(&file.text) {
            if wanted.looks_like(&piece) && candidates.len() < MAX_CANDIDATES {
                candidates.push(CandidateLine {
                    file: file.path.clone(),
                    line: piece.line,
                    text: piece.whole.trim().to_owned(),
                    role: file.role,
                    of: file.of.clone(),
                    is_secret: file.is_secret,
                    changed: Arc::from(wanted.changed(&file.text, &piece)),
                });
            }
        }
    }
    (candidates, files.substitutions)
}

/// A file that an object is made of.
struct File {
    path: Utf8PathBuf,
    text: String,
    role: Role,
    of: String,
    is_secret: bool,
}

/// The files that an object is made of, each once.
struct Files<'a> {
    vfs: &'a dyn Vfs,
    seen: HashSet<Utf8PathBuf>,
    /// Those whose files are known.
    emitters: HashSet<Emitter>,
    found: Vec<File>,
    /// The lines that say where variables come from.
    substitutions: Vec<CandidateLine>,
}

impl Files<'_> {
    fn gather(&mut self, placed: &PlacedObject<'_>, cluster: &Cluster, rendering: &Rendering) {
        match &placed.owner {
            Emitter::Kustomization(_) => self.add_origin(placed.object, Role::Source),
            Emitter::Release(id) => {
                if let Some(release) = rendering.releases.get(id) {
                    self.add_chart(placed.object, release, cluster);
                }
            }
            Emitter::ResourceSet(_) | Emitter::Instance(_) => {}
        }
        self.add_emitter(&placed.owner, rendering);
    }

    /// What emitted something, and what emitted that: a patch may stand in a patch of any of them.
    fn add_emitter(&mut self, emitter: &Emitter, rendering: &Rendering) {
        let mut next = Some(emitter.clone());
        while let Some(emitter) = next.take().filter(|next| !self.emitters.contains(next)) {
            next = match &emitter {
                Emitter::Kustomization(id) => self.add_kustomization(id, rendering),
                Emitter::Release(id) => self.add_release(id, rendering),
                Emitter::ResourceSet(_) | Emitter::Instance(_) => {
                    self.add_expansion(&emitter, rendering)
                }
            };
            self.emitters.insert(emitter);
        }
    }

    /// The Kustomization that builds something, and what its variables come from; gives what emitted it.
    fn add_kustomization(&mut self, id: &NamespacedName, rendering: &Rendering) -> Option<Emitter> {
        let walked = rendering.walk.kustomizations.get(id)?;
        if let Some(definition) = &walked.definition {
            self.add_origin(definition, Role::Declaration);
            self.substitutions.extend(self.substitution(definition));
        }
        let spec: Option<&Kustomization> = walked.spec.as_deref().ok();
        let post_build = spec.and_then(|spec| spec.post_build.as_ref());
        for reference in post_build.iter().flat_map(|post_build| &post_build.from) {
            let name = NamespacedName {
                namespace: id.namespace.clone(),
                name: reference.name.clone(),
            };
            self.add_data(reference.kind, &name, rendering, Role::Variable);
        }
        walked.emitter.clone()
    }

    /// The line of a Kustomization that says where its variables come from.
    fn substitution(&self, definition: &Object) -> Option<CandidateLine> {
        let place = definition.place()?;
        let file = Utf8Path::new(place.file.as_str());
        let text = self.read(file)?;
        let first = (place.at.line as usize).saturating_sub(1);
        let lines = text.lines().enumerate().skip(first);
        let (index, line) = lines
            .take_while(|(index, line)| *index == first || !line.starts_with("---"))
            .find(|(_, line)| line.trim_start().starts_with("substituteFrom:"))?;
        Some(CandidateLine {
            file: file.to_owned(),
            line: index + 1,
            text: line.trim().to_owned(),
            role: Role::Declaration,
            of: definition.id().short().to_string(),
            is_secret: false,
            changed: Arc::from(""),
        })
    }

    /// A ResourceSet or FluxInstance, and the providers that its inputs may come from; gives what emitted it.
    fn add_expansion(&mut self, emitter: &Emitter, rendering: &Rendering) -> Option<Emitter> {
        let expansion = rendering.walk.expansions.get(emitter)?;
        self.add_origin(&expansion.definition, Role::Source);
        if matches!(emitter, Emitter::ResourceSet(_)) {
            let index = &rendering.walk.index;
            let providers = index.of_kind("fluxcd.controlplane.io", "ResourceSetInputProvider");
            let namespace = emitter.id().namespace.as_str();
            for (_, provider) in providers.filter(|(_, object)| object.namespace() == namespace) {
                self.add_origin(provider, Role::Value);
            }
        }
        Some(expansion.emitter.clone())
    }

    /// A release, and what its values come from; gives what emitted it.
    fn add_release(&mut self, id: &NamespacedName, rendering: &Rendering) -> Option<Emitter> {
        let release = rendering.releases.get(id)?;
        self.add_origin(&release.definition, Role::Value);
        if let Ok(spec) = &release.spec {
            for reference in &spec.values_from {
                let name = NamespacedName {
                    namespace: spec.id.namespace.clone(),
                    name: reference.name.clone(),
                };
                self.add_data(reference.kind, &name, rendering, Role::Value);
            }
        }
        Some(release.emitter.clone())
    }

    /// The template, its helpers and the defaults of a chart that lies in the repository.
    fn add_chart(&mut self, object: &Object, release: &RenderedRelease, cluster: &Cluster) {
        let Some(Location::Tree {
            source,
            path,
            values,
        }) = &release.location
        else {
            return;
        };
        if *source != cluster.root.source {
            return;
        }
        let chart = ChartInfo::of(release);
        let of = format!("chart {} {}", chart.name, chart.version);
        let top = resolve(Utf8Path::new("/"), path.trim_start_matches('/'));
        let origin = object.origin();
        let steps = origin.newest_first();
        let templates = steps.filter(|step| step.act == Act::Template);
        for place in templates.filter_map(|step| step.place.as_ref()) {
            self.add(
                Utf8Path::new(place.file.as_str()),
                Role::Template,
                &of,
                false,
            );
        }
        for entry in self.vfs.list(&top.join("templates")).unwrap_or_default() {
            if entry.name.starts_with('_') {
                let path = top.join("templates").join(&entry.name);
                self.add(&path, Role::Template, &of, false);
            }
        }
        self.add(&top.join("values.yaml"), Role::Default, &of, false);
        for file in &values.names {
            let path = resolve(Utf8Path::new("/"), file.trim_start_matches('/'));
            self.add(&path, Role::Default, &of, false);
        }
    }

    /// A ConfigMap or Secret of the repository.
    fn add_data(
        &mut self,
        kind: DataKind,
        name: &NamespacedName,
        rendering: &Rendering,
        role: Role,
    ) {
        let mut objects = rendering.walk.index.of_kind("", kind.as_str());
        let found = objects.find(|(_, object)| {
            object.name() == name.name.as_str() && object.namespace() == name.namespace.as_str()
        });
        if let Some((_, object)) = found {
            self.add_origin(object, role);
        }
    }

    /// The file of an object, the kustomization files that changed it, and what those name.
    fn add_origin(&mut self, object: &Object, role: Role) {
        let of = object.id().short().to_string();
        let is_secret = object.gvk().is("", "Secret");
        let origin: &Origin = &object.origin();
        if let Some(place) = origin.place() {
            let path = Utf8Path::new(place.file.as_str());
            self.add(path, role, &of, is_secret);
            self.add_named_by(path, role, &of, is_secret);
        }
        for place in origin.steps().iter().filter_map(|step| step.place.as_ref()) {
            let path = Utf8Path::new(place.file.as_str());
            self.add(path, Role::Change, &of, is_secret);
            self.add_named_by(path, Role::Change, &of, is_secret);
        }
    }

    /// Files that a kustomization file names: patches, what generators read.
    fn add_named_by(&mut self, path: &Utf8Path, role: Role, of: &str, is_secret: bool) {
        for named in named_files(self.vfs, path) {
            self.add(&named, role, of, is_secret);
        }
    }

    fn add(&mut self, path: &Utf8Path, role: Role, of: &str, is_secret: bool) {
        if self.seen.contains(path) {
            return;
        }
        let Some(text) = self.read(path) else { return };
        self.seen.insert(path.to_owned());
        self.found.push(File {
            path: path.to_owned(),
            text,
            role,
            of: of.to_owned(),
            is_secret,
        });
    }

    fn read(&self, path: &Utf8Path) -> Option<String> {
        let bytes = self.vfs.read(path).ok()?;
        (bytes.len() <= MAX_FILE_BYTES).then_some(())?;
        String::from_utf8(bytes).ok()
    }
}
