//! Which values are secret, and how they are kept out of all output.
//!
//! ```text
//! decrypted values, data of Secrets ──parts──▶ SecretTexts ──▶ Mask ──┬─▶ nodes, before anything prints them
//!                                                                     └─▶ printed text, as a second net
//! Secret ──hide_values──▶ the same Secret with `<hidden>` for each of its values
//! ```
//!
//! Every value of a Secret is hidden in the Secret itself. But values are also copied: into other objects by
//! `substituteFrom` and `valuesFrom`, into errors of charts, into URLs. So every part of a secret text that reveals
//! something is remembered and searched for in all output: as it is, escaped in any of the usual ways, and inside
//! base64.

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
