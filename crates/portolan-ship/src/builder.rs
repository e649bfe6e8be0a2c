//! How artifacts are built: a builder returns a result for its artifact and knows nothing of events.

mod command;
mod dockerfile;
mod input_files;
mod oci;
mod read_artifact;
mod referrers;
mod secrets;

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;
use portolan_http::{Client, HttpError, HttpOptions};
use portolan_image::{BaseError, BuildError, CompressError, ScanError};
use portolan_layout::{Directory, ImportError, Store, StoreError};
use portolan_oci::{Registry, RegistryOptions};

pub(crate) use command::CommandBuilder;
pub(crate) use dockerfile::DockerfileBuilder;
pub(crate) use input_files::InputFiles;
pub(crate) use oci::OciBuilder;
pub(crate) use secrets::give_secrets;

use crate::base::{BaseImageError, BaseImages};
use crate::document::OciSource;
use crate::git_facts::GitFacts;
use crate::inputs::Inputs;
use crate::outcome::Built;
use crate::process::{End, Ended};
use crate::runs::ShipRun;
use crate::task::Task;

/// Builds one artifact.
pub trait Builder: Send + Sync + 'static {
    /// Builds it, or says why it cannot. It may take its time: it runs on a thread of its own.
    fn build(&self, task: &Task) -> Result<Built, ShipError>;
}

/// What is known of an artifact before it is built.
#[derive(Debug)]
pub(crate) struct Prospect {
    /// The name of everything that it is made of.
    pub(crate) key: Digest,
    /// Everything that it is made of.
    pub(crate) inputs: Inputs,
    /// The image, if it was built before.
    pub(crate) image: Option<Digest>,
    /// What it was made of when it was built last.
    pub(crate) last: Option<String>,
}

/// What every builder of a run has.
#[derive(Debug, Clone)]
pub struct BuildSetup {
    /// The directory of the document, which its paths are relative to.
    pub directory: Utf8PathBuf,
    /// Where images go.
    pub store: Arc<Store>,
    /// The run that they are built in.
    pub run: Arc<ShipRun>,
    /// Base images of registries.
    pub bases: Arc<BaseImages>,
    /// Whether a bill of materials is written for each image of files.
    pub writes_sbom: bool,
    /// What git knows of the repository, found out when it is first needed.
    pub git: Arc<OnceLock<Option<GitFacts>>>,
    /// How many threads one artifact may use.
    pub threads: usize,
    /// The time, in nanoseconds since 1970.
    pub now: i64,
    /// The environment, of which commands get what the document names.
    pub env: Arc<BTreeMap<String, String>>,
}

/// Why an artifact could not be built.
#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    /// A path that leads out of the document's directory.
    #[error("`{0}` leads out of the directory of the document")]
    Outside(String),
    /// A Dockerfile that is not in its context.
    #[error("`{0}` leads out of the context; a Dockerfile must be in it")]
    OutsideContext(String),
    /// The directory of the files is not there.
    #[error("cannot open the directory `{path}`")]
    Context {
        /// The directory.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Its files cannot be an image.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The image could not be written.
    #[error(transparent)]
    Image(#[from] BuildError),
    /// What it is built on cannot be.
    #[error("cannot build on the base image")]
    Base(#[from] BaseError),
    /// A layer cannot be compressed.
    #[error(transparent)]
    Compress(#[from] CompressError),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An image of another layout cannot be taken over.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A file cannot be read or written.
    #[error("cannot use `{path}`")]
    File {
        /// The file.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A program cannot be started.
    #[error("cannot start `{program}`")]
    Start {
        /// The program.
        program: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A program ended badly.
    #[error("`{program}` {how}{}", last_words(.last_lines))]
    Program {
        /// The program.
        program: String,
        /// `ended with 3`, `was stopped after 10 minutes`
        how: String,
        /// What it printed last.
        last_lines: Vec<String>,
    },
    /// The time of a commit is asked for, and there is none.
    #[error("`mtime: commit` needs a git repository with a commit, and `git`")]
    NoCommit,
    /// A variable that a command needs is not set.
    #[error("the environment has no variable `{0}`")]
    NoVariable(String),
    /// What is said about the image cannot be written.
    #[error("cannot write what is said about the image")]
    Referrer(#[source] io::Error),
    /// A secret that is too long to be looked for in what a program prints.
    #[error("the secret of `{0}` is longer than 64 KiB")]
    LongSecret(String),
    /// A base image of a registry cannot be had.
    #[error(transparent)]
    BaseImage(#[from] BaseImageError),
    /// No program is there that builds Dockerfiles.
    #[error(
        "none of `buildah`, `buildctl` and `docker` is installed: one of them builds Dockerfiles"
    )]
    NoEngine,
    /// Why a builder of another program could not build it.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
    /// The run was called off.
    #[error("it was called off")]
    Cancelled,
}

impl ShipError {
    /// What went wrong in a builder of another program.
    pub fn other(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }
}

/// Variables of the environment that every program gets.
const USUAL_VARIABLES: &[&str] = &["PATH", "HOME", "LANG"];

impl BuildSetup {
    /// What builders of another program need: images go to the store, base images come from registries without logins, and
    /// programs get no variables but `PATH`.
    ///
    /// # Errors
    /// When no client for registries can be made.
    pub fn plain(
        directory: &Utf8Path,
        store: Store,
        run: ShipRun,
        now: SystemTime,
    ) -> Result<Self, HttpError> {
        let client = Client::new(&HttpOptions::default())?;
        let registry = Arc::new(Registry::new(client, RegistryOptions::default()));
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let path = std::env::var("PATH").map(|path| ("PATH".to_owned(), path));
        Ok(Self {
            directory: directory.to_owned(),
            store: Arc::new(store),
            run: Arc::new(run),
            bases: Arc::new(BaseImages::new(registry, BTreeMap::new())),
            writes_sbom: false,
            git: Arc::default(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            now: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            env: Arc::new(path.into_iter().collect()),
        })
    }

    /// Makes an image of the files of a directory, as `oci` does without further settings; it is in the store under the name of
    /// the artifact afterwards. An image of the same files that is there is not made again.
    ///
    /// # Errors
    /// When the directory cannot be read, or the image cannot be written.
    pub fn image_of_files(
        &self,
        artifact: &str,
        repository: &str,
        directory: &Utf8Path,
        task: &Task,
    ) -> Result<Built, ShipError> {
        let layout = oci::Layout {
            name: artifact,
            image: repository,
            made_of: None,
            source: &OciSource::default(),
            setup: self,
            needs: &Needs::new(),
            is_named: true,
        };
        layout.build(directory, Inputs::default(), task)
    }

    /// The variables that every program gets, without being part of a key.
    pub(crate) fn usual_variables(&self) -> BTreeMap<String, String> {
        let given = |name: &&str| Some(((*name).to_owned(), self.env.get(*name)?.clone()));
        USUAL_VARIABLES.iter().filter_map(given).collect()
    }

    /// What of a directory is never an input: what git keeps, and the store if it lies inside.
    fn never_read(&self, directory: &Utf8Path) -> Vec<String> {
        let store = self.store.root().strip_prefix(directory);
        let store = store.ok().map(|store| store.as_str().to_owned());
        [".git".to_owned()].into_iter().chain(store).collect()
    }

    /// A directory that is read, and its files.
    fn open(&self, relative: &str) -> Result<(Utf8PathBuf, Directory), ShipError> {
        let path = self.path(relative)?;
        match Directory::open(&path) {
            Ok(files) => Ok((path, files)),
            Err(source) => Err(ShipError::Context { path, source }),
        }
    }

    /// A directory of the document; one that leads out of it is refused.
    pub(crate) fn path(&self, relative: &str) -> Result<Utf8PathBuf, ShipError> {
        inside(&self.directory, relative).ok_or_else(|| ShipError::Outside(relative.to_owned()))
    }
}

/// A path below a directory; `None` if it leads out of it, by its names or through a link.
pub(crate) fn inside(directory: &Utf8Path, relative: &str) -> Option<Utf8PathBuf> {
    let path = named_inside(directory, relative)?;
    let is_inside = match (path.canonicalize_utf8(), directory.canonicalize_utf8()) {
        (Ok(real), Ok(directory)) => real.starts_with(directory),
        // What is not there leads nowhere; whoever opens it says so.
        _ => true,
    };
    is_inside.then_some(path)
}

/// A path below a directory by its names alone; `None` if these lead out of it.
pub(crate) fn named_inside(directory: &Utf8Path, relative: &str) -> Option<Utf8PathBuf> {
    let mut depth = 0_i32;
    for part in Utf8Path::new(relative).components() {
        match part.as_str() {
            ".." => depth -= 1,
            "." => {}
            "/" => return None,
            _ => depth += 1,
        }
        if depth < 0 {
            return None;
        }
    }
    Some(directory.join(relative))
}

/// The name of an artifact as part of the name of a variable: `MY_WEB` of `my-web`.
pub(crate) fn variable_word(name: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    name.chars().map(letter).collect()
}

/// The end of a program, if it is a good one.
pub(crate) fn ended_well(
    ended: io::Result<Ended>,
    argv: &[String],
    limit: Duration,
) -> Result<Ended, ShipError> {
    let program = argv.first().cloned().unwrap_or_default();
    let ended = ended.map_err(|source| ShipError::Start {
        program: program.clone(),
        source,
    })?;
    let how = match &ended.how {
        End::Exit(status) if status.success() => return Ok(ended),
        End::Exit(status) => match status.code() {
            Some(code) => format!("ended with {code}"),
            None => "was killed".to_owned(),
        },
        End::TimedOut => format!("was stopped after {} s", limit.as_secs()),
        End::Cancelled => return Err(ShipError::Cancelled),
    };
    Err(ShipError::Program {
        program,
        how,
        last_lines: ended.last_lines,
    })
}

/// The images of the artifacts that an artifact needs, by name.
pub(crate) type Needs = BTreeMap<String, Digest>;

fn last_words(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        lines => format!("; it printed last:\n  {}", lines.join("\n  ")),
    }
}
