//! Addresses of a machine's own link, at which clouds answer with credentials of the machine.
//!
//! Whoever may name an address that a service calls must not be able to name these, be it by number, by a name that
//! resolves to one, or by a redirect.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::{Unreachable, UnreachableReason};

/// Metadata of a machine at one cloud, outside of the range that is set aside for links.
const METADATA: IpAddr = IpAddr::V6(std::net::Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254));

/// Resolves names, but for those of a link.
#[derive(Debug)]
pub(crate) struct OffLink;

impl Resolve for OffLink {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let mut allowed: Vec<SocketAddr> = found.collect();
            if allowed.iter().any(|address| is_of_link(address.ip())) {
                allowed.retain(|address| !is_of_link(address.ip()));
                if allowed.is_empty() {
                    return Err(refused(name.as_str()).into());
                }
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Returns the refusal of an address that names a link by number.
pub(crate) fn refused_url(url: &Url) -> Option<Unreachable> {
    let is_named = match url.host()? {
        Host::Ipv4(ip) => is_of_link(ip.into()),
        Host::Ipv6(ip) => is_of_link(ip.into()),
        Host::Domain(_) => false,
    };
    is_named.then(|| refused(url.host_str().unwrap_or_default()))
}

fn refused(host: &str) -> Unreachable {
    Unreachable {
        host: host.to_owned(),
        why: UnreachableReason::OnLink,
    }
}

fn is_of_link(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || ip == METADATA,
    }
}
