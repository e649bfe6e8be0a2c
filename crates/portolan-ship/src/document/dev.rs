//! The `dev` part of a document: which files go into running pods, and which ports are forwarded.

use std::collections::BTreeMap;

use portolan_cluster::PodTarget;
use portolan_image::Ignore;
use portolan_object::similar;
use portolan_yaml::{Node, Position};

use super::artifact::Artifact;
use super::fields::{Fault, Faults, Fields};

/// What `portolan dev` does besides building and deploying.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DevSettings {
    /// Files that are copied into running pods.
    pub sync: Vec<SyncRule>,
    /// Ports that are forwarded.
    pub forward: Vec<ForwardRule>,
    /// Whether what was deployed is deleted at the end.
    pub cleanup: bool,
}

/// Files that are copied into the pods of an artifact instead of building it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncRule {
    /// The artifact.
    pub artifact: String,
    /// A pattern of files, relative to the directory that the artifact is built from.
    pub from: String,
    /// Where they go in the container: what the pattern says before its first wildcard is replaced by this.
    pub to: String,
    /// A command that runs in the container after files were copied; may be empty.
    pub after: Vec<String>,
    /// Where it stands in the file.
    pub at: Position,
}

/// A port that is forwarded to this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardRule {
    /// Whose port: `service/web`.
    pub resource: String,
    /// The namespace; the default is that of the deploy steps.
    pub namespace: Option<String>,
    /// The port there.
    pub port: u16,
    /// The port of this machine; the default is the same one.
    pub local: Option<u16>,
    /// Where it stands in the file.
    pub at: Position,
}

const DEV_FIELDS: &[&str] = &["sync", "forward", "cleanup"];
const SYNC_FIELDS: &[&str] = &["artifact", "from", "to", "after"];
const FORWARD_FIELDS: &[&str] = &["resource", "namespace", "port", "local"];

/// The fields of each part, by the part's name in the schema.
#[cfg(test)]
pub(crate) fn dev_fields() -> [(&'static str, &'static [&'static str]); 3] {
    [
        ("dev", DEV_FIELDS),
        ("sync", SYNC_FIELDS),
        ("forward", FORWARD_FIELDS),
    ]
}

impl DevSettings {
    pub(super) fn read(spec: &Fields<'_>, artifacts: &[Artifact], faults: &mut Faults) -> Self {
        let Some(dev) = spec.map("dev", DEV_FIELDS, faults) else {
            return Self::default();
        };
        let sync = super::entries(&dev, "sync", faults).into_iter();
        let sync: Vec<SyncRule> = sync
            .map(|(item, path)| SyncRule::read(item, path, artifacts, faults))
            .collect();
        let forward = super::entries(&dev, "forward", faults).into_iter();
        let forward: Vec<ForwardRule> = forward
            .filter_map(|(item, path)| ForwardRule::read(item, path, faults))
            .collect();
        check_local_ports(&forward, faults);
        Self {
            sync,
            forward,
            cleanup: dev.flag("cleanup", faults).unwrap_or(false),
        }
    }
}

impl SyncRule {
    fn read(node: &Node, path: String, artifacts: &[Artifact], faults: &mut Faults) -> Self {
        let fields = Fields::of(node, path, SYNC_FIELDS, faults);
        let rule = Self {
            artifact: fields.required("artifact", faults),
            from: fields.required("from", faults),
            to: fields.required("to", faults),
            after: fields.texts("after", faults).unwrap_or_default(),
            at: fields.at(),
        };
        let mut wrong = |key: &str, message: String, hint: Option<String>| {
            faults.push(Fault {
                at: fields.node(key).map_or(rule.at, |node| node.at),
                message,
                hint,
            });
        };
        let names = || artifacts.iter().map(|artifact| artifact.name.as_str());
        let artifact = &rule.artifact;
        if !artifact.is_empty() && !names().any(|name| name == artifact) {
            let near = similar(artifact, names(), |name| name);
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            wrong(
                "artifact",
                format!("no artifact is called `{artifact}`"),
                hint,
            );
        }
        if !rule.to.is_empty() && !is_place(&rule.to) {
            let message = format!(
                "`{}` is no place in a container: it must begin with `/` and have no `..`",
                rule.to
            );
            wrong("to", message, None);
        }
        if let Err(error) = Ignore::new([rule.from.as_str()]) {
            wrong(
                "from",
                format!("`{}` is no pattern: {error}", rule.from),
                None,
            );
        }
        rule
    }

    /// What the pattern says before its first wildcard: whole directories.
    pub(crate) fn fixed_part(&self) -> &str {
        let wildcard = self.from.find(['*', '?', '[']).unwrap_or(self.from.len());
        let fixed = self.from.get(..wildcard).unwrap_or_default();
        fixed.rfind('/').map_or("", |end| &fixed[..=end])
    }
}

fn is_place(path: &str) -> bool {
    path.starts_with('/') && path.split('/').all(|part| part != "..")
}

impl ForwardRule {
    fn read(node: &Node, path: String, faults: &mut Faults) -> Option<Self> {
        let fields = Fields::of(node, path, FORWARD_FIELDS, faults);
        let resource = fields.required("resource", faults);
        if !resource.is_empty() && PodTarget::parse("", &resource).is_none() {
            faults.push(Fault {
                at: fields.node("resource").map_or(fields.at(), |node| node.at),
                message: format!("`{resource}` has no ports that can be forwarded"),
                hint: Some(format!(
                    "write `KIND/NAME`; KIND is one of {}",
                    PodTarget::kinds().join(", ")
                )),
            });
        }
        let port = |key: &str, faults: &mut Faults| {
            fields.parsed(key, faults, |text| {
                let number = text.parse().ok().filter(|number| *number > 0);
                number.ok_or_else(|| "must be a port, from 1 to 65535".to_owned())
            })
        };
        if fields.node("port").is_none() {
            faults.push(Fault {
                at: fields.at(),
                message: format!("`{}` is missing", fields.path_of("port")),
                hint: None,
            });
        }
        let (port, local) = (port("port", faults), port("local", faults));
        Some(Self {
            resource,
            namespace: fields.text("namespace", faults),
            port: port?,
            local,
            at: fields.at(),
        })
    }
}

/// Two rules cannot have the same port of this machine.
fn check_local_ports(rules: &[ForwardRule], faults: &mut Faults) {
    let mut known: BTreeMap<u16, u32> = BTreeMap::new();
    for rule in rules {
        let local = rule.local.unwrap_or(rule.port);
        if let Some(line) = known.insert(local, rule.at.line) {
            faults.push(Fault {
                at: rule.at,
                message: format!("the local port {local} is used by the rule of line {line} too"),
                hint: Some("name another one: `local: PORT`".to_owned()),
            });
        }
    }
}
