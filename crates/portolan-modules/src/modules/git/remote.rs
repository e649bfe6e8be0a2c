//! What a repository elsewhere has: which commit a branch or tag stands for.

use super::checkout::Checkout;
use crate::action::ModuleError;
use crate::host::Host;

/// Why git must not be given a text as the address of a repository; `None` if it may.
pub(super) fn fault_of_url(url: &str) -> Option<&'static str> {
    const SCHEMES: &[&str] = &["https://", "http://", "ssh://", "git://", "file://"];
    // `ext::` and its kin start programs; `-` would be an option.
    let is_other_transport = url.contains("::") && !url.contains('[');
    if url.starts_with('-') || is_other_transport || url.chars().any(char::is_control) {
        return Some("is not the address of a repository");
    }
    let has_scheme = SCHEMES.iter().any(|scheme| url.starts_with(scheme));
    let is_short_ssh = !url.contains("://") && url.contains(':');
    if !has_scheme && !is_short_ssh && !url.starts_with('/') {
        return Some(
            "must begin with https://, ssh:// or another scheme of git, or be `user@host:path`",
        );
    }
    let authority = url
        .split_once("://")
        .map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    let login = authority
        .and_then(|authority| authority.rsplit_once('@'))
        .map(|(login, _)| login);
    if login.is_some_and(|login| login.contains(':')) {
        return Some("must not contain a password: arguments of programs are visible to everybody");
    }
    None
}

/// Whether a text is a whole commit id.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The commit that the step's branch or tag stands for now.
pub(super) fn commit_of(checkout: &Checkout<'_>, host: &Host) -> Result<String, ModuleError> {
    let step = checkout.step;
    let reference = step.reference.as_deref();
    if let Some(commit) = reference.filter(|text| is_commit(text)) {
        return Ok(commit.to_owned());
    }
    let name = reference.unwrap_or("HEAD");
    let listed = checkout
        .plain_git()?
        .args(["ls-remote", "--quiet", "--", &step.url])
        .args(candidates(name))
        .run_for(host, "read", &step.url)?;
    find_commit(&listed, name).ok_or_else(|| {
        ModuleError::failed(
            "find",
            format!("{name} of {}", step.url),
            "there is no such branch or tag",
        )
    })
}

/// The full names that a short one may stand for, in the order in which git prefers them. An annotated tag is an
/// object of its own; with `^{}` it is the commit.
fn candidates(name: &str) -> [String; 4] {
    [
        format!("refs/tags/{name}^{{}}"),
        format!("refs/tags/{name}"),
        format!("refs/heads/{name}"),
        name.to_owned(),
    ]
}

fn find_commit(listed: &str, name: &str) -> Option<String> {
    let lines: Vec<(&str, &str)> = listed
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    candidates(name).iter().find_map(|candidate| {
        let line = lines.iter().find(|(_, known)| known == candidate);
        line.map(|(commit, _)| (*commit).to_owned())
            .filter(|commit| is_commit(commit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotated_tag_is_its_commit_and_beats_a_branch() {
        let (tag, commit, branch) = ("a".repeat(40), "b".repeat(40), "c".repeat(40));
        let listed = format!(
            "{branch}\trefs/heads/v1\n{tag}\trefs/tags/v1\n{commit}\trefs/tags/v1^{{}}\n{tag}\trefs/heads/x/v1\n"
        );
        assert_eq!(find_commit(&listed, "v1"), Some(commit));
        assert_eq!(find_commit(&listed, "x"), None);
        assert_eq!(
            find_commit(&format!("{branch}\tHEAD\n"), "HEAD"),
            Some(branch)
        );
    }

    #[test]
    fn addresses_that_start_programs_or_show_passwords_are_refused() {
        for bad in [
            "ext::sh -c id",
            "-u",
            "web.git",
            "https://u:secret@h/r",
            "ssh://u:p@h/r",
            "a\nb:c",
            "fd::17",
        ] {
            assert!(fault_of_url(bad).is_some(), "{bad}");
        }
        for good in [
            "https://h/r.git",
            "https://token@h/r",
            "git@h:r.git",
            "/srv/r",
            "file:///srv/r",
            "ssh://git@[::1]/r",
        ] {
            assert_eq!(fault_of_url(good), None, "{good}");
        }
    }
}
