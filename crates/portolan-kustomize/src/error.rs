//! Why a build was refused.

use std::fmt;

use camino::Utf8PathBuf;
use portolan_budget::Exceeded;
use portolan_secret::without_passwords;
use portolan_vfs::VfsError;
use portolan_yaml::Position;

use crate::load::fetch::FetchError;
use crate::resource::id::ResourceId;

/// An error, and where what it is about is written.
#[derive(Debug)]
pub struct Located {
    /// The kustomization file.
    pub file: Utf8PathBuf,
    /// The place in it.
    pub at: Position,
    /// What went wrong.
    pub error: Error,
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Located {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// Why a build was refused; the sources tell the way down to the file that did it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A step of the build failed.
    #[error("{what}")]
    Context {
        /// The step and what it worked on.
        what: String,
        /// What went wrong there.
        #[source]
        source: Box<Self>,
    },
    /// What went wrong with something that stands at a known place of a kustomization file; it says what its cause says.
    #[error(transparent)]
    Located(Box<Located>),
    /// Neither reading as a file nor building as a directory worked.
    #[error("cannot use `{path}` as a file ({as_file}) or as a directory")]
    NeitherFileNorDirectory {
        /// The entry of `resources`.
        path: String,
        /// Why it is not a file of resources.
        as_file: Box<Self>,
        /// Why it is not a kustomization.
        #[source]
        source: Box<Self>,
    },
    /// A file could not be read.
    #[error(transparent)]
    File(#[from] VfsError),
    /// A file is not YAML.
    #[error("malformed YAML in `{file}`")]
    Yaml {
        /// The file, or what the text is.
        file: String,
        /// Where and why.
        #[source]
        source: portolan_yaml::Errors,
    },
    /// A directory has no kustomization file.
    #[error(
        "unable to find one of `kustomization.yaml`, `kustomization.yml` or `Kustomization` in directory `{0}`"
    )]
    MissingKustomization(Utf8PathBuf),
    /// A directory has more than one kustomization file.
    #[error("found multiple kustomization files under `{0}`")]
    ManyKustomizations(Utf8PathBuf),
    /// A kustomization file, or a file it names, does not say what it must.
    #[error("invalid {what}: {problem}")]
    Field {
        /// The kind of the configuration and its field.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file lies outside the directory that names it.
    #[error("security; file `{file}` is not in or below `{root}`")]
    OutsideRoot {
        /// The file, links followed.
        file: Utf8PathBuf,
        /// The directory of the kustomization.
        root: Utf8PathBuf,
    },
    /// A directory builds itself, or one that contains it.
    #[error("cycle detected: candidate root `{candidate}` contains visited root `{visited}`")]
    Cycle {
        /// The directory asked for.
        candidate: Utf8PathBuf,
        /// The directory that is being built.
        visited: Utf8PathBuf,
    },
    /// Two resources have the same identity.
    #[error("may not add resource with an already registered id: {0}")]
    DuplicateId(Box<ResourceId>),
    /// An identity matches no resource.
    #[error("no matches for id {0}")]
    NoMatch(Box<ResourceId>),
    /// An identity matches several resources.
    #[error("multiple matches for id {0}")]
    ManyMatches(Box<ResourceId>),
    /// A document is nested deeper than [`crate::MAX_DEPTH`].
    #[error("`{0}` is nested too deeply")]
    TooDeep(String),
    /// Kustomizations name each other more than [`crate::MAX_DIRECTORIES`] levels deep.
    #[error("directory `{0}` is reached through too many levels of kustomizations")]
    TooManyLevels(Utf8PathBuf),
    /// The build would cost more than it may.
    #[error("{}", with_way_out(*.0))]
    Exceeded(Exceeded),
    /// A plugin would start a program.
    #[error("`{0}` is an exec or container function; only built-in plugins run here")]
    ExternalPlugin(Box<ResourceId>),
    /// A remote resource, and no way to fetch it.
    #[error("cannot fetch `{url}`: {reason}")]
    Fetch {
        /// The address as written.
        url: String,
        /// Why not, with everything that led to it.
        reason: String,
        /// The same as it was given; not a source, for `reason` says it already.
        cause: FetchError,
    },
    /// A chart could not be rendered.
    #[error("cannot render chart `{chart}`: {reason}")]
    Chart {
        /// The chart's name.
        chart: String,
        /// Why not.
        reason: String,
    },
    /// Anything else that kustomize refuses.
    #[error("{0}")]
    Refused(String),
}

/// The result of a step of a build.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }

    pub(crate) fn field(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field {
            what: what.into(),
            problem: problem.into(),
        }
    }
}

impl Error {
    /// Returns the error with no user or password of an address in any of its texts.
    pub(crate) fn without_passwords(self) -> Self {
        let text = |text: String| without_passwords(&text).into_owned();
        let path = |path: Utf8PathBuf| Utf8PathBuf::from(text(path.into_string()));
        let inner = |error: Box<Self>| Box::new(error.without_passwords());
        match self {
            Self::Located(located) => Self::Located(Box::new(Located {
                error: located.error.without_passwords(),
                ..*located
            })),
            Self::Context { what, source } => Self::Context {
                what: text(what),
                source: inner(source),
            },
            Self::NeitherFileNorDirectory {
                path,
                as_file,
                source,
            } => Self::NeitherFileNorDirectory {
                path: text(path),
                as_file: inner(as_file),
                source: inner(source),
            },
            Self::File(error) => Self::File(error.with_path(path)),
            Self::Yaml { file, source } => Self::Yaml {
                file: text(file),
                source,
            },
            Self::MissingKustomization(found) => Self::MissingKustomization(path(found)),
            Self::ManyKustomizations(found) => Self::ManyKustomizations(path(found)),
            Self::Field { what, problem } => Self::Field {
                what: text(what),
                problem: text(problem),
            },
            Self::OutsideRoot { file, root } => Self::OutsideRoot {
                file: path(file),
                root: path(root),
            },
            Self::Cycle { candidate, visited } => Self::Cycle {
                candidate: path(candidate),
                visited: path(visited),
            },
            Self::TooDeep(place) => Self::TooDeep(text(place)),
            Self::TooManyLevels(found) => Self::TooManyLevels(path(found)),
            Self::Fetch { url, reason, cause } => Self::Fetch {
                url: text(url),
                reason: text(reason),
                cause,
            },
            Self::Chart { chart, reason } => Self::Chart {
                chart: text(chart),
                reason: text(reason),
            },
            Self::Refused(message) => Self::Refused(text(message)),
            other @ (Self::DuplicateId(_)
            | Self::NoMatch(_)
            | Self::ManyMatches(_)
            | Self::Exceeded(_)
            | Self::ExternalPlugin(_)) => other,
        }
    }

    /// What lies at an address cannot be had.
    pub(crate) fn unfetched(url: &str, cause: FetchError) -> Self {
        let mut reason = cause.to_string();
        let mut source = cause.source();
        while let Some(error) = source {
            reason.push_str(": ");
            reason.push_str(&error.to_string());
            source = error.source();
        }
        Self::Fetch {
            url: url.to_owned(),
            reason,
            cause,
        }
    }

    /// Why something could not be fetched, if that is what went wrong.
    pub fn fetch_failure(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Fetch { cause, .. } => Some(cause.as_ref()),
            Self::Located(located) => located.error.fetch_failure(),
            Self::Context { source, .. } => source.fetch_failure(),
            Self::NeitherFileNorDirectory {
                as_file, source, ..
            } => as_file.fetch_failure().or_else(|| source.fetch_failure()),
            _ => None,
        }
    }

    /// Returns whether a limit of the budget was reached.
    pub fn is_exceeded(&self) -> bool {
        match self {
            Self::Exceeded(_) => true,
            Self::Located(located) => located.error.is_exceeded(),
            Self::Context { source, .. } => source.is_exceeded(),
            Self::NeitherFileNorDirectory {
                as_file, source, ..
            } => as_file.is_exceeded() || source.is_exceeded(),
            _ => false,
        }
    }
}

impl From<Exceeded> for Error {
    fn from(limit: Exceeded) -> Self {
        Self::Exceeded(limit)
    }
}

fn with_way_out(limit: Exceeded) -> String {
    match limit.option() {
        Some(option) => format!("{limit} (`{option}` allows more)"),
        None => limit.to_string(),
    }
}

/// Says what was being done when something failed.
pub(crate) trait During<T> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T>;

    /// The same for limits of the budget only: other errors say themselves where they happened.
    fn during_exceeded(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> During<T> for Result<T> {
    fn during(self, what: impl FnOnce() -> String) -> Self {
        self.map_err(|source| Error::Context {
            what: what(),
            source: Box::new(source),
        })
    }

    fn during_exceeded(self, what: impl FnOnce() -> String) -> Self {
        match self {
            Err(error) if error.is_exceeded() => Err(error).during(what),
            other => other,
        }
    }
}
