//! Shell-like variable substitution exactly as Flux's post-build substitution does it.
//!
//! ```text
//! text ──parser──▶ pieces: text and `${…}` expressions ──expand──▶ text
//! ```
//!
//! Only `${…}` is an expression; `$name` stays and `$$` becomes `$`. The grammar is that of `fluxcd/pkg/envsubst`,
//! including its differences from a shell: `:?` and `:+` act like `:-`, replacement patterns are literal, substrings
//! count bytes.

#![warn(missing_docs)]

mod error;
mod expand;
mod glob;
mod parser;

pub use error::{Error, ErrorKind};
pub use expand::{MAX_OUTPUT, MAX_WORK, Unset};
pub use parser::MAX_DEPTH;

/// Replaces every `${…}` of a text by what `lookup` answers.
///
/// `unset` says what becomes of a variable that `lookup` does not know, unless the expression gives a default.
///
/// ```
/// use portolan_envsubst::{Unset, substitute};
///
/// let lookup = |name: &str| (name == "cluster").then_some("harbour");
/// let text = substitute("${cluster}-${size:-small}", Unset::Refused, lookup)?;
/// assert_eq!(text, "harbour-small");
/// # Ok::<(), portolan_envsubst::Error>(())
/// ```
pub fn substitute<'v>(
    input: &str,
    unset: Unset<'_>,
    lookup: impl Fn(&str) -> Option<&'v str>,
) -> Result<String, Error> {
    substitute_opaque(input, unset, lookup, |_, _| None)
}

/// The same where some values stand for others that nobody knows here.
///
/// `derived` is asked about each value that an operator has changed, with the value before: what it answers takes the
/// place of the result. The first letters of a stand-in say nothing about those of the value.
pub fn substitute_opaque<'v>(
    input: &str,
    unset: Unset<'_>,
    lookup: impl Fn(&str) -> Option<&'v str>,
    derived: impl Fn(&str, &[u8]) -> Option<String>,
) -> Result<String, Error> {
    if !input.contains(['$', '\0']) {
        return Ok(input.to_owned());
    }
    let pieces = parser::parse(input)?;
    expand::expand(&pieces, unset, &lookup, &derived)
}
