//! The directory with the checkout, and how git is called there.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::NamedTempFile;

use super::Git;
use crate::accounts::Accounts;
use crate::action::ModuleError;
use crate::host::{Account, Host};
use crate::root::{FileKind, Follow};
use crate::tool::Tool;
use crate::view::{Found, View};

/// Permissions of a directory that has to be made.
const DIRECTORY_MODE: u32 = 0o755;

/// A checkout that is there, or will be.
pub(super) struct Checkout<'s> {
    pub(super) step: &'s Git,
    /// Where it is on the machine.
    place: Utf8PathBuf,
    exists: bool,
    account: Option<Account>,
    known_hosts: Option<NamedTempFile>,
}

impl<'s> Checkout<'s> {
    pub(super) fn find(view: &View<'_>, step: &'s Git) -> Result<Self, ModuleError> {
        let host = view.host;
        let failed = |reason: &str| ModuleError::failed("check out", step.path.as_str(), reason);
        let exists = match view.find(&step.path, Follow::Yes)?.1 {
            Found::Absent => false,
            Found::Directory(_) => is_checkout(view, step)?,
            _ => return Err(failed("it is not a directory")),
        };
        if exists {
            refuse_foreign_owner(host, &step.path)?;
        }
        let known_hosts = match &step.host_keys {
            Some(keys) => {
                Some(write_known_hosts(keys).map_err(|error| failed(&error.to_string()))?)
            }
            None => None,
        };
        Ok(Self {
            step,
            place: host.root.machine_path(&step.path),
            exists,
            account: host.account.clone(),
            known_hosts,
        })
    }

    /// Git without a repository.
    pub(super) fn plain_git(&self) -> Result<Tool, ModuleError> {
        let mut ssh = "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes".to_owned();
        if let Some(file) = &self.known_hosts {
            let path = Utf8Path::from_path(file.path()).ok_or_else(|| {
                ModuleError::failed("use", file.path().to_string_lossy(), "it is not UTF-8")
            })?;
            ssh = format!("{ssh} -o UserKnownHostsFile={path} -o GlobalKnownHostsFile=/dev/null");
        }
        Ok(Tool::new("git")
            .for_user(self.account.as_ref())
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_SSH_COMMAND", ssh)
            // Programs that the repository or its directory could name are not started.
            .args([
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "core.fsmonitor=false",
            ])
            .args([
                "-c",
                "protocol.ext.allow=never",
                "-c",
                "advice.detachedHead=false",
            ]))
    }

    /// Git in the checkout, wherever its own settings say that the files are.
    fn git(&self) -> Result<Tool, ModuleError> {
        let place = &self.place;
        Ok(self
            .plain_git()?
            // Git asks for this where the directory belongs to somebody else than who runs it.
            .args(["-c".to_owned(), format!("safe.directory={place}")])
            .args([
                format!("--git-dir={place}/.git"),
                format!("--work-tree={place}"),
            ])
            .args(["-C", place.as_str()]))
    }

    /// The commit that is checked out; `None` if there is no checkout.
    pub(super) fn commit(&self, host: &Host) -> Result<Option<String>, ModuleError> {
        if !self.exists {
            return Ok(None);
        }
        let exit = self
            .git()?
            .args(["rev-parse", "--verify", "--quiet", "HEAD"])
            .run(host)?;
        let text = String::from_utf8_lossy(&exit.stdout).trim().to_owned();
        // A first fetch that was interrupted leaves a repository without a commit.
        Ok(Some(if exit.code == 0 {
            text
        } else {
            "none".to_owned()
        }))
    }

    /// Where the checkout comes from, by its own settings.
    pub(super) fn url(&self, host: &Host) -> Result<Option<String>, ModuleError> {
        if !self.exists {
            return Ok(None);
        }
        let exit = self
            .git()?
            .args(["config", "--get", "remote.origin.url"])
            .run(host)?;
        let text = String::from_utf8_lossy(&exit.stdout).trim().to_owned();
        Ok((exit.code == 0).then_some(text))
    }

    /// Files that are changed or untracked.
    pub(super) fn leftovers(&self, host: &Host) -> Result<Vec<String>, ModuleError> {
        let listed = self
            .git()?
            .args(["status", "--porcelain=v1", "-z", "--untracked-files=normal"])
            .run_for(host, "look at", self.step.path.as_str())?;
        Ok(parse_status(&listed))
    }

    /// Brings the files to a commit.
    pub(super) fn update(&self, host: &Host, commit: &str) -> Result<(), ModuleError> {
        let path = self.step.path.as_str();
        let git = |arguments: &[&str]| self.git().map(|git| git.args(arguments.iter().copied()));
        if !self.exists {
            self.make(host)?;
        }
        let verb = if self.url(host)?.is_some() || self.has_origin(host)? {
            "set-url"
        } else {
            "add"
        };
        git(&["remote", verb, "--", "origin", &self.step.url])?.run_for(host, "set up", path)?;
        if !self.has_commit(host, commit)? {
            self.fetch(host)?;
        }
        if self.step.discards {
            git(&["clean", "-ffd", "--quiet"])?.run_for(host, "clean", path)?;
        }
        let force: &[&str] = if self.step.discards {
            &["--force"]
        } else {
            &[]
        };
        self.git()?
            .args(["checkout", "--quiet", "--detach"])
            .args(force.iter().copied())
            .args([commit, "--"])
            .run_for(host, "check out", path)?;
        let modules = self.step.path.join(".gitmodules");
        if matches!(host.root.status(&modules, Follow::No), Ok(Some(_))) {
            git(&["submodule", "--quiet", "sync", "--recursive"])?.run_for(host, "set up", path)?;
            git(&[
                "submodule",
                "--quiet",
                "update",
                "--init",
                "--recursive",
                "--force",
            ])?
            .run_for(host, "fetch submodules of", path)?;
        }
        Ok(())
    }

    fn has_origin(&self, host: &Host) -> Result<bool, ModuleError> {
        let exit = self.git()?.args(["remote"]).run(host)?;
        Ok(String::from_utf8_lossy(&exit.stdout)
            .lines()
            .any(|name| name == "origin"))
    }

    fn has_commit(&self, host: &Host, commit: &str) -> Result<bool, ModuleError> {
        let name = format!("{commit}^{{commit}}");
        let exit = self.git()?.args(["cat-file", "-e", &name]).run(host)?;
        Ok(exit.code == 0)
    }

    /// All branches and tags, so that any commit of them can be checked out, and the wanted one if it has another name.
    fn fetch(&self, host: &Host) -> Result<(), ModuleError> {
        let reference = self.step.reference.as_deref();
        let other = reference.filter(|name| name.starts_with("refs/"));
        self.git()?
            .args(["fetch", "--quiet", "--force", "--prune", "--tags", "origin"])
            .arg("+refs/heads/*:refs/remotes/origin/*")
            .args(other)
            .run_for(host, "fetch", &self.step.url)?;
        Ok(())
    }

    fn make(&self, host: &Host) -> Result<(), ModuleError> {
        let path = &self.step.path;
        let failed = |error: std::io::Error| ModuleError::failed("make", path.as_str(), error);
        if host
            .root
            .status(path, Follow::No)
            .map_err(failed)?
            .is_none()
        {
            host.root
                .make_directory(path, DIRECTORY_MODE)
                .map_err(failed)?;
            if let Some(account) = &self.account {
                let accounts = Accounts::read(&host.root)?;
                let gid = accounts.user(&account.user).map(|user| user.gid);
                host.root
                    .set_owner(path, accounts.uid(&account.user), gid)
                    .map_err(failed)?;
            }
        }
        self.plain_git()?
            .args([
                "-c",
                "init.defaultBranch=main",
                "init",
                "--quiet",
                "--",
                self.place.as_str(),
            ])
            .run_for(host, "make", path.as_str())?;
        Ok(())
    }
}

/// Whether a directory holds a checkout. One that holds something else is refused.
fn is_checkout(view: &View<'_>, step: &Git) -> Result<bool, ModuleError> {
    let failed = |reason: &str| ModuleError::failed("check out", step.path.as_str(), reason);
    match view.find(&step.path.join(".git"), Follow::No)?.1 {
        Found::Directory(_) => Ok(true),
        Found::Absent if view.list(&step.path)?.is_empty() => Ok(false),
        Found::Absent => Err(failed("the directory is not empty and no checkout")
            .with_hint("choose another directory, or remove what is in it")),
        // It could name a repository anywhere.
        _ => Err(failed("its `.git` is not a directory")),
    }
}

/// Git runs programs that the settings of a checkout name: another user's settings must not decide what root runs.
fn refuse_foreign_owner(host: &Host, path: &Utf8Path) -> Result<(), ModuleError> {
    let failed = |error: std::io::Error| ModuleError::failed("look at", path.as_str(), error);
    let runs_as_root = host.account.is_none() && rustix::process::geteuid().is_root();
    let Some(status) = host
        .root
        .status(&path.join(".git"), Follow::No)
        .map_err(failed)?
    else {
        return Ok(());
    };
    if !runs_as_root || status.uid == 0 || status.kind != FileKind::Directory {
        return Ok(());
    }
    let owner = Accounts::read(&host.root)?.user_name(status.uid);
    let reason =
        format!("it belongs to `{owner}`, whose settings of git could start programs as root");
    Err(ModuleError::failed("check out", path.as_str(), reason)
        .with_hint(format!("run the step as its owner: as: {owner}")))
}

fn write_known_hosts(keys: &[String]) -> std::io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new()?;
    for key in keys {
        writeln!(file, "{key}")?;
    }
    // Whoever the step runs as reads it; host keys are public.
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(0o644))?;
    Ok(file)
}

/// The paths of `git status --porcelain=v1 -z`. After a renamed file comes its old name.
fn parse_status(listed: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut entries = listed.split('\0').filter(|entry| !entry.is_empty());
    while let Some(entry) = entries.next() {
        let (state, path) = entry.split_at_checked(3).unwrap_or((entry, ""));
        paths.push(path.to_owned());
        if state.contains(['R', 'C']) {
            entries.next();
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_files_are_named_once() {
        let listed = " M a b\0R  new\0old\0?? dir/\0";
        assert_eq!(parse_status(listed), ["a b", "new", "dir/"]);
        assert!(parse_status("").is_empty());
    }
}
