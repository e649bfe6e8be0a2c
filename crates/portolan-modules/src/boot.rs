//! Which start of the machine this is. A step that restarts it is done when this has changed.

use std::time::Duration;

use camino::Utf8Path;
use serde_json::{Map, Value, json};

use crate::action::ModuleError;
use crate::host::Host;
use crate::root::NewFile;

/// What a `reboot` step does on a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BootMode {
    /// It restarts the machine; below another root it is refused.
    #[default]
    Machine,
    /// It restarts the machine only if the step forces it, because the control plane runs on it.
    ServersOwn,
    /// It changes the id that another root has for its start, and the agent starts again.
    Fake,
}

/// A restart that a step has asked for, as the runner keeps it until the machine is back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineRestart {
    /// The id of the start before.
    pub boot_id: String,
    /// How long the machine may take.
    pub timeout: Duration,
}

/// How far a restart is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartState {
    /// The machine is back.
    Done,
    /// The machine has not restarted yet.
    Waiting,
    /// The time is up and the machine has not restarted.
    Failed,
}

/// The kernel's own id of its start.
const MACHINE_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The id of a start below another root.
const FAKE_ID: &str = "/var/lib/portolan/boot-id";

/// A new random id, made by the kernel.
const RANDOM_ID: &str = "/proc/sys/kernel/random/uuid";

const MAX_BYTES: u64 = 1 << 10;

/// The id of the current start of a host. Below another root it is `none` until a `reboot` step has run.
///
/// # Errors
/// When it cannot be read.
pub fn boot_id(host: &Host) -> Result<String, ModuleError> {
    let path = if host.is_rooted() {
        FAKE_ID
    } else {
        MACHINE_ID
    };
    let content = host
        .root
        .read(Utf8Path::new(path), MAX_BYTES)
        .map_err(|error| ModuleError::failed("read", path, error))?;
    let text = String::from_utf8_lossy(&content.unwrap_or_else(|| b"none".to_vec())).into_owned();
    Ok(text.trim().to_owned())
}

/// Gives another root the id of a new start.
pub(crate) fn change_fake_id(host: &Host) -> Result<(), ModuleError> {
    let failed = |error: std::io::Error| ModuleError::failed("write", FAKE_ID, error);
    let id = std::fs::read_to_string(RANDOM_ID).map_err(failed)?;
    let path = Utf8Path::new(FAKE_ID);
    for directory in ["/var", "/var/lib", "/var/lib/portolan"] {
        match host.root.make_directory(Utf8Path::new(directory), 0o755) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
    }
    let new = NewFile {
        content: id.as_bytes(),
        mode: None,
        uid: None,
        gid: None,
    };
    host.root.replace(path, &new).map_err(failed)?;
    Ok(())
}

impl MachineRestart {
    /// The restart that the result of a `reboot` step names; `None` if the step did not restart anything.
    pub fn of_result(result: &Map<String, Value>) -> Option<Self> {
        Some(Self {
            boot_id: result.get("bootId")?.as_str()?.to_owned(),
            timeout: Duration::from_secs(result.get("timeoutSeconds")?.as_u64()?),
        })
    }

    /// The result of a step that asked for it.
    pub(crate) fn to_result(&self) -> Map<String, Value> {
        let mut result = Map::new();
        result.insert("bootId".to_owned(), json!(self.boot_id));
        result.insert("timeoutSeconds".to_owned(), json!(self.timeout.as_secs()));
        result
    }

    /// How far it is, by the id of the current start and the time since the step.
    pub fn state(&self, boot_id: &str, waited: Duration) -> RestartState {
        if boot_id != self.boot_id {
            RestartState::Done
        } else if waited < self.timeout {
            RestartState::Waiting
        } else {
            RestartState::Failed
        }
    }
}
