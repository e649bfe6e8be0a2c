//! The module `download`: a file from a web server, known by its digest.

use std::io::{self, Write};
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::{Digest, Hasher};
use portolan_http::{Client, HttpOptions, Request, Url, shown};

use super::attributes::{GROUP, MODE, OWNER, failure};
use super::path_state;
use super::write::{FILE_MODE, WriteOptions, missing_parents};
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::{Attributes, PredictedPath, Prediction};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Change, ChangeKind, Plan, Subject};
use crate::root::{Follow, NewFile};
use crate::view::{Found, View};

/// The largest file that is downloaded.
pub const MAX_DOWNLOAD_BYTES: u64 = 8 << 30;

pub(crate) static DOWNLOAD: ModuleDefinition = ModuleDefinition {
    name: "download",
    summary: "Downloads a file unless one with its digest is there.",
    parameters: &[
        URL,
        ParameterDefinition {
            name: "sha256",
            kind: ParameterType::Text,
            is_required: true,
            summary: "The SHA-256 digest of the content, 64 hexadecimal digits. Another content is refused.",
        },
        ParameterDefinition {
            name: "path",
            kind: ParameterType::Path,
            is_required: true,
            summary: "Where the file is. A link is followed.",
        },
        MODE,
        OWNER,
        GROUP,
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

/// The parameter `url`.
pub(crate) const URL: ParameterDefinition = ParameterDefinition {
    name: "url",
    kind: ParameterType::Text,
    is_required: false,
    summary: "The address, `https` or `http`. The digest decides what is taken, so the connection need not be trusted.",
};

struct DownloadAction {
    url: Url,
    digest: Digest,
    path: Utf8PathBuf,
    options: WriteOptions,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    if !parameters.has("url") {
        parameters.fault("url", "is missing");
    }
    let url = parse_url(parameters);
    let digest = parse_digest(parameters);
    let options = WriteOptions {
        attributes: Attributes::parse(parameters),
        follow: true,
        ..WriteOptions::default()
    };
    let path = parameters.path("path")?;
    Some(Box::new(DownloadAction {
        url: url?,
        digest: digest?,
        path,
        options,
    }))
}

/// Reads `url`.
pub(crate) fn parse_url(parameters: &mut Parameters<'_>) -> Option<Url> {
    let text = parameters.text("url")?;
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
    if url.is_none() {
        parameters.fault(
            "url",
            "must be an address that begins with `https://` or `http://`",
        );
    }
    url
}

/// Reads `sha256`.
pub(crate) fn parse_digest(parameters: &mut Parameters<'_>) -> Option<Digest> {
    let text = parameters.text("sha256")?;
    let hex = text
        .strip_prefix("sha256:")
        .unwrap_or(text)
        .to_ascii_lowercase();
    let digest = Digest::from_str(&format!("sha256:{hex}")).ok();
    if digest.is_none() {
        parameters.fault("sha256", "must be 64 hexadecimal digits");
    }
    digest
}

/// A look at the file that may be there already.
struct Look {
    path: Utf8PathBuf,
    changes: Vec<Change>,
    predictions: Vec<Prediction>,
    has_content: bool,
}

impl DownloadAction {
    fn look(&self, view: &View<'_>) -> Result<Option<Look>, ModuleError> {
        let (path, found) = self.options.target(view, &self.path)?;
        let wanted = self.options.attributes.named(view)?;
        let (there, old) = match &found {
            Found::Absent => (Attributes::default(), None),
            Found::File(there) => match digest_of(view, &path)? {
                Some(digest) => (there.clone(), Some(digest)),
                None => return Ok(None),
            },
            _ => {
                return Err(ModuleError::failed(
                    "write",
                    &self.path,
                    "it is not a regular file",
                ));
            }
        };
        if old.is_none()
            && let Some(lowest) = missing_parents(view, &path)?.last()
        {
            let reason = format!("the directory `{lowest}` is missing");
            return Err(ModuleError::failed("write", &self.path, reason)
                .with_hint("add a step with the module `directory` before this one"));
        }
        let has_content = old == Some(self.digest);
        let mut diff = String::new();
        if !has_content {
            let was = old.map_or_else(String::new, |old| format!("{} → ", old.hex()));
            diff = format!(
                "sha256: {was}{}\nfrom: {}\n",
                self.digest.hex(),
                shown(&self.url)
            );
        }
        diff.extend(wanted.differences(&there));
        let mut look = Look {
            changes: Vec::new(),
            predictions: Vec::new(),
            path,
            has_content,
        };
        if diff.is_empty() {
            return Ok(Some(look));
        }
        let state = |digest: &Digest, attributes: &Attributes| {
            path_state::of_file(digest.hex().as_bytes(), attributes)
        };
        if !has_content {
            let path = look.path.clone();
            look.predictions
                .push(Prediction::Path(path, PredictedPath::File(None)));
        }
        let after = if old.is_none() {
            wanted.of_new(view, FILE_MODE)?
        } else {
            wanted.clone()
        };
        look.predictions.push(after.predict(&look.path));
        look.changes.push(Change {
            subject: Subject::Path(self.path.clone()),
            kind: if old.is_none() {
                ChangeKind::Create
            } else {
                ChangeKind::Update
            },
            before: old.map_or_else(path_state::of_absent, |old| {
                state(&old, &wanted.managed(&there))
            }),
            after: state(&self.digest, &wanted),
            diff,
        });
        Ok(Some(look))
    }
}

/// The digest of a file; `None` if an earlier step of the check writes it.
fn digest_of(view: &View<'_>, path: &Utf8Path) -> Result<Option<Digest>, ModuleError> {
    match view.ahead.path(path) {
        Some(PredictedPath::File(Some(content))) => return Ok(Some(Digest::of(content))),
        Some(PredictedPath::File(None)) => return Ok(None),
        _ => {}
    }
    let failed = |error: io::Error| ModuleError::failed("read", path, error);
    let file = view.host.root.open_file(path, Follow::No).map_err(failed)?;
    let Some(mut file) = file else {
        return Ok(None);
    };
    let mut writer = HashWriter {
        inner: io::sink(),
        hasher: Hasher::default(),
    };
    io::copy(&mut file, &mut writer).map_err(failed)?;
    Ok(Some(writer.hasher.finish()))
}

/// Passes bytes on and takes their digest.
struct HashWriter<W> {
    inner: W,
    hasher: Hasher,
}

impl<W: Write> Write for HashWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Action for DownloadAction {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let Some(look) = self.look(view)? else {
            return Ok(Plan::unknown(format!(
                "an earlier step writes `{}`",
                self.path
            )));
        };
        let mut plan = Plan::of_changes(look.changes);
        plan.predictions = look.predictions;
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let look = self.look(&View::of(host))?;
        let look = look.ok_or_else(|| ModuleError::failed("read", &self.path, "it is gone"))?;
        plan.confirm(&Plan::of_changes(look.changes.clone()))?;
        if look.has_content && !look.changes.is_empty() {
            self.options.attributes.set(host, &look.path)?;
        } else if !look.has_content {
            let ids = self.options.attributes.ids(&host.root)?;
            let new = NewFile {
                content: &[],
                mode: self.options.attributes.mode,
                uid: ids.uid,
                gid: ids.gid,
            };
            let staged = host.root.stage_with(&look.path, &new, |file| {
                fetch(host, &self.url, self.digest, file)
            });
            let staged = staged.and_then(crate::root::StagedFile::commit);
            staged.map_err(|error| failure(host, "download", &self.path, error))?;
        }
        Ok(Applied {
            is_changed: !look.changes.is_empty(),
            ..Applied::default()
        })
    }
}

/// Writes what a server gives, if it has the digest.
pub(crate) fn fetch(
    host: &Host,
    url: &Url,
    digest: Digest,
    out: &mut (dyn Write + Send),
) -> io::Result<()> {
    let mut writer = HashWriter {
        inner: out,
        hasher: Hasher::default(),
    };
    receive_blocking(host, url, MAX_DOWNLOAD_BYTES, &mut writer)?;
    let found = writer.hasher.finish();
    if found != digest {
        let message = format!(
            "`{}` has the sha256 digest {}, not {}",
            shown(url),
            found.hex(),
            digest.hex()
        );
        return Err(io::Error::other(message));
    }
    Ok(())
}

/// What a server gives, whatever it is; more than the limit is an error.
pub(crate) fn fetch_bytes(host: &Host, url: &Url, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    receive_blocking(host, url, limit, &mut bytes)?;
    Ok(bytes)
}

/// Writes what a server gives, on a thread of its own: the caller may be part of another runtime.
fn receive_blocking(
    host: &Host,
    url: &Url,
    limit: u64,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(receive(host, url, limit, out))
        });
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the download failed")))
    })
}

async fn receive(
    host: &Host,
    url: &Url,
    limit: u64,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    let options = HttpOptions {
        request_timeout: host.timeout,
        ..HttpOptions::default()
    };
    let receive = async {
        let client = Client::new(&options)?;
        let answer = client.send(&Request::get(url.clone())).await?;
        answer.success()
    };
    let stopped = || io::Error::from(io::ErrorKind::Interrupted);
    let mut answer = tokio::select! {
        answer = receive => answer.map_err(io::Error::other)?,
        () = host.stop.cancelled() => return Err(stopped()),
    };
    loop {
        let chunk = tokio::select! {
            chunk = answer.chunk(limit) => chunk.map_err(io::Error::other)?,
            () = host.stop.cancelled() => return Err(stopped()),
        };
        match chunk {
            Some(chunk) => out.write_all(chunk.as_ref())?,
            None => return out.flush(),
        }
    }
}
