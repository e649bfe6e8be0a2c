//! The tests of artifacts and the verifications of what was deployed.

use std::collections::BTreeMap;
use std::time::Duration;

use portolan_cluster::PodTarget;
use portolan_yaml::{Node, Position};

use super::artifact::{SecretSource, check_name, read_retries, read_secrets};
use super::fields::{Fault, Faults, Fields};

/// A test, which is done for each of its artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactTest {
    /// Its name, which is unique in the document.
    pub name: String,
    /// The artifacts that are tested.
    pub artifacts: Vec<String>,
    /// How often it is tried again when it failed.
    pub retries: u32,
    /// What is done.
    pub source: TestSource,
    /// Where it stands in the file.
    pub at: Position,
}

/// How an artifact is tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestSource {
    /// By a program that ends with 0.
    Command(CommandCheck),
    /// By what is in its image.
    Image(ImageCheck),
}

/// A program that ends with 0 if all is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandCheck {
    /// The program and its arguments.
    pub run: Vec<String>,
    /// Where it runs, relative to the document.
    pub directory: String,
    /// Patterns of the files that it reads. With them it runs in a directory of these files alone.
    pub inputs: Vec<String>,
    /// Variables of the environment that it gets.
    pub env: Vec<String>,
    /// Variables that it gets besides.
    pub set: BTreeMap<String, String>,
    /// Secrets that it gets.
    pub secrets: BTreeMap<String, SecretSource>,
    /// How long it may take.
    pub timeout: Duration,
}

/// What an image must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageCheck {
    /// Files that must be there, or must not.
    pub files: Vec<FileCheck>,
    /// What its config must say, field by field.
    pub config: ConfigCheck,
    /// The most bytes of its layers, as they are sent.
    pub max_size: Option<u64>,
    /// Patterns of files that may hold what looks like a secret; `None` looks for none.
    pub secrets: Option<Vec<String>>,
}

/// A file of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCheck {
    /// Its path in the image.
    pub path: String,
    /// The permissions that it must have.
    pub mode: Option<u32>,
    /// The owner that it must have, as `user:group` in numbers.
    pub owner: Option<String>,
    /// Whether it must not be there.
    pub is_absent: bool,
}

/// What the config of an image must say; what is not given may be anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigCheck {
    /// The user.
    pub user: Option<String>,
    /// The directory.
    pub workdir: Option<String>,
    /// The program.
    pub entrypoint: Option<Vec<String>>,
    /// Its arguments.
    pub cmd: Option<Vec<String>>,
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

/// A look at what was deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployCheck {
    /// Its name, which is unique in the document.
    pub name: String,
    /// Deploy steps that must be done before it; all if none is named.
    pub needs: Vec<String>,
    /// Where objects without a namespace are looked for.
    pub namespace: Option<String>,
    /// What is done.
    pub source: VerifySource,
    /// Where it stands in the file.
    pub at: Position,
}

/// How something is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifySource {
    /// By an answer over HTTP.
    Http(HttpCheck),
    /// By a program that ends with 0.
    Command(CommandCheck),
    /// By the state of objects.
    Cluster(ClusterCheck),
}

/// A request that must be answered well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpCheck {
    /// Where to.
    pub target: HttpTarget,
    /// The status of a good answer.
    pub status: u16,
    /// A text that the body of a good answer has.
    pub contains: Option<String>,
    /// How long it is tried.
    pub within: Duration,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpTarget {
    /// To an address.
    Url(String),
    /// To a port of something in the cluster, which is forwarded for the request.
    Forward {
        /// `service/web`
        resource: String,
        /// The port.
        port: u16,
        /// The path of the request.
        path: String,
    },
}

/// Objects that must be in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterCheck {
    /// `apps/v1`
    pub api_version: String,
    /// `Deployment`
    pub kind: String,
    /// One object by its name.
    pub name: Option<String>,
    /// Objects by their labels.
    pub selector: Option<String>,
    /// The condition that must be true; without one, objects must be what they ask for.
    pub condition: Option<String>,
    /// How many must be so; all that there are must be, too.
    pub at_least: usize,
    /// How long they are waited for.
    pub timeout: Duration,
}

const TEST_FIELDS: &[&str] = &["name", "artifacts", "retries", "command", "image"];
const COMMAND_FIELDS: &[&str] = &["run", "dir", "inputs", "env", "set", "secrets", "timeout"];
const IMAGE_FIELDS: &[&str] = &["files", "config", "maxSize", "secrets"];
const FILE_FIELDS: &[&str] = &["path", "mode", "owner", "absent"];
const CONFIG_FIELDS: &[&str] = &["user", "workdir", "entrypoint", "cmd", "env", "labels"];
const VERIFY_FIELDS: &[&str] = &["name", "needs", "namespace", "http", "command", "cluster"];
const HTTP_FIELDS: &[&str] = &["url", "forward", "path", "status", "contains", "for"];
const CLUSTER_FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "name",
    "selector",
    "condition",
    "atLeast",
    "timeout",
];

/// The fields of each part, by the part's name in the schema.
#[cfg(test)]
pub(crate) fn check_fields() -> [(&'static str, &'static [&'static str]); 8] {
    [
        ("test", TEST_FIELDS),
        ("commandCheck", COMMAND_FIELDS),
        ("imageCheck", IMAGE_FIELDS),
        ("fileCheck", FILE_FIELDS),
        ("configCheck", CONFIG_FIELDS),
        ("verification", VERIFY_FIELDS),
        ("httpCheck", HTTP_FIELDS),
        ("clusterCheck", CLUSTER_FIELDS),
    ]
}

/// How long a program may take if nothing is said.
const DEFAULT_COMMAND: Duration = Duration::from_mins(5);

/// How long an answer is waited for if nothing is said.
const DEFAULT_HTTP: Duration = Duration::from_secs(30);

/// How long objects are waited for if nothing is said.
const DEFAULT_CLUSTER: Duration = Duration::from_mins(2);

impl ArtifactTest {
    pub(super) fn read(node: &Node, path: String, faults: &mut Faults) -> Option<Self> {
        let fields = Fields::of(node, path, TEST_FIELDS, faults);
        let name = fields.required("name", faults);
        check_name(&name, fields.at(), faults);
        let source = match fields.one_of(&["command", "image"], faults)? {
            "command" => TestSource::Command(CommandCheck::read(&fields, faults)?),
            _ => TestSource::Image(ImageCheck::read(&fields, faults)?),
        };
        let artifacts = fields.texts("artifacts", faults).unwrap_or_default();
        if artifacts.is_empty() {
            faults.push(Fault {
                at: fields.at(),
                message: format!("`{}` needs an artifact", fields.path_of("artifacts")),
                hint: None,
            });
        }
        Some(Self {
            name,
            artifacts,
            retries: read_retries(&fields, faults),
            source,
            at: fields.at(),
        })
    }
}

impl CommandCheck {
    fn read(parent: &Fields<'_>, faults: &mut Faults) -> Option<Self> {
        let fields = parent.map("command", COMMAND_FIELDS, faults)?;
        Some(Self::of(&fields, faults))
    }

    /// The commands of a list, which run one after the other.
    pub(super) fn read_list(parent: &Fields<'_>, key: &str, faults: &mut Faults) -> Vec<Self> {
        let items = super::entries(parent, key, faults).into_iter();
        let mut commands = Vec::new();
        for (node, path) in items {
            let fields = Fields::of(node, path, COMMAND_FIELDS, faults);
            commands.push(Self::of(&fields, faults));
        }
        commands
    }

    fn of(fields: &Fields<'_>, faults: &mut Faults) -> Self {
        let run = fields.texts("run", faults).unwrap_or_default();
        if run.is_empty() {
            faults.push(Fault {
                at: fields.at(),
                message: format!("`{}` needs a program", fields.path_of("run")),
                hint: None,
            });
        }
        Self {
            run,
            directory: fields.text("dir", faults).unwrap_or_else(|| ".".to_owned()),
            inputs: fields.texts("inputs", faults).unwrap_or_default(),
            env: fields.texts("env", faults).unwrap_or_default(),
            set: fields.text_map("set", faults),
            secrets: read_secrets(fields, faults),
            timeout: fields
                .duration("timeout", faults)
                .unwrap_or(DEFAULT_COMMAND),
        }
    }
}

impl ImageCheck {
    fn read(parent: &Fields<'_>, faults: &mut Faults) -> Option<Self> {
        let fields = parent.map("image", IMAGE_FIELDS, faults)?;
        let items = fields.items("files", faults).unwrap_or_default();
        let files = items
            .into_iter()
            .map(|(node, path)| FileCheck::read(node, path, faults));
        let files = files.collect();
        let config = fields.map("config", CONFIG_FIELDS, faults);
        let secrets = fields.map("secrets", &["allow"], faults);
        Some(Self {
            files,
            config: config
                .map(|config| ConfigCheck::read(&config, faults))
                .unwrap_or_default(),
            max_size: fields.parsed("maxSize", faults, read_size),
            secrets: secrets.map(|secrets| secrets.texts("allow", faults).unwrap_or_default()),
        })
    }
}

impl FileCheck {
    fn read(node: &Node, path: String, faults: &mut Faults) -> Self {
        let fields = Fields::of(node, path, FILE_FIELDS, faults);
        let mode = fields.parsed("mode", faults, |text| {
            let mode = u32::from_str_radix(text, 8)
                .ok()
                .filter(|mode| *mode <= 0o7777);
            mode.ok_or_else(|| format!("`{text}` is no mode such as \"0755\""))
        });
        Self {
            path: fields.required("path", faults),
            mode,
            owner: fields.text("owner", faults),
            is_absent: fields.flag("absent", faults).unwrap_or(false),
        }
    }
}

impl ConfigCheck {
    fn read(fields: &Fields<'_>, faults: &mut Faults) -> Self {
        Self {
            user: fields.text("user", faults),
            workdir: fields.text("workdir", faults),
            entrypoint: fields.texts("entrypoint", faults),
            cmd: fields.texts("cmd", faults),
            env: fields.text_map("env", faults),
            labels: fields.text_map("labels", faults),
        }
    }
}

impl DeployCheck {
    pub(super) fn read(node: &Node, path: String, faults: &mut Faults) -> Option<Self> {
        let fields = Fields::of(node, path, VERIFY_FIELDS, faults);
        let name = fields.required("name", faults);
        check_name(&name, fields.at(), faults);
        let source = match fields.one_of(&["http", "command", "cluster"], faults)? {
            "http" => VerifySource::Http(HttpCheck::read(&fields, faults)?),
            "command" => VerifySource::Command(CommandCheck::read(&fields, faults)?),
            _ => VerifySource::Cluster(ClusterCheck::read(&fields, faults)?),
        };
        Some(Self {
            name,
            needs: fields.texts("needs", faults).unwrap_or_default(),
            namespace: fields.text("namespace", faults),
            source,
            at: fields.at(),
        })
    }
}

impl HttpCheck {
    fn read(parent: &Fields<'_>, faults: &mut Faults) -> Option<Self> {
        let fields = parent.map("http", HTTP_FIELDS, faults)?;
        let status = fields.parsed("status", faults, |text| {
            let status = text
                .parse()
                .ok()
                .filter(|status| (100..600).contains(status));
            status.ok_or_else(|| format!("`{text}` is no status such as 200"))
        });
        let target = HttpTarget::read(&fields, faults)?;
        Some(Self {
            target,
            status: status.unwrap_or(200),
            contains: fields.text("contains", faults),
            within: fields.duration("for", faults).unwrap_or(DEFAULT_HTTP),
        })
    }
}

impl HttpTarget {
    fn read(fields: &Fields<'_>, faults: &mut Faults) -> Option<Self> {
        let path = fields.text("path", faults).unwrap_or_default();
        if fields.one_of(&["url", "forward"], faults)? == "url" {
            let url = fields.required("url", faults);
            return Some(Self::Url(format!("{}{path}", url.trim_end_matches('/'))));
        }
        fields.parsed("forward", faults, |text| {
            let refused = || format!("`{text}` is no port such as `service/web:80`");
            let (resource, port) = text.rsplit_once(':').ok_or_else(refused)?;
            PodTarget::parse("", resource).ok_or_else(|| {
                format!(
                    "{}; it may be of {}",
                    refused(),
                    PodTarget::kinds().join(", ")
                )
            })?;
            Ok(Self::Forward {
                resource: resource.to_owned(),
                port: port.parse().map_err(|_| refused())?,
                path,
            })
        })
    }
}

impl ClusterCheck {
    fn read(parent: &Fields<'_>, faults: &mut Faults) -> Option<Self> {
        let fields = parent.map("cluster", CLUSTER_FIELDS, faults)?;
        let at_least = fields.parsed("atLeast", faults, |text| {
            text.parse().map_err(|_| "must be a number".to_owned())
        });
        let (name, selector) = (fields.text("name", faults), fields.text("selector", faults));
        if name.is_none() && selector.is_none() {
            faults.push(Fault {
                at: fields.at(),
                message: format!(
                    "`{}` needs a `name` or a `selector`",
                    parent.path_of("cluster")
                ),
                hint: None,
            });
        }
        Some(Self {
            api_version: fields.required("apiVersion", faults),
            kind: fields.required("kind", faults),
            name,
            selector,
            condition: fields.text("condition", faults),
            at_least: at_least.unwrap_or(1),
            timeout: fields
                .duration("timeout", faults)
                .unwrap_or(DEFAULT_CLUSTER),
        })
    }
}

/// Reads `50Mi`, `1Gi`, `2000` and the like.
fn read_size(text: &str) -> Result<u64, String> {
    let units = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
    ];
    let found = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1));
    let size = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor));
    size.ok_or_else(|| format!("`{text}` is no size such as `50Mi`"))
}
