//! Interfaces and addresses, as the kernel lists them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use camino::Utf8Path;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use serde_json::{Value, json};

use super::FactSource;

const INTERFACES: &str = "/sys/class/net";

/// Numbers of the kernel's routing messages.
const GET_ADDRESSES: u16 = 22;
const NEW_ADDRESS: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// A request for everything.
const DUMP: u16 = 0x301;
/// Attributes of an address: that of the other end, and that of this one, which is missing where both are the same.
const PEER_ADDRESS: u16 = 1;
const LOCAL_ADDRESS: u16 = 2;

/// The most messages that are read.
const MAX_MESSAGES: usize = 1_000;

pub(super) fn network(source: &FactSource<'_>) -> Result<Value, String> {
    let addresses = addresses().map_err(|error| format!("cannot list addresses: {error}"))?;
    let mut interfaces = Vec::new();
    let failed = |error| format!("cannot read `{INTERFACES}`: {error}");
    let mut entries: Vec<_> = Utf8Path::new(INTERFACES)
        .read_dir_utf8()
        .map_err(failed)?
        .filter_map(Result::ok)
        .collect();
    entries.sort_by(|a, b| a.file_name().cmp(b.file_name()));
    for entry in entries {
        let read = |name: &str| {
            let text = std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            text.trim().to_owned()
        };
        let index = read("ifindex").parse().unwrap_or(0);
        let own = addresses.get(&index).cloned().unwrap_or_default();
        let own: Vec<String> = own.iter().map(ToString::to_string).collect();
        interfaces.push(json!({
            "name": entry.file_name(), "mac": read("address"), "mtu": read("mtu").parse().unwrap_or(0_u32),
            "up": read("operstate") == "up", "addresses": own,
        }));
    }
    let reachable = addresses.values().flatten();
    let reachable = reachable.filter(|address| !address.is_loopback() && !is_link_local(**address));
    let mut reachable: Vec<String> = reachable.map(ToString::to_string).collect();
    reachable.sort();
    Ok(json!({
        "interfaces": interfaces, "addresses": reachable, "fromHost": source.host.is_rooted(),
    }))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// The addresses of this machine by the number of their interface.
fn addresses() -> std::io::Result<BTreeMap<u32, Vec<IpAddr>>> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // The protocol for routes and addresses has the number 0.
        None,
    )?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    // A header of 16 bytes, and 8 bytes that ask for all families.
    let mut request = Vec::new();
    request.extend(24_u32.to_ne_bytes());
    request.extend(GET_ADDRESSES.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.extend([0; 16]);
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    let mut found = BTreeMap::new();
    let mut buffer = vec![0; 64 << 10];
    for _ in 0..MAX_MESSAGES {
        let (_, length) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if !read_messages(buffer.get(..length).unwrap_or_default(), &mut found) {
            break;
        }
    }
    Ok(found)
}

/// Reads messages of the kernel; false after the last one.
fn read_messages(mut bytes: &[u8], found: &mut BTreeMap<u32, Vec<IpAddr>>) -> bool {
    while let Some(length) = number(bytes, 0) {
        let length = length as usize;
        let (Some(kind), Some(body)) = (short(bytes, 4), bytes.get(16..length)) else {
            return false;
        };
        match kind {
            DONE | ERROR => return false,
            NEW_ADDRESS => {
                if let Some((interface, address)) = read_address(body) {
                    found.entry(interface).or_default().push(address);
                }
            }
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}

/// The interface and the address of one message.
fn read_address(body: &[u8]) -> Option<(u32, IpAddr)> {
    let interface = number(body, 4)?;
    let mut attributes = body.get(8..)?;
    let mut address = None;
    while let (Some(length), Some(kind)) = (short(attributes, 0), short(attributes, 2)) {
        let length = usize::from(length);
        let value = attributes.get(4..length)?;
        match kind {
            LOCAL_ADDRESS => address = ip_address(value),
            PEER_ADDRESS if address.is_none() => address = ip_address(value),
            _ => {}
        }
        attributes = attributes
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    Some((interface, address?))
}

fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(bytes).into());
    }
    let bytes = <[u8; 16]>::try_from(bytes).ok()?;
    Some(Ipv6Addr::from(bytes).into())
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_a_loopback_address() {
        let all: Vec<IpAddr> = addresses()
            .expect("listed")
            .into_values()
            .flatten()
            .collect();
        assert!(all.iter().any(IpAddr::is_loopback), "{all:?}");
    }

    #[test]
    fn messages_that_are_cut_off_or_lie_about_their_length_are_no_addresses() {
        let mut found = BTreeMap::new();
        for bytes in [
            &[][..],
            &[0; 3],
            &[0xff; 40],
            &[16, 0, 0, 0, 20, 0, 0, 0],
            &[0; 16],
        ] {
            read_messages(bytes, &mut found);
        }
        assert!(found.is_empty());
    }
}
