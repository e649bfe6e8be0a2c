//! `/etc/shadow`, read, and changed under the locks that `useradd`, `passwd` and their kin take.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::{Duration, Instant, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::FlockOperation;

use crate::account_tool::refuse_links;
use crate::action::ModuleError;
use crate::host::Host;
use crate::root::{NewFile, Root};
use crate::shadow::Password;

/// The most bytes of the file that are read; a line has about 100.
const MAX_BYTES: u64 = 16 << 20;

/// How long the locks are waited for. Others hold them for some milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_mins(1);

/// How often a lock that another process holds is tried again.
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

const SHADOW: &str = "/etc/shadow";
const SECONDS_OF_A_DAY: u64 = 86_400;

/// The password of a user; `None` if the file has no line for it.
pub(crate) fn read_password(root: &Root, user: &str) -> Result<Option<Password>, ModuleError> {
    Ok(Password::of_user(&read_text(root)?, user))
}

/// Writes the password of a user, as the value of a field and never as an argument of a program.
pub(crate) fn write_password(
    host: &Host,
    user: &str,
    password: &Password,
) -> Result<(), ModuleError> {
    let failed = |reason: String| ModuleError::failed("set the password of", user, reason);
    let _lock = ShadowLock::take(host)?;
    let text = read_text(&host.root)?;
    let changed = password
        .set_in(&text, user, today())
        .ok_or_else(|| failed(format!("`{SHADOW}` has no line for the user")))?;
    let new = NewFile {
        content: changed.as_bytes(),
        mode: None,
        uid: None,
        gid: None,
    };
    host.root
        .replace(SHADOW.into(), &new)
        .map_err(|error| failed(error.to_string()))?;
    Ok(())
}

fn read_text(root: &Root) -> Result<String, ModuleError> {
    let content = root
        .read(SHADOW.into(), MAX_BYTES)
        .map_err(|error| ModuleError::failed("read", SHADOW, error))?;
    Ok(String::from_utf8_lossy(&content.unwrap_or_default()).into_owned())
}

fn today() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.map_or(0, |time| time.as_secs() / SECONDS_OF_A_DAY)
}

/// The locks of `/etc/shadow`: the C library's on the machine, and everywhere the file `shadow.lock`, which holds the
/// process id of its owner.
struct ShadowLock {
    lock: Utf8PathBuf,
    _library: Option<File>,
}

impl ShadowLock {
    fn take(host: &Host) -> Result<Self, ModuleError> {
        for name in [SHADOW, "/etc/shadow.lock", "/etc/.pwd.lock"] {
            refuse_links(&host.root, name.into())?;
        }
        let lock = host.root.machine_path("/etc/shadow.lock".into());
        let own = host.root.machine_path(&Utf8PathBuf::from(format!(
            "/etc/shadow.{}",
            std::process::id()
        )));
        let failed = |error: io::Error| ModuleError::failed("lock", SHADOW, error);
        let start = Instant::now();
        let library = if host.root.is_machine() {
            Some(lock_library(host, start)?)
        } else {
            None
        };
        loop {
            if try_lock_file(&own, &lock).map_err(failed)? {
                return Ok(Self {
                    lock,
                    _library: library,
                });
            }
            wait_for_lock(host, start, || {
                let holder = fs::read_to_string(&lock).unwrap_or_default();
                format!(
                    "process {} holds `{lock}`",
                    holder.trim_matches(['\0', '\n', ' '])
                )
            })?;
        }
    }
}

impl Drop for ShadowLock {
    fn drop(&mut self) {
        // A lock that stays is taken over by the next one, when this process is gone.
        let _ = fs::remove_file(&self.lock);
    }
}

/// The lock of the C library's `lckpwdf`.
fn lock_library(host: &Host, start: Instant) -> Result<File, ModuleError> {
    const PATH: &str = "/etc/.pwd.lock";
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(PATH)
        .map_err(|error| ModuleError::failed("lock", PATH, error))?;
    while rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        wait_for_lock(host, start, || format!("another process holds `{PATH}`"))?;
    }
    Ok(file)
}

fn wait_for_lock(
    host: &Host,
    start: Instant,
    reason: impl Fn() -> String,
) -> Result<(), ModuleError> {
    if host.stop.is_cancelled() {
        return Err(ModuleError::Stopped);
    }
    if start.elapsed() > LOCK_PATIENCE {
        return Err(ModuleError::failed("lock", SHADOW, reason()));
    }
    std::thread::sleep(LOCK_INTERVAL);
    Ok(())
}

/// Makes the lock file a second name of a file with our process id. A lock of a process that is gone is removed.
fn try_lock_file(own: &Utf8Path, lock: &Utf8Path) -> io::Result<bool> {
    let _ = fs::remove_file(own);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(own)?;
    write!(file, "{}", std::process::id())?;
    let linked = fs::hard_link(own, lock);
    let is_ours = linked.is_ok() && file.metadata()?.nlink() == 2;
    fs::remove_file(own)?;
    match linked {
        Ok(()) => Ok(is_ours),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let holder = fs::read_to_string(lock).unwrap_or_default();
            let holder = holder.trim_matches(['\0', '\n', ' ']);
            let is_gone = holder
                .parse::<u32>()
                .is_ok_and(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true));
            if is_gone {
                let _ = fs::remove_file(lock);
            }
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
