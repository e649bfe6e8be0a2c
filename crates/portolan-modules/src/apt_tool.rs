//! The programs of apt and dpkg, for the machine or for another root.

use std::io::Write;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use tempfile::NamedTempFile;

use crate::account_tool::refuse_links;
use crate::action::ModuleError;
use crate::host::Host;
use crate::tool::{Tool, how_it_ended};

/// The database of dpkg.
pub(crate) const STATUS: &str = "/var/lib/dpkg/status";

/// Where repositories of apt are named, one in a file.
pub(crate) const SOURCES: &str = "/etc/apt/sources.list.d";

/// How often a lock that apt does not wait for itself is tried again.
const LOCK_INTERVAL: Duration = Duration::from_millis(500);

/// Directories that dpkg and apt write to. Below another root none may be a link: they are not confined.
const WRITTEN_DIRECTORIES: &[&str] = &[
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/share",
    "/etc/apt/sources.list.d",
    "/etc/apt/preferences.d",
    "/var/lib/dpkg/info",
    "/var/lib/dpkg/updates",
    "/var/lib/apt/lists/partial",
    "/var/cache/apt/archives/partial",
    "/var/log/apt",
    "/opt",
    "/boot",
];

/// apt of a host.
pub(crate) struct AptTool {
    /// Options for another root; read before the settings of the machine.
    settings: Option<NamedTempFile>,
}

impl AptTool {
    /// The programs for the host's root; a root with links on the way is refused.
    pub(crate) fn new(host: &Host) -> Result<Self, ModuleError> {
        if !host.is_rooted() {
            return Ok(Self { settings: None });
        }
        for path in WRITTEN_DIRECTORIES {
            refuse_links(&host.root, Utf8Path::new(path))?;
        }
        Ok(Self {
            settings: Some(settings_below(host)?),
        })
    }

    /// One of the programs, which asks nothing and restarts nothing.
    pub(crate) fn program(&self, program: &str, host: &Host) -> Tool {
        let mut tool = Tool::new(program)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("NEEDRESTART_SUSPEND", "1")
            .env("APT_LISTCHANGES_FRONTEND", "none");
        if let Some(settings) = &self.settings {
            tool = tool.env("APT_CONFIG", settings.path().to_string_lossy());
            if program == "dpkg" {
                tool = tool.arg(format!("--root={}", host.root.path()));
            }
        }
        tool
    }

    /// Fetches the lists of packages, with more options of apt. It does not wait for the lock of these, so it is tried
    /// again.
    pub(crate) fn refresh(
        &self,
        host: &Host,
        options: &[String],
        lock_timeout: Duration,
    ) -> Result<(), ModuleError> {
        let start = Instant::now();
        loop {
            let set = options
                .iter()
                .flat_map(|option| ["-o".to_owned(), option.clone()]);
            let exit = self
                .program("apt-get", host)
                .args(["--quiet", "-o", "APT::Update::Error-Mode=any"])
                .args(set)
                .arg("update")
                .run(host)?;
            if exit.code == 0 {
                return Ok(());
            }
            let is_locked = String::from_utf8_lossy(&exit.stderr).contains("Could not get lock");
            if !is_locked || start.elapsed() > lock_timeout {
                return Err(ModuleError::failed(
                    "fetch",
                    "the lists of packages",
                    how_it_ended(&exit),
                ));
            }
            if host.stop.is_cancelled() {
                return Err(ModuleError::Stopped);
            }
            std::thread::sleep(LOCK_INTERVAL);
        }
    }
}

/// Settings of apt for another root. They are read before all others, so neither the machine's own settings nor
/// programs that settings of the root name are used.
fn settings_below(host: &Host) -> Result<NamedTempFile, ModuleError> {
    let failed = |error: std::io::Error| ModuleError::failed("write", "settings of apt", error);
    let root = host.root.path();
    if root.as_str().contains(['"', '\n', '\\']) {
        return Err(ModuleError::failed(
            "use",
            root.as_str(),
            "settings of apt cannot hold this path",
        ));
    }
    let mut file = NamedTempFile::new().map_err(failed)?;
    write!(
        file,
        "Dir \"{root}\";\nDir::Etc::main \"/dev/null\";\nDir::Etc::parts \"/dev/null\";\n\
         Dir::State::status \"{root}{STATUS}\";\nDPkg::Options:: \"--root={root}\";\n\
         APT::Sandbox::User \"root\";\n"
    )
    .map_err(failed)?;
    Ok(file)
}
