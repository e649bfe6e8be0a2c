//! The members of an etcd cluster, and which of them to ask.
//!
//! gRPC's own balancing keeps offering a member that is gone. Here a member that failed is left alone for a while, longer each
//! time, and asked again when that is over or when no other is left.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::EtcdOptions;
use crate::StoreError;

/// How long a member that failed once is left alone; it doubles with each further failure.
const FIRST_EJECTION: Duration = Duration::from_millis(250);
const LONGEST_EJECTION: Duration = Duration::from_secs(10);
/// A connection that is dead is noticed within the sum of the two, in use or not.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The members.
pub(super) struct Endpoints {
    members: Vec<(String, Channel)>,
    picker: Mutex<Picker>,
}

/// A member that was picked for a call.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) number: usize,
    pub(super) channel: Channel,
}

impl Endpoints {
    pub(super) fn new(options: &EtcdOptions) -> Result<Self, StoreError> {
        let members = options.endpoints.iter().map(|address| {
            let endpoint = endpoint(address, options)?;
            Ok((address.clone(), endpoint.connect_lazy()))
        });
        let members: Vec<_> = members.collect::<Result<_, StoreError>>()?;
        if members.is_empty() {
            return Err(unusable("no address of etcd is given"));
        }
        let picker = Mutex::new(Picker::new(members.len()));
        Ok(Self { members, picker })
    }

    pub(super) fn pick(&self) -> Member {
        let number = self.picker.lock().pick(Instant::now());
        let channel = self.members[number].1.clone();
        Member { number, channel }
    }

    pub(super) fn failed(&self, member: &Member) {
        self.picker.lock().failed(member.number, Instant::now());
    }

    pub(super) fn answered(&self, member: &Member) {
        self.picker.lock().answered(member.number);
    }

    /// Each member with its address.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, Channel)> {
        self.members
            .iter()
            .map(|(address, channel)| (address.as_str(), channel.clone()))
    }
}

fn endpoint(address: &str, options: &EtcdOptions) -> Result<Endpoint, StoreError> {
    let wrong =
        |error: tonic::transport::Error| unusable(&format!("address `{address}` of etcd: {error}"));
    let mut endpoint = Endpoint::from_shared(address.to_owned())
        .map_err(wrong)?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    let is_https = address.starts_with("https://");
    if is_https != options.tls.is_some() {
        return Err(unusable(&format!(
            "address `{address}` of etcd: certificates are given for `https://` addresses, and only for those"
        )));
    }
    if options.login.is_some() && !is_https && !is_this_machine(endpoint.uri().host()) {
        return Err(unusable(&format!(
            "address `{address}` of etcd: a password is sent over `https://` only, or to this machine"
        )));
    }
    if let Some(tls) = &options.tls {
        let mut config =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.authority));
        if let Some((certificate, key)) = &tls.identity {
            config = config.identity(Identity::from_pem(certificate, key));
        }
        endpoint = endpoint.tls_config(config).map_err(wrong)?;
    }
    Ok(endpoint)
}

fn is_this_machine(host: Option<&str>) -> bool {
    let host = host.unwrap_or_default().trim_matches(['[', ']']);
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn unusable(detail: &str) -> StoreError {
    StoreError::Unavailable {
        detail: detail.to_owned(),
    }
}

/// Which member is next.
struct Picker {
    next: usize,
    members: Vec<Health>,
}

#[derive(Clone, Copy, Default)]
struct Health {
    failures: u32,
    /// Left alone until then.
    ejected: Option<Instant>,
}

impl Picker {
    fn new(members: usize) -> Self {
        Self {
            next: 0,
            members: vec![Health::default(); members],
        }
    }

    /// The next member that is not left alone; if all are, the one whose time is over first.
    fn pick(&mut self, now: Instant) -> usize {
        let count = self.members.len();
        let order = (0..count).map(|step| (self.next + step) % count);
        let is_free = |number: &usize| {
            self.members[*number]
                .ejected
                .is_none_or(|until| until <= now)
        };
        let free = order.clone().find(is_free);
        let picked = free.or_else(|| order.min_by_key(|number| self.members[*number].ejected));
        let picked = picked.unwrap_or(0);
        self.next = (picked + 1) % count;
        picked
    }

    fn failed(&mut self, number: usize, now: Instant) {
        let health = &mut self.members[number];
        let time = FIRST_EJECTION * 2_u32.saturating_pow(health.failures.min(10));
        health.failures += 1;
        health.ejected = Some(now + time.min(LONGEST_EJECTION));
    }

    fn answered(&mut self, number: usize) {
        self.members[number] = Health::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_take_turns() {
        let mut picker = Picker::new(3);
        let now = Instant::now();
        assert_eq!([0; 4].map(|_| picker.pick(now)), [0, 1, 2, 0]);
    }

    #[test]
    fn a_failed_member_is_left_alone_longer_each_time() {
        let mut picker = Picker::new(2);
        let now = Instant::now();
        picker.failed(0, now);
        assert_eq!([0; 3].map(|_| picker.pick(now)), [1, 1, 1]);
        let later = now + FIRST_EJECTION;
        assert!([0; 2].map(|_| picker.pick(later)).contains(&0));
        picker.failed(0, later);
        assert!(
            ![0; 2]
                .map(|_| picker.pick(later + FIRST_EJECTION))
                .contains(&0)
        );
        picker.answered(0);
        assert!([0; 2].map(|_| picker.pick(later)).contains(&0));
    }

    #[test]
    fn when_all_have_failed_the_first_to_be_free_again_is_asked() {
        let mut picker = Picker::new(3);
        let now = Instant::now();
        for number in [1, 0, 2] {
            picker.failed(number, now + Duration::from_millis(number as u64));
        }
        assert_eq!([0; 3].map(|_| picker.pick(now)), [0, 0, 0]);
    }
}
