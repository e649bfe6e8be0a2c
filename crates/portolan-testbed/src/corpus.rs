//! The corpus of real charts, overlays, repositories and answers of the real tools, in a directory beside the
//! checkout.

use std::path::{Path, PathBuf};

/// Returns a file or directory of the corpus; `None` when it is not there, and the test is to be skipped.
///
/// # Panics
/// Under `CI`: a comparison that did not take place must not look like one that held.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub fn corpus(part: &str) -> Option<PathBuf> {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let path = Path::new(corpus).join(part);
    if path.exists() {
        return Some(path);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "there is no `{part}` of the corpus at {corpus}: nothing can be compared"
    );
    eprintln!("SKIPPED: there is no `{part}` of the corpus at {corpus}");
    None
}
