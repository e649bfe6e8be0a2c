//! Backups as files: written whole or not at all, tried by a restore to a scratch store, and the way from one engine to
//! another.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::embedded::sync_directory;
use crate::{
    BackupError, BackupSummary, Embedded, EmbeddedOptions, Store, backup, compare_backup,
    read_backup, restore,
};

/// What ends the names of files that are still being written.
const PART: &str = ".part";
/// What ends the names of files of [`backup_into`].
const ENDING: &str = ".backup";

/// Writes a backup to a file, which is there whole and on the disk, or not at all.
pub async fn backup_to_file(store: &Store, path: &Path) -> Result<BackupSummary, BackupError> {
    let part = with_ending(path, PART);
    let written = write(store, &part).await;
    let placed = written.and_then(|summary| {
        fs::rename(&part, path)?;
        sync_directory(path)?;
        Ok(summary)
    });
    if placed.is_err() {
        let _ = fs::remove_file(&part);
    }
    placed
}

async fn write(store: &Store, part: &Path) -> Result<BackupSummary, BackupError> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true);
    // A backup holds what the store holds, and that is nobody else's to read.
    let file = std::os::unix::fs::OpenOptionsExt::mode(file, 0o600).open(part)?;
    let mut out = BufWriter::new(file);
    let summary = backup(store, &mut out).await?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(summary)
}

/// Restores a backup to a scratch store beside it, and compares: what can be restored is a backup.
pub async fn try_backup(path: &Path) -> Result<BackupSummary, BackupError> {
    let scratch = with_ending(path, ".scratch");
    let _ = fs::remove_file(&scratch);
    let tried = try_in(path, &scratch).await;
    let _ = fs::remove_file(&scratch);
    tried
}

async fn try_in(path: &Path, scratch: &Path) -> Result<BackupSummary, BackupError> {
    let engine = Arc::new(Embedded::open(scratch, EmbeddedOptions::default())?);
    let store = Store::new(engine.clone());
    restore_file(&store, path).await?;
    engine.verify().await?;
    compare_file(&store, path).await
}

/// Reads a backup's file to its end and checks it, without a store.
pub fn check_file(path: &Path) -> Result<BackupSummary, BackupError> {
    read_backup(&mut *open(path)?, |_, _| Ok(()))
}

/// Fills an empty store from a backup's file.
pub async fn restore_file(store: &Store, path: &Path) -> Result<BackupSummary, BackupError> {
    let path = path.to_owned();
    restore(store, move || open(&path)).await
}

/// Compares a store with a backup's file.
pub async fn compare_file(store: &Store, path: &Path) -> Result<BackupSummary, BackupError> {
    compare_backup(store, open(path)?).await
}

fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(BufReader::new(File::open(path)?)))
}

/// Writes a backup with a name of its own to a directory, tries it, and removes the oldest so that `keep` are left.
pub async fn backup_into(
    store: &Store,
    directory: &Path,
    keep: usize,
) -> Result<(PathBuf, BackupSummary), BackupError> {
    fs::create_dir_all(directory)?;
    let next = directory.join(format!("next{ENDING}{PART}"));
    let summary = backup_to_file(store, &next).await?;
    let tried = try_backup(&next).await?;
    if tried != summary {
        return Err(BackupError::Differs);
    }
    // Names sort by age, also across restores.
    let name = format!(
        "{:08}-{:016}{ENDING}",
        summary.incarnation, summary.revision
    );
    let path = directory.join(name);
    fs::rename(&next, &path)?;
    sync_directory(&path)?;
    remove_oldest(directory, keep)?;
    Ok((path, summary))
}

fn remove_oldest(directory: &Path, keep: usize) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|ending| ending == &ENDING[1..])
        {
            names.push(path);
        }
    }
    names.sort();
    let surplus = names.len().saturating_sub(keep.max(1));
    names.iter().take(surplus).try_for_each(fs::remove_file)
}

/// Copies everything from one store to another, empty one, which begins a new incarnation; then compares the two. The copy
/// lies in `directory` meanwhile. Nobody may write to `from` until it is done.
pub async fn copy_store(
    from: &Store,
    to: &Store,
    directory: &Path,
) -> Result<BackupSummary, BackupError> {
    let path = directory.join(format!("migration{ENDING}"));
    let copied = async {
        backup_to_file(from, &path).await?;
        restore_file(to, &path).await?;
        compare_file(from, &path).await?;
        compare_file(to, &path).await
    };
    let copied = copied.await;
    let _ = fs::remove_file(&path);
    copied
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
