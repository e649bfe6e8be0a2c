//! What a client may cost the control plane.

use portolan_listen::Limits;

/// The limits for `portolan_listen::serve`.
///
/// Agents keep a connection each, and thousands of them may come from one address behind a router. So connections and requests
/// of an address are limited only against floods; what one identity may ask for is limited after it is known.
pub fn listen_limits() -> Limits {
    Limits {
        // At about 50 KB each, 200 MB.
        connections: 4_000,
        connections_per_client: 3_000,
        requests_per_second: 20_000,
        request_burst: 40_000,
        // A tool that follows many kinds in many namespaces has a stream for each.
        streams: 256,
        ..Limits::default()
    }
}
