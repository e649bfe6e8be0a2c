//! A text file of the system, such as `/etc/fstab`, of which a step decides the content.

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;

use crate::action::ModuleError;
use crate::ahead::{PredictedPath, Prediction};
use crate::host::Host;
use crate::plan::{Change, ChangeKind, Plan, Subject};
use crate::root::{Follow, NewFile};
use crate::unified::unified;
use crate::view::{Content, View};

/// The most bytes of such a file that are read.
pub(crate) const MAX_BYTES: u64 = 4 << 20;

/// A file as it is and as it should be.
pub(crate) struct TextFile {
    path: Utf8PathBuf,
    old: Option<String>,
    new: Option<String>,
    mode: u32,
    has_other_mode: bool,
}

/// What a look at such a file gives.
pub(crate) enum TextLook {
    /// The file.
    File(TextFile),
    /// An earlier step of the check writes it, and nobody can tell what.
    Unknown,
}

impl TextFile {
    /// Looks at the file; `edit` makes the new content of the old one, and `None` stands for a file that is not there.
    pub(crate) fn look(
        view: &View<'_>,
        path: &Utf8Path,
        mode: u32,
        edit: impl FnOnce(Option<&str>) -> Option<String>,
    ) -> Result<TextLook, ModuleError> {
        let old =
            match view.read(path, MAX_BYTES)? {
                None => None,
                Some(Content::Unknown) => return Ok(TextLook::Unknown),
                Some(Content::Known(bytes)) => {
                    let text = String::from_utf8(bytes.to_vec());
                    Some(text.map_err(|_| {
                        ModuleError::failed("read", path.as_str(), "it is not UTF-8")
                    })?)
                }
            };
        let new = edit(old.as_deref());
        // A file that an earlier step will write has no permissions yet.
        let status = view
            .host
            .root
            .status(path, Follow::Yes)
            .map_err(|error| ModuleError::failed("read", path.as_str(), error))?;
        Ok(TextLook::File(Self {
            path: path.to_owned(),
            has_other_mode: old.is_some() && status.is_some_and(|status| status.mode != mode),
            old,
            new,
            mode,
        }))
    }

    /// The change of the file; `None` if it is as it should be.
    pub(crate) fn change(&self) -> Option<Change> {
        let has_other_mode = self.has_other_mode && self.new.is_some();
        if self.old == self.new && !has_other_mode {
            return None;
        }
        let (old, new) = (self.old.as_ref(), self.new.as_ref());
        let kind = match (old, new) {
            (None, _) => ChangeKind::Create,
            (_, None) => ChangeKind::Remove,
            _ => ChangeKind::Update,
        };
        let bytes = |text: Option<&String>| Digest::of(text.map_or(b"", |text| text.as_bytes()));
        let mut diff = unified(
            self.path.as_str(),
            old.map(String::as_bytes),
            new.map(String::as_bytes),
        );
        if has_other_mode {
            // Writing to a text cannot fail.
            let _ = writeln!(diff, "mode becomes {:04o}", self.mode);
        }
        Some(Change {
            subject: Subject::Path(self.path.clone()),
            kind,
            before: bytes(old),
            after: bytes(new),
            diff,
        })
    }

    /// What will be at the path after the step.
    pub(crate) fn prediction(&self) -> Prediction {
        let state = match &self.new {
            Some(text) => PredictedPath::File(Some(text.as_bytes().into())),
            None => PredictedPath::Absent,
        };
        Prediction::Path(self.path.clone(), state)
    }

    /// A plan of this file alone.
    pub(crate) fn plan(&self) -> Plan {
        Plan {
            predictions: vec![self.prediction()],
            ..Plan::of_changes(self.change().into_iter().collect())
        }
    }

    /// Writes or removes the file; returns whether something changed.
    pub(crate) fn write(&self, host: &Host) -> Result<bool, ModuleError> {
        if self.change().is_none() {
            return Ok(false);
        }
        let path = &self.path;
        let Some(text) = &self.new else {
            return match host.root.remove_file(path) {
                Ok(()) => Ok(true),
                Err(error) => Err(ModuleError::failed("remove", path.as_str(), error)),
            };
        };
        let new = NewFile {
            content: text.as_bytes(),
            mode: Some(self.mode),
            uid: None,
            gid: None,
        };
        host.root
            .replace(path, &new)
            .map_err(|error| ModuleError::failed("write", path.as_str(), error))?;
        Ok(true)
    }
}
