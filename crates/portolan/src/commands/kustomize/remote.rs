//! Remote bases and files: git repositories and web addresses.

use std::sync::Arc;

use camino::Utf8Path;
use portolan_git::{CommitId, FetchOptions, Mirror, Wanted};
use portolan_http::{Client, HttpOptions, Request};
use portolan_kustomize::{Fetch, RepoSpec};
use portolan_vfs::Vfs;

/// The largest file that is downloaded.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Fetches into a directory that lives as long as the build.
#[derive(Debug, Clone, Copy)]
pub(super) struct Remote;

impl Fetch for Remote {
    fn file(&self, url: &str) -> Result<Vec<u8>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let download = async {
            let client = Client::new(&HttpOptions::default())?;
            let response = client.fetch(&Request::parse(url)?).await?;
            response.success()?.bytes(MAX_FILE_BYTES).await
        };
        runtime
            .block_on(download)
            .map_err(|error| error.to_string())
    }

    fn repository(&self, spec: &RepoSpec) -> Result<Arc<dyn Vfs>, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path =
            Utf8Path::from_path(directory.path()).ok_or("the temporary directory is not UTF-8")?;
        let options = FetchOptions {
            timeout: spec.timeout,
            allow_local: true,
            ..FetchOptions::default()
        };
        let mirror = Mirror::new(path, &spec.clone, options).map_err(|error| error.to_string())?;
        let commit = fetch(&mirror, &spec.reference)?;
        let repository = mirror.repository().map_err(|error| error.to_string())?;
        let tree = repository.tree(commit).map_err(|error| error.to_string())?;
        // The tree reads from the mirror until the process ends.
        std::mem::forget(directory);
        Ok(Arc::new(tree))
    }
}

/// A reference can be a commit, a tag or a branch.
fn fetch(mirror: &Mirror, reference: &str) -> Result<CommitId, String> {
    let mut candidates = match reference {
        "" => vec![Wanted::Default],
        name => vec![
            Wanted::Tag(name.to_owned()),
            Wanted::Branch(name.to_owned()),
            Wanted::Name(name.to_owned()),
        ],
    };
    if let Ok(id) = reference.parse::<CommitId>() {
        candidates.insert(0, Wanted::Commit(id));
    }
    let mut problem = String::new();
    for wanted in candidates {
        match mirror.fetch(&wanted) {
            Ok(commit) => return Ok(commit),
            Err(error) => problem = error.to_string(),
        }
    }
    Err(problem)
}
