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

/// Which keys are used.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CheckedKeys {
    /// Those that are known, or new and signed.
    pub(super) known: Vec<ShareRecipient>,
    /// Those that are others than they were.
    pub(super) changed: Vec<ShareRecipient>,
    /// New ones that nobody vouches for, with the reason.
    pub(super) refused: Vec<(ShareRecipient, String)>,
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

    /// Tells known keys from changed ones, and takes in new ones for which `vouch` finds a reason to. New ones are on the
    /// disk when this returns; if they cannot be written, they are not used.
    pub(super) fn check(
        &mut self,
        recipients: &[ShareRecipient],
        vouch: impl Fn(&ShareRecipient) -> Result<(), String>,
    ) -> CheckedKeys {
        let mut keys = self.keys.clone();
        let mut checked = CheckedKeys::default();
        for one in recipients {
            if keys.contains_key(&one.node) {
                continue;
            }
            match vouch(one) {
                Ok(()) => {
                    keys.insert(one.node.clone(), one.key.clone());
                }
                Err(why) => checked.refused.push((one.clone(), why)),
            }
        }
        if keys != self.keys {
            let text = serde_json::to_vec(&keys).unwrap_or_default();
            match disk::write_durable(&self.path, &text) {
                Ok(()) => self.keys = keys,
                Err(error) => tracing::warn!(%error, "the keys of nodes cannot be remembered"),
            }
        }
        for one in recipients {
            match self.keys.get(&one.node) {
                Some(pinned) if *pinned == one.key => checked.known.push(one.clone()),
                Some(_) => checked.changed.push(one.clone()),
                None => {}
            }
        }
        checked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipient(node: &str, key: &str) -> ShareRecipient {
        ShareRecipient {
            node: node.to_owned(),
            name: node.to_owned(),
            key: key.to_owned(),
            ..ShareRecipient::default()
        }
    }

    #[test]
    fn a_key_that_changes_is_not_used_also_after_a_restart() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().join("pins.json")).expect("UTF-8");
        let all_good = |_: &ShareRecipient| Ok(());
        let mut pins = Pins::open(&path).expect("opened");
        let first = [recipient("a", "1"), recipient("b", "2")];
        let checked = pins.check(&first, all_good);
        assert_eq!(checked.known, first);
        let mut pins = Pins::open(&path).expect("opened again");
        let second = [
            recipient("a", "1"),
            recipient("b", "3"),
            recipient("c", "4"),
        ];
        // What is known needs nobody who vouches for it, and a changed one is not used whoever does.
        let only_c = |one: &ShareRecipient| (one.node == "c").then_some(()).ok_or(String::new());
        let checked = pins.check(&second, only_c);
        assert_eq!(checked.known, [recipient("a", "1"), recipient("c", "4")]);
        assert_eq!(checked.changed, [recipient("b", "3")]);
        assert_eq!(checked.refused, []);
    }

    #[test]
    fn a_new_key_that_nobody_vouches_for_is_not_remembered() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().join("pins.json")).expect("UTF-8");
        let mut pins = Pins::open(&path).expect("opened");
        let named = [recipient("a", "false")];
        let checked = pins.check(&named, |_| Err("not signed".to_owned()));
        assert_eq!(checked.known, []);
        assert_eq!(checked.refused.len(), 1);
        // The right one can still come.
        let right = [recipient("a", "right")];
        assert_eq!(pins.check(&right, |_| Ok(())).known, right);
    }
}
