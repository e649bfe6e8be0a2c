//! What a first start makes: namespaces, roles, the admin's token and the key for secrets.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portolan_kinds::{KindObject, find_kind};
use portolan_store::blob::{BlobArea, BlobError};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::error::{ApiError, RefusalReason};
use crate::objects::{Author, OWN_NAMESPACES, Objects, new_uuid};
use crate::seal::KeyEncryptionKey;
use crate::token::{NewToken, Tokens};

/// How long the first token works: enough to make another one.
pub(crate) const FIRST_TOKEN_LIFE: Duration = Duration::from_hours(24);

/// How long a start waits for a process that has the directory: one that was killed gives back its memory first.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The file with the name of the server.
const NAME_FILE: &str = "server.id";

/// The files of a data directory.
#[derive(Debug, Clone)]
pub struct DataDirectory {
    directory: PathBuf,
}

/// What a first start made.
#[derive(Debug, Clone)]
pub struct FirstStart {
    /// The file with the admin's token.
    pub token_file: PathBuf,
    /// How long the token works.
    pub token_life: Duration,
}

impl DataDirectory {
    /// The files of a directory, which is made for its owner alone if it does not exist.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(directory: &Path) -> std::io::Result<Self> {
        if !directory.exists() {
            std::fs::create_dir_all(directory)?;
            std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))?;
        }
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// The content that is too large for the store.
    pub(crate) fn blobs(&self) -> Result<BlobArea, BlobError> {
        BlobArea::open(&self.directory.join("blobs"))
    }

    /// The embedded store.
    pub fn store(&self) -> PathBuf {
        self.directory.join("store.redb")
    }

    /// The authority's certificate, which clients trust.
    pub fn authority(&self) -> PathBuf {
        self.directory.join("ca.pem")
    }

    /// The admin's first token.
    pub fn admin_token(&self) -> PathBuf {
        self.directory.join("admin.token")
    }

    /// Keeps other processes from this directory as long as the file is open; waits a moment for one that is ending.
    ///
    /// # Errors
    /// When another process has it, or the file cannot be made.
    pub fn lock(&self) -> std::io::Result<File> {
        let file = File::create(self.directory.join("server.lock"))?;
        let until = Instant::now() + LOCK_PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(std::io::Error::new(
                        ErrorKind::ResourceBusy,
                        "another process uses it",
                    ));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// The name of the server that this directory belongs to, and whether it was made just now.
    ///
    /// # Errors
    /// When the file cannot be read or written, or holds no name.
    pub(crate) fn server_name(&self) -> std::io::Result<(String, bool)> {
        if let Some(name) = Self::existing_name(&self.directory)? {
            return Ok((name, false));
        }
        let name = new_uuid();
        let path = self.directory.join(NAME_FILE);
        write_private(&path, format!("{name}\n").as_bytes())?;
        Ok((name, true))
    }

    /// The name of the server that a directory belongs to; `None` if no server has started in it.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no name.
    pub(crate) fn existing_name(directory: &Path) -> std::io::Result<Option<String>> {
        match std::fs::read_to_string(directory.join(NAME_FILE)) {
            Ok(text) if is_uuid(text.trim()) => Ok(Some(text.trim().to_owned())),
            Ok(_) => Err(std::io::Error::new(
                ErrorKind::InvalidData,
                format!("`{NAME_FILE}` holds no uuid"),
            )),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The directory itself.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file with the keys that encrypt secrets.
    pub(crate) fn secret_key_file(&self) -> PathBuf {
        self.directory.join("secrets.key")
    }

    /// The keys that encrypt secrets: those of the file in this directory; none without a file.
    ///
    /// # Errors
    /// When the file cannot be read, or is no file of keys.
    pub(crate) fn secret_keys(&self) -> std::io::Result<Vec<KeyEncryptionKey>> {
        let path = self.secret_key_file();
        let wrong =
            |error: crate::seal::SealError| std::io::Error::new(ErrorKind::InvalidData, error);
        match std::fs::read_to_string(&path).map(Zeroizing::new) {
            Ok(text) => KeyEncryptionKey::read_all(&text).map_err(wrong),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Writes a file that only its owner may read, synced with its directory.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    write_synced(options.create(true).truncate(true), path, content)
}

/// The same for a file that must not exist, not even as a link.
///
/// # Errors
/// When it exists or cannot be written.
pub fn create_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    write_synced(options.create_new(true), path, content)
}

fn write_synced(
    options: &mut std::fs::OpenOptions,
    path: &Path,
    content: &[u8],
) -> std::io::Result<()> {
    let mut file = options.write(true).mode(0o600).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.write_all(content)?;
    file.sync_all()?;
    if let Some(directory) = path.parent() {
        std::fs::File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Makes what every store must have. Called at every start: what is there stays as it is.
pub(crate) async fn prepare(
    objects: &Objects,
    tokens: &Tokens,
    files: &DataDirectory,
) -> Result<Option<FirstStart>, ApiError> {
    let author = Author {
        name: "system:server".to_owned(),
        ..Author::default()
    };
    for name in OWN_NAMESPACES {
        create(objects, &author, "Namespace", name, json!({})).await?;
    }
    let rules = |verbs: &[&str]| json!({"rules": [{"verbs": verbs, "kinds": ["*"]}]});
    let is_first = create(objects, &author, "ClusterRole", "admin", rules(&["*"])).await?;
    if is_first {
        create(
            objects,
            &author,
            "ClusterRole",
            "view",
            rules(&["get", "list", "watch"]),
        )
        .await?;
        let binding = json!({
            "role": {"kind": "ClusterRole", "name": "admin"},
            "subjects": [{"kind": "user", "name": "admin"}],
        });
        create(objects, &author, "ClusterRoleBinding", "admin", binding).await?;
    }
    // A start that was interrupted before it could write the token makes another one.
    if !is_first && (files.admin_token().exists() || !tokens.list().await?.is_empty()) {
        return Ok(None);
    }
    let new = NewToken {
        user: "admin".to_owned(),
        groups: Vec::new(),
        life: Some(FIRST_TOKEN_LIFE),
        description: "made at the first start".to_owned(),
    };
    let (_, text) = tokens.create(new).await?;
    let line = Zeroizing::new(format!("{}\n", text.as_str()));
    write_private(&files.admin_token(), line.as_bytes())
        .map_err(|error| ApiError::internal(format!("cannot write the admin's token: {error}")))?;
    Ok(Some(FirstStart {
        token_file: files.admin_token(),
        token_life: FIRST_TOKEN_LIFE,
    }))
}

/// Creates an object; false if it exists.
async fn create(
    objects: &Objects,
    author: &Author,
    kind: &str,
    name: &str,
    spec: Value,
) -> Result<bool, ApiError> {
    let kind = find_kind(kind).ok_or_else(|| ApiError::internal(format!("no kind {kind}")))?;
    match objects
        .create(KindObject::new(kind, name, None, spec), author)
        .await
    {
        Ok(_) => Ok(true),
        Err(error) if error.reason == RefusalReason::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_waits_for_a_process_that_is_ending() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = DataDirectory::open(directory.path()).expect("a directory");
        let ending = files.lock().expect("the first");
        let other = files.clone();
        let next = std::thread::spawn(move || other.lock().map(drop));
        drop(ending);
        next.join().expect("no panic").expect("the next one");
        let _running = files.lock().expect("the third");
        let busy = files.lock().expect_err("it is in use");
        assert_eq!(busy.kind(), ErrorKind::ResourceBusy);
    }
}
