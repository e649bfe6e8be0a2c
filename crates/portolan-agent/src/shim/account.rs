//! Users and groups by name, and taking them on.

use std::io;
use std::process::Command;

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

/// A user as programs run as it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunAs {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
    pub(super) home: String,
}

impl RunAs {
    /// Finds a user, and a group other than its own, in this process's `/etc`, and else where the system looks for them.
    pub(super) fn find(user: &str, group: Option<&str>) -> io::Result<Self> {
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
        let found = Self::in_files(user, &passwd, &groups);
        let mut found = found.or_else(|| Self::asked(user)).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no user `{user}`"),
            )
        })?;
        if let Some(group) = group {
            let gid = group_id(group, &groups).ok_or_else(|| {
                let text = format!("there is no group `{group}`");
                io::Error::new(io::ErrorKind::NotFound, text)
            })?;
            found.gid = gid;
        }
        Ok(found)
    }

    /// Becomes the user. Only the calling thread changes, which is enough for a process that goes on to `exec`.
    pub(super) fn take_on(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        if rustix::process::geteuid().is_root() {
            set_thread_groups(&groups)?;
        }
        set_thread_gid(Gid::from_raw(self.gid))?;
        set_thread_uid(Uid::from_raw(self.uid))?;
        Ok(())
    }

    fn in_files(user: &str, passwd: &str, groups: &str) -> Option<Self> {
        let mut lines = passwd
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>());
        let fields = lines.find(|fields| fields.first() == Some(&user))?;
        let [_, _, uid, gid, _, home, ..] = fields.as_slice() else {
            return None;
        };
        let gid = gid.parse().ok()?;
        let is_member = |line: &&str| {
            let members = line.split(':').nth(3).unwrap_or_default();
            members.split(',').any(|member| member == user)
        };
        let others = groups.lines().filter(is_member);
        let others = others.filter_map(|line| line.split(':').nth(2)?.parse().ok());
        let mut groups: Vec<u32> = std::iter::once(gid).chain(others).collect();
        groups.sort_unstable();
        groups.dedup();
        Some(Self {
            uid: uid.parse().ok()?,
            gid,
            groups,
            home: (*home).to_owned(),
        })
    }

    /// Users that are not in files, such as those of a directory service.
    fn asked(user: &str) -> Option<Self> {
        let ask = |option: &str| {
            let output = Command::new("id")
                .args([option, "--", user])
                .output()
                .ok()?;
            let text = String::from_utf8(output.stdout).ok()?;
            output.status.success().then(|| text.trim().to_owned())
        };
        let groups = ask("-G")?;
        Some(Self {
            uid: ask("-u")?.parse().ok()?,
            gid: ask("-g")?.parse().ok()?,
            groups: groups.split(' ').filter_map(|id| id.parse().ok()).collect(),
            home: "/".to_owned(),
        })
    }
}

fn group_id(name: &str, groups: &str) -> Option<u32> {
    let mut lines = groups.lines().map(|line| line.split(':'));
    let mut fields = lines.find(|fields| fields.clone().next() == Some(name))?;
    fields.nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_its_own_group_and_those_that_name_it() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nweb:x:990:991::/srv/web:/bin/false\n";
        let groups = "root:x:0:\nweb:x:991:\nadm:x:4:syslog,web\nother:x:5:webmaster\n";
        let found = RunAs::in_files("web", passwd, groups).expect("found");
        assert_eq!((found.uid, found.gid), (990, 991));
        assert_eq!(found.groups, [4, 991]);
        assert_eq!(found.home, "/srv/web");
        assert_eq!(RunAs::in_files("we", passwd, groups), None);
        assert_eq!(group_id("other", groups), Some(5));
    }
}
