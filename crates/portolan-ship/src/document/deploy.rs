//! The deploy steps of a document: which objects go to a cluster, and how.

use std::collections::BTreeMap;
use std::time::Duration;

use portolan_yaml::{Node, Position};

use super::check::CommandCheck;
use super::fields::{Fault, Faults, Fields};

/// Objects that are applied together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployStep {
    /// Its name, which is unique in the document.
    pub name: String,
    /// Steps that must be done before it.
    pub needs: Vec<String>,
    /// The context of the kubeconfig that it is meant for.
    pub context: Option<String>,
    /// Where objects without a namespace go; the default is that of the context.
    pub namespace: Option<String>,
    /// Whether what it had before and has no longer is deleted.
    pub prune: bool,
    /// How long objects are waited for.
    pub timeout: Duration,
    /// Whether the first object that failed ends the wait.
    pub fail_fast: bool,
    /// Whether fields of other managers are taken over.
    pub force: bool,
    /// Whether objects with changes that cannot be made are deleted and made anew.
    pub replace: bool,
    /// Whether objects of others are taken over.
    pub adopt: bool,
    /// Commands that run before it, one after the other; one that fails fails the step, and nothing is applied.
    pub before: Vec<CommandCheck>,
    /// Commands that run after it, when its objects are ready; one that fails fails the step.
    pub after: Vec<CommandCheck>,
    /// Where its objects come from.
    pub source: DeploySource,
    /// Where it stands in the file.
    pub at: Position,
}

/// Where the objects of a step come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeploySource {
    /// From files and directories, relative to the document.
    Manifests(Vec<String>),
    /// From an overlay, relative to the document.
    Kustomize(String),
    /// From a chart, as a release of Helm.
    Helm(HelmSource),
    /// From a Flux repository.
    Flux(FluxSource),
    /// Nowhere: images are put into files of a git repository and committed.
    Git(GitSource),
    /// Nowhere: the verdict on a canary is waited for.
    Rollout(RolloutSource),
}

/// A cluster of a Flux repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FluxSource {
    /// The directory of the cluster, relative to the document.
    pub path: String,
    /// Names of Kustomizations and HelmReleases; all if none is named.
    pub only: Vec<String>,
}

/// Files of a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    /// The work tree, relative to the document; it may lie outside.
    pub path: String,
    /// Patterns of the files in it.
    pub files: Vec<String>,
    /// The branch that is committed to.
    pub branch: String,
    /// The message of the commit; `${DIGEST}` stands for the digests of the images.
    pub message: String,
}

/// A canary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutSource {
    /// The name of the `IstioCanaryDeployment`.
    pub name: String,
    /// How long the verdict is waited for.
    pub timeout: Duration,
}

/// A chart and how it is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelmSource {
    /// A directory or archive, relative to the document.
    pub chart: String,
    /// The name of the release; the default is the step's.
    pub release: String,
    /// Files of values, relative to the document, later ones over earlier ones.
    pub values: Vec<String>,
    /// Single values by their paths, over those of the files.
    pub set: BTreeMap<String, String>,
    /// The artifacts whose images become values, by the paths of these.
    pub images: BTreeMap<String, String>,
    /// Whether the namespace is made if it is not there.
    pub create_namespace: bool,
    /// How many revisions are kept; 0 keeps all.
    pub history_max: usize,
    /// What is done after a failure.
    pub on_failure: AfterFailure,
}

/// What is done with a release after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Nothing.
    Keep,
    /// The last revision that was deployed is deployed again.
    Rollback,
    /// The release is uninstalled.
    Uninstall,
}

/// How long objects are waited for if nothing is said.
const DEFAULT_WAIT: Duration = Duration::from_mins(5);

/// The kinds of steps.
const KINDS: &[&str] = &["manifests", "kustomize", "helm", "flux", "git", "rollout"];

/// The fields of a step.
const STEP_FIELDS: &[&str] = &[
    "name",
    "needs",
    "context",
    "namespace",
    "prune",
    "wait",
    "onConflict",
    "immutable",
    "adopt",
    "before",
    "after",
    "manifests",
    "kustomize",
    "helm",
    "flux",
    "git",
    "rollout",
];

const FLUX_FIELDS: &[&str] = &["path", "only"];

const GIT_FIELDS: &[&str] = &["path", "files", "branch", "message"];

const ROLLOUT_FIELDS: &[&str] = &["name", "timeout"];

/// How long a verdict is waited for if nothing is said.
const DEFAULT_VERDICT: Duration = Duration::from_hours(1);

const HELM_FIELDS: &[&str] = &[
    "chart",
    "release",
    "values",
    "set",
    "images",
    "createNamespace",
    "historyMax",
    "onFailure",
];

/// How many revisions are kept if nothing is said, as Helm has it.
const DEFAULT_HISTORY: usize = 10;

const WAIT_FIELDS: &[&str] = &["timeout", "failFast"];

/// The fields of each part of a step, by the part's name in the schema.
#[cfg(test)]
pub(crate) fn deploy_fields() -> [(&'static str, &'static [&'static str]); 6] {
    [
        ("step", STEP_FIELDS),
        ("wait", WAIT_FIELDS),
        ("helm", HELM_FIELDS),
        ("flux", FLUX_FIELDS),
        ("git", GIT_FIELDS),
        ("rollout", ROLLOUT_FIELDS),
    ]
}

impl DeployStep {
    /// A step that applies files and leaves everything else as it is.
    pub fn of_files(name: &str, paths: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            needs: Vec::new(),
            context: None,
            namespace: None,
            prune: false,
            timeout: DEFAULT_WAIT,
            fail_fast: true,
            force: false,
            replace: false,
            adopt: false,
            before: Vec::new(),
            after: Vec::new(),
            source: DeploySource::Manifests(paths),
            at: Position::default(),
        }
    }

    pub(super) fn read(node: &Node, path: String, faults: &mut Faults) -> Option<Self> {
        let fields = Fields::of(node, path, STEP_FIELDS, faults);
        let name = fields.required("name", faults);
        super::artifact::check_name(&name, fields.at(), faults);
        let source = match fields.one_of(KINDS, faults)? {
            "manifests" => {
                let manifests = fields.map("manifests", &["paths"], faults)?;
                let paths = manifests.texts("paths", faults).unwrap_or_default();
                if paths.is_empty() {
                    faults.push(Fault {
                        at: manifests.at(),
                        message: format!(
                            "`{}` needs a file or directory",
                            manifests.path_of("paths")
                        ),
                        hint: None,
                    });
                }
                DeploySource::Manifests(paths)
            }
            "kustomize" => {
                let kustomize = fields.map("kustomize", &["path"], faults)?;
                DeploySource::Kustomize(kustomize.required("path", faults))
            }
            "helm" => {
                let helm = fields.map("helm", HELM_FIELDS, faults)?;
                DeploySource::Helm(HelmSource::read(&helm, &name, faults))
            }
            "flux" => {
                let flux = fields.map("flux", FLUX_FIELDS, faults)?;
                DeploySource::Flux(FluxSource {
                    path: flux.required("path", faults),
                    only: flux.texts("only", faults).unwrap_or_default(),
                })
            }
            "git" => {
                let git = fields.map("git", GIT_FIELDS, faults)?;
                DeploySource::Git(GitSource::read(&git, &name, faults))
            }
            _ => {
                let rollout = fields.map("rollout", ROLLOUT_FIELDS, faults)?;
                let timeout = rollout.duration("timeout", faults);
                DeploySource::Rollout(RolloutSource {
                    name: rollout.required("name", faults),
                    timeout: timeout.unwrap_or(DEFAULT_VERDICT),
                })
            }
        };
        let wait = fields.map("wait", WAIT_FIELDS, faults);
        let timeout = wait
            .as_ref()
            .and_then(|wait| wait.duration("timeout", faults));
        let fail_fast = wait.as_ref().and_then(|wait| wait.flag("failFast", faults));
        let force = fields.parsed("onConflict", faults, |text| match text {
            "fail" | "force" => Ok(text == "force"),
            _ => Err("must be `fail` or `force`".to_owned()),
        });
        let replace = fields.parsed("immutable", faults, |text| match text {
            "fail" | "replace" => Ok(text == "replace"),
            _ => Err("must be `fail` or `replace`".to_owned()),
        });
        Some(Self {
            name,
            needs: fields.texts("needs", faults).unwrap_or_default(),
            context: fields.text("context", faults),
            namespace: fields.text("namespace", faults),
            prune: fields.flag("prune", faults).unwrap_or(true),
            timeout: timeout.unwrap_or(DEFAULT_WAIT),
            fail_fast: fail_fast.unwrap_or(true),
            force: force.unwrap_or(false),
            replace: replace.unwrap_or(false),
            adopt: fields.flag("adopt", faults).unwrap_or(false),
            before: CommandCheck::read_list(&fields, "before", faults),
            after: CommandCheck::read_list(&fields, "after", faults),
            source,
            at: fields.at(),
        })
    }

    /// The artifacts that it names itself, whatever its objects name.
    pub(super) fn artifacts(&self) -> impl Iterator<Item = &str> {
        let images = match &self.source {
            DeploySource::Helm(helm) => Some(helm.images.values()),
            _ => None,
        };
        images.into_iter().flatten().map(String::as_str)
    }
}

impl GitSource {
    fn read(fields: &Fields<'_>, step: &str, faults: &mut Faults) -> Self {
        let files = fields.texts("files", faults).unwrap_or_default();
        if files.is_empty() {
            faults.push(Fault {
                at: fields.at(),
                message: format!("`{}` needs a pattern of files", fields.path_of("files")),
                hint: Some(
                    "`files: [\"apps/**\"]` looks at all YAML files below `apps`".to_owned(),
                ),
            });
        }
        let message = fields.text("message", faults);
        Self {
            path: fields.required("path", faults),
            files,
            branch: fields.required("branch", faults),
            message: message.unwrap_or_else(|| format!("{step}: ${{DIGEST}}")),
        }
    }
}

impl HelmSource {
    fn read(fields: &Fields<'_>, step: &str, faults: &mut Faults) -> Self {
        let on_failure = fields.parsed("onFailure", faults, |text| match text {
            "keep" => Ok(AfterFailure::Keep),
            "rollback" => Ok(AfterFailure::Rollback),
            "uninstall" => Ok(AfterFailure::Uninstall),
            _ => Err("must be `keep`, `rollback` or `uninstall`".to_owned()),
        });
        let history_max = fields.parsed("historyMax", faults, |text| {
            let number = text.parse();
            number.map_err(|_| "must be a number; 0 keeps all revisions".to_owned())
        });
        let release = fields.text("release", faults);
        Self {
            chart: fields.required("chart", faults),
            release: release.unwrap_or_else(|| step.to_owned()),
            values: fields.texts("values", faults).unwrap_or_default(),
            set: fields.text_map("set", faults),
            images: fields.text_map("images", faults),
            create_namespace: fields.flag("createNamespace", faults).unwrap_or(false),
            history_max: history_max.unwrap_or(DEFAULT_HISTORY),
            on_failure: on_failure.unwrap_or(AfterFailure::Keep),
        }
    }
}
