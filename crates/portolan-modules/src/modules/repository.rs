//! `repository`: where packages come from, and the key that they are signed with.
//!
//! The key is taken only with the fingerprint that the step names. What the repository has is fetched with the new file
//! before that is put in place: a file that is there has been fetched, also after a crash.

mod source_file;

use std::io::Write as _;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;
use portolan_http::{Url, shown};

use self::source_file::{Source, parse_deb822, parse_ini};
use super::download::fetch_bytes;
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::{PredictedPath, Prediction};
use crate::apt_tool::{AptTool, SOURCES};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::dnf_tool::{DnfTool, KEYS, REPOSITORIES};
use crate::host::Host;
use crate::openpgp_key::{MAX_KEY_BYTES, PublicKeys, read_fingerprint};
use crate::package_system::PackageSystem;
use crate::parameters::{Parameters, read_path};
use crate::plan::{Change, ChangeKind, Plan, Subject};
use crate::root::NewFile;
use crate::text_file::MAX_BYTES;
use crate::unified::unified;
use crate::view::{Content, View};

/// The module `repository`.
pub(super) static REPOSITORY: ModuleDefinition = ModuleDefinition {
    name: "repository",
    summary: "Adds or removes a repository of packages, for apt or dnf, with the key that it is signed with. \
              A change is fetched before it is put in place.",
    parameters: &[
        ParameterDefinition::required(
            "name",
            ParameterType::Text,
            "The name of its file: letters, digits, `_`, `-` and `.`.",
        ),
        ParameterDefinition::optional(
            "uris",
            ParameterType::TextList,
            "Its addresses; all have the same content.",
        ),
        ParameterDefinition::optional(
            "suites",
            ParameterType::TextList,
            "For apt: its suites, such as `stable`, or a directory that ends with `/`.",
        ),
        ParameterDefinition::optional(
            "components",
            ParameterType::TextList,
            "For apt: its components, such as `main`; none if the suite is a directory.",
        ),
        ParameterDefinition::optional(
            "architectures",
            ParameterType::TextList,
            "For apt: the architectures that are taken; those of the machine by default.",
        ),
        ParameterDefinition::optional(
            "key",
            ParameterType::Text,
            "The public key: its text, an address, a path on the machine, or a file of the book. An address is asked only \
             while the machine has no key with the fingerprint. Without a key, those that the machine has decide.",
        ),
        ParameterDefinition::optional(
            "fingerprint",
            ParameterType::TextList,
            "The whole fingerprint of the key; several if it is a file of several keys. Another key is refused.",
        ),
        ParameterDefinition::optional(
            "trusted",
            ParameterType::Boolean,
            "Whether packages are taken although nobody signed them.",
        ),
        ParameterDefinition::optional(
            "lockTimeout",
            ParameterType::Duration,
            "How long another program that fetches lists of packages is waited for; five minutes by default.",
        ),
        ParameterDefinition::optional(
            "state",
            ParameterType::Word(&["present", "absent"]),
            "`present`, which is the default, or `absent`.",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

/// The permissions of the files: apt reads them as another user.
const MODE: u32 = 0o644;

/// How long another program is waited for unless the step says otherwise.
const DEFAULT_LOCK_TIMEOUT: Duration = Duration::from_mins(5);

struct Repository {
    name: String,
    /// `None` if it should not exist.
    source: Option<Source>,
    key: Option<KeySource>,
    /// Sorted.
    fingerprints: Vec<String>,
    lock_timeout: Duration,
}

/// Where a key comes from.
enum KeySource {
    Text(Vec<u8>),
    Url(Url),
    /// A path of the host.
    Host(Utf8PathBuf),
    /// A file of the book.
    Book(Utf8PathBuf),
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let name = parameters.line("name")?.to_owned();
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !name.bytes().all(is_letter) || name.starts_with(['.', '-']) || name.len() > 200 {
        let message = "must have letters, digits, `_`, `-` and `.` only: apt ignores other files";
        parameters.fault("name", message);
    }
    let lock_timeout = parameters
        .duration("lockTimeout")
        .unwrap_or(DEFAULT_LOCK_TIMEOUT);
    let is_absent = parameters.word("state") == Some("absent");
    let source = Source {
        uris: words(parameters, "uris"),
        suites: words(parameters, "suites"),
        components: words(parameters, "components"),
        architectures: words(parameters, "architectures"),
        is_trusted: parameters.boolean("trusted", false),
    };
    let key = parse_key(parameters);
    let fingerprints = parse_fingerprints(parameters);
    if !is_absent && source.uris.is_empty() {
        parameters.fault("uris", "is missing");
    }
    if key.is_some() == fingerprints.is_empty() {
        let missing = if key.is_some() { "fingerprint" } else { "key" };
        parameters.fault(missing, "is missing: a key is known by its fingerprint");
    }
    if key.is_some() && source.is_trusted {
        parameters.fault("trusted", "cannot stand beside `key`");
    }
    let is_directory = |suite: &String| suite.ends_with('/');
    if source.suites.iter().any(is_directory) && !source.components.is_empty() {
        parameters.fault(
            "components",
            "cannot stand beside a suite that ends with `/`",
        );
    }
    Some(Box::new(Repository {
        name,
        source: (!is_absent).then_some(source),
        key,
        fingerprints,
        lock_timeout,
    }))
}

/// A list of words that fit into a line of the file.
fn words(parameters: &mut Parameters<'_>, name: &'static str) -> Vec<String> {
    let words = parameters.text_list(name).unwrap_or_default();
    let is_word = |word: &String| {
        !word.is_empty()
            && !word.starts_with(['#', '-'])
            && !word
                .chars()
                .any(|letter| letter.is_whitespace() || letter.is_control())
    };
    if let Some(bad) = words.iter().find(|word| !is_word(word)) {
        parameters.fault(name, format!("cannot have `{}`", bad.escape_debug()));
    }
    words
}

fn parse_key(parameters: &mut Parameters<'_>) -> Option<KeySource> {
    let text = parameters.text("key")?;
    if text.contains('\n') {
        return Some(KeySource::Text(text.as_bytes().to_vec()));
    }
    if text.contains("://") {
        let url = Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        if url.is_none() {
            parameters.fault(
                "key",
                "must be an address that begins with `https://` or `http://`",
            );
        }
        return url.map(KeySource::Url);
    }
    if text.starts_with('/') {
        let path = read_path(text);
        if path.is_none() {
            parameters.fault("key", "must be a path without `..`");
        }
        return path.map(KeySource::Host);
    }
    parameters
        .line("key")
        .map(|path| KeySource::Book(path.into()))
}

fn parse_fingerprints(parameters: &mut Parameters<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for text in parameters.text_list("fingerprint").unwrap_or_default() {
        match read_fingerprint(&text) {
            Some(fingerprint) => found.push(fingerprint),
            None => {
                let hint = "`gpg --show-keys --with-fingerprint FILE` prints it".to_owned();
                let message = "must be a whole fingerprint: 40 or 64 hexadecimal digits";
                parameters.fault_with("fingerprint", message, Some(hint));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The keys that a repository should have.
enum WantedKeys {
    /// None of its own.
    None,
    /// These.
    Known(PublicKeys),
    /// What this address gives.
    ToFetch(Url),
    /// An earlier step of the check writes the file.
    Unknown,
}

/// A file that a repository needs.
struct SourceFile {
    path: Utf8PathBuf,
    old: Option<String>,
    /// `None` if it should not exist.
    new: Option<String>,
    has_other_mode: bool,
}

impl Action for Repository {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let system = PackageSystem::find(view.host)?;
        self.refuse_misfit(system)?;
        let Some(old) = self.old(view, system)? else {
            return Ok(Plan::unknown(
                "an earlier step writes the file of the repository",
            ));
        };
        let keys = match self.wanted_keys(view, &old)? {
            WantedKeys::Unknown => return Ok(Plan::unknown("an earlier step writes the key")),
            keys => keys,
        };
        let files = self.files(view, system, &old, &keys)?;
        let mut changes = Vec::new();
        let mut plan = Plan::unchanged();
        for file in &files {
            changes.extend(self.change(file, &old, &keys));
            let state = match &file.new {
                None => PredictedPath::Absent,
                Some(_) if matches!(keys, WantedKeys::ToFetch(_)) => PredictedPath::File(None),
                Some(text) => PredictedPath::File(Some(text.as_bytes().into())),
            };
            if file.is_different() {
                plan.predictions
                    .push(Prediction::Path(file.path.clone(), state));
            }
        }
        plan.outcome = Plan::of_changes(changes).outcome;
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let view = View::of(host);
        let system = PackageSystem::find(host)?;
        let now = self.plan(&view)?;
        plan.confirm(&now)?;
        if now.changes().is_empty() {
            return Ok(Applied::default());
        }
        let gone = || ModuleError::failed("read", &*self.name, "it is gone");
        let old = self.old(&view, system)?.ok_or_else(gone)?;
        let keys = match self.wanted_keys(&view, &old)? {
            WantedKeys::ToFetch(url) => {
                let failed = |error| ModuleError::failed("fetch", shown(&url), error);
                let bytes = fetch_bytes(host, &url, MAX_KEY_BYTES).map_err(failed)?;
                WantedKeys::Known(self.checked(&bytes, &shown(&url))?)
            }
            other => other,
        };
        let files = self.files(&view, system, &old, &keys)?;
        self.fetch_lists(host, system, &files)?;
        for file in files.iter().filter(|file| file.is_different()) {
            file.write(host)?;
        }
        Ok(Applied {
            is_changed: true,
            ..Applied::default()
        })
    }
}

/// The file of a repository as it is.
struct OldSource {
    text: Option<String>,
    source: Source,
    keys: Option<PublicKeys>,
}

impl Repository {
    /// What one of the systems cannot do.
    fn refuse_misfit(&self, system: PackageSystem) -> Result<(), ModuleError> {
        let Some(source) = &self.source else {
            return Ok(());
        };
        let reason = match system {
            PackageSystem::Apt if source.suites.is_empty() => "apt needs `suites`",
            PackageSystem::Apt
                if source.components.is_empty()
                    && source.suites.iter().any(|suite| !suite.ends_with('/')) =>
            {
                "apt needs `components`, or suites that end with `/`"
            }
            PackageSystem::Dnf { .. }
                if !(source.suites.is_empty()
                    && source.components.is_empty()
                    && source.architectures.is_empty()) =>
            {
                "dnf has no suites, components and architectures"
            }
            _ => return Ok(()),
        };
        Err(ModuleError::failed("add repository", &*self.name, reason))
    }

    /// The path of its file, and of the file of its keys if that is another one.
    fn paths(&self, system: PackageSystem) -> (Utf8PathBuf, Option<Utf8PathBuf>) {
        let name = &self.name;
        match system {
            PackageSystem::Apt => (format!("{SOURCES}/{name}.sources").into(), None),
            PackageSystem::Dnf { .. } => (
                format!("{REPOSITORIES}/{name}.repo").into(),
                Some(format!("{KEYS}/RPM-GPG-KEY-{name}").into()),
            ),
        }
    }

    /// The repository as the host has it; `None` if an earlier step of the check writes it.
    fn old(
        &self,
        view: &View<'_>,
        system: PackageSystem,
    ) -> Result<Option<OldSource>, ModuleError> {
        let (path, key_path) = self.paths(system);
        let Some(text) = read_text(view, &path)? else {
            return Ok(None);
        };
        let (source, mut keys) = match system {
            PackageSystem::Apt => parse_deb822(text.as_deref().unwrap_or_default()),
            PackageSystem::Dnf { .. } => (parse_ini(text.as_deref().unwrap_or_default()), None),
        };
        if let Some(path) = key_path {
            let Some(armor) = read_text(view, &path)? else {
                return Ok(None);
            };
            keys = armor.and_then(|armor| PublicKeys::parse(armor.as_bytes()).ok());
        }
        Ok(Some(OldSource { text, source, keys }))
    }

    fn wanted_keys(&self, view: &View<'_>, old: &OldSource) -> Result<WantedKeys, ModuleError> {
        let (bytes, from) = match (&self.key, &self.source) {
            (None, _) | (_, None) => return Ok(WantedKeys::None),
            (Some(KeySource::Text(text)), _) => (text.clone(), "of the step".to_owned()),
            (Some(KeySource::Url(url)), _) => {
                let is_there = |keys: &&PublicKeys| self.has_fingerprints(keys);
                return Ok(match old.keys.as_ref().filter(is_there) {
                    Some(keys) => WantedKeys::Known(keys.clone()),
                    None => WantedKeys::ToFetch(url.clone()),
                });
            }
            (Some(KeySource::Host(path)), _) => match view.read(path, MAX_KEY_BYTES)? {
                Some(Content::Known(bytes)) => (bytes.to_vec(), path.to_string()),
                Some(Content::Unknown) => return Ok(WantedKeys::Unknown),
                None => {
                    return Err(ModuleError::failed(
                        "read key",
                        path,
                        "there is no such file",
                    ));
                }
            },
            (Some(KeySource::Book(path)), _) => {
                let bytes = view.host.book_files.read(path);
                let bytes = bytes.map_err(|error| ModuleError::failed("read key", path, error))?;
                (bytes.to_vec(), path.to_string())
            }
        };
        self.checked(&bytes, &from).map(WantedKeys::Known)
    }

    fn has_fingerprints(&self, keys: &PublicKeys) -> bool {
        let mut found = keys.fingerprints().to_vec();
        found.sort_unstable();
        found.dedup();
        found == self.fingerprints
    }

    /// Reads keys, and refuses all others than the step names.
    fn checked(&self, bytes: &[u8], from: &str) -> Result<PublicKeys, ModuleError> {
        let failed = |reason: String| ModuleError::failed("take key", from, reason);
        let keys = PublicKeys::parse(bytes).map_err(|fault| failed(fault.to_string()))?;
        if !self.has_fingerprints(&keys) {
            let found = keys.fingerprints().join(" ");
            let wanted = self.fingerprints.join(" ");
            let reason = format!("it has the fingerprint {found}, not {wanted}");
            return Err(failed(reason).with_hint("compare it with what the owner publishes"));
        }
        Ok(keys)
    }

    /// The files that the repository needs, in the order in which they are written: keys first.
    fn files(
        &self,
        view: &View<'_>,
        system: PackageSystem,
        old: &OldSource,
        keys: &WantedKeys,
    ) -> Result<Vec<SourceFile>, ModuleError> {
        let (path, key_path) = self.paths(system);
        let book = view.host.book.lines().next().unwrap_or_default();
        let origin = format!("Written by the TaskBook {book}. Changes are overwritten.");
        let known = match keys {
            WantedKeys::Known(keys) => Some(keys),
            _ => None,
        };
        let has_keys = !matches!(keys, WantedKeys::None);
        let mut files = Vec::new();
        let source = self.source.as_ref();
        let new = source.map(|source| match &key_path {
            None => source.deb822(&origin, known),
            Some(key) => source.ini(&origin, &self.name, has_keys.then_some(key.as_str())),
        });
        let file = SourceFile::look(view, path, old.text.clone(), new)?;
        if let Some(path) = key_path {
            let armor = read_text(view, &path)?.flatten();
            let new = match keys {
                WantedKeys::Known(keys) => Some(keys.armored()),
                WantedKeys::ToFetch(_) => Some(String::new()),
                _ => None,
            };
            let key = SourceFile::look(view, path, armor, new)?;
            if key.new.is_some() {
                files.push(key);
                files.push(file);
                return Ok(files);
            }
            // A file that names a key goes before the key does.
            files.push(file);
            files.push(key);
            return Ok(files);
        }
        files.push(file);
        Ok(files)
    }

    /// The change of a file, as named values where these say all of it.
    fn change(&self, file: &SourceFile, old: &OldSource, keys: &WantedKeys) -> Option<Change> {
        let will_fetch = matches!(keys, WantedKeys::ToFetch(_)) && file.new.is_some();
        if !file.is_different() && !will_fetch {
            return None;
        }
        let bytes = |text: &Option<String>| Digest::of(text.as_deref().unwrap_or("").as_bytes());
        let old_prints = old.keys.as_ref().map_or(&[][..], PublicKeys::fingerprints);
        let state = |source: Option<&Source>, prints: &[String]| {
            source.map_or_else(Default::default, |source| source.state(prints))
        };
        let before = state(old.text.is_some().then_some(&old.source), old_prints);
        let after = state(self.source.as_ref(), &self.fingerprints);
        let subject = Subject::Path(file.path.clone());
        let named = before.change_to(&after, subject.clone());
        let diff = named.map_or_else(
            || {
                let content = |text: &Option<String>| text.clone().map(String::into_bytes);
                let (old, new) = (content(&file.old), content(&file.new));
                unified(file.path.as_str(), old.as_deref(), new.as_deref())
            },
            |change| change.diff,
        );
        Some(Change {
            subject,
            kind: match (&file.old, &file.new) {
                (None, _) => ChangeKind::Create,
                (_, None) => ChangeKind::Remove,
                _ => ChangeKind::Update,
            },
            before: bytes(&file.old),
            after: bytes(&file.new),
            diff: if diff.is_empty() {
                format!("mode becomes {MODE:04o}\n")
            } else {
                diff
            },
        })
    }

    /// Fetches what the new repository has, with files that are not in place yet.
    fn fetch_lists(
        &self,
        host: &Host,
        system: PackageSystem,
        files: &[SourceFile],
    ) -> Result<(), ModuleError> {
        if self.source.is_none() {
            return Ok(());
        }
        let failed = |error: std::io::Error| ModuleError::failed("write", &*self.name, error);
        let directory = tempfile::tempdir().map_err(failed)?;
        let directory = Utf8Path::from_path(directory.path())
            .ok_or_else(|| failed(std::io::Error::other("the path is not UTF-8")))?;
        let mut key_path = None;
        for file in files {
            let (Some(name), Some(text)) = (file.path.file_name(), &file.new) else {
                continue;
            };
            let path = directory.join(name);
            let mut staged = std::fs::File::create(&path).map_err(failed)?;
            staged.write_all(text.as_bytes()).map_err(failed)?;
            if file.path.starts_with(KEYS) {
                key_path = Some(path);
            }
        }
        match system {
            PackageSystem::Apt => {
                let options = [
                    format!("Dir::Etc::sourcelist={directory}/{}.sources", self.name),
                    "Dir::Etc::sourceparts=-".to_owned(),
                    // The lists of other repositories stay.
                    "APT::Get::List-Cleanup=0".to_owned(),
                ];
                AptTool::new(host)?.refresh(host, &options, self.lock_timeout)
            }
            PackageSystem::Dnf { database } => {
                let tool = DnfTool::new(host, database)?;
                tool.refresh_one(host, directory, &self.name, key_path.as_deref())
            }
        }
    }
}

impl SourceFile {
    fn look(
        view: &View<'_>,
        path: Utf8PathBuf,
        old: Option<String>,
        new: Option<String>,
    ) -> Result<Self, ModuleError> {
        let status = view.host.root.status(&path, crate::root::Follow::Yes);
        let status = status.map_err(|error| ModuleError::failed("look at", &path, error))?;
        let is_there = old.is_some() && new.is_some();
        Ok(Self {
            has_other_mode: is_there && status.is_some_and(|status| status.mode != MODE),
            path,
            old,
            new,
        })
    }

    fn is_different(&self) -> bool {
        self.old != self.new || self.has_other_mode
    }

    fn write(&self, host: &Host) -> Result<(), ModuleError> {
        let failed = |error| ModuleError::failed("write", &self.path, error);
        let Some(text) = &self.new else {
            return host.root.remove_file(&self.path).map_err(failed);
        };
        let new = NewFile {
            content: text.as_bytes(),
            mode: Some(MODE),
            uid: None,
            gid: None,
        };
        host.root.replace(&self.path, &new).map_err(failed)?;
        Ok(())
    }
}

/// The text of a file: `None` if an earlier step of the check writes it, and in that `None` if it is not there.
#[expect(
    clippy::option_option,
    reason = "a file that is not there is something else than one that nobody knows"
)]
fn read_text(view: &View<'_>, path: &Utf8Path) -> Result<Option<Option<String>>, ModuleError> {
    match view.read(path, MAX_BYTES)? {
        None => Ok(Some(None)),
        Some(Content::Unknown) => Ok(None),
        Some(Content::Known(bytes)) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok(Some(Some(text)))
        }
    }
}
