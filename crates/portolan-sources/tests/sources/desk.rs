//! A cache of a test's own and sources that use it.

use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use flate2::{Compression, write::GzEncoder};
use portolan_http::{HttpOptions, Proxy};
use portolan_sources::{Lock, Options, Sources};
use tempfile::TempDir;

pub(crate) struct Desk(TempDir);

impl Desk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.0.path()).unwrap().join("cache")
    }

    /// Sources over the cache, as a new run of the program would open them.
    pub(crate) fn open(&self) -> Sources {
        self.open_with(Lock::default(), options())
    }

    pub(crate) fn offline(&self) -> Sources {
        self.offline_with(Lock::default())
    }

    pub(crate) fn offline_with(&self, lock: Lock) -> Sources {
        let options = Options {
            offline: true,
            ..options()
        };
        self.open_with(lock, options)
    }

    pub(crate) fn open_with(&self, lock: Lock, options: Options) -> Sources {
        Sources::open(&self.path(), lock, options)
    }

    /// How many contents the cache holds, unfinished ones included.
    pub(crate) fn entries(&self) -> usize {
        walk(&self.path().join("blobs")) + walk(&self.path().join("incoming"))
    }
}

/// No proxy and no second tries.
pub(crate) fn options() -> Options {
    Options {
        http: HttpOptions {
            proxy: Proxy::None,
            retries: 0,
            ..HttpOptions::default()
        },
        allow_local_git: true,
        ..Options::default()
    }
}

fn walk(directory: &Utf8Path) -> usize {
    let Ok(entries) = directory.read_dir_utf8() else {
        return 0;
    };
    let paths = entries.map(|entry| entry.unwrap().path().to_owned());
    paths
        .map(|path| if path.is_dir() { walk(&path) } else { 1 })
        .sum()
}

/// A gzip-compressed tar of some files.
pub(crate) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, path, content.as_bytes())
            .unwrap();
    }
    gzip(&builder.into_inner().unwrap())
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}
