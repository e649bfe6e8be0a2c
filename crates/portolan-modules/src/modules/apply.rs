//! `apply`: Kubernetes objects are in a cluster as manifests have them.
//!
//! The cluster itself says what would change, by a dry run. The objects are a set with an inventory, so what a later step
//! no longer has is deleted, if it says so.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_cluster::{
    Access, Cluster, Deployed, KeptBecause, Member, ObjectSet, ObjectTrial, PruneOptions, Pruned,
    SetOptions, Trial, WaitOptions,
};
use portolan_digest::Digest;
use portolan_engine::with_causes;
use portolan_ship::read_manifests;
use serde_json::Value;

use super::render::source_path;
use super::write::MAX_FILE_BYTES;
use crate::account_tool::refuse_links;
use crate::action::{Action, Applied, ModuleError};
use crate::blocking::block_on;
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::{BookFileError, Host};
use crate::manifests::difference;
use crate::parameters::Parameters;
use crate::plan::{Change, ChangeKind, Plan, Subject};
use crate::root::{FileKind, Follow};
use crate::view::{Content, Found, View};

/// The module `apply`.
pub(super) static APPLY: ModuleDefinition = ModuleDefinition {
    name: "apply",
    summary: "Applies Kubernetes objects to a cluster, as a set with an inventory. The cluster says what would change.",
    parameters: &[
        ParameterDefinition::optional(
            "source",
            ParameterType::Text,
            "A file or directory of manifests: of the book, or of the node if it begins with `/`.",
        ),
        ParameterDefinition::optional(
            "content",
            ParameterType::Text,
            "The manifests themselves, in place of `source`.",
        ),
        ParameterDefinition::required(
            "kubeconfig",
            ParameterType::Path,
            "The kubeconfig on the node that leads to the cluster.",
        ),
        ParameterDefinition::optional(
            "context",
            ParameterType::Text,
            "A context of the kubeconfig; its current one by default.",
        ),
        ParameterDefinition::required(
            "name",
            ParameterType::Text,
            "The name of the set: its inventory, a ConfigMap, is called so.",
        ),
        ParameterDefinition::optional(
            "namespace",
            ParameterType::Text,
            "Where the inventory is, and where objects without a namespace go; that of the context by default.",
        ),
        ParameterDefinition::optional(
            "prune",
            ParameterType::Boolean,
            "Whether objects that the set had before and has no longer are deleted (default false). Namespaces, \
             definitions and volumes stay.",
        ),
        ParameterDefinition::optional(
            "force",
            ParameterType::Boolean,
            "Whether fields that others manage are taken over (default false).",
        ),
        ParameterDefinition::optional(
            "wait",
            ParameterType::Duration,
            "How long objects may take to be ready after a change; they are not waited for by default.",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

/// Who the fields belong to.
const MANAGER: &str = "portolan-fleet";

/// How long definitions are waited for that other objects need.
const DEADLINE: Duration = Duration::from_mins(1);

/// The most manifests of a directory.
const MAX_FILES: usize = 10_000;

struct Apply {
    source: Source,
    kubeconfig: Utf8PathBuf,
    context: Option<String>,
    name: String,
    namespace: Option<String>,
    prunes: bool,
    force: bool,
    wait: Option<Duration>,
}

enum Source {
    Content(String),
    Path(Utf8PathBuf),
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let source = match parameters.exactly_one(&["source", "content"])? {
        "content" => Source::Content(parameters.text("content")?.to_owned()),
        _ => Source::Path(source_path(parameters)?),
    };
    let name = parameters.line("name")?.to_owned();
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !name.bytes().all(is_letter)
        || name.starts_with('-')
        || name.ends_with('-')
        || name.len() > 63
    {
        parameters.fault(
            "name",
            "must have small letters, digits and `-` only, 63 at most",
        );
    }
    Some(Box::new(Apply {
        source,
        kubeconfig: parameters.path("kubeconfig")?,
        context: parameters.line("context").map(str::to_owned),
        name,
        namespace: parameters.line("namespace").map(str::to_owned),
        prunes: parameters.boolean("prune", false),
        force: parameters.boolean("force", false),
        wait: parameters.duration("wait"),
    }))
}

impl Action for Apply {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let Some(objects) = self.objects(view)? else {
            return Ok(Plan::unknown("an earlier step writes the manifests"));
        };
        if view.ahead.path(&self.kubeconfig).is_some() {
            return Ok(Plan::unknown("an earlier step writes the kubeconfig"));
        }
        let access = self.access(view.host)?;
        let trial = block_on(view.host, || async {
            let cluster = self.connect(&access).await?;
            let mut set = self.set(&cluster);
            let trial = set.try_apply(objects, self.options()).await;
            trial.map_err(|error| self.failed(with_causes(&error)))
        })?;
        self.plan_of(&trial)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let view = View::of(host);
        let now = self.plan(&view)?;
        plan.confirm(&now)?;
        let mut applied = Applied {
            notes: now.notes.clone(),
            ..Applied::default()
        };
        if now.changes().is_empty() {
            return Ok(applied);
        }
        let objects = self.objects(&view)?.unwrap_or_default();
        let access = self.access(host)?;
        let deployed = block_on(host, || async {
            let cluster = self.connect(&access).await?;
            let mut set = self.set(&cluster);
            let deployed = set.apply(objects, self.options()).await;
            let deployed = deployed.map_err(|error| self.failed(with_causes(&error)))?;
            self.refuse_failures(&deployed)?;
            self.wait(&mut set, &deployed).await?;
            Ok(deployed)
        })?;
        applied.is_changed = true;
        applied
            .result
            .insert("objects".to_owned(), deployed.applied.len().into());
        let is_deleted = |pruned: &&(Member, Pruned)| matches!(pruned.1, Pruned::Deleted);
        let deleted = deployed.pruned.iter().filter(is_deleted).count();
        applied.result.insert("pruned".to_owned(), deleted.into());
        Ok(applied)
    }
}

impl Apply {
    fn failed(&self, reason: String) -> ModuleError {
        ModuleError::failed("apply", &*self.name, reason)
    }

    /// The objects; `None` if an earlier step of the check writes them.
    fn objects(&self, view: &View<'_>) -> Result<Option<Vec<Value>>, ModuleError> {
        let path = match &self.source {
            Source::Content(text) => {
                return self.parse("content".into(), text.as_bytes()).map(Some);
            }
            Source::Path(path) => path,
        };
        if !path.is_absolute() {
            return self.book_objects(view, path).map(Some);
        }
        if matches!(view.find(path, Follow::Yes)?.1, Found::Directory(_)) {
            return self.directory_objects(view, path);
        }
        match view.read(path, MAX_FILE_BYTES)? {
            Some(Content::Known(text)) => self.parse(path, &text).map(Some),
            Some(Content::Unknown) => Ok(None),
            None => Err(ModuleError::failed("read", path, "there is no such file")),
        }
    }

    fn book_objects(&self, view: &View<'_>, path: &Utf8Path) -> Result<Vec<Value>, ModuleError> {
        let files = &view.host.book_files;
        let failed = |error: BookFileError| ModuleError::failed("read", path, error);
        if let Ok(text) = files.read(path) {
            return self.parse(path, &text);
        }
        let mut objects = Vec::new();
        for name in files.list(path).map_err(failed)? {
            if is_manifest(&name) {
                let text = files.read(&path.join(&name)).map_err(failed)?;
                objects.extend(self.parse(&path.join(&name), &text)?);
            }
        }
        Ok(objects)
    }

    fn directory_objects(
        &self,
        view: &View<'_>,
        path: &Utf8Path,
    ) -> Result<Option<Vec<Value>>, ModuleError> {
        let mut objects = Vec::new();
        for (count, name) in view.list(path)?.iter().enumerate() {
            if count >= MAX_FILES {
                let reason = format!("it has more than {MAX_FILES} files");
                return Err(ModuleError::failed("read", path, reason));
            }
            if !is_manifest(Utf8Path::new(name)) {
                continue;
            }
            match view.read(&path.join(name), MAX_FILE_BYTES)? {
                Some(Content::Known(text)) => {
                    objects.extend(self.parse(&path.join(name), &text)?);
                }
                Some(Content::Unknown) => return Ok(None),
                None => {}
            }
        }
        Ok(Some(objects))
    }

    fn parse(&self, path: &Utf8Path, text: &[u8]) -> Result<Vec<Value>, ModuleError> {
        let text = String::from_utf8_lossy(text);
        let objects = read_manifests(&text, path);
        objects.map_err(|error| self.failed(with_causes(&error)))
    }

    /// Which cluster. Below another root the file is read where it is, so no link may be on the way.
    fn access(&self, host: &Host) -> Result<Access, ModuleError> {
        refuse_links(&host.root, &self.kubeconfig)?;
        let status = host.root.status(&self.kubeconfig, Follow::Yes);
        let status =
            status.map_err(|error| ModuleError::failed("read", &self.kubeconfig, error))?;
        if status.is_none_or(|status| status.kind != FileKind::File) {
            let reason = "there is no such file";
            return Err(ModuleError::failed("read", &self.kubeconfig, reason));
        }
        Ok(Access {
            kubeconfig: Some(host.root.machine_path(&self.kubeconfig).into_std_path_buf()),
            context: self.context.clone(),
            plugin_runner: None,
        })
    }

    async fn connect(&self, access: &Access) -> Result<Cluster, ModuleError> {
        let cluster = Cluster::connect(access).await;
        cluster.map_err(|error| self.failed(with_causes(&error)))
    }

    fn set<'c>(&self, cluster: &'c Cluster) -> ObjectSet<'c> {
        let namespace = self.namespace.as_deref();
        let namespace = namespace.unwrap_or_else(|| cluster.default_namespace());
        ObjectSet::new(cluster, namespace, &self.name, MANAGER)
    }

    fn options(&self) -> SetOptions {
        SetOptions {
            force: self.force,
            deadline: DEADLINE,
            replace: false,
            prune: self.prunes.then_some(PruneOptions {
                dangerous: false,
                many: false,
            }),
        }
    }

    fn plan_of(&self, trial: &Trial) -> Result<Plan, ModuleError> {
        let (mut changes, mut notes) = (Vec::new(), Vec::new());
        for (member, result) in &trial.applied {
            match result {
                Ok(object) => changes.extend(change(member, object)),
                Err(error) => {
                    return Err(self.failed(format!("{member}: {}", with_causes(error))));
                }
            }
        }
        for (member, pruned) in &trial.pruned {
            match pruned {
                Pruned::Deleted => changes.push(Change {
                    subject: Subject::Other("object", member.to_string()),
                    kind: ChangeKind::Remove,
                    before: Digest::of(member.uid.as_bytes()),
                    after: Digest::of(b""),
                    diff: "it is no longer in the set\n".to_owned(),
                }),
                Pruned::Gone => {}
                Pruned::Kept(because) => notes.push(format!("{member} stays: {}", why(*because))),
                Pruned::Failed(error) => {
                    return Err(self.failed(format!("{member}: {}", with_causes(error))));
                }
            }
        }
        let mut plan = Plan::of_changes(changes);
        plan.notes = notes;
        Ok(plan)
    }

    fn refuse_failures(&self, deployed: &Deployed) -> Result<(), ModuleError> {
        let failed = deployed.applied.iter().filter_map(|(member, result)| {
            let error = result.as_ref().err()?;
            Some(format!("{member}: {}", with_causes(error)))
        });
        let pruned = deployed
            .pruned
            .iter()
            .filter_map(|(member, pruned)| match pruned {
                Pruned::Failed(error) => Some(format!("{member}: {}", with_causes(error))),
                _ => None,
            });
        let failures: Vec<String> = failed.chain(pruned).collect();
        if failures.is_empty() {
            return Ok(());
        }
        Err(self.failed(failures.join("\n")))
    }

    async fn wait(&self, set: &mut ObjectSet<'_>, deployed: &Deployed) -> Result<(), ModuleError> {
        let Some(timeout) = self.wait else {
            return Ok(());
        };
        let members: Vec<Member> = deployed
            .applied
            .iter()
            .map(|(member, _)| member.clone())
            .collect();
        let options = WaitOptions {
            timeout,
            fail_fast: true,
        };
        let waited = set.wait(&members, options, |_| {}).await;
        let waited = waited.map_err(|error| self.failed(with_causes(&error)))?;
        let open: Vec<String> = waited
            .iter()
            .filter(|waited| !waited.is_current())
            .map(|waited| format!("{} is not ready: {}", waited.member, waited.state()))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        Err(self.failed(open.join("\n")))
    }
}

fn is_manifest(path: &Utf8Path) -> bool {
    matches!(path.extension(), Some("yaml" | "yml" | "json"))
}

fn why(because: KeptBecause) -> &'static str {
    match because {
        KeptBecause::Kind => "its deletion could lose data",
        KeptBecause::Annotation => "an annotation of it says so",
        KeptBecause::Many => "more than half of the set would go",
        KeptBecause::Foreign => "somebody else manages it",
    }
}

/// What a dry run changes of an object; `None` if nothing that people decide.
fn change(member: &Member, trial: &ObjectTrial) -> Option<Change> {
    let before = trial.before.as_ref().map(without_bookkeeping);
    let after = without_bookkeeping(&trial.after);
    if before.as_ref() == Some(&after) {
        return None;
    }
    let bytes = |object: &Value| Digest::of(object.to_string().as_bytes());
    let name = member.to_string();
    let diff = difference(
        &name,
        before.as_ref().map(std::slice::from_ref),
        Some(std::slice::from_ref(&after)),
    );
    Some(Change {
        kind: if before.is_some() {
            ChangeKind::Update
        } else {
            ChangeKind::Create
        },
        subject: Subject::Other("object", name),
        before: before.as_ref().map_or_else(|| Digest::of(b""), bytes),
        after: bytes(&after),
        diff,
    })
}

/// An object without what the cluster notes about it.
fn without_bookkeeping(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for name in [
            "managedFields",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "uid",
            "selfLink",
        ] {
            metadata.remove(name);
        }
    }
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    object
}
