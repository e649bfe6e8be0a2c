//! The key of each consumer, as it was when something was first encrypted to it.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::disk;
use crate::wire::ShareRecipient;

/// Keys by the uuids of nodes.
pub(super) struct Pins {
    path: Utf8PathBuf,
    keys: BTreeMap<String, String>,
}

impl Pins {
    /// Reads the file, if there is one. One that cannot be read is no fresh start.
    pub(super) fn open(path: &Utf8Path) -> io::Result<Self> {
        let keys = match std::fs::read(path) {
            Ok(text) => serde_json::from_slice(&text).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Self {
            path: path.to_owned(),
            keys,
        })
    }

    /// Those whose keys are known or new, and those whose keys have changed. New ones are on the disk when this returns; if
    /// they cannot be written, they are not used.
    pub(super) fn check(
        &mut self,
        recipients: &[ShareRecipient],
    ) -> (Vec<ShareRecipient>, Vec<ShareRecipient>) {
        let mut keys = self.keys.clone();
        for one in recipients {
            keys.entry(one.node.clone())
                .or_insert_with(|| one.key.clone());
        }
        if keys != self.keys {
            let text = serde_json::to_vec(&keys).unwrap_or_default();
            match disk::write_durable(&self.path, &text) {
                Ok(()) => self.keys = keys,
                Err(error) => tracing::warn!(%error, "the keys of nodes cannot be remembered"),
            }
        }
        let is_known = |one: &&ShareRecipient| self.keys.get(&one.node) == Some(&one.key);
        let known = recipients.iter().filter(is_known).cloned().collect();
        let is_changed = |one: &&ShareRecipient| {
            let pinned = self.keys.get(&one.node);
            pinned.is_some_and(|pinned| *pinned != one.key)
        };
        let changed = recipients.iter().filter(is_changed).cloned().collect();
        (known, changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_changes_is_not_used_also_after_a_restart() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().join("pins.json")).expect("UTF-8");
        let recipient = |node: &str, key: &str| ShareRecipient {
            node: node.to_owned(),
            name: node.to_owned(),
            key: key.to_owned(),
        };
        let mut pins = Pins::open(&path).expect("opened");
        let first = [recipient("a", "1"), recipient("b", "2")];
        assert_eq!(pins.check(&first), (first.to_vec(), Vec::new()));
        let mut pins = Pins::open(&path).expect("opened again");
        let second = [
            recipient("a", "1"),
            recipient("b", "3"),
            recipient("c", "4"),
        ];
        let (known, changed) = pins.check(&second);
        assert_eq!(known, [recipient("a", "1"), recipient("c", "4")]);
        assert_eq!(changed, [recipient("b", "3")]);
    }
}
