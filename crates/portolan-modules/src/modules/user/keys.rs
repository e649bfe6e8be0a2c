//! `~/.ssh/authorized_keys` of a user, with the owners and permissions without which `sshd` ignores it (its
//! `StrictModes`).

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;

use crate::accounts::UserRecord;
use crate::action::ModuleError;
use crate::ahead::{PredictedPath, Prediction};
use crate::authorized_keys::{KeyLine, with_keys};
use crate::host::Host;
use crate::plan::{Change, ChangeKind, Subject};
use crate::root::{FileKind, Follow, NewFile, Root, Status};
use crate::unified::unified;

/// The most bytes of the file that are read.
const MAX_BYTES: u64 = 4 << 20;

/// The permissions of `~/.ssh`.
const DIRECTORY_MODE: u32 = 0o700;

/// The permissions of the file.
const FILE_MODE: u32 = 0o600;

/// Bits that let others write, for which `sshd` ignores the file.
const WRITABLE_BY_OTHERS: u32 = 0o022;

const DIRECTORY: &str = "/.ssh";
const FILE: &str = "/.ssh/authorized_keys";

/// The file as it is and as it should be.
pub(super) struct KeyFile {
    home: Utf8PathBuf,
    /// The user's and its group's number; not known before the user is made.
    owner: Option<(u32, u32)>,
    old: Option<String>,
    new: String,
    has_wrong_owner: bool,
    is_home_open: bool,
}

impl KeyFile {
    pub(super) fn find(
        host: &Host,
        home: &Utf8Path,
        user: Option<&UserRecord>,
        keys: &[KeyLine],
        is_exclusive: bool,
    ) -> Result<Self, ModuleError> {
        let failed =
            |error: std::io::Error| ModuleError::failed("read", format!("{home}{FILE}"), error);
        let mut file = Self {
            home: home.to_owned(),
            owner: user.map(|user| (user.uid, user.gid)),
            old: None,
            new: with_keys("", keys, is_exclusive),
            has_wrong_owner: false,
            is_home_open: false,
        };
        let Some(status) = host.root.status(home, Follow::Yes).map_err(failed)? else {
            return Ok(file);
        };
        file.is_home_open = status.mode & WRITABLE_BY_OTHERS != 0;
        // With the home as its own root, no link that the user makes leads out of it.
        let inside = host.root.inside(home).map_err(failed)?;
        let old = inside.read(FILE.into(), MAX_BYTES).map_err(failed)?;
        if let Some(content) = old {
            let text = String::from_utf8(content).map_err(|_| {
                ModuleError::failed("read", format!("{home}{FILE}"), "it is not UTF-8")
            })?;
            file.new = with_keys(&text, keys, is_exclusive);
            file.old = Some(text);
        }
        for (path, kind) in [(DIRECTORY, FileKind::Directory), (FILE, FileKind::File)] {
            let status = inside.status(path.into(), Follow::No).map_err(failed)?;
            file.has_wrong_owner |= status.is_some_and(|status| !file.is_strict(&status, kind));
        }
        Ok(file)
    }

    /// Whether `sshd` accepts the owner and permissions of something.
    fn is_strict(&self, status: &Status, kind: FileKind) -> bool {
        let is_owner = self.owner.is_some_and(|(uid, _)| uid == status.uid) || status.uid == 0;
        status.kind == kind && is_owner && status.mode & WRITABLE_BY_OTHERS == 0
    }

    fn is_right(&self) -> bool {
        let is_same =
            self.old.as_deref() == Some(&self.new) || (self.old.is_none() && self.new.is_empty());
        is_same && !self.has_wrong_owner
    }

    pub(super) fn changes(&self) -> Option<Change> {
        if self.is_right() {
            return None;
        }
        let path = format!("{}{FILE}", self.home);
        let old = self.old.as_ref().map(String::as_bytes);
        let mut diff = unified(&path, old, Some(self.new.as_bytes()));
        if self.has_wrong_owner {
            diff.push_str("owner and permissions become those that sshd asks for\n");
        }
        let before = format!("{} {:?}", self.has_wrong_owner, self.old);
        Some(Change {
            subject: Subject::Path(path.into()),
            kind: if old.is_some() {
                ChangeKind::Update
            } else {
                ChangeKind::Create
            },
            before: Digest::of(before.as_bytes()),
            after: Digest::of(self.new.as_bytes()),
            diff,
        })
    }

    pub(super) fn predictions(&self) -> [Prediction; 2] {
        let content = PredictedPath::File(Some(self.new.as_bytes().into()));
        [
            Prediction::Path(
                format!("{}{DIRECTORY}", self.home).into(),
                PredictedPath::Directory,
            ),
            Prediction::Path(format!("{}{FILE}", self.home).into(), content),
        ]
    }

    pub(super) fn notes(&self) -> Option<String> {
        self.is_home_open.then(|| {
            format!(
                "sshd ignores the keys as long as others than the user may write to `{}`",
                self.home
            )
        })
    }

    pub(super) fn write(&self, host: &Host) -> Result<(), ModuleError> {
        if self.is_right() {
            return Ok(());
        }
        let path = format!("{}{FILE}", self.home);
        let Some((uid, gid)) = self.owner else {
            return Err(ModuleError::failed(
                "write",
                path,
                "the user does not exist",
            ));
        };
        self.write_inside(host, uid, gid)
            .map_err(|error| ModuleError::failed("write", path, error))
    }

    fn write_inside(&self, host: &Host, uid: u32, gid: u32) -> std::io::Result<()> {
        let inside: Root = host.root.inside(&self.home)?;
        let directory = Utf8Path::new(DIRECTORY);
        if inside.status(directory, Follow::No)?.is_none() {
            inside.make_directory(directory, DIRECTORY_MODE)?;
        }
        inside.set_owner(directory, Some(uid), Some(gid))?;
        inside.set_mode(directory, DIRECTORY_MODE)?;
        let new = NewFile {
            content: self.new.as_bytes(),
            mode: Some(FILE_MODE),
            uid: Some(uid),
            gid: Some(gid),
        };
        inside.replace(FILE.into(), &new)?;
        Ok(())
    }
}
