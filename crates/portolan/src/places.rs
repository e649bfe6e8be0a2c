//! Where the user's files are: the one module that reads the environment for them.

use std::env::var_os;

use camino::{Utf8Path, Utf8PathBuf};

/// The directory of everything fetched: `$PORTOLAN_CACHE`, or `portolan` in the user's cache directory.
pub(crate) fn cache_directory() -> Utf8PathBuf {
    if let Some(named) = variable("PORTOLAN_CACHE") {
        return named;
    }
    let caches = variable("XDG_CACHE_HOME").or_else(|| Some(home()?.join(".cache")));
    // Without a home there is nothing to keep for later.
    let caches = caches.unwrap_or_else(|| "/tmp".into());
    caches.join("portolan")
}

/// Docker's file of logins: `$DOCKER_CONFIG/config.json`, or the one in the user's home.
pub(crate) fn docker_config() -> Option<Utf8PathBuf> {
    let directory = variable("DOCKER_CONFIG").or_else(|| Some(home()?.join(".docker")));
    Some(directory?.join("config.json"))
}

/// The user's logins for web servers: `$NETRC`, or `.netrc` in the home directory.
pub(crate) fn netrc() -> Option<Utf8PathBuf> {
    variable("NETRC").or_else(|| Some(home()?.join(".netrc")))
}

/// Age keys as sops finds them: texts in `$SOPS_AGE_KEY`, then files that are named and must exist.
pub(crate) fn age_keys() -> (Option<String>, Option<Utf8PathBuf>) {
    let text = var_os("SOPS_AGE_KEY").and_then(|value| value.into_string().ok());
    (
        text.filter(|text| !text.is_empty()),
        variable("SOPS_AGE_KEY_FILE"),
    )
}

/// Where sops keeps age keys when nothing names a file.
pub(crate) fn default_age_keys() -> Option<Utf8PathBuf> {
    let config = variable("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")));
    Some(config?.join("sops/age/keys.txt"))
}

fn home() -> Option<Utf8PathBuf> {
    variable("HOME")
}

/// A path in a variable; an empty one counts as unset.
fn variable(name: &str) -> Option<Utf8PathBuf> {
    let value = var_os(name)?.into_string().ok()?;
    (!value.is_empty()).then(|| Utf8Path::new(&value).to_owned())
}
