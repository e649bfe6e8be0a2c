//! The text and the files of a TaskBook on the server: as they are in the commit that it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_fleet::{GitIncludes, IncludePolicy, RecordedFiles, TagSelection, TreeFiles};
use portolan_git::FetchOptions;
use portolan_kinds::find_kind;
use portolan_kinds::wire::{RepositorySpec, Source};
use portolan_modules::{BookFiles, NoBookFiles};
use portolan_vfs::Vfs;
use serde_json::{Value, json};

use super::files::FileShelf;
use super::record::StoredBook;
use super::request::compile_with;
use crate::error::ApiError;
use crate::keys::ObjectKey;
use crate::repository_source::commit_tree;
use crate::server::{ApiServer, Target};

impl ApiServer {
    /// The text of a TaskBook on the server with the files that it uses, and the commit that it comes from. What a run uses
    /// is pinned here: nothing that happens to the repository later changes it.
    pub(super) async fn stored_book(
        &self,
        target: &Target,
        shelf: &FileShelf,
        selection: &TagSelection,
    ) -> Result<(StoredBook, Option<String>), ApiError> {
        let found = self.objects.get(&target.key()?).await?;
        let found = found.ok_or_else(|| ApiError::not_found(&target.shown()))?;
        let object = &found.object;
        let source = object.metadata.source.as_ref();
        let text = json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "TaskBook",
            "metadata": {"name": object.name(), "namespace": object.namespace()}, "spec": object.spec,
        });
        let mut book = StoredBook {
            file: source.map_or_else(|| target.shown(), |source| source.path().to_owned()),
            text: format!("{text:#}\n"),
            files: BTreeMap::new(),
            is_sent: false,
            commit: None,
            dirty: false,
        };
        let files: Arc<dyn BookFiles> = match source {
            None => Arc::new(NoBookFiles),
            Some(source) => {
                let tree = self.tree_of(source, "the book").await?;
                Arc::new(TreeFiles::beside(tree, Utf8Path::new(source.path())))
            }
        };
        let includes = Arc::new(self.with_includes(files)?);
        let recorded = Arc::new(RecordedFiles::new(includes));
        compile_with(
            &book,
            selection,
            &BTreeSet::new(),
            Arc::clone(&recorded) as Arc<dyn BookFiles>,
        )
        .await?;
        for (path, content) in recorded.take() {
            let digest = shelf.keep(&content).await?;
            book.files.insert(path.into_string(), digest);
        }
        let commit = source.map(|source| source.commit().to_owned());
        Ok((book, commit))
    }

    /// The files of the commit that an object comes from. `what` it is, for messages.
    pub(super) async fn tree_of(
        &self,
        source: &Source,
        what: &str,
    ) -> Result<Box<dyn Vfs>, ApiError> {
        let kind =
            find_kind("Repository").ok_or_else(|| ApiError::internal("no kind Repository"))?;
        let key = ObjectKey::new(kind, None, source.repository());
        let found = self.objects.get(&key).await?;
        let found = found
            .ok_or_else(|| ApiError::not_found(&format!("Repository {}", source.repository())))?;
        let spec = found.object.typed_spec::<RepositorySpec>();
        let spec = spec.map_err(|_| ApiError::internal("the Repository cannot be read"))?;
        let (options, commit) = (self.source.clone(), source.commit().to_owned());
        let tree = tokio::task::spawn_blocking(move || commit_tree(&spec, &options, &commit));
        let tree = tree
            .await
            .map_err(|error| ApiError::internal(error.to_string()))?;
        tree.map_err(|reason| {
            ApiError::unavailable(format!("cannot read the commit of {what}: {reason}"))
        })
    }

    /// Adds what the book includes from repositories.
    fn with_includes(&self, files: Arc<dyn BookFiles>) -> Result<GitIncludes, ApiError> {
        let kind =
            find_kind("Repository").ok_or_else(|| ApiError::internal("no kind Repository"))?;
        let known = self.cache.objects(kind, None);
        let addresses = known.iter().filter_map(|object| {
            let url = object.spec.get("url").and_then(Value::as_str);
            url.map(str::to_owned)
        });
        let policy = RepositoriesOnly {
            addresses: addresses.collect(),
            allow_local: self.source.allow_local,
        };
        let mirrors = Utf8PathBuf::from_path_buf(self.source.mirrors.clone());
        let mirrors =
            mirrors.map_err(|_| ApiError::internal("the data directory's name is not UTF-8"))?;
        Ok(GitIncludes::new(files, mirrors, policy))
    }
}

/// The server fetches only from addresses that a Repository names: whoever may write a book could otherwise make it call any
/// address that it can reach.
struct RepositoriesOnly {
    addresses: BTreeSet<String>,
    allow_local: bool,
}

impl IncludePolicy for RepositoriesOnly {
    fn options(&self, url: &str) -> Result<FetchOptions, String> {
        if !self.addresses.contains(url) {
            return Err(
                "the server fetches only from addresses of its Repositories; create one for it, \
                 with `suspend: true` if its objects should not be applied"
                    .to_owned(),
            );
        }
        Ok(FetchOptions {
            allow_local: self.allow_local,
            ..FetchOptions::default()
        })
    }
}
