//! `useradd`, `groupmod` and their kin, for the machine or for another root.

use camino::Utf8Path;

use crate::action::ModuleError;
use crate::host::Host;
use crate::parameters::Parameters;
use crate::root::{FileKind, Follow, Root};
use crate::tool::Tool;

/// The files that the tools of shadow write. Below another root none of them may be a link: the tools would follow it.
const WRITTEN_FILES: &[&str] = &[
    "/etc/passwd",
    "/etc/group",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/subuid",
    "/etc/subgid",
    "/etc/login.defs",
    "/etc/default/useradd",
    "/etc/skel",
    "/etc/passwd.lock",
    "/etc/group.lock",
    "/etc/shadow.lock",
    "/etc/gshadow.lock",
    "/etc/subuid.lock",
    "/etc/subgid.lock",
    "/var/mail",
    "/var/spool/mail",
];

/// Whether a user or group that is in no file of the machine comes from a directory service.
pub(crate) fn is_from_directory(
    host: &Host,
    database: &'static str,
    name: &str,
) -> Result<bool, ModuleError> {
    if !host.root.is_machine() {
        return Ok(false);
    }
    let exit = Tool::new("getent").args([database, name]).run(host)?;
    Ok(exit.code == 0)
}

/// One of the tools of shadow, for the host's root.
pub(crate) fn account_tool(host: &Host, program: &str) -> Result<Tool, ModuleError> {
    let tool = Tool::new(program);
    if host.root.is_machine() {
        return Ok(tool);
    }
    for path in WRITTEN_FILES {
        refuse_links(&host.root, Utf8Path::new(path))?;
    }
    Ok(tool.args(["--prefix", host.root.path().as_str()]))
}

/// Refuses a path below another root that leads through a link: programs that are not confined would follow it.
pub(crate) fn refuse_links(root: &Root, path: &Utf8Path) -> Result<(), ModuleError> {
    if root.is_machine() {
        return Ok(());
    }
    let mut ancestors: Vec<&Utf8Path> = path.ancestors().filter(|part| *part != "/").collect();
    ancestors.reverse();
    for part in ancestors {
        let status = root
            .status(part, Follow::No)
            .map_err(|error| ModuleError::failed("read", part.as_str(), error))?;
        if status.is_some_and(|status| status.kind == FileKind::Link) {
            let reason = "it is a link, and it could lead out of the root directory";
            return Err(ModuleError::failed("use", part.as_str(), reason));
        }
    }
    Ok(())
}

/// The number of a user or group.
pub(crate) fn id(parameters: &mut Parameters<'_>, name: &str) -> Option<u32> {
    // The highest one stands for "no change" where ids are set.
    let number = parameters.integer(name, 0..=i64::from(u32::MAX - 1))?;
    u32::try_from(number).ok()
}

/// Why a text is not the name of a user or group; `None` if it is one.
///
/// These are the names that `useradd` of every distribution takes: other letters would be read as options, paths or
/// field ends somewhere.
pub(crate) fn fault_of_name(name: &str) -> Option<&'static str> {
    /// What fits into utmp.
    const LONGEST: usize = 32;
    let mut letters = name.trim_end_matches('$').chars();
    let begins_well = letters.next().is_some_and(|first| {
        first.is_ascii_lowercase() || first.is_ascii_uppercase() || first == '_'
    });
    let goes_on_well =
        letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.'));
    if name.len() > LONGEST {
        return Some("must not be longer than 32 letters");
    }
    if !begins_well || !goes_on_well || name.strip_suffix('$').unwrap_or(name).contains('$') {
        return Some(
            "must begin with a letter or `_` and go on with letters, digits, `_`, `-` and `.`",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_tools_could_misread_are_refused() {
        for bad in [
            "",
            "-r",
            "../x",
            "a:b",
            "a b",
            "a\nb",
            "1web",
            "$",
            "a$b",
            &"x".repeat(33),
        ] {
            assert!(fault_of_name(bad).is_some(), "{bad:?}");
        }
        for good in ["web", "_apt", "systemd-network", "machine$", "a.b"] {
            assert_eq!(fault_of_name(good), None, "{good}");
        }
    }
}
