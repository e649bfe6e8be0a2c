//! What is secret, and how everything that may be shown is kept free of it.
//!
//! ```text
//! decrypted values, data of Secrets ──parts──▶ SecretTexts ──▶ Mask ──┬─▶ nodes, before anything prints them
//!                                                                     └─▶ printed text, as a second net
//! Secret ──hide_values──▶ the same Secret with `<hidden>` for each of its values
//! ```
//!
//! A value of a Secret is hidden where it stands, whatever it is. But values also travel: into other objects by
//! `substituteFrom` and `valuesFrom`, into what a chart complains of, into addresses. So every part of a secret text
//! that tells something is remembered, and looked for in all that is shown: as it is, escaped in any of the usual ways,
//! and inside of base64.

#![warn(missing_docs)]

mod address;
mod object;

mod escape;
mod needle;
mod parts;
mod texts;

mod known;
mod mask;

pub use address::without_passwords;
pub use known::KnownSecrets;
pub use mask::Mask;
pub use object::{hide_values, holds_values, is_in_secret, is_secret};
pub use texts::SecretTexts;

use std::borrow::Cow;

/// What stands in place of a secret. It is not base64, so a cluster refuses a Secret with it.
pub const HIDDEN: &str = "<hidden>";

/// Returns JSON with [`HIDDEN`] spelt as people read it; Go's encoder, whose JSON is copied, escapes angle brackets.
pub fn readable_json(json: &str) -> Cow<'_, str> {
    const ESCAPED: &str = r"\u003chidden\u003e";
    if json.contains(ESCAPED) {
        Cow::Owned(json.replace(ESCAPED, HIDDEN))
    } else {
        Cow::Borrowed(json)
    }
}
