//! URLs of git repositories, which can be written in many ways.

/// Whether two addresses mean the same repository, however they are written.
///
/// ```
/// use portolan_supply::same_repository;
///
/// assert!(same_repository("ssh://git@github.com/ada/home-ops.git", "https://github.com/ada/home-ops"));
/// assert!(same_repository("git@github.com:ada/home-ops", "https://github.com/Ada/home-ops/"));
/// assert!(!same_repository("https://github.com/ada/home-ops", "https://github.com/ada/other"));
/// ```
pub fn same_repository(one: &str, two: &str) -> bool {
    let (one, two) = (host_and_path(one), host_and_path(two));
    !one.is_empty() && one.eq_ignore_ascii_case(&two)
}

/// The address over HTTPS of a repository that is named over SSH; other addresses stay as they are.
///
/// The content is the same, and public repositories need no key for it.
pub(crate) fn over_https(url: &str) -> String {
    let is_ssh = url.starts_with("ssh://") || (url.contains('@') && !url.contains("://"));
    if is_ssh {
        format!("https://{}", host_and_path(url))
    } else {
        url.to_owned()
    }
}

/// `host/path` without scheme, user, port and `.git`.
fn host_and_path(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    let url = url.strip_suffix(".git").unwrap_or(url);
    let (is_url, rest) = match url.split_once("://") {
        Some((_, rest)) => (true, rest),
        None => (false, url),
    };
    let rest = match rest.split_once('@') {
        Some((user, host)) if !user.contains('/') => host,
        _ => rest,
    };
    if is_url {
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        // A port of the SSH server says nothing about the repository; one of a web server does.
        let host = match host.split_once(':') {
            Some((name, _)) if url.starts_with("ssh://") => name,
            _ => host,
        };
        format!("{host}/{path}")
    } else {
        rest.replacen(':', "/", 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_over_ssh_is_fetched_over_https() {
        for url in [
            "ssh://git@example.com/org/repo.git",
            "ssh://git@example.com:22/org/repo",
            "git@example.com:org/repo.git",
        ] {
            assert_eq!(over_https(url), "https://example.com/org/repo", "{url}");
        }
        let plain = "http://127.0.0.1:8080/repo.git";
        assert_eq!(over_https(plain), plain);
    }

    #[test]
    fn repositories_on_other_ports_are_others() {
        assert!(!same_repository(
            "http://127.0.0.1:1/a",
            "http://127.0.0.1:2/a"
        ));
        assert!(!same_repository("", ""));
    }
}
