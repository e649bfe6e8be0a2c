//! Who a command runs as.

use std::io;

use portolan_modules::{Account, Accounts, ModuleError, Root};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use serde::{Deserialize, Serialize};

/// A user with the groups that a command gets. Found by the agent, below its root directory; taken on by the starter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunAs {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
    pub(super) home: String,
}

impl RunAs {
    /// Finds an account in the files of a root directory.
    pub(super) fn find(root: &Root, account: &Account) -> Result<Self, ModuleError> {
        let accounts = Accounts::read(root)?;
        let missing =
            |name: &str| ModuleError::failed("run a program as", name, "there is no such account");
        let user = accounts.user(&account.user);
        let user = user.ok_or_else(|| missing(&account.user))?;
        let gid = match &account.group {
            Some(group) => accounts.gid(group).ok_or_else(|| missing(group))?,
            None => user.gid,
        };
        Ok(Self {
            groups: accounts.groups_of(user),
            gid,
            uid: user.uid,
            name: user.name.clone(),
            home: user.home.clone(),
        })
    }

    /// Becomes the user. Only the calling thread changes, which is enough for a process that goes on to `exec`.
    pub(super) fn take_on(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        // Who is that user already cannot, and need not, take on its groups.
        if rustix::process::geteuid() != Uid::from_raw(self.uid) {
            set_thread_groups(&groups)?;
            set_thread_gid(Gid::from_raw(self.gid))?;
            set_thread_uid(Uid::from_raw(self.uid))?;
        }
        Ok(())
    }
}
