//! Remembers what was found below directories, by the content of the directories.
//!
//! The search of a whole tree is the same work for every tree of a session, except for the files that changed between
//! them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::Stamp;

/// Findings by directory, each for the newest state of the directory that was searched.
pub(crate) struct Memo<T>(Mutex<HashMap<Utf8PathBuf, Found<T>>>);

/// What was found below a directory, and in which state of it.
type Found<T> = (Stamp, Arc<Vec<T>>);

impl<T: Clone> Memo<T> {
    /// Adds what is below a directory: what is remembered, or else what the search finds.
    pub(crate) fn extend<E>(
        &self,
        found: &mut Vec<T>,
        directory: &Utf8Path,
        stamp: Option<Stamp>,
        search: impl FnOnce(&mut Vec<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let known = stamp.and_then(|stamp| {
            let known = self.lock().get(directory).cloned();
            known.filter(|(known, _)| *known == stamp)
        });
        if let Some((_, known)) = known {
            found.extend(known.iter().cloned());
            return Ok(());
        }
        let before = found.len();
        search(found)?;
        if let Some(stamp) = stamp {
            let new = found.get(before..).unwrap_or_default().to_vec();
            self.lock()
                .insert(directory.to_owned(), (stamp, Arc::new(new)));
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Utf8PathBuf, Found<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use portolan_vfs::Lineage;

    use super::*;

    #[test]
    fn a_directory_is_searched_again_only_when_it_was_touched() {
        let memo = Memo::default();
        let search = |stamp: Option<Stamp>, finds: u8| {
            let mut found = vec![0];
            let searched = memo.extend(&mut found, "/a".into(), stamp, |found| {
                found.push(finds);
                Ok::<_, Infallible>(())
            });
            searched.unwrap();
            found
        };
        let first = Lineage::begin();
        let second = first.followed_by([Utf8Path::new("/a/b")]);
        let stamp = |tree: &Lineage| Some(tree.stamp("/a".into()));
        assert_eq!(search(stamp(&first), 1), [0, 1]);
        assert_eq!(search(stamp(&first), 2), [0, 1]);
        assert_eq!(search(stamp(&second), 3), [0, 3]);
        assert_eq!(search(None, 4), [0, 4]);
    }
}
