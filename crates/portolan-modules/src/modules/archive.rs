//! The module `archive`: a directory with what a tar archive contains.

mod unpack;

use std::io::Cursor;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;
use portolan_http::{Url, shown};

use self::unpack::{RECORD, Unpacked, unpack};
use super::attributes::failure;
use super::download::{URL, fetch, parse_digest, parse_url};
use super::file::read_source;
use super::path_state;
use super::write::missing_parents;
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::{PredictedPath, Prediction};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Change, ChangeKind, Plan, Subject};
use crate::root::{Follow, NewFile};
use crate::view::{Content, Found, View};

pub use self::unpack::{MAX_ARCHIVE_ENTRIES, MAX_UNPACKED_BYTES};

/// The most leading names that can be left out.
const MAX_STRIP: i64 = 100;

/// The largest record of what was unpacked.
const MAX_RECORD_BYTES: u64 = 4096;

pub(crate) static ARCHIVE: ModuleDefinition = ModuleDefinition {
    name: "archive",
    summary: "Unpacks a tar archive (plain, gzip or zstd) into a directory of its own, which is replaced as a whole when the archive changes.",
    parameters: &[
        ParameterDefinition {
            name: "source",
            kind: ParameterType::Text,
            is_required: false,
            summary: "An archive among the files of the book.",
        },
        URL,
        ParameterDefinition {
            name: "sha256",
            kind: ParameterType::Text,
            is_required: false,
            summary: "The SHA-256 digest of the archive, 64 hexadecimal digits. Required with `url`.",
        },
        ParameterDefinition {
            name: "into",
            kind: ParameterType::Path,
            is_required: true,
            summary: "The directory. One that has files which this module did not put there is refused. The digest is kept in it as `.portolan-archive`; what is changed in it by hand is not noticed.",
        },
        ParameterDefinition {
            name: "strip",
            kind: ParameterType::Integer,
            is_required: false,
            summary: "How many leading names of each path are left out (default 0).",
        },
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

struct ArchiveAction {
    origin: Origin,
    into: Utf8PathBuf,
    strip: usize,
}

enum Origin {
    Source(Utf8PathBuf, Option<Digest>),
    Url(Url, Digest),
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let digest = parse_digest(parameters);
    let origin = match parameters.exactly_one(&["source", "url"]) {
        Some("source") => parameters
            .line("source")
            .map(|source| Origin::Source(source.into(), digest)),
        Some(_) => {
            if !parameters.has("sha256") {
                parameters.fault("sha256", "is missing: a download is known by its digest");
            }
            parse_url(parameters)
                .zip(digest)
                .map(|(url, digest)| Origin::Url(url, digest))
        }
        None => None,
    };
    let strip = parameters.integer("strip", 0..=MAX_STRIP).unwrap_or(0) as usize;
    let into = parameters.path("into")?;
    if into == "/" {
        parameters.fault("into", "must not be the root directory");
        return None;
    }
    Some(Box::new(ArchiveAction {
        origin: origin?,
        into,
        strip,
    }))
}

struct Look {
    path: Utf8PathBuf,
    change: Option<Change>,
    predictions: Vec<Prediction>,
    content: Option<Arc<[u8]>>,
    record: String,
    is_new: bool,
}

impl ArchiveAction {
    fn look(&self, view: &View<'_>) -> Result<Look, ModuleError> {
        let (digest, content, name) = match &self.origin {
            Origin::Url(url, digest) => (*digest, None, shown(url)),
            Origin::Source(source, wanted) => {
                let content = read_source(view.host, source)?;
                let digest = Digest::of(&content);
                if let Some(wanted) = wanted.filter(|wanted| *wanted != digest) {
                    let reason = format!(
                        "it has the sha256 digest {}, not {}",
                        digest.hex(),
                        wanted.hex()
                    );
                    return Err(ModuleError::failed("unpack", source, reason));
                }
                (digest, Some(content), source.to_string())
            }
        };
        let record = format!("{} strip {}\n", digest.hex(), self.strip);
        let (path, found) = view.find(&self.into, Follow::Yes)?;
        let old = match &found {
            Found::Absent => None,
            Found::Directory(_) => self.old_record(view, &path)?,
            _ => {
                return Err(ModuleError::failed(
                    "unpack into",
                    &self.into,
                    "it is not a directory",
                ));
            }
        };
        let mut look = Look {
            change: None,
            predictions: Vec::new(),
            content,
            is_new: found == Found::Absent,
            path,
            record,
        };
        if old.as_deref() == Some(look.record.as_str()) {
            return Ok(look);
        }
        if look.is_new
            && let Some(lowest) = missing_parents(view, &look.path)?.last()
        {
            let reason = format!("the directory `{lowest}` is missing");
            return Err(ModuleError::failed("unpack into", &self.into, reason)
                .with_hint("add a step with the module `directory` before this one"));
        }
        look.predictions = self.predict(&look)?;
        let was = old.as_deref().and_then(|old| old.split(' ').next());
        let was = was.map_or_else(String::new, |was| format!("{was} → "));
        look.change = Some(Change {
            subject: Subject::Path(self.into.clone()),
            kind: if look.is_new {
                ChangeKind::Create
            } else {
                ChangeKind::Update
            },
            before: old.map_or_else(path_state::of_absent, |old| path_state::of_link(&old)),
            after: path_state::of_link(&look.record),
            diff: format!("archive: {was}{}\nfrom: {name}\n", digest.hex()),
        });
        Ok(look)
    }

    /// What was unpacked into a directory; `None` if it is empty.
    fn old_record(&self, view: &View<'_>, path: &Utf8Path) -> Result<Option<String>, ModuleError> {
        match view.read(&path.join(RECORD), MAX_RECORD_BYTES)? {
            Some(Content::Known(record)) => Ok(Some(String::from_utf8_lossy(&record).into_owned())),
            _ if view.list(path)?.is_empty() => Ok(None),
            _ => Err(ModuleError::failed(
                "unpack into",
                &self.into,
                "it has files that this module did not put there",
            )
            .with_hint("name an empty directory, or one that is not there")),
        }
    }

    /// What will be there; of a download only the directory is known before it is fetched.
    fn predict(&self, look: &Look) -> Result<Vec<Prediction>, ModuleError> {
        let mut predictions = vec![
            Prediction::Path(look.path.clone(), PredictedPath::Absent),
            Prediction::Path(look.path.clone(), PredictedPath::Directory),
        ];
        if let Some(content) = &look.content {
            let entries = unpack::list(Cursor::new(content), self.strip);
            let entries =
                entries.map_err(|reason| ModuleError::failed("unpack", &self.into, reason))?;
            predictions.extend(
                entries
                    .into_iter()
                    .map(|(path, state)| Prediction::Path(look.path.join(path), state)),
            );
        }
        let record = Arc::from(look.record.as_bytes());
        predictions.push(Prediction::Path(
            look.path.join(RECORD),
            PredictedPath::File(Some(record)),
        ));
        Ok(predictions)
    }

    /// Unpacks beside the directory and puts the result in its place.
    fn unpack(&self, host: &Host, look: &Look) -> Result<Unpacked, ModuleError> {
        let failed = |error| failure(host, "unpack into", &self.into, error);
        let staging = host
            .root
            .make_staging_directory(&look.path)
            .map_err(failed)?;
        let result = self.unpack_staged(host, look, &staging);
        if result.is_err() {
            // The error that counts is the first one.
            let _ = host.root.remove_all(&staging);
        }
        result
    }

    fn unpack_staged(
        &self,
        host: &Host,
        look: &Look,
        staging: &Utf8Path,
    ) -> Result<Unpacked, ModuleError> {
        let failed = |error| failure(host, "unpack into", &self.into, error);
        let refused = |reason: String| ModuleError::failed("unpack into", &self.into, reason);
        let unpacked = match (&look.content, &self.origin) {
            (Some(content), _) => unpack(host, Cursor::new(content), staging, self.strip),
            (None, Origin::Url(url, digest)) => {
                // Beside the directory as well; it is gone when this returns.
                let place = staging.with_extension("archive");
                let new = NewFile {
                    content: &[],
                    mode: Some(0o600),
                    uid: None,
                    gid: None,
                };
                let staged = host
                    .root
                    .stage_with(&place, &new, |file| fetch(host, url, *digest, file));
                let staged = staged.map_err(failed)?;
                let file = host
                    .root
                    .open_file(staged.path(), Follow::No)
                    .map_err(failed)?;
                let file = file.ok_or_else(|| refused("the download is gone".to_owned()))?;
                unpack(host, file, staging, self.strip)
            }
            (None, Origin::Source(..)) => Err("the source was not read".to_owned()),
        };
        let unpacked = unpacked.map_err(refused)?;
        let record = NewFile {
            content: look.record.as_bytes(),
            mode: Some(0o644),
            uid: None,
            gid: None,
        };
        host.root
            .replace(&staging.join(RECORD), &record)
            .map_err(failed)?;
        host.root.sync_below(staging).map_err(failed)?;
        if look.is_new {
            host.root.rename(staging, &look.path).map_err(failed)?;
        } else {
            host.root.exchange(staging, &look.path).map_err(failed)?;
            host.root.remove_all(staging).map_err(failed)?;
        }
        Ok(unpacked)
    }
}

impl Action for ArchiveAction {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let look = self.look(view)?;
        let mut plan = Plan::of_changes(look.change.into_iter().collect());
        plan.predictions = look.predictions;
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let look = self.look(&View::of(host))?;
        let Some(change) = look.change.clone() else {
            return Ok(Applied::default());
        };
        plan.confirm(&Plan::of_changes(vec![change]))?;
        let unpacked = self.unpack(host, &look)?;
        let mut applied = Applied {
            is_changed: true,
            ..Applied::default()
        };
        applied
            .result
            .insert("entries".to_owned(), unpacked.entries.into());
        applied
            .result
            .insert("bytes".to_owned(), unpacked.bytes.into());
        Ok(applied)
    }
}
