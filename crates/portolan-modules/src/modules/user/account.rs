//! The account itself: what it is, what it should be, and the programs that make the difference.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;
use serde_json::json;

use super::keys::KeyFile;
use super::{Groups, User};
use crate::account_tool::{account_tool, is_from_directory, refuse_links};
use crate::accounts::{Accounts, UserRecord};
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::{Ahead, PredictedPath, Prediction};
use crate::host::Host;
use crate::plan::{Plan, Subject};
use crate::shadow::Password;
use crate::shadow_file::{read_password, write_password};
use crate::state::State;
use crate::view::View;

/// What the host has now.
struct Found {
    accounts: Accounts,
    user: Option<UserRecord>,
    groups: Vec<String>,
    password: Option<Password>,
}

impl Action for User {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let found = self.find(view.host)?;
        let ahead = view.ahead.user(&self.name);
        if ahead.is_some_and(|will_be_there| will_be_there != found.user.is_some()) {
            return Ok(self.plan_after_earlier_steps(ahead == Some(true)));
        }
        if found.user.is_none() && is_from_directory(view.host, "passwd", &self.name)? {
            let reason = "it comes from a directory service and not from `/etc/passwd`";
            return Err(ModuleError::failed("change user", &*self.name, reason)
                .with_hint("change it where it comes from, or use another name"));
        }
        if !self.is_wanted {
            return self.plan_removal(view.host, &found);
        }
        self.refuse_what_cannot_work(&found, &view.ahead)?;
        let (before, after) = (found.state(), self.state_wanted(&found)?);
        let mut changes: Vec<_> = before
            .change_to(&after, Subject::User(self.name.clone()))
            .into_iter()
            .collect();
        let mut predictions = self.predictions(&found);
        let mut notes = self.notes(&found);
        if let Some(keys) = self.key_file(view.host, found.user.as_ref())? {
            changes.extend(keys.changes());
            predictions.extend(keys.predictions());
            notes.extend(keys.notes());
        }
        let mut plan = Plan {
            predictions,
            notes,
            ..Plan::of_changes(changes)
        };
        if let Some(user) = &found.user {
            plan.before.insert("uid".to_owned(), json!(user.uid));
            plan.before.insert("home".to_owned(), json!(user.home));
        }
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let now = self.plan(&View::of(host))?;
        plan.confirm(&now)?;
        let is_changed = !now.changes().is_empty();
        let found = self.find(host)?;
        match (&found.user, self.is_wanted) {
            (None, true) => self.create(host, &found)?,
            (Some(user), true) => self.change(host, &found, user)?,
            (Some(user), false) => self.remove(host, user)?,
            (None, false) => {}
        }
        let user = self.find(host)?.user;
        if let Some(keys) = self.key_file(host, user.as_ref())? {
            keys.write(host)?;
        }
        let mut applied = Applied {
            is_changed,
            notes: now.notes,
            ..Applied::default()
        };
        if let Some(user) = user {
            applied.result.insert("uid".to_owned(), json!(user.uid));
            applied.result.insert("gid".to_owned(), json!(user.gid));
            applied.result.insert("home".to_owned(), json!(user.home));
        }
        Ok(applied)
    }
}

impl User {
    fn find(&self, host: &Host) -> Result<Found, ModuleError> {
        let accounts = Accounts::read(&host.root)?;
        let user = accounts.user(&self.name).cloned();
        let mut groups: Vec<String> = accounts
            .groups
            .iter()
            .filter(|group| group.members.contains(&self.name))
            .map(|group| group.name.clone())
            .collect();
        groups.sort_unstable();
        Ok(Found {
            password: read_password(&host.root, &self.name)?,
            accounts,
            user,
            groups,
        })
    }

    /// An earlier step of the check makes or removes the user, so nothing more is known about it.
    fn plan_after_earlier_steps(&self, will_be_there: bool) -> Plan {
        if will_be_there && self.is_wanted {
            return Plan::unknown("an earlier step makes the user");
        }
        let state = |is_there: bool| {
            if is_there {
                State::default().with("user", "present")
            } else {
                State::default()
            }
        };
        let change = state(will_be_there)
            .change_to(&state(self.is_wanted), Subject::User(self.name.clone()));
        Plan {
            predictions: vec![Prediction::User(self.name.clone(), self.is_wanted)],
            ..Plan::of_changes(change.into_iter().collect())
        }
    }

    fn plan_removal(&self, host: &Host, found: &Found) -> Result<Plan, ModuleError> {
        let change = found
            .state()
            .change_to(&State::default(), Subject::User(self.name.clone()));
        let mut plan = Plan::of_changes(change.into_iter().collect());
        plan.predictions
            .push(Prediction::User(self.name.clone(), false));
        if let Some(user) = found.user.as_ref().filter(|_| self.removes_home) {
            refuse_shared_home(host, found, user)?;
            plan.predictions.push(Prediction::Path(
                user.home.clone().into(),
                PredictedPath::Absent,
            ));
        } else if let Some(user) = &found.user {
            plan.notes.push(format!("`{}` stays", user.home));
        }
        Ok(plan)
    }

    fn refuse_what_cannot_work(&self, found: &Found, ahead: &Ahead) -> Result<(), ModuleError> {
        let failed = |reason: String| ModuleError::failed("change user", &*self.name, reason);
        let will_exist = |group: &str| {
            let is_there = found
                .accounts
                .gid(group)
                .is_some_and(|gid| found.accounts.groups.iter().any(|known| known.gid == gid));
            ahead.group(group).unwrap_or(is_there)
        };
        let named = match &self.groups {
            Groups::AsTheyAre => &[][..],
            Groups::AtLeast(names) | Groups::Exactly(names) => names,
        };
        if let Some(missing) = self
            .group
            .iter()
            .chain(named)
            .find(|group| !will_exist(group))
        {
            return Err(failed(format!("the group `{missing}` does not exist"))
                .with_hint("make it in an earlier step: group: {name: …}"));
        }
        let other = found
            .accounts
            .users
            .iter()
            .find(|user| Some(user.uid) == self.uid && user.name != self.name);
        if let Some(user) = other {
            return Err(failed(format!(
                "the user `{}` has the number {}",
                user.name, user.uid
            )));
        }
        Ok(())
    }

    /// The state after the step. For a new user, what `useradd` decides is left out.
    fn state_wanted(&self, found: &Found) -> Result<State, ModuleError> {
        let mut state = found.state();
        if found.user.is_none() {
            let uid = self
                .uid
                .map_or_else(|| "next free".to_owned(), |uid| uid.to_string());
            state = state
                .with("uid", uid)
                .with("group", self.group_of_new_user(found).to_owned());
            if self.makes_home() {
                state = state.with("home", self.home_of_new_user().as_str());
            }
        } else if let Some(uid) = self.uid {
            state = state.with("uid", uid.to_string());
        }
        if let Some(group) = &self.group {
            let name = found
                .accounts
                .gid(group)
                .map(|gid| found.accounts.group_name(gid));
            state = state.with("group", name.unwrap_or_else(|| group.clone()));
        }
        let given = [
            ("comment", self.comment.as_deref()),
            ("home", self.home.as_deref().map(Utf8Path::as_str)),
            ("shell", self.shell.as_deref().map(Utf8Path::as_str)),
        ];
        for (name, value) in given {
            state = match value {
                Some(value) => state.with(name, value),
                None => state,
            };
        }
        if let Some(groups) = self.groups_wanted(&found.groups) {
            state = state.with("groups", groups.join(", "));
        }
        match self.password_wanted(found)? {
            Some(password) => Ok(with_password(state, &password)),
            None => Ok(state),
        }
    }

    /// The groups after the step; `None` if they stay as they are.
    fn groups_wanted(&self, now: &[String]) -> Option<Vec<String>> {
        let mut wanted = match &self.groups {
            Groups::AsTheyAre => return None,
            Groups::Exactly(names) => names.clone(),
            Groups::AtLeast(names) => now.iter().chain(names).cloned().collect(),
        };
        wanted.sort_unstable();
        wanted.dedup();
        (wanted != now).then_some(wanted)
    }

    /// The password after the step; `None` if it stays as it is.
    fn password_wanted(&self, found: &Found) -> Result<Option<Password>, ModuleError> {
        // `useradd` gives a new user a locked password without a hash.
        let now = match (&found.user, &found.password) {
            (Some(_), Some(password)) => password.clone(),
            (Some(_), None) if self.password_hash.is_none() && self.is_locked.is_none() => {
                return Ok(None);
            }
            _ => Password::of_hash("").locked(true),
        };
        let replaces = found.user.is_none() || self.is_password_for_all;
        let mut wanted = match self.password_hash.as_deref().filter(|_| replaces) {
            Some(hash) if hash != now.hash() => Password::of_hash(hash),
            _ => now.clone(),
        };
        if let Some(locked) = self.is_locked {
            if !locked && wanted.is_locked() && !wanted.hash().starts_with('$') {
                let reason = "it has no password that could be unlocked";
                return Err(ModuleError::failed("unlock user", &*self.name, reason)
                    .with_hint("give it one: passwordHash, with setPassword: always"));
            }
            wanted = wanted.locked(locked);
        }
        Ok((wanted != now).then_some(wanted))
    }

    fn group_of_new_user(&self, found: &Found) -> &str {
        debug_assert!(found.user.is_none());
        self.group.as_deref().unwrap_or(&self.name)
    }

    fn makes_home(&self) -> bool {
        !self.is_system
    }

    fn home_of_new_user(&self) -> Utf8PathBuf {
        match &self.home {
            Some(home) => home.clone(),
            None => Utf8Path::new("/home").join(&self.name),
        }
    }

    fn predictions(&self, found: &Found) -> Vec<Prediction> {
        let mut predictions = vec![Prediction::User(self.name.clone(), true)];
        if found.user.is_none() {
            let group = self.group_of_new_user(found).to_owned();
            predictions.push(Prediction::Group(group, true));
            if self.makes_home() {
                let home = self.home_of_new_user();
                predictions.push(Prediction::Path(home, PredictedPath::Directory));
            }
        }
        predictions
    }

    fn notes(&self, found: &Found) -> Vec<String> {
        let mut notes = Vec::new();
        let Some(user) = &found.user else {
            return notes;
        };
        if self.home.as_ref().is_some_and(|home| *home != user.home) {
            notes.push(format!("the content of `{}` stays there", user.home));
        }
        if self.uid.is_some_and(|uid| uid != user.uid) {
            notes.push(format!(
                "`usermod` gives what the user owns in `{}` to the new number; files elsewhere keep the old one",
                user.home
            ));
        }
        notes
    }

    fn key_file(
        &self,
        host: &Host,
        user: Option<&UserRecord>,
    ) -> Result<Option<KeyFile>, ModuleError> {
        let Some(keys) = self.keys.as_ref().filter(|_| self.is_wanted) else {
            return Ok(None);
        };
        let home = match (&self.home, user) {
            (Some(home), _) => home.clone(),
            (None, Some(user)) => user.home.clone().into(),
            (None, None) => self.home_of_new_user(),
        };
        if user.is_none() && !self.makes_home() {
            let reason = "a system user gets no home directory";
            return Err(ModuleError::failed("give SSH keys to", &*self.name, reason)
                .with_hint("make the directory in an earlier step, or leave out `system`"));
        }
        KeyFile::find(host, &home, user, keys, self.has_only_these_keys).map(Some)
    }

    fn create(&self, host: &Host, found: &Found) -> Result<(), ModuleError> {
        let home = self.home_of_new_user();
        let mut tool = account_tool(host, "useradd")?;
        if !host.root.is_machine() {
            refuse_links(&host.root, &home)?;
            // The logs of logins that it would write to are the machine's.
            tool = tool.arg("--no-log-init");
        }
        tool = match (&self.group, found.accounts.group(&self.name)) {
            (Some(group), _) => tool.args(["-g", group]),
            (None, Some(group)) => tool.args(["-g", &group.name]),
            (None, None) => tool.arg("-U"),
        };
        tool = tool.args(self.is_system.then_some("-r"));
        tool = tool.args([
            "-d",
            home.as_str(),
            if self.makes_home() { "-m" } else { "-M" },
        ]);
        if self.makes_home() && !host.root.is_machine() {
            let skeleton = host.root.machine_path("/etc/skel".into());
            tool = tool.args(["-k", skeleton.as_str()]);
        }
        tool = self.common_options(tool, found, None);
        tool.args(["--", &self.name])
            .run_for(host, "make user", &self.name)?;
        self.set_password(host, found)
    }

    fn change(&self, host: &Host, found: &Found, user: &UserRecord) -> Result<(), ModuleError> {
        let tool = account_tool(host, "usermod")?;
        let is_other_group = |group: &&String| found.accounts.gid(group) != Some(user.gid);
        let group = self.group.as_ref().filter(is_other_group);
        let home = self.home.as_ref().filter(|home| **home != user.home);
        let has_options = group.is_some()
            || home.is_some()
            || self.uid.is_some_and(|uid| uid != user.uid)
            || self
                .comment
                .as_ref()
                .is_some_and(|text| *text != user.comment)
            || self
                .shell
                .as_ref()
                .is_some_and(|shell| *shell != user.shell)
            || self.groups_wanted(&found.groups).is_some();
        if has_options {
            let tool = tool
                .args(group.into_iter().flat_map(|group| ["-g", group]))
                .args(home.into_iter().flat_map(|home| ["-d", home.as_str()]));
            self.common_options(tool, found, Some(user))
                .args(["--", &self.name])
                .run_for(host, "change user", &self.name)?;
        }
        self.set_password(host, found)
    }

    /// Options that `useradd` and `usermod` share.
    fn common_options(
        &self,
        mut tool: crate::tool::Tool,
        found: &Found,
        user: Option<&UserRecord>,
    ) -> crate::tool::Tool {
        if let Some(uid) = self
            .uid
            .filter(|uid| user.is_none_or(|user| user.uid != *uid))
        {
            tool = tool.args(["-u".to_owned(), uid.to_string()]);
        }
        if let Some(comment) = &self.comment {
            tool = tool.args(["-c", comment]);
        }
        if let Some(shell) = &self.shell {
            tool = tool.args(["-s", shell.as_str()]);
        }
        match self.groups_wanted(&found.groups) {
            Some(groups) => tool.args(["-G".to_owned(), groups.join(",")]),
            None => tool,
        }
    }

    fn set_password(&self, host: &Host, found: &Found) -> Result<(), ModuleError> {
        match self.password_wanted(found)? {
            Some(password) => write_password(host, &self.name, &password),
            None => Ok(()),
        }
    }

    fn remove(&self, host: &Host, user: &UserRecord) -> Result<(), ModuleError> {
        account_tool(host, "userdel")?
            .args(["--", &self.name])
            .run_for(host, "remove user", &self.name)?;
        if !self.removes_home {
            return Ok(());
        }
        host.root
            .remove_all(Utf8Path::new(&user.home))
            .map_err(|error| ModuleError::failed("remove", &*user.home, error))
    }
}

/// A home directory is removed only if it is the user's own and nobody else's.
fn refuse_shared_home(host: &Host, found: &Found, user: &UserRecord) -> Result<(), ModuleError> {
    let home = Utf8Path::new(&user.home);
    let failed = |reason: String| ModuleError::failed("remove", &*user.home, reason);
    let status = host
        .root
        .status(home, crate::root::Follow::No)
        .map_err(|error| failed(error.to_string()))?;
    let Some(status) = status else {
        return Ok(());
    };
    let other = found
        .accounts
        .users
        .iter()
        .find(|other| other.name != user.name && Utf8Path::new(&other.home).starts_with(home));
    if let Some(other) = other {
        return Err(failed(format!(
            "the home of the user `{}` is in it",
            other.name
        )));
    }
    if status.uid != user.uid || status.kind != crate::root::FileKind::Directory {
        return Err(failed(
            "it is not a directory that the user owns".to_owned(),
        ));
    }
    Ok(())
}

impl Found {
    fn state(&self) -> State {
        let Some(user) = &self.user else {
            return State::default();
        };
        let state = State::default()
            .with("uid", user.uid.to_string())
            .with("group", self.accounts.group_name(user.gid))
            .with("groups", self.groups.join(", "))
            .with("comment", &*user.comment)
            .with("home", &*user.home)
            .with("shell", &*user.shell);
        match &self.password {
            Some(password) => with_password(state, password),
            None => state,
        }
    }
}

/// Tells apart passwords without showing a hash.
fn with_password(state: State, password: &Password) -> State {
    let hash = match password.hash() {
        "" => "none".to_owned(),
        hash if hash.starts_with('$') => {
            let digest = Digest::of(hash.as_bytes()).hex();
            format!("a hash with the digest {}", &digest[..8])
        }
        _ => "unusable".to_owned(),
    };
    let locked = if password.is_locked() { "yes" } else { "no" };
    state.with("password", hash).with("locked", locked)
}
