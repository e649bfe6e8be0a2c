//! The store: an image layout with records of which result was built from which inputs.

use std::fs::File;
use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;
use portolan_files::OutputDir;
use portolan_image::BlobSource;
use serde::{Deserialize, Serialize};

use crate::error::{At, StoreError};
use crate::lock::Lock;
use crate::refs;
use crate::run::Run;

/// The version of layouts that is written and read.
const LAYOUT_VERSION: &str = "1.0.0";

/// The longest document that is read from the store.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// A content-addressed store that is an OCI image layout. Any number of processes may use it at once.
#[derive(Debug)]
pub struct Store {
    root: Utf8PathBuf,
    pub(crate) output: OutputDir,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayoutFile {
    image_layout_version: String,
}

impl Store {
    /// Opens a store, and makes one if there is nothing.
    pub fn open(root: &Utf8Path) -> Result<Self, StoreError> {
        let output = OutputDir::create(root)?;
        let store = Self {
            root: root.to_owned(),
            output,
        };
        match store.read_document("oci-layout")? {
            Some(content) => store.check_version(&content)?,
            None => store.create()?,
        }
        for directory in ["blobs/sha256", "portolan/holds", "portolan/staging"] {
            let path = store.path(directory);
            std::fs::create_dir_all(&path).at(&path)?;
        }
        Ok(store)
    }

    fn check_version(&self, content: &[u8]) -> Result<(), StoreError> {
        let layout: LayoutFile =
            serde_json::from_slice(content).map_err(|source| StoreError::Parse {
                path: self.path("oci-layout"),
                source,
            })?;
        if layout.image_layout_version == LAYOUT_VERSION {
            return Ok(());
        }
        Err(StoreError::Version {
            path: self.root.clone(),
            version: layout.image_layout_version,
        })
    }

    /// Makes a layout in an empty directory; several processes may do that at once.
    fn create(&self) -> Result<(), StoreError> {
        let ours = |name: &str| matches!(name, "blobs" | "portolan" | "index.json" | "oci-layout");
        for entry in std::fs::read_dir(&self.root).at(&self.root)? {
            let name = entry.at(&self.root)?.file_name();
            let name = name.to_string_lossy();
            if !ours(&name) && !name.ends_with(".portolan") {
                return Err(StoreError::NotALayout(self.root.clone()));
            }
        }
        let path = self.path("portolan");
        std::fs::create_dir_all(&path).at(&path)?;
        let _lock = self.index_lock()?;
        if self.read_document("index.json")?.is_none() {
            refs::write(self, &refs::empty())?;
        }
        let layout = LayoutFile {
            image_layout_version: LAYOUT_VERSION.to_owned(),
        };
        self.write_json("oci-layout", &layout)
    }

    /// Where the store lies.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Begins a run: what it uses and makes stays until it is dropped, whatever is collected meanwhile.
    pub fn begin(&self) -> Result<Run<'_>, StoreError> {
        Run::begin(self)
    }

    /// The path of a blob, which need not be there.
    pub fn blob_path(&self, digest: &Digest) -> Utf8PathBuf {
        self.path(&blob(digest))
    }

    pub(crate) fn path(&self, relative: &str) -> Utf8PathBuf {
        self.root.join(relative)
    }

    /// The lock of `index.json`.
    pub(crate) fn index_lock(&self) -> Result<Lock, StoreError> {
        Lock::alone(&self.path("portolan/index.lock"))
    }

    /// Held while something is held or a record is written; a collection waits for it, so that whatever half-written file a
    /// collection finds is one of a process that died.
    pub(crate) fn use_lock(&self) -> Result<Lock, StoreError> {
        Lock::shared(&self.path("portolan/collect.lock"))
    }

    /// Held by a collection; whoever wants to hold something waits for it.
    pub(crate) fn collect_lock(&self) -> Result<Lock, StoreError> {
        Lock::alone(&self.path("portolan/collect.lock"))
    }

    pub(crate) fn write_json(
        &self,
        relative: &str,
        document: &impl Serialize,
    ) -> Result<(), StoreError> {
        let content = serde_json::to_vec(document).map_err(|source| StoreError::Parse {
            path: self.path(relative),
            source,
        })?;
        self.output.write(relative.into(), &content)?;
        Ok(())
    }

    /// Reads a document; `None` if it is not there.
    pub(crate) fn read_document(&self, relative: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(relative);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::Io { path, source }),
        };
        let mut content = Vec::new();
        let mut limited = file.take(MAX_DOCUMENT_BYTES + 1);
        limited.read_to_end(&mut content).at(&path)?;
        if content.len() as u64 > MAX_DOCUMENT_BYTES {
            let source = io::Error::new(io::ErrorKind::InvalidData, "it is too long");
            return Err(StoreError::Io { path, source });
        }
        Ok(Some(content))
    }
}

impl BlobSource for Store {
    fn open(&self, digest: &Digest) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(File::open(self.blob_path(digest))?))
    }
}

/// The path of a blob inside the store.
pub(crate) fn blob(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

/// The path of a small record by its key, in one of 256 directories.
pub(crate) fn record(kind: &str, key: &Digest) -> String {
    let hex = key.hex();
    let (shelf, _) = hex.split_at(2);
    format!("portolan/{kind}/{shelf}/{hex}.json")
}
