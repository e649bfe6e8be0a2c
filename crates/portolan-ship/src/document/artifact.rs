//! The artifacts of a document: what each is made of, and how.

use std::collections::BTreeMap;
use std::time::Duration;

use portolan_image::{Compression, ConfigSpec, CopySpec, Keep, Owner, Platform};
use portolan_oci::Reference;
use portolan_yaml::{Node, Position};

use super::fields::{Fault, Faults, Fields};

/// Something that is built into an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Its name, which is unique in the document.
    pub name: String,
    /// The repository that its images go to, without tag and digest.
    pub image: String,
    /// The repository that the document names, by which objects know it: the same unless the command line names a registry.
    pub named: String,
    /// The artifacts that must be built before it.
    pub needs: Vec<String>,
    /// How often it is tried again when it failed.
    pub retries: u32,
    /// How many of the places of `--jobs` its build takes.
    pub weight: usize,
    /// How it is built.
    pub source: ArtifactSource,
    /// Where it stands in the file.
    pub at: Position,
}

/// How an artifact is built.
#[derive(Debug, Clone, PartialEq)]
pub enum ArtifactSource {
    /// Of files, by us.
    Oci(OciSource),
    /// By a command.
    Command(CommandSource),
    /// Of a Dockerfile, by a program that knows them.
    Dockerfile(DockerfileSource),
}

/// Files that are laid out as an image.
#[derive(Debug, Clone, PartialEq)]
pub struct OciSource {
    /// The directory that the files are in, relative to the document's.
    pub context: String,
    /// Which files go where.
    pub copies: Vec<CopySpec>,
    /// What is below them.
    pub base: BaseImage,
    /// What runs in the image.
    pub config: ConfigSpec,
    /// What it runs on; one image for each.
    pub platforms: Vec<Platform>,
    /// How layers are compressed.
    pub compression: Compression,
    /// How many layers the files are distributed over.
    pub buckets: usize,
    /// The time of all files, in seconds since 1970.
    pub modified: FileTime,
}

/// The time that all files of an image have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTime {
    /// So many seconds after the beginning of 1970.
    At(u64),
    /// That of the commit that is checked out.
    Commit,
}

/// The most tries after the first one.
const MAX_RETRIES: u32 = 10;

/// The most places that an artifact may take.
const MAX_WEIGHT: usize = 1024;

/// What an image is built on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseImage {
    /// Nothing.
    Scratch,
    /// The image of another artifact.
    Artifact(String),
    /// An image of a registry, by tag or digest.
    Registry(String),
    /// An image in an OCI layout on disk: its directory, and the name in it.
    Layout {
        /// The directory, relative to the document's.
        directory: String,
        /// The name; none where the layout has one image only.
        name: Option<String>,
    },
}

/// A command that makes an image.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandSource {
    /// The program and its arguments.
    pub run: Vec<String>,
    /// Where it runs, relative to the document's directory.
    pub directory: String,
    /// Patterns of the files that it reads.
    pub inputs: Vec<String>,
    /// Names of variables that are passed through.
    pub env: Vec<String>,
    /// Variables with their values.
    pub set: BTreeMap<String, String>,
    /// What is secret, by the name that the command knows it by.
    pub secrets: BTreeMap<String, SecretSource>,
    /// Commands that print versions of tools; what they print is part of the key.
    pub versions: Vec<Vec<String>>,
    /// How long it may run.
    pub timeout: Duration,
    /// Whether it sees nothing but its inputs.
    pub hermetic: bool,
    /// What it leaves in `PORTOLAN_OUT`.
    pub output: CommandOutput,
}

/// Where something secret comes from, and how a program gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSource {
    /// Where it comes from.
    pub from: SecretPlace,
    /// Whether the program gets it as a variable; otherwise it gets a file.
    pub is_variable: bool,
}

/// Where something secret lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// In a variable of the environment.
    Variable(String),
    /// In a file, relative to the document's directory.
    File(String),
}

/// A Dockerfile.
#[derive(Debug, Clone, PartialEq)]
pub struct DockerfileSource {
    /// The directory of the files, relative to the document's.
    pub context: String,
    /// The Dockerfile, relative to the context.
    pub file: String,
    /// The stage to build; none is the last.
    pub target: Option<String>,
    /// Arguments of the build.
    pub args: BTreeMap<String, String>,
    /// What is secret, by its id.
    pub secrets: BTreeMap<String, SecretSource>,
    /// What it runs on; none is what the program builds by itself.
    pub platforms: Vec<Platform>,
    /// Images whose layers may be used again.
    pub cache_from: Vec<String>,
    /// Which program builds it.
    pub engine: DockerfileEngine,
    /// How long it may take.
    pub timeout: Duration,
}

/// A program that builds Dockerfiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DockerfileEngine {
    /// The first of the others that is installed.
    Auto,
    /// `buildah`, which needs no daemon.
    Buildah,
    /// `buildctl` of a running `buildkitd`.
    Buildkit,
    /// `docker buildx` of a running Docker.
    Docker,
}

/// What a command leaves behind.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandOutput {
    /// An OCI layout with one image.
    Image,
    /// Files, which are laid out as an image.
    Files(Box<OciSource>),
}

/// How long a command may run if nothing is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);

/// The layers that files are distributed over if nothing is said.
const DEFAULT_BUCKETS: usize = 8;

/// The most layers that files are distributed over.
const MAX_BUCKETS: usize = 100;

/// The level of gzip.
const GZIP_LEVEL: u8 = 6;

/// How an artifact can be built: it has exactly one of these fields.
const KINDS: &[&str] = &["oci", "command", "dockerfile"];

/// The fields of an artifact.
const ARTIFACT_FIELDS: &[&str] = &[
    "name",
    "image",
    "needs",
    "retries",
    "weight",
    "oci",
    "command",
    "dockerfile",
];

const OCI_FIELDS: &[&str] = &[
    "context",
    "copy",
    "base",
    "entrypoint",
    "cmd",
    "env",
    "user",
    "workdir",
    "ports",
    "labels",
    "platforms",
    "compression",
    "buckets",
    "mtime",
];

const COMMAND_FIELDS: &[&str] = &[
    "run", "dir", "inputs", "env", "set", "secrets", "versions", "timeout", "hermetic", "output",
    "oci",
];

const DOCKERFILE_FIELDS: &[&str] = &[
    "context",
    "file",
    "target",
    "args",
    "secrets",
    "platforms",
    "cacheFrom",
    "engine",
    "timeout",
];

/// The fields of something to copy.
const COPY_FIELDS: &[&str] = &["from", "to", "owner", "mode", "ignore", "keep"];

/// The fields of something secret.
const SECRET_FIELDS: &[&str] = &["env", "file", "as"];

/// The fields of each part of the document, by the part's name in the schema.
#[cfg(test)]
pub(crate) fn fields_of() -> [(&'static str, &'static [&'static str]); 6] {
    [
        ("artifact", ARTIFACT_FIELDS),
        ("oci", OCI_FIELDS),
        ("command", COMMAND_FIELDS),
        ("dockerfile", DOCKERFILE_FIELDS),
        ("copy", COPY_FIELDS),
        ("secret", SECRET_FIELDS),
    ]
}

impl Artifact {
    pub(super) fn read(node: &Node, path: String, faults: &mut Faults) -> Option<Self> {
        let fields = Fields::of(node, path, ARTIFACT_FIELDS, faults);
        let name = fields.required("name", faults);
        check_name(&name, fields.at(), faults);
        let image = fields.required("image", faults);
        check_image(&image, &fields, faults);
        let source = match fields.one_of(KINDS, faults)? {
            "oci" => {
                let oci = fields.map("oci", OCI_FIELDS, faults)?;
                ArtifactSource::Oci(OciSource::read(&oci, faults))
            }
            "command" => {
                let command = fields.map("command", COMMAND_FIELDS, faults)?;
                ArtifactSource::Command(CommandSource::read(&command, faults))
            }
            _ => {
                let dockerfile = fields.map("dockerfile", DOCKERFILE_FIELDS, faults)?;
                ArtifactSource::Dockerfile(DockerfileSource::read(&dockerfile, faults))
            }
        };
        Some(Self {
            name,
            named: image.clone(),
            image,
            needs: fields.texts("needs", faults).unwrap_or_default(),
            retries: read_retries(&fields, faults),
            weight: read_weight(&fields, faults),
            source,
            at: fields.at(),
        })
    }

    /// The artifacts that must be built before it: those it says it needs, and the one it is built on.
    pub fn all_needs(&self) -> Vec<&str> {
        let base = match &self.source {
            ArtifactSource::Oci(oci) => Some(&oci.base),
            ArtifactSource::Command(command) => match &command.output {
                CommandOutput::Files(oci) => Some(&oci.base),
                CommandOutput::Image => None,
            },
            ArtifactSource::Dockerfile(_) => None,
        };
        let below = match base {
            Some(BaseImage::Artifact(name)) => Some(name.as_str()),
            _ => None,
        };
        let mut needs: Vec<&str> = self.needs.iter().map(String::as_str).collect();
        needs.extend(below.filter(|below| !self.needs.iter().any(|need| need == below)));
        needs
    }
}

impl Default for OciSource {
    /// All files of the context, below `/`, on nothing.
    fn default() -> Self {
        let everything = CopySpec {
            to: "/".to_owned(),
            ..CopySpec::default()
        };
        Self {
            context: ".".to_owned(),
            copies: vec![everything],
            base: BaseImage::Scratch,
            config: ConfigSpec::default(),
            platforms: "linux/amd64".parse().into_iter().collect(),
            compression: Compression::Gzip { level: GZIP_LEVEL },
            buckets: DEFAULT_BUCKETS,
            modified: FileTime::At(0),
        }
    }
}

impl OciSource {
    fn read(fields: &Fields<'_>, faults: &mut Faults) -> Self {
        let platforms = platforms(fields, faults);
        Self {
            context: fields
                .text("context", faults)
                .unwrap_or_else(|| ".".to_owned()),
            copies: copies(fields, faults),
            base: base(fields, faults),
            config: config(fields, faults),
            platforms: platforms.unwrap_or_else(|| "linux/amd64".parse().into_iter().collect()),
            compression: compression(fields, faults),
            buckets: buckets(fields, faults),
            modified: modified(fields, faults),
        }
    }
}

impl CommandSource {
    fn read(fields: &Fields<'_>, faults: &mut Faults) -> Self {
        let run = fields.texts("run", faults).unwrap_or_default();
        if run.is_empty() {
            faults.push(Fault {
                at: fields.at(),
                message: format!("`{}` needs a program", fields.path_of("run")),
                hint: Some("write it as a list: `run: [./build.sh, --release]`".to_owned()),
            });
        }
        let mut versions = Vec::new();
        for (node, path) in fields.items("versions", faults).unwrap_or_default() {
            let words = node.as_list().map(|list| {
                let words = list.iter().filter_map(|word| word.as_scalar());
                words.map(|word| word.text.to_string()).collect::<Vec<_>>()
            });
            match words {
                Some(words) if !words.is_empty() => versions.push(words),
                _ => faults.push(Fault {
                    at: node.at,
                    message: format!("`{path}` must be a list of a program and its arguments"),
                    hint: None,
                }),
            }
        }
        Self {
            run,
            directory: fields.text("dir", faults).unwrap_or_else(|| ".".to_owned()),
            inputs: fields.texts("inputs", faults).unwrap_or_default(),
            env: fields.texts("env", faults).unwrap_or_default(),
            set: fields.text_map("set", faults),
            secrets: read_secrets(fields, faults),
            versions,
            timeout: fields
                .duration("timeout", faults)
                .unwrap_or(DEFAULT_TIMEOUT),
            hermetic: fields.flag("hermetic", faults).unwrap_or(false),
            output: output(fields, faults),
        }
    }
}

impl DockerfileSource {
    fn read(fields: &Fields<'_>, faults: &mut Faults) -> Self {
        let engine = fields.parsed("engine", faults, |text| match text {
            "auto" => Ok(DockerfileEngine::Auto),
            "buildah" => Ok(DockerfileEngine::Buildah),
            "buildkit" => Ok(DockerfileEngine::Buildkit),
            "docker" => Ok(DockerfileEngine::Docker),
            _ => Err("must be `auto`, `buildah`, `buildkit` or `docker`".to_owned()),
        });
        let target = fields.text("target", faults);
        Self {
            context: fields
                .text("context", faults)
                .unwrap_or_else(|| ".".to_owned()),
            file: fields
                .text("file", faults)
                .unwrap_or_else(|| "Dockerfile".to_owned()),
            target: target.filter(|target| !target.is_empty()),
            args: fields.text_map("args", faults),
            secrets: read_secrets(fields, faults),
            platforms: platforms(fields, faults).unwrap_or_default(),
            cache_from: fields.texts("cacheFrom", faults).unwrap_or_default(),
            engine: engine.unwrap_or(DockerfileEngine::Auto),
            timeout: fields
                .duration("timeout", faults)
                .unwrap_or(DEFAULT_TIMEOUT),
        }
    }
}

/// The platforms of an image; at least one if they are written.
fn platforms(fields: &Fields<'_>, faults: &mut Faults) -> Option<Vec<Platform>> {
    let written = fields.texts("platforms", faults)?;
    let at = fields.node("platforms").map_or(fields.at(), |node| node.at);
    let path = fields.path_of("platforms");
    let mut platforms = Vec::new();
    for platform in &written {
        match platform.parse() {
            Ok(platform) if platforms.contains(&platform) => faults.push(Fault {
                at,
                message: format!("`{path}` has `{platform}` twice"),
                hint: None,
            }),
            Ok(platform) => platforms.push(platform),
            Err(error) => faults.push(Fault {
                at,
                message: format!("`{path}`: {error}"),
                hint: None,
            }),
        }
    }
    if written.is_empty() {
        faults.push(Fault {
            at,
            message: format!("`{path}` needs a platform such as `linux/amd64`"),
            hint: None,
        });
    }
    Some(platforms)
}

/// A repository, without tag and digest: those come of what is built.
fn check_image(image: &str, fields: &Fields<'_>, faults: &mut Faults) {
    let last = image.rsplit('/').next().unwrap_or_default();
    let problem = if image.is_empty() {
        return;
    } else if image.contains('@') || last.contains(':') {
        "is a repository without tag and digest: both come of what is built"
    } else if !is_repository(image) {
        "must be a repository such as `registry.example/shop/web`"
    } else {
        return;
    };
    faults.push(Fault {
        at: fields.node("image").map_or(fields.at(), |node| node.at),
        message: format!("`{}` {problem}, not `{image}`", fields.path_of("image")),
        hint: None,
    });
}

/// Whether a name is one of a repository, without tag and digest.
pub(super) fn is_repository(image: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let host = image.split_once('/').map_or("", |(host, _)| host);
    let rest = image.strip_prefix(host).unwrap_or(image);
    let is_path = |letter: char| is_letter(letter) || "-_./".contains(letter);
    let is_host = |letter: char| letter.is_ascii_alphanumeric() || "-_.:[]".contains(letter);
    let is_end = |end: char| end.is_ascii_alphanumeric() || end == ']';
    image.len() <= 255
        && rest.chars().all(is_path)
        && host.chars().all(is_host)
        && image.split('/').all(|part| part.ends_with(is_end))
}

fn output(fields: &Fields<'_>, faults: &mut Faults) -> CommandOutput {
    let kind = fields.parsed("output", faults, |text| match text {
        "image" | "files" => Ok(text == "files"),
        _ => Err("must be `image` or `files`".to_owned()),
    });
    if kind != Some(true) {
        return CommandOutput::Image;
    }
    let oci = fields.map("oci", OCI_FIELDS, faults);
    let empty = Node::map();
    let oci = oci.unwrap_or_else(|| Fields::of(&empty, fields.path_of("oci"), OCI_FIELDS, faults));
    CommandOutput::Files(Box::new(OciSource::read(&oci, faults)))
}

pub(super) fn read_secrets(
    fields: &Fields<'_>,
    faults: &mut Faults,
) -> BTreeMap<String, SecretSource> {
    let Some(node) = fields.node("secrets") else {
        return BTreeMap::new();
    };
    let Some(map) = node.as_map() else {
        faults.push(Fault {
            at: node.at,
            message: format!(
                "`{}` must be a map such as `NPM_TOKEN: {{env: NPM_TOKEN}}`",
                fields.path_of("secrets")
            ),
            hint: None,
        });
        return BTreeMap::new();
    };
    let mut secrets = BTreeMap::new();
    for entry in map {
        let name = entry.key.as_str().to_owned();
        // It is the name of a file, too.
        if !is_variable(&name) {
            faults.push(Fault {
                at: entry.key.at,
                message: format!("`{name}` is no name for a secret: letters, digits and `_`"),
                hint: None,
            });
        }
        let path = format!("{}.{name}", fields.path_of("secrets"));
        let source = Fields::of(&entry.value, path, SECRET_FIELDS, faults);
        let from = match source.one_of(&["env", "file"], faults) {
            Some("file") => SecretPlace::File(source.required("file", faults)),
            Some(_) => SecretPlace::Variable(source.required("env", faults)),
            None => continue,
        };
        let is_variable = source.parsed("as", faults, |text| match text {
            "file" | "env" => Ok(text == "env"),
            _ => Err("must be `file` or `env`".to_owned()),
        });
        let source = SecretSource {
            from,
            is_variable: is_variable.unwrap_or(false),
        };
        secrets.insert(name, source);
    }
    secrets
}

fn copies(fields: &Fields<'_>, faults: &mut Faults) -> Vec<CopySpec> {
    let Some(items) = fields.items("copy", faults) else {
        return OciSource::default().copies;
    };
    let mut copies = Vec::new();
    for (node, path) in items {
        let copy = Fields::of(node, path, COPY_FIELDS, faults);
        copies.push(CopySpec {
            from: copy.text("from", faults).unwrap_or_default(),
            to: copy.required("to", faults),
            owner: copy.parsed("owner", faults, owner).unwrap_or_default(),
            mode: copy.parsed("mode", faults, mode),
            ignore: copy.texts("ignore", faults).unwrap_or_default(),
            keep: keep(&copy, faults),
        });
    }
    copies
}

fn keep(copy: &Fields<'_>, faults: &mut Faults) -> Keep {
    let mut keep = Keep::default();
    for word in copy.texts("keep", faults).unwrap_or_default() {
        match word.as_str() {
            "special" => keep.special_bits = true,
            "capabilities" => keep.capabilities = true,
            _ => faults.push(Fault {
                at: copy.at(),
                message: format!(
                    "`{}` knows `special` and `capabilities`, not `{word}`",
                    copy.path_of("keep")
                ),
                hint: None,
            }),
        }
    }
    keep
}

fn owner(text: &str) -> Result<Owner, String> {
    let refused = || format!("`{text}` is not an owner such as `65532` or `65532:65532`");
    let (user, group) = text.split_once(':').unwrap_or((text, text));
    Ok(Owner {
        user: user.parse().map_err(|_| refused())?,
        group: group.parse().map_err(|_| refused())?,
    })
}

fn mode(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    let mode = u32::from_str_radix(digits, 8)
        .ok()
        .filter(|mode| *mode <= 0o7777);
    mode.ok_or_else(|| format!("`{text}` is not a mode such as `\"0755\"`"))
}

fn base(fields: &Fields<'_>, faults: &mut Faults) -> BaseImage {
    let Some(node) = fields.node("base") else {
        return BaseImage::Scratch;
    };
    if node.as_map().is_some() {
        let map = Fields::of(
            node,
            fields.path_of("base"),
            &["artifact", "layout", "name"],
            faults,
        );
        return match map.one_of(&["artifact", "layout"], faults) {
            Some("layout") => BaseImage::Layout {
                directory: map.required("layout", faults),
                name: map.text("name", faults),
            },
            _ => BaseImage::Artifact(map.text("artifact", faults).unwrap_or_default()),
        };
    }
    let known = fields.parsed("base", faults, |text| match text {
        "scratch" => Ok(BaseImage::Scratch),
        _ => match text.parse::<Reference>() {
            Ok(_) => Ok(BaseImage::Registry(text.to_owned())),
            Err(error) => Err(format!(
                "{error}; a base is `scratch`, an image such as `registry.example/base:1`, `{{artifact: NAME}}` or `{{layout: DIRECTORY}}`"
            )),
        },
    });
    known.unwrap_or(BaseImage::Scratch)
}

fn config(fields: &Fields<'_>, faults: &mut Faults) -> ConfigSpec {
    let ports = fields.texts("ports", faults).unwrap_or_default();
    let with_protocol = |port: String| {
        if port.contains('/') {
            port
        } else {
            format!("{port}/tcp")
        }
    };
    ConfigSpec {
        entrypoint: fields.texts("entrypoint", faults),
        cmd: fields.texts("cmd", faults),
        env: fields.text_map("env", faults).into_iter().collect(),
        user: fields.text("user", faults),
        workdir: fields.text("workdir", faults),
        ports: ports.into_iter().map(with_protocol).collect(),
        labels: fields.text_map("labels", faults),
    }
}

fn compression(fields: &Fields<'_>, faults: &mut Faults) -> Compression {
    let read = fields.parsed("compression", faults, |text| match text {
        "gzip" => Ok(Compression::Gzip { level: GZIP_LEVEL }),
        "zstd" => Ok(Compression::Zstd),
        _ => Err("must be `gzip` or `zstd`".to_owned()),
    });
    read.unwrap_or(Compression::Gzip { level: GZIP_LEVEL })
}

fn buckets(fields: &Fields<'_>, faults: &mut Faults) -> usize {
    let read = fields.parsed("buckets", faults, |text| {
        let number = text
            .parse()
            .ok()
            .filter(|number| (1..=MAX_BUCKETS).contains(number));
        number.ok_or_else(|| format!("must be a number from 1 to {MAX_BUCKETS}"))
    });
    read.unwrap_or(DEFAULT_BUCKETS)
}

fn modified(fields: &Fields<'_>, faults: &mut Faults) -> FileTime {
    let read = fields.parsed("mtime", faults, |text| match text {
        "epoch" => Ok(FileTime::At(0)),
        "commit" => Ok(FileTime::Commit),
        _ => seconds(text).map(FileTime::At).ok_or_else(|| {
            "must be `epoch`, `commit`, a date such as `2026-01-31`, or seconds since 1970"
                .to_owned()
        }),
    });
    read.unwrap_or(FileTime::At(0))
}

/// Seconds since 1970 of a number, a date or a time; `None` if it is before 1970 or none of them.
fn seconds(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let time: Option<jiff::Timestamp> = text.parse().ok();
    let date = || -> Option<jiff::Timestamp> {
        let date: jiff::civil::Date = text.parse().ok()?;
        let day = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(day.timestamp())
    };
    u64::try_from(time.or_else(date)?.as_second()).ok()
}

fn is_variable(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !text.is_empty() && text.chars().all(is_letter)
}

/// How often something that failed is tried again.
pub(super) fn read_retries(fields: &Fields<'_>, faults: &mut Faults) -> u32 {
    let read = fields.parsed("retries", faults, |text| {
        let number = text.parse().ok().filter(|number| *number <= MAX_RETRIES);
        number.ok_or_else(|| format!("must be a number up to {MAX_RETRIES}"))
    });
    read.unwrap_or(0)
}

/// How many builds it counts as.
fn read_weight(fields: &Fields<'_>, faults: &mut Faults) -> usize {
    let read = fields.parsed("weight", faults, |text| {
        let number = text.parse().ok();
        let number = number.filter(|number| (1..=MAX_WEIGHT).contains(number));
        number.ok_or_else(|| format!("must be a number from 1 to {MAX_WEIGHT}"))
    });
    read.unwrap_or(1)
}

/// A name must be one.
pub(super) fn check_name(name: &str, at: Position, faults: &mut Faults) {
    if !name.is_empty() && !is_name(name) {
        faults.push(Fault {
            at,
            message: format!(
                "`{name}` is no name: letters and digits, and `-`, `_` and `.` between them, no more than 63"
            ),
            hint: None,
        });
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let is_end = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    let ends_well = is_end(text.chars().next()) && is_end(text.chars().last());
    text.len() <= 63 && text.chars().all(is_letter) && ends_well
}
