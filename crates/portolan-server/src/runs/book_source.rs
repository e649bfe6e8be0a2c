//! The text and the files of a TaskBook on the server: as they are in the commit that it comes from.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_fleet::{RecordedFiles, TagSelection};
use portolan_kinds::find_kind;
use portolan_kinds::wire::{RepositorySpec, Source};
use portolan_modules::{BookFileError, BookFiles, NoBookFiles};
use portolan_vfs::{Vfs, VfsError};
use serde_json::json;

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
            Some(source) => Arc::new(self.commit_files(source).await?),
        };
        let recorded = Arc::new(RecordedFiles::new(files));
        compile_with(
            &book,
            selection,
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

    /// The files of the commit that an object comes from.
    async fn commit_files(&self, source: &Source) -> Result<CommitFiles, ApiError> {
        let kind =
            find_kind("Repository").ok_or_else(|| ApiError::internal("no kind Repository"))?;
        let key = ObjectKey::new(kind, None, source.repository());
        let found = self.objects.get(&key).await?;
        let found = found
            .ok_or_else(|| ApiError::not_found(&format!("Repository {}", source.repository())))?;
        let spec = found.object.typed_spec::<RepositorySpec>();
        let spec = spec.map_err(|_| ApiError::internal("the Repository cannot be read"))?;
        let (options, commit) = (self.source.clone(), source.commit().to_owned());
        let path = source.path().to_owned();
        let tree = tokio::task::spawn_blocking(move || commit_tree(&spec, &options, &commit));
        let tree = tree
            .await
            .map_err(|error| ApiError::internal(error.to_string()))?;
        let tree = tree.map_err(|reason| {
            ApiError::unavailable(format!("cannot read the commit of the book: {reason}"))
        })?;
        let book = Utf8PathBuf::from("/").join(path);
        let directory = book.parent().unwrap_or(Utf8Path::new("/")).to_owned();
        Ok(CommitFiles { tree, directory })
    }
}

/// Files of a commit. Paths are relative to the book; none leads out of the repository.
struct CommitFiles {
    tree: Box<dyn Vfs>,
    directory: Utf8PathBuf,
}

impl CommitFiles {
    fn resolve(&self, path: &Utf8Path) -> Result<Utf8PathBuf, BookFileError> {
        if path.is_absolute() {
            return Err(BookFileError::Absolute(path.to_owned()));
        }
        let mut found = self.directory.clone();
        for part in path.as_str().split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if !found.pop() {
                        return Err(BookFileError::Outside(path.to_owned()));
                    }
                }
                part => found.push(part),
            }
        }
        Ok(found)
    }

    fn failed(path: &Utf8Path, error: VfsError) -> BookFileError {
        match error {
            VfsError::NotFound(_) => BookFileError::Missing(path.to_owned()),
            VfsError::IsDirectory(_) => BookFileError::NotAFile(path.to_owned()),
            error => BookFileError::Unreadable(path.to_owned(), std::io::Error::other(error)),
        }
    }
}

impl BookFiles for CommitFiles {
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, BookFileError> {
        let found = self.resolve(path)?;
        let content = self.tree.read(&found);
        let content = content.map_err(|error| Self::failed(path, error))?;
        if content.len() as u64 > portolan_fleet::MAX_FILE_BYTES {
            let most = portolan_fleet::MAX_FILE_BYTES;
            return Err(BookFileError::TooLarge(path.to_owned(), most));
        }
        Ok(content.into())
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BookFileError> {
        let found = self.resolve(directory)?;
        let mut files = Vec::new();
        let mut waiting = vec![found.clone()];
        while let Some(next) = waiting.pop() {
            let entries = self.tree.list(&next);
            for entry in entries.map_err(|error| Self::failed(directory, error))? {
                let path = next.join(&entry.name);
                if entry.is_directory && !entry.is_symlink {
                    waiting.push(path);
                } else if let Ok(below) = path.strip_prefix(&found) {
                    files.push(below.to_owned());
                }
            }
            if files.len() > super::files::MAX_FILES {
                let most = portolan_fleet::MAX_FILE_BYTES;
                return Err(BookFileError::TooLarge(directory.to_owned(), most));
            }
        }
        files.sort();
        Ok(files)
    }
}
