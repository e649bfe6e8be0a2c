//! Users and groups as the files of a root directory name them: `/etc/passwd` and `/etc/group`.

use camino::Utf8Path;

use crate::action::ModuleError;
use crate::root::Root;

/// The most bytes of a file of accounts that are read.
const MAX_BYTES: u64 = 16 << 20;

/// The users and groups of a root directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    /// The users, in the order of the file.
    pub users: Vec<UserRecord>,
    /// The groups, in the order of the file.
    pub groups: Vec<GroupRecord>,
}

/// A line of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRecord {
    /// The name.
    pub name: String,
    /// The user id.
    pub uid: u32,
    /// The id of its own group.
    pub gid: u32,
    /// The comment, usually a full name.
    pub comment: String,
    /// The home directory.
    pub home: String,
    /// The login shell.
    pub shell: String,
}

/// A line of `/etc/group`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRecord {
    /// The name.
    pub name: String,
    /// The group id.
    pub gid: u32,
    /// The names of users that are in it beside those whose own group it is.
    pub members: Vec<String>,
}

impl Accounts {
    /// Reads the files; a missing one has no accounts, and a line of another form is passed over.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read(root: &Root) -> Result<Self, ModuleError> {
        Ok(Self {
            users: lines(root, "/etc/passwd")?
                .lines()
                .filter_map(UserRecord::parse)
                .collect(),
            groups: lines(root, "/etc/group")?
                .lines()
                .filter_map(GroupRecord::parse)
                .collect(),
        })
    }

    /// The user with this name.
    pub fn user(&self, name: &str) -> Option<&UserRecord> {
        self.users.iter().find(|user| user.name == name)
    }

    /// The group with this name.
    pub fn group(&self, name: &str) -> Option<&GroupRecord> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// The id of the user with this name; a number stands for itself unless it is a name.
    pub fn uid(&self, name: &str) -> Option<u32> {
        self.user(name)
            .map(|user| user.uid)
            .or_else(|| name.parse().ok())
    }

    /// The id of the group with this name; a number stands for itself unless it is a name.
    pub fn gid(&self, name: &str) -> Option<u32> {
        self.group(name)
            .map(|group| group.gid)
            .or_else(|| name.parse().ok())
    }

    /// The name of a user id; the number if it has none.
    pub fn user_name(&self, uid: u32) -> String {
        let user = self.users.iter().find(|user| user.uid == uid);
        user.map_or_else(|| uid.to_string(), |user| user.name.clone())
    }

    /// The name of a group id; the number if it has none.
    pub fn group_name(&self, gid: u32) -> String {
        let group = self.groups.iter().find(|group| group.gid == gid);
        group.map_or_else(|| gid.to_string(), |group| group.name.clone())
    }

    /// The ids of all groups that a user is in, its own first.
    pub fn groups_of(&self, user: &UserRecord) -> Vec<u32> {
        let mut ids = vec![user.gid];
        for group in &self.groups {
            if group.members.contains(&user.name) && !ids.contains(&group.gid) {
                ids.push(group.gid);
            }
        }
        ids
    }
}

impl UserRecord {
    /// Reads a line of `/etc/passwd`; `None` if it has another form.
    pub fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, comment, home, shell] = fields.as_slice() else {
            return None;
        };
        Some(Self {
            name: (*name).to_owned(),
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
            comment: (*comment).to_owned(),
            home: (*home).to_owned(),
            shell: (*shell).to_owned(),
        })
    }
}

impl GroupRecord {
    /// Reads a line of `/etc/group`; `None` if it has another form.
    pub fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, gid, members] = fields.as_slice() else {
            return None;
        };
        let members = members.split(',').filter(|member| !member.is_empty());
        Some(Self {
            name: (*name).to_owned(),
            gid: gid.parse().ok()?,
            members: members.map(str::to_owned).collect(),
        })
    }
}

fn lines(root: &Root, path: &str) -> Result<String, ModuleError> {
    let content = root
        .read(Utf8Path::new(path), MAX_BYTES)
        .map_err(|error| ModuleError::failed("read", path, error))?;
    Ok(String::from_utf8_lossy(&content.unwrap_or_default()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> Accounts {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap();
        std::fs::create_dir(path.join("etc")).unwrap();
        let users = "root:x:0:0:root:/root:/bin/sh\n# a comment\nweb:x:990:980::/srv:/bin/false\n42:x:7:7::/:/bin/sh\n";
        std::fs::write(path.join("etc/passwd"), users).unwrap();
        let groups = "root:x:0:\nweb:x:980:\nadm:x:4:web,root\n+\n";
        std::fs::write(path.join("etc/group"), groups).unwrap();
        Accounts::read(&Root::other(path).unwrap()).unwrap()
    }

    #[test]
    fn names_and_ids_come_from_the_root_directory() {
        let accounts = accounts();
        assert_eq!(accounts.uid("web"), Some(990));
        assert_eq!(accounts.user_name(990), "web");
        assert_eq!(accounts.gid("web"), Some(980));
        assert_eq!(accounts.group_name(4), "adm");
        let web = accounts.user("web").unwrap();
        assert_eq!(accounts.groups_of(web), [980, 4]);
    }

    #[test]
    fn a_number_is_an_id_unless_it_is_a_name() {
        let accounts = accounts();
        assert_eq!(accounts.uid("42"), Some(7));
        assert_eq!(accounts.uid("43"), Some(43));
        assert_eq!(accounts.user_name(43), "43");
        assert_eq!(accounts.uid("nobody-here"), None);
    }
}
