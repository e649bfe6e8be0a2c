//! The deploy steps of a document: which objects go to a cluster, and how.

use std::time::Duration;

use portolan_yaml::{Node, Position};

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
}

/// How long objects are waited for if nothing is said.
const DEFAULT_WAIT: Duration = Duration::from_mins(5);

/// The kinds of steps.
const KINDS: &[&str] = &["manifests", "kustomize"];

/// The fields of a step.
const STEP_FIELDS: &[&str] = &[
    "name",
    "needs",
    "context",
    "namespace",
    "prune",
    "wait",
    "onConflict",
    "manifests",
    "kustomize",
];

const WAIT_FIELDS: &[&str] = &["timeout", "failFast"];

/// The fields of each part of a step, by the part's name in the schema.
#[cfg(test)]
pub(crate) fn deploy_fields() -> [(&'static str, &'static [&'static str]); 2] {
    [("step", STEP_FIELDS), ("wait", WAIT_FIELDS)]
}

impl DeployStep {
    pub(super) fn read(node: &Node, path: String, faults: &mut Faults) -> Option<Self> {
        let fields = Fields::of(node, path, STEP_FIELDS, faults);
        let name = fields.required("name", faults);
        if !name.is_empty() && !super::artifact::is_name(&name) {
            faults.push(Fault {
                at: fields.at(),
                message: format!("`{name}` is no name: letters and digits, and `-`, `_` and `.` between them, no more than 63"),
                hint: None,
            });
        }
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
            _ => {
                let kustomize = fields.map("kustomize", &["path"], faults)?;
                DeploySource::Kustomize(kustomize.required("path", faults))
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
        Some(Self {
            name,
            needs: fields.texts("needs", faults).unwrap_or_default(),
            context: fields.text("context", faults),
            namespace: fields.text("namespace", faults),
            prune: fields.flag("prune", faults).unwrap_or(true),
            timeout: timeout.unwrap_or(DEFAULT_WAIT),
            fail_fast: fail_fast.unwrap_or(true),
            force: force.unwrap_or(false),
            source,
            at: fields.at(),
        })
    }
}
