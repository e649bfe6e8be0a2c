//! Keys of requests that may be sent twice.

use std::time::Duration;

use crate::clock::rfc3339;

/// A key for a request that may be sent twice, from which a run gets its name: the time, and what no two requests share.
pub fn request_key(now: Duration) -> String {
    let time: String = rfc3339(now).chars().filter(char::is_ascii_digit).collect();
    let (day, time) = time.split_at_checked(8).unwrap_or((&time, ""));
    format!("{day}-{time}-{:08x}", rand::random::<u32>())
}
