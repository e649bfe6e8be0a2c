//! Failed requests, from Istio's `istio_requests_total`.

use portolan_judge::Arm;

use crate::arm::add_up;
use crate::series::Series;
use crate::window::Window;

/// Who counted a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reporter {
    /// The proxy of the caller: it also sees requests that never arrived.
    Source,
    /// The proxy of the one that was called.
    Destination,
}

/// Sources are believed if they report at least this share of what destinations do, in percent. Below, many callers are
/// outside of the mesh.
const ENOUGH_FROM_SOURCES: u64 = 90;

/// gRPC's codes for failures of the server: unknown, deadline exceeded, unimplemented, internal, unavailable, data loss.
/// The HTTP status of such an answer is 200.
const GRPC_FAILURES: [&str; 6] = ["2", "4", "12", "13", "14", "15"];

/// Returns the requests of one reporter in a window; `None` if they are not known.
pub fn count_requests(
    series: &[Series],
    of_target: &[Series],
    reporter: Reporter,
    window: &Window,
) -> Option<Arm> {
    let of_reporter = series
        .iter()
        .filter(|series| series.label("reporter") == reporter.label());
    add_up(of_reporter, of_target, window, is_bad_request)
}

/// Returns whose counts are used: the sources' if they see nearly all that destinations see. The two are never added,
/// because both count the same requests.
pub fn choose_reporter(sources: u64, destinations: u64) -> Reporter {
    let enough = u128::from(destinations) * u128::from(ENOUGH_FROM_SOURCES);
    if u128::from(sources) * 100 >= enough {
        Reporter::Source
    } else {
        Reporter::Destination
    }
}

/// Returns whether a series counts requests that failed through the server's fault: status 5xx, no answer at all, or one
/// of gRPC's failures.
pub fn is_bad_request(series: &Series) -> bool {
    let code = series.label("response_code");
    let grpc = series.label("grpc_response_status");
    code.starts_with('5') || code == "0" || GRPC_FAILURES.contains(&grpc)
}

impl Reporter {
    /// Returns the value of the label `reporter`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Destination => "destination",
        }
    }
}
