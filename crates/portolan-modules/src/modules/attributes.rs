//! Owner, group and permissions that a step asks for, beside those that are there.

use camino::Utf8Path;

use crate::accounts::Accounts;
use crate::action::ModuleError;
use crate::ahead::{Attributes, Prediction};
use crate::definition::{ParameterDefinition, ParameterType};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::root::{Follow, Root};
use crate::view::View;

/// The parameter `mode`.
pub(crate) const MODE: ParameterDefinition = ParameterDefinition {
    name: "mode",
    kind: ParameterType::Mode,
    is_required: false,
    summary: "The permissions, as a quoted octal number. Without it they stay as they are; new files get `0644` and new directories `0755`.",
};

/// The parameter `owner`.
pub(crate) const OWNER: ParameterDefinition = ParameterDefinition {
    name: "owner",
    kind: ParameterType::Text,
    is_required: false,
    summary: "The user it belongs to, by name or number. Without it the owner stays as it is.",
};

/// The parameter `group`.
pub(crate) const GROUP: ParameterDefinition = ParameterDefinition {
    name: "group",
    kind: ParameterType::Text,
    is_required: false,
    summary: "The group it belongs to, by name or number. Without it the group stays as it is.",
};

/// The ids of an owner and a group; `None` for those that stay as they are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ids {
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
}

impl Attributes {
    /// Reads `mode`, `owner` and `group`.
    pub(crate) fn parse(parameters: &mut Parameters<'_>) -> Self {
        let mode = parameters.mode("mode");
        Self {
            mode,
            owner: parameters.line("owner").map(str::to_owned),
            group: parameters.line("group").map(str::to_owned),
        }
    }

    /// The same with names in the place of numbers that have one.
    ///
    /// # Errors
    /// When a user or group is not there, and no earlier step makes it.
    pub(crate) fn named(&self, view: &View<'_>) -> Result<Self, ModuleError> {
        if self.owner.is_none() && self.group.is_none() {
            return Ok(self.clone());
        }
        let accounts = view.accounts()?;
        let mut named = self.clone();
        if let Some(owner) = &self.owner {
            if !view.has_user(owner)? {
                return Err(missing("user", owner));
            }
            named.owner = accounts
                .uid(owner)
                .map(|uid| accounts.user_name(uid))
                .or(named.owner);
        }
        if let Some(group) = &self.group {
            if !view.has_group(group)? {
                return Err(missing("group", group));
            }
            named.group = accounts
                .gid(group)
                .map(|gid| accounts.group_name(gid))
                .or(named.group);
        }
        Ok(named)
    }

    /// One line for each thing that is asked for and differs.
    pub(crate) fn differences(&self, found: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let shown = |mode: Option<u32>| mode.map(|mode| format!("{mode:04o}"));
        let mut compare = |what: &str, wanted: Option<String>, there: Option<String>| {
            if let Some(wanted) = wanted
                && there.as_ref() != Some(&wanted)
            {
                let there = there.map_or_else(String::new, |there| format!("{there} → "));
                lines.push(format!("{what}: {there}{wanted}\n"));
            }
        };
        compare("mode", shown(self.mode), shown(found.mode));
        compare("owner", self.owner.clone(), found.owner.clone());
        compare("group", self.group.clone(), found.group.clone());
        lines
    }

    /// What a new thing gets: what is asked for, and for the rest what the system gives to what we make.
    pub(crate) fn of_new(&self, view: &View<'_>, mode: u32) -> Result<Self, ModuleError> {
        let accounts = view.accounts()?;
        let user = || accounts.user_name(rustix::process::geteuid().as_raw());
        let group = || accounts.group_name(rustix::process::getegid().as_raw());
        Ok(Self {
            mode: Some(self.mode.unwrap_or(mode)),
            owner: Some(self.owner.clone().unwrap_or_else(user)),
            group: Some(self.group.clone().unwrap_or_else(group)),
        })
    }

    /// Only those of `found` that are asked for: a change of the others is not ours.
    pub(crate) fn managed(&self, found: &Self) -> Self {
        Self {
            mode: found.mode.filter(|_| self.mode.is_some()),
            owner: found.owner.clone().filter(|_| self.owner.is_some()),
            group: found.group.clone().filter(|_| self.group.is_some()),
        }
    }

    /// The prediction that they are so.
    pub(crate) fn predict(&self, path: &Utf8Path) -> Prediction {
        Prediction::Attributes(path.to_owned(), self.clone())
    }

    /// The ids of the names.
    ///
    /// # Errors
    /// When a user or group is not there.
    pub(crate) fn ids(&self, root: &Root) -> Result<Ids, ModuleError> {
        if self.owner.is_none() && self.group.is_none() {
            return Ok(Ids::default());
        }
        let accounts = Accounts::read(root)?;
        let uid = |name: &String| accounts.uid(name).ok_or_else(|| missing("user", name));
        let gid = |name: &String| accounts.gid(name).ok_or_else(|| missing("group", name));
        Ok(Ids {
            uid: self.owner.as_ref().map(uid).transpose()?,
            gid: self.group.as_ref().map(gid).transpose()?,
        })
    }

    /// Gives them to what is at a path; a link there is not followed.
    ///
    /// # Errors
    /// When the system refuses it.
    pub(crate) fn set(&self, host: &Host, path: &Utf8Path) -> Result<(), ModuleError> {
        let ids = self.ids(&host.root)?;
        let failed = |error| failure(host, "change", path, error);
        // The owner first: a change of it takes the setuid bit away.
        if ids.uid.is_some() || ids.gid.is_some() {
            host.root
                .set_owner(path, ids.uid, ids.gid)
                .map_err(failed)?;
        }
        if let Some(mode) = self.mode {
            host.root.set_mode(path, mode).map_err(failed)?;
        }
        Ok(())
    }
}

fn missing(kind: &str, name: &str) -> ModuleError {
    ModuleError::failed("find the", format!("{kind} {name}"), "it is not there").with_hint(format!(
        "add a step with the module `{kind}` before this one"
    ))
}

/// A failure at a path, with what to do about the usual reasons.
pub(crate) fn failure(
    host: &Host,
    act: &'static str,
    path: &Utf8Path,
    error: std::io::Error,
) -> ModuleError {
    use std::io::ErrorKind;
    let is_fixed = error.kind() == ErrorKind::PermissionDenied
        && host.root.is_immutable(path).unwrap_or(false);
    let hint = match error.kind() {
        _ if is_fixed => "it has the immutable or append-only flag: take it away with `chattr -ia`",
        ErrorKind::ResourceBusy => {
            "something is mounted on it; `inPlace: true` writes into the mounted file"
        }
        ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space",
        ErrorKind::CrossesDevices => "both must be on one file system",
        ErrorKind::NotFound => "add a step that makes the directory, or `parents`",
        _ => return ModuleError::failed(act, path, error),
    };
    ModuleError::failed(act, path, error).with_hint(hint)
}

/// Refuses a link that somebody else may have put where everybody can: it could lead anywhere.
pub(crate) fn refuse_foreign_link(host: &Host, path: &Utf8Path) -> Result<(), ModuleError> {
    let look = |path: &Utf8Path, follow| {
        let status = host.root.status(path, follow);
        status.map_err(|error| ModuleError::failed("look at", path, error))
    };
    let parent = path.parent().unwrap_or("/".into());
    let (Some(link), Some(directory)) = (look(path, Follow::No)?, look(parent, Follow::Yes)?)
    else {
        return Ok(());
    };
    let is_open_to_all = directory.mode & 0o002 != 0;
    let is_foreign = link.uid != rustix::process::geteuid().as_raw() && link.uid != directory.uid;
    if is_open_to_all && is_foreign {
        let reason = format!(
            "user {} put this link into `{parent}`, where everybody can write",
            link.uid
        );
        return Err(ModuleError::failed("follow", path, reason)
            .with_hint("remove the link, or write `follow: false` to replace it"));
    }
    Ok(())
}
