//! Remote bases: how their URLs are parsed, and the trait that fetches them.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use portolan_vfs::Vfs;

/// Fetches what lies elsewhere; the build itself does no network.
pub trait Fetch: Send + Sync {
    /// The content of a file behind an `http` or `https` address.
    fn file(&self, url: &str) -> Result<Vec<u8>, FetchError>;

    /// The files of a git repository at the asked revision.
    fn repository(&self, spec: &RepoSpec) -> Result<Arc<dyn Vfs>, FetchError>;
}

/// Why something cannot be fetched.
pub type FetchError = Box<dyn Error + Send + Sync>;

/// The address of a directory in a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoSpec {
    /// The address as written.
    pub raw: String,
    /// What git clones: host and repository.
    pub clone: String,
    /// The directory inside, empty for the top.
    pub path: String,
    /// The branch, tag or commit; empty for the default branch.
    pub reference: String,
    /// Whether submodules are wanted.
    pub submodules: bool,
    /// How long fetching may take.
    pub timeout: Duration,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(27);
const SCHEMES: [&str; 4] = ["ssh://", "https://", "http://", "file://"];

/// Whether a path is an address to download one file from.
pub(crate) fn is_remote_file(path: &str) -> bool {
    let has = |scheme: &str| {
        path.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    has("http://") || has("https://")
}

impl RepoSpec {
    /// Reads an address; `None` when the text is none, but a path.
    pub fn parse(raw: &str) -> Option<Self> {
        if raw.starts_with('/') {
            return None;
        }
        let (address, query) = raw.split_once('?').unwrap_or((raw, ""));
        let (host, rest) = split_host(address)?;
        let (repository, path) = split_repository(&rest, host.starts_with("file://"))?;
        if repository.is_empty() || leaves_repository(path) {
            return None;
        }
        let query = Query::read(query);
        Some(Self {
            raw: raw.to_owned(),
            clone: format!("{host}{repository}"),
            path: path.strip_prefix('/').unwrap_or(path).to_owned(),
            reference: query.reference,
            submodules: query.submodules,
            timeout: query.timeout,
        })
    }

    /// Whether the address cannot be meant as a single file.
    pub(crate) fn is_surely_git(&self) -> bool {
        let address = self
            .raw
            .split_once("://")
            .map_or(self.raw.as_str(), |(_, rest)| rest);
        !is_remote_file(&self.raw)
            || address.contains("//")
            || names_git_directory(address)
            || address.contains("_git/")
            || (!self.reference.is_empty() && !names_file(address))
    }
}

/// Whether a part of an address ends in `.git`, which `raw.githubusercontent.com` does not.
fn names_git_directory(address: &str) -> bool {
    let (path, _) = address.split_once('?').unwrap_or((address, ""));
    let mut parts = path.split('/');
    parts.any(|part| matches!(part.rsplit_once('.'), Some((_, "git"))))
}

/// Whether an address ends like that of a file of resources.
fn names_file(address: &str) -> bool {
    let (path, _) = address.split_once('?').unwrap_or((address, ""));
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    matches!(ending, Some("yaml" | "yml" | "json"))
}

/// The host with scheme and user, and what follows it.
fn split_host(address: &str) -> Option<(String, String)> {
    let address = strip_ignoring_case(address, "git::").unwrap_or(address);
    let scheme = SCHEMES
        .into_iter()
        .find(|scheme| strip_ignoring_case(address, scheme).is_some())
        .unwrap_or("");
    let rest = strip_ignoring_case(address, scheme).unwrap_or(address);
    let (user, rest) = split_user(rest);
    let lower = rest.to_ascii_lowercase();
    let is_github = lower.starts_with("github.com/") || lower.starts_with("github.com:");
    let is_scp = scheme.is_empty() && (!user.is_empty() || is_github);
    if scheme.is_empty() && !is_scp {
        return None;
    }
    if scheme == "file://" {
        return Some((scheme.to_owned(), format!("{user}{rest}")));
    }
    let slash = rest.find('/');
    let colon = rest
        .find(':')
        .filter(|colon| is_scp && *colon > 0 && slash.is_none_or(|slash| *colon < slash));
    let (host, path) = match colon.or(slash) {
        Some(end) => rest.split_at(end + 1),
        None => (rest, ""),
    };
    if host.is_empty() {
        return None;
    }
    let host = match (is_github, scheme == "ssh://" || !user.is_empty()) {
        (true, true) => format!("{user}github.com:"),
        (true, false) => "https://github.com/".to_owned(),
        (false, _) => format!("{scheme}{user}{host}"),
    };
    Some((host, path.to_owned()))
}

fn strip_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// `user@` at the start.
fn split_user(text: &str) -> (&str, &str) {
    let Some(at) = text.find('@') else {
        return ("", text);
    };
    let name = &text[..at];
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    if is_name {
        text.split_at(at + 1)
    } else {
        ("", text)
    }
}

/// The repository's path and the directory in it.
fn split_repository(rest: &str, is_file: bool) -> Option<(String, &str)> {
    if let Some(start) = rest.find("_git/") {
        let begin = start + "_git/".len();
        let end = rest[begin..]
            .find('/')
            .map_or(rest.len(), |slash| begin + slash);
        return Some((
            rest[..end].to_owned(),
            rest[end..].strip_prefix('/').unwrap_or(""),
        ));
    }
    if let Some((repository, path)) = rest.split_once("//") {
        return Some((repository.to_owned(), path));
    }
    if let Some(start) = rest.find(".git") {
        let (repository, path) = rest.split_at(start + ".git".len());
        return Some((repository.to_owned(), path));
    }
    if is_file {
        return Some((rest.to_owned(), ""));
    }
    let (organisation, more) = rest.split_once('/')?;
    let (name, path) = more.split_once('/').unwrap_or((more, ""));
    Some((format!("{organisation}/{name}"), path))
}

fn leaves_repository(path: &str) -> bool {
    let mut depth = 0_i32;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

struct Query {
    reference: String,
    submodules: bool,
    timeout: Duration,
}

impl Query {
    fn read(query: &str) -> Self {
        let get = |name: &str| {
            let pair = query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .find(|(key, _)| *key == name);
            pair.map(|(_, value)| value)
                .filter(|value| !value.is_empty())
        };
        let reference = get("ref").or_else(|| get("version")).unwrap_or_default();
        Self {
            reference: reference.replace("%2F", "/").replace("%2f", "/"),
            submodules: !matches!(
                get("submodules"),
                Some("false" | "0" | "f" | "F" | "False" | "FALSE")
            ),
            timeout: get("timeout")
                .and_then(read_timeout)
                .unwrap_or(DEFAULT_TIMEOUT),
        }
    }
}

/// Seconds, or a number with `s`, `m` or `h`.
fn read_timeout(text: &str) -> Option<Duration> {
    let (number, factor) = match text.chars().last()? {
        's' => (text.strip_suffix('s')?, 1.0),
        'm' => (text.strip_suffix('m')?, 60.0),
        'h' => (text.strip_suffix('h')?, 3600.0),
        _ => (text, 1.0),
    };
    let seconds: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(seconds * factor)
        .ok()
        .filter(|timeout| !timeout.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, clone: &str, path: &str, reference: &str) {
        let spec = RepoSpec::parse(raw).unwrap();
        assert_eq!(
            (
                spec.clone.as_str(),
                spec.path.as_str(),
                spec.reference.as_str()
            ),
            (clone, path, reference),
            "{raw}"
        );
    }

    #[test]
    fn addresses_of_repositories_are_read_like_kustomize_reads_them() {
        check(
            "github.com/org/repo//a/b?ref=v1",
            "https://github.com/org/repo",
            "a/b",
            "v1",
        );
        check(
            "https://github.com/org/repo/a?ref=main",
            "https://github.com/org/repo",
            "a",
            "main",
        );
        check(
            "git@github.com:org/repo.git//a",
            "git@github.com:org/repo.git",
            "a",
            "",
        );
        check(
            "ssh://git@host.xz/path/to/repo.git/b",
            "ssh://git@host.xz/path/to/repo.git",
            "b",
            "",
        );
        check(
            "https://dev.azure.com/o/p/_git/repo/x",
            "https://dev.azure.com/o/p/_git/repo",
            "x",
            "",
        );
        check("git::https://h.xz/o/r.git", "https://h.xz/o/r.git", "", "");
        check("file:///srv/repo//x", "file:///srv/repo", "x", "");
    }

    #[test]
    fn a_host_whose_name_holds_git_may_serve_files() {
        let is_surely_git =
            |raw: &str| RepoSpec::parse(raw).is_some_and(|spec| spec.is_surely_git());
        for file in [
            "https://raw.githubusercontent.com/org/repo/v1/manifests/crd.yaml",
            "https://raw.githubusercontent.com/org/repo/refs/tags/v1/crd.yaml",
            "https://github.com/org/repo/releases/download/v1/install.yaml",
            "https://org.github.io/repo/install.yaml",
            "https://git.example.org/api/raw/install.yaml?ref=v1",
        ] {
            assert!(!is_surely_git(file), "{file}");
        }
        for repository in [
            "https://github.com/org/repo.git",
            "https://github.com/org/repo.git/base",
            "https://github.com/org/repo//base",
            "https://github.com/org/repo/base?ref=v1",
        ] {
            assert!(is_surely_git(repository), "{repository}");
        }
    }

    #[test]
    fn paths_are_no_addresses() {
        for path in [
            "../base",
            "base",
            "/abs",
            "a/b.yaml",
            "github.com",
            "https://host",
        ] {
            assert_eq!(RepoSpec::parse(path), None, "{path}");
        }
        assert_eq!(RepoSpec::parse("github.com/org/repo//../x"), None);
    }

    #[test]
    fn timeouts_and_submodules_are_read() {
        let spec = RepoSpec::parse("github.com/o/r?timeout=2m&submodules=false").unwrap();
        assert_eq!(
            (spec.timeout, spec.submodules),
            (Duration::from_mins(2), false)
        );
        let spec = RepoSpec::parse("github.com/o/r?timeout=x").unwrap();
        assert_eq!((spec.timeout, spec.submodules), (DEFAULT_TIMEOUT, true));
    }
}
