//! The programs of dnf and rpm, for the machine or for another root.
//!
//! dnf writes logs and caches even when it is only asked, so a question is put to a copy: a root of its own with the
//! database of rpm and links to the cache.

use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::symlink;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use crate::account_tool::refuse_links;
use crate::action::ModuleError;
use crate::host::Host;
use crate::root::{FileKind, Follow};
use crate::tool::{Tool, how_it_ended};

/// Where repositories of dnf are named, one in a file.
pub(crate) const REPOSITORIES: &str = "/etc/yum.repos.d";

/// Where keys of repositories are.
pub(crate) const KEYS: &str = "/etc/pki/rpm-gpg";

/// The settings of dnf.
const SETTINGS: &str = "/etc/dnf/dnf.conf";

/// Where dnf keeps what it fetched.
const CACHE: &str = "/var/cache/dnf";

/// The most bytes of a file with settings.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// Directories that dnf and rpm write to. Below another root none may be a link: they are not confined.
const WRITTEN_DIRECTORIES: &[&str] = &[
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib/sysimage/rpm",
    "/usr/lib64",
    "/usr/share",
    "/etc/yum.repos.d",
    "/etc/pki/rpm-gpg",
    "/etc/dnf",
    "/var/lib/rpm",
    "/var/lib/dnf",
    "/var/cache/dnf",
    "/var/log",
    "/opt",
    "/boot",
];

/// dnf of a host.
pub(crate) struct DnfTool {
    /// Settings for another root: repositories with their keys below it, and the place of rpm's database.
    settings: Option<TempDir>,
    database: &'static str,
    release: Option<String>,
}

/// A root to ask, which goes when this does.
pub(crate) struct QuestionRoot {
    directory: TempDir,
}

impl DnfTool {
    /// The programs for the host's root; a root with links on the way is refused.
    pub(crate) fn new(host: &Host, database: &'static str) -> Result<Self, ModuleError> {
        if host.is_rooted() {
            for path in WRITTEN_DIRECTORIES {
                refuse_links(&host.root, Utf8Path::new(path))?;
            }
        }
        let failed = |error: io::Error| ModuleError::failed("write", "settings of dnf", error);
        Ok(Self {
            settings: host
                .is_rooted()
                .then(|| settings_below(host, database))
                .transpose()
                .map_err(failed)?,
            database,
            release: release(host).map_err(failed)?,
        })
    }

    /// rpm, for the host's root.
    pub(crate) fn rpm(&self, host: &Host) -> Tool {
        let tool = Tool::new("rpm");
        match self.settings_path() {
            Some(settings) => tool
                .env("HOME", settings.as_str())
                .args(["--root", host.root.path().as_str()]),
            None => tool,
        }
    }

    /// dnf, which asks nothing, for the host's root.
    pub(crate) fn dnf(&self, host: &Host) -> Tool {
        let tool = Tool::new("dnf").args(["--assumeyes", "--noplugins"]);
        match self.settings_path() {
            Some(settings) => self.below(tool, host.root.path(), settings),
            None => tool,
        }
    }

    /// dnf, which does nothing and says what it would do, for a copy of the host's state.
    pub(crate) fn question(&self, root: &QuestionRoot) -> Tool {
        let tool = Tool::new("dnf").args(["--assumeno", "--noplugins", "--cacheonly"]);
        let root = root.path();
        match self.settings_path() {
            Some(settings) => self.below(tool, root, settings),
            None => tool
                .arg(format!("--installroot={root}"))
                .arg(format!("--config={SETTINGS}"))
                .arg(format!("--setopt=reposdir={REPOSITORIES}"))
                .arg("--setopt=varsdir=/etc/dnf/vars,/etc/yum/vars")
                .args(self.release_option()),
        }
    }

    fn below(&self, tool: Tool, root: &Utf8Path, settings: &Utf8Path) -> Tool {
        tool.env("HOME", settings.as_str())
            .arg(format!("--installroot={root}"))
            .arg(format!("--config={settings}/dnf.conf"))
            .arg(format!("--setopt=reposdir={settings}/repositories"))
            .args(self.release_option())
    }

    fn release_option(&self) -> Option<String> {
        let release = self.release.as_deref()?;
        Some(format!("--releasever={release}"))
    }

    fn settings_path(&self) -> Option<&Utf8Path> {
        Utf8Path::from_path(self.settings.as_ref()?.path())
    }

    /// A copy of what dnf answers questions from.
    pub(crate) fn question_root(&self, host: &Host) -> Result<QuestionRoot, ModuleError> {
        let failed = |error: io::Error| ModuleError::failed("copy", "the state of dnf", error);
        let directory = tempfile::tempdir().map_err(failed)?;
        let root = QuestionRoot { directory };
        copy_flat(
            host,
            self.database.into(),
            &root.path().join(&self.database[1..]),
        )
        .map_err(failed)?;
        link_cache(host, &root.path().join(&CACHE[1..])).map_err(failed)?;
        if !host.is_rooted() {
            let modules = "/etc/dnf/modules.d";
            copy_flat(host, modules.into(), &root.path().join(&modules[1..])).map_err(failed)?;
        }
        Ok(root)
    }

    /// Fetches the lists of packages of all repositories.
    pub(crate) fn refresh(&self, host: &Host) -> Result<(), ModuleError> {
        let tool = self.dnf(host).args(["--quiet", "makecache", "--refresh"]);
        fetch(tool, host)
    }

    /// Fetches the list of packages of one repository, whose file is in a directory of its own.
    pub(crate) fn refresh_one(
        &self,
        host: &Host,
        directory: &Utf8Path,
        name: &str,
        key: Option<&Utf8Path>,
    ) -> Result<(), ModuleError> {
        let key = key.map(|path| format!("--setopt={name}.gpgkey=file://{path}"));
        let tool = self
            .dnf(host)
            .args(["--quiet", "--refresh"])
            .arg(format!("--setopt=reposdir={directory}"))
            .args(key)
            .arg(format!("--setopt={name}.skip_if_unavailable=0"))
            .args(["--repo", name, "makecache"]);
        fetch(tool, host)
    }
}

impl QuestionRoot {
    fn path(&self) -> &Utf8Path {
        // A temporary directory has a name of plain letters; another one could not be given to dnf.
        Utf8Path::from_path(self.directory.path()).unwrap_or("/nonexistent".into())
    }
}

fn fetch(tool: Tool, host: &Host) -> Result<(), ModuleError> {
    let exit = tool.run(host)?;
    if exit.code == 0 {
        return Ok(());
    }
    let reason = how_it_ended(&exit);
    Err(ModuleError::failed(
        "fetch",
        "the lists of packages",
        reason,
    ))
}

/// Whether dnf reads a file of its directory of repositories; the case of the ending counts.
fn is_repository_file(name: &str) -> bool {
    camino::Utf8Path::new(name).extension() == Some("repo")
}

/// Settings for another root: neither the machine's own nor programs that settings of the root name are used.
fn settings_below(host: &Host, database: &str) -> io::Result<TempDir> {
    let directory = tempfile::tempdir()?;
    let path = directory.path();
    std::fs::write(path.join("dnf.conf"), "[main]\n")?;
    std::fs::write(path.join(".rpmmacros"), format!("%_dbpath {database}\n"))?;
    let repositories = path.join("repositories");
    std::fs::create_dir(&repositories)?;
    let from = Utf8Path::new(REPOSITORIES);
    if host.root.status(from, Follow::Yes)?.is_none() {
        return Ok(directory);
    }
    let names = host.root.list(from)?;
    for name in names.iter().filter(|name| is_repository_file(name)) {
        let Some(bytes) = host.root.read(&from.join(name), MAX_SETTINGS_BYTES)? else {
            continue;
        };
        let text = with_keys_below(&String::from_utf8_lossy(&bytes), host.root.path());
        std::fs::write(repositories.join(name), text)?;
    }
    Ok(directory)
}

/// dnf looks for files of keys on the machine, although they are below the root.
fn with_keys_below(text: &str, root: &Utf8Path) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        match line.strip_prefix("gpgkey=file:///") {
            // Writing to a text cannot fail.
            Some(path) => {
                let _ = writeln!(out, "gpgkey=file://{root}/{path}");
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// The release that the root's own `os-release` names.
fn release(host: &Host) -> io::Result<Option<String>> {
    for path in ["/etc/os-release", "/usr/lib/os-release"] {
        let Some(bytes) = host.root.read(Utf8Path::new(path), MAX_SETTINGS_BYTES)? else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix("VERSION_ID="));
        let value = value.map(|value| value.trim_matches('"').to_owned());
        return Ok(value.filter(|value| {
            !value.is_empty()
                && value
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        }));
    }
    Ok(None)
}

/// Copies the files of a directory, if it is there.
fn copy_flat(host: &Host, from: &Utf8Path, to: &Utf8PathBuf) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    if host.root.status(from, Follow::No)?.is_none() {
        return Ok(());
    }
    for name in host.root.list(from)? {
        if let Some(mut source) = host
            .root
            .open_file(&from.join(&name), Follow::No)
            .or_else(not_a_file)?
        {
            let mut target = std::fs::File::create(to.join(&name))?;
            io::copy(&mut source, &mut target)?;
        }
    }
    Ok(())
}

/// A directory or a link is left out.
fn not_a_file(error: io::Error) -> io::Result<Option<std::fs::File>> {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Err(error),
        _ => Ok(None),
    }
}

/// Links to what was fetched; the small files that dnf writes at each start are copied.
fn link_cache(host: &Host, to: &Utf8PathBuf) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    let from = Utf8Path::new(CACHE);
    if host.root.status(from, Follow::No)?.is_none() {
        return Ok(());
    }
    for name in host.root.list(from)? {
        let path = from.join(&name);
        let Some(status) = host.root.status(&path, Follow::No)? else {
            continue;
        };
        let is_small = Utf8Path::new(&name).extension() == Some("json");
        match status.kind {
            FileKind::File if is_small => {
                let content = host.root.read(&path, MAX_SETTINGS_BYTES)?;
                std::fs::write(to.join(&name), content.unwrap_or_default())?;
            }
            FileKind::File | FileKind::Directory => {
                symlink(host.root.machine_path(&path), to.join(&name))?;
            }
            FileKind::Link | FileKind::Other => {}
        }
    }
    Ok(())
}
