//! Counts with singular and plural in messages.

/// `1 object`, `12 objects`: a number and its noun, whose plural has an `s`.
///
/// ```
/// use portolan_object::counted;
///
/// assert_eq!(counted(1, "finding"), "1 finding");
/// assert_eq!(counted(0, "finding"), "0 findings");
/// ```
pub fn counted(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}
