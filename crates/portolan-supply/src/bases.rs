//! Remote bases and files of kustomization files.
//!
//! kustomize asks for them during a build, on a compute thread, and that thread waits for the answer.

use std::sync::Arc;
use std::time::Duration;

use portolan_kustomize::{Fetch, FetchError, RepoSpec};
use portolan_sources::{FileRequest, GitRef, GitRequest};
use portolan_vfs::Vfs;

use crate::address::over_https;
use crate::remote::Remote;

/// kustomize's own 27 seconds are meant for a clone on a developer's machine; slow networks get more.
const SHORTEST_TIMEOUT: Duration = Duration::from_mins(2);

impl Fetch for Remote {
    fn file(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        let request = FileRequest {
            url: url.to_owned(),
            access: self.access(&portolan_flux::Access::default(), url),
            ..FileRequest::default()
        };
        let sources = Arc::clone(&self.world.sources);
        let fetched = self.wait(async move { sources.http_file(&request).await });
        fetched.map(|file| file.content)
    }

    fn repository(&self, spec: &RepoSpec) -> Result<Arc<dyn Vfs>, FetchError> {
        let url = over_https(&spec.clone);
        let mut problem = FetchError::from("no reference is left to try");
        for reference in candidates(&spec.reference) {
            let request = GitRequest {
                url: url.clone(),
                reference,
                access: self.access(&portolan_flux::Access::default(), &url),
                timeout: Some(spec.timeout.max(SHORTEST_TIMEOUT)),
            };
            let sources = Arc::clone(&self.world.sources);
            match self.wait(async move { sources.git_tree(&request).await }) {
                Ok(tree) => return Ok(Arc::new(tree.tree)),
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }
}

/// What `?ref=` can mean: a commit, a ref by its full name, a tag or a branch.
fn candidates(reference: &str) -> Vec<GitRef> {
    let name = reference.to_owned();
    let is_commit = matches!(reference.len(), 40 | 64)
        && reference.chars().all(|digit| digit.is_ascii_hexdigit());
    if reference.is_empty() {
        vec![GitRef::Default]
    } else if reference.starts_with("refs/") {
        vec![GitRef::Name(name)]
    } else if is_commit {
        vec![GitRef::Commit(name)]
    } else {
        vec![GitRef::Tag(name.clone()), GitRef::Branch(name)]
    }
}
