//! The agent's data directory: who the node is, and what must survive a restart.
//!
//! ```text
//! agent.lock       held while an agent lives
//! identity.json    the key and the certificates, one file, so that they always fit together
//! next-key.pem     the key of a request that may not have been answered yet
//! epochs.json      the highest epoch of each run
//! jobs/            commands and how they ended
//! touched.json     what runs have changed that beacons have not seen yet
//! beacons/         what is watched, and what no server has heard of yet
//! cron/            schedules that the node keeps, what became of their slots, and the journals of their runs
//! generation       how often the node has begun to gossip
//! journals/        the steps of the last run of each book
//! shares/          the key that shares for this node are encrypted to, and the keys of others
//! ```

use std::fs::File;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_identity::{CaPin, Enrolled, IdentityError, NodeKey};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::disk;
use crate::epochs::Epochs;
use crate::shim::Jobs;

/// The files of an agent, which one process at a time may use.
pub struct AgentData {
    directory: Utf8PathBuf,
    lock: File,
}

/// Who the node is.
pub struct NodeIdentity {
    /// Its key.
    pub key: NodeKey,
    /// Its certificates.
    pub enrolled: Enrolled,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// Another agent has it.
    #[error("another agent uses the data directory `{0}`")]
    InUse(Utf8PathBuf),
    /// A file of it.
    #[error("cannot use `{path}`")]
    File {
        /// The file.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A file holds something else.
    #[error("`{path}` is damaged")]
    Damaged {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong.
        #[source]
        source: IdentityError,
    },
}

impl Drop for AgentData {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being started still has the file open.
        let _ = self.lock.unlock();
    }
}

impl AgentData {
    /// Opens a directory, which is made for its owner alone if it does not exist.
    ///
    /// # Errors
    /// When it cannot be made, or another agent uses it.
    pub fn open(directory: &Utf8Path) -> Result<Self, DataError> {
        let failed = |source| DataError::File {
            path: directory.to_owned(),
            source,
        };
        disk::private_directory(directory).map_err(failed)?;
        let mut options = File::options();
        let options = options.create(true).truncate(false).write(true);
        let lock = options.open(directory.join("agent.lock")).map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(DataError::InUse(directory.to_owned()));
            }
            Err(error) => return Err(failed(error.into())),
        }
        Ok(Self {
            directory: directory.to_owned(),
            lock,
        })
    }

    /// Who the node is; `None` until it is enrolled.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn identity(&self) -> Result<Option<NodeIdentity>, DataError> {
        let path = self.directory.join("identity.json");
        let Some(text) = read(&path)? else {
            return Ok(None);
        };
        let damaged = |source| DataError::Damaged {
            path: path.clone(),
            source,
        };
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let key = value.get("key").and_then(Value::as_str).unwrap_or_default();
        Ok(Some(NodeIdentity {
            key: NodeKey::from_pem(key).map_err(damaged)?,
            enrolled: Enrolled::read(&value["enrolled"]).map_err(damaged)?,
        }))
    }

    /// Keeps who the node is, and forgets the key that was asked with.
    ///
    /// # Errors
    /// When the disk cannot be written.
    pub fn keep_identity(&self, identity: &NodeIdentity) -> Result<(), DataError> {
        let key = identity.key.to_pem();
        let value = json!({"key": key.as_str(), "enrolled": identity.enrolled.to_json()});
        let text = Zeroizing::new(value.to_string());
        self.write("identity.json", text.as_bytes())?;
        let _ = std::fs::remove_file(self.directory.join("next-key.pem"));
        Ok(())
    }

    /// The key to ask for a certificate with. It is on the disk before it is used, so a request whose answer got lost is
    /// made again with the same key, and is not a second node.
    ///
    /// # Errors
    /// When the disk cannot be used.
    pub fn next_key(&self) -> Result<NodeKey, DataError> {
        let path = self.directory.join("next-key.pem");
        let damaged = |source| DataError::Damaged {
            path: path.clone(),
            source,
        };
        if let Some(text) = read(&path)? {
            return NodeKey::from_pem(&text).map_err(damaged);
        }
        let key = NodeKey::generate().map_err(damaged)?;
        self.write("next-key.pem", key.to_pem().as_bytes())?;
        Ok(key)
    }

    /// The fingerprint of the key that the node is known by, or asks to be known by. The key is made if there is none.
    ///
    /// # Errors
    /// When the disk cannot be used.
    pub fn fingerprint(&self) -> Result<CaPin, DataError> {
        match self.identity()? {
            Some(identity) => Ok(identity.key.fingerprint()),
            None => Ok(self.next_key()?.fingerprint()),
        }
    }

    /// The commands of steps.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn jobs(&self) -> Result<Jobs, DataError> {
        let path = self.directory.join("jobs");
        Jobs::open(&path).map_err(|source| DataError::File { path, source })
    }

    /// The directory of step journals.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn journals(&self) -> Result<Utf8PathBuf, DataError> {
        let path = self.directory.join("journals");
        match disk::private_directory(&path) {
            Ok(()) => Ok(path),
            Err(source) => Err(DataError::File { path, source }),
        }
    }

    /// Puts damaged journals aside, so that books of which nobody knows what was begun are run again. Gives the files that
    /// they became.
    ///
    /// # Errors
    /// When a journal cannot be read or renamed.
    pub fn acknowledge_damage(&self) -> Result<Vec<Utf8PathBuf>, DataError> {
        let directory = self.journals()?;
        let failed = |path: &Utf8Path| {
            let path = path.to_owned();
            move |source| DataError::File { path, source }
        };
        let mut aside = Vec::new();
        for entry in directory.read_dir_utf8().map_err(failed(&directory))? {
            let path = entry.map_err(failed(&directory))?.into_path();
            if path.extension() != Some("journal") {
                continue;
            }
            let bytes = std::fs::read(&path).map_err(failed(&path))?;
            if portolan_fleet::read_journal(&bytes).is_ok() {
                continue;
            }
            let free = (1..=u32::MAX)
                .map(|number| Utf8PathBuf::from(format!("{path}.damaged-{number}")))
                .find(|name| !name.exists());
            if let Some(name) = free {
                std::fs::rename(&path, &name).map_err(failed(&path))?;
                aside.push(name);
            }
        }
        aside.sort();
        Ok(aside)
    }

    /// The highest epoch of each run.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn epochs(&self) -> Result<Epochs, DataError> {
        let path = self.directory.join("epochs.json");
        Epochs::open(&path).map_err(|source| DataError::File { path, source })
    }

    /// The directory.
    pub fn directory(&self) -> &Utf8Path {
        &self.directory
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), DataError> {
        let path = self.directory.join(name);
        disk::write_durable(&path, content).map_err(|source| DataError::File { path, source })
    }
}

/// The text of a file; `None` if there is none.
fn read(path: &Utf8Path) -> Result<Option<Zeroizing<String>>, DataError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(Zeroizing::new(text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(DataError::File {
            path: path.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_on_the_disk_before_it_is_used_and_nobody_else_can_read_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(directory.path()).expect("UTF-8");
        let data = AgentData::open(path).expect("opened");
        assert!(data.identity().expect("read").is_none());
        let key = data.next_key().expect("made");
        let again = data.next_key().expect("read");
        assert_eq!(key.fingerprint(), again.fingerprint());
        let mode = std::fs::metadata(path.join("next-key.pem")).expect("it is there");
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn one_agent_at_a_time_uses_a_directory() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(directory.path()).expect("UTF-8");
        let first = AgentData::open(path).expect("opened");
        let second = AgentData::open(path);
        assert!(matches!(second, Err(DataError::InUse(_))));
        drop(first);
        AgentData::open(path).expect("free again");
    }
}
