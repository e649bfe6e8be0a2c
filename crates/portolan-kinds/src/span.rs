//! Spans of time as users write them: `90s`, `10m`, `1h30m`.

use std::time::Duration;

use portolan_go::time::parse_span;

/// Reads a span of time in Go's notation: whole numbers with the units `h`, `m`, `s` and `ms`, largest first by custom.
///
/// # Errors
/// A sentence that says what is wrong.
///
/// ```
/// use portolan_kinds::read_span;
///
/// assert_eq!(read_span("1h30m")?.as_secs(), 5_400);
/// assert!(read_span("10").is_err());
/// # Ok::<(), String>(())
/// ```
pub fn read_span(text: &str) -> Result<Duration, String> {
    parse_span(text)
        .ok_or_else(|| "must be a span of time such as `90s`, `10m` or `1h30m`".to_owned())
}
