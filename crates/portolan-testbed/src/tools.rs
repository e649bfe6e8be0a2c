//! Where `./test` keeps the programs that it builds.

use std::env;
use std::path::{Path, PathBuf};

/// The directory of the tools.
pub(crate) fn tools() -> PathBuf {
    let named = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = named("PORTOLAN_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|path| path.join("portolan")))
        .or_else(|| named("HOME").map(|path| path.join(".cache/portolan")))
        .unwrap_or_else(|| PathBuf::from(".cache/portolan"));
    cache.join("tools")
}

/// Whether a program has been built; when not, the test is to be skipped.
///
/// # Panics
/// Under `CI`, when the program is missing.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub(crate) fn is_built(path: &Path, hint: &str) -> bool {
    if path.is_file() {
        return true;
    }
    assert!(
        env::var_os("CI").is_none(),
        "`{}` is not there: {hint}",
        path.display()
    );
    eprintln!("SKIPPED: `{}` is not there: {hint}", path.display());
    false
}
