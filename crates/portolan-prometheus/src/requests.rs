//! Failed requests, from Istio's `istio_requests_total`.

use portolan_judge::Arm;

use crate::arm::add_up;
use crate::scrape::Scrapes;
use crate::series::Series;
use crate::window::Window;

/// Who counted a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reporter {
    /// The proxy of the caller, or a gateway: it also sees requests that never arrived.
    Source,
    /// The proxy between caller and called in an ambient mesh.
    Waypoint,
    /// The proxy of the one that was called.
    Destination,
}

/// Callers are believed if they report at least this share of what the called do, in percent. Below, many callers are
/// outside of the mesh.
const ENOUGH_FROM_CALLERS: u64 = 90;

/// gRPC's codes for failures of the server: unknown, deadline exceeded, unimplemented, internal, unavailable, data loss.
/// The HTTP status of such an answer is 200.
const GRPC_FAILURES: [&str; 6] = ["2", "4", "12", "13", "14", "15"];

/// Returns the requests of one reporter in a window; `None` if they are not known.
pub fn count_requests(
    series: &[Series],
    scrapes: &Scrapes,
    reporter: Reporter,
    window: &Window,
) -> Option<Arm> {
    let of_reporter = series
        .iter()
        .filter(|series| series.label("reporter") == reporter.label());
    let mut arm = add_up(of_reporter, scrapes, window, is_bad_request)?;
    if reporter != Reporter::Destination {
        // The label is the caller's pod, not the one that was called.
        arm.pods.clear();
    }
    Some(arm)
}

/// Returns whether those who call see nearly all that those see who are called. The two are never added, because both
/// count the same requests.
pub fn see_nearly_all(callers: u64, called: u64) -> bool {
    u128::from(callers) * 100 >= u128::from(called) * u128::from(ENOUGH_FROM_CALLERS)
}

/// Returns whether a series counts requests that failed through the server's fault: status 5xx, no answer at all, or one
/// of gRPC's failures.
pub fn is_bad_request(series: &Series) -> bool {
    let code = series.label("response_code");
    let grpc = series.label("grpc_response_status");
    code.starts_with('5') || code == "0" || GRPC_FAILURES.contains(&grpc)
}

impl Reporter {
    /// All reporters.
    pub const ALL: [Self; 3] = [Self::Source, Self::Waypoint, Self::Destination];

    /// Returns the value of the label `reporter`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Waypoint => "waypoint",
            Self::Destination => "destination",
        }
    }
}
