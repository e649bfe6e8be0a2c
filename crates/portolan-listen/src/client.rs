//! One client: how many connections it has and how many requests it may still send.

use std::net::{IpAddr, Ipv6Addr};

use tokio::time::Instant;

/// Who a connection is counted for: an IPv4 address, or the network of an IPv6 address, which one owner has whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Client(IpAddr);

impl Client {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                Self(Ipv6Addr::from(network).into())
            }
            address @ IpAddr::V4(_) => Self(address),
        }
    }
}

/// The requests that a client may still send: as many as the burst, refilled with time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    left: f64,
    at: Instant,
}

impl Allowance {
    /// A client that has sent nothing yet.
    pub(crate) fn full(burst: u32, now: Instant) -> Self {
        Self {
            left: f64::from(burst),
            at: now,
        }
    }

    /// Takes one request out, if there is one left.
    pub(crate) fn take(&mut self, per_second: u32, burst: u32, now: Instant) -> bool {
        self.left = self.refilled(per_second, burst, now);
        self.at = now;
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }

    /// Whether nothing would be lost by forgetting it.
    pub(crate) fn is_full(&self, per_second: u32, burst: u32, now: Instant) -> bool {
        self.refilled(per_second, burst, now) >= f64::from(burst)
    }

    fn refilled(&self, per_second: u32, burst: u32, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + since * f64::from(per_second)).min(f64::from(burst))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_so_many_a_second() {
        let start = Instant::now();
        let mut allowance = Allowance::full(3, start);
        let mut take = |after: u64| allowance.take(2, 3, start + Duration::from_millis(after));
        assert_eq!(
            [take(0), take(0), take(0), take(0)],
            [true, true, true, false]
        );
        assert_eq!([take(500), take(500)], [true, false]);
        // However long it was silent, no more than the burst comes at once.
        assert_eq!(
            [take(60_000), take(60_000), take(60_000), take(60_000)],
            [true, true, true, false]
        );
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let client = |text: &str| Client::of(text.parse().unwrap());
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("::ffff:10.0.0.1"), client("10.0.0.1"));
        assert_ne!(client("10.0.0.1"), client("10.0.0.2"));
    }
}
