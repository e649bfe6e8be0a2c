//! What is inside a sealed packet.
//!
//! ```text
//! kind and health │ number │ for whom │ sender │ body
//!        1        │   4    │    4     │ 27…39  │ of foca, or a question or an answer of our own
//! ```
//!
//! The receiver is written as a short mark, because it knows who it is: a ping takes 75 bytes with its seal.

use bytes::{Buf, BufMut};
use foca::{Codec, Message};

use crate::peer::PeerIdentity;
use crate::roster::Admission;
use crate::uid::NodeUid;
use crate::wire::{
    MalformedPacketError, PeerCodec, get_array, get_identity, get_message, get_u8, get_u16,
    put_identity,
};

/// Set in the first byte by a member whose timers fire late.
const DEGRADED: u8 = 0x80;

const SWIM: u8 = 0;
const CHECK: u8 = 1;
const CHECK_ANSWER: u8 = 2;
const ASK_SERVERS: u8 = 3;
const SERVERS: u8 = 4;

/// The most bytes of the address of a server.
pub(crate) const MAX_ENDPOINT_BYTES: usize = 255;

/// What a packet says apart from its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) is_degraded: bool,
    /// Counts the packets of the sender's generation.
    pub(crate) number: u32,
    pub(crate) receiver: u32,
    pub(crate) sender: PeerIdentity,
}

/// What a packet is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    /// What foca says after who it is for and from.
    Swim(&'a [u8]),
    /// Is the node alive, whatever its generation?
    Check(u64),
    CheckAnswer(u64),
    /// Which server is the receiver connected to?
    AskServers,
    Servers(&'a str),
}

/// The mark of a member, for packets to one generation of it.
pub(crate) fn mark_of(peer: &PeerIdentity) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    peer.hash_parts(|part| hasher.update(part));
    hasher.finalize()
}

/// The mark of a node, for packets to any generation of it.
pub(crate) fn mark_of_node(uid: NodeUid) -> u32 {
    crc32fast::hash(&uid.0)
}

pub(crate) fn write(envelope: &Envelope, body: &Body<'_>, out: &mut Vec<u8>) {
    let kind = match body {
        Body::Swim(_) => SWIM,
        Body::Check(_) => CHECK,
        Body::CheckAnswer(_) => CHECK_ANSWER,
        Body::AskServers => ASK_SERVERS,
        Body::Servers(_) => SERVERS,
    };
    out.clear();
    out.put_u8(kind | if envelope.is_degraded { DEGRADED } else { 0 });
    out.put_u32(envelope.number);
    out.put_u32(envelope.receiver);
    put_identity(out, &envelope.sender);
    match body {
        Body::Swim(rest) => out.put_slice(rest),
        Body::Check(question) | Body::CheckAnswer(question) => out.put_u64(*question),
        Body::AskServers => {}
        Body::Servers(endpoint) => out.put_slice(endpoint.as_bytes()),
    }
}

pub(crate) fn read(mut plain: &[u8]) -> Result<(Envelope, Body<'_>), MalformedPacketError> {
    let kind = get_u8(&mut plain)?;
    let number = plain.try_get_u32().map_err(|_| MalformedPacketError)?;
    let receiver = plain.try_get_u32().map_err(|_| MalformedPacketError)?;
    let sender = get_identity(&mut plain)?;
    let envelope = Envelope {
        is_degraded: kind & DEGRADED != 0,
        number,
        receiver,
        sender,
    };
    let body = match kind & !DEGRADED {
        SWIM => return Ok((envelope, Body::Swim(plain))),
        CHECK => Body::Check(u64::from_be_bytes(get_array(&mut plain)?)),
        CHECK_ANSWER => Body::CheckAnswer(u64::from_be_bytes(get_array(&mut plain)?)),
        ASK_SERVERS => Body::AskServers,
        SERVERS => Body::Servers(read_endpoint(std::mem::take(&mut plain))?),
        _ => return Err(MalformedPacketError),
    };
    if plain.is_empty() {
        Ok((envelope, body))
    } else {
        Err(MalformedPacketError)
    }
}

/// A host and a port, without anything that a terminal or a log would take for more than a letter.
fn read_endpoint(text: &[u8]) -> Result<&str, MalformedPacketError> {
    let is_fine = is_endpoint(text);
    let text = std::str::from_utf8(text).ok().filter(|_| is_fine);
    text.ok_or(MalformedPacketError)
}

pub(crate) fn is_endpoint(text: &[u8]) -> bool {
    (1..=MAX_ENDPOINT_BYTES).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
}

/// What foca is given of a packet.
pub(crate) struct SwimPacket {
    /// The greatest generation that others claim for this node, if it is greater than its own.
    pub(crate) claimed: Option<u32>,
}

/// Writes what foca reads: for whom, from whom, the message, and those updates that are about admitted members.
pub(crate) fn write_swim(
    own: &PeerIdentity,
    sender: &PeerIdentity,
    mut rest: &[u8],
    admission: &mut Admission,
    out: &mut Vec<u8>,
) -> Result<SwimPacket, MalformedPacketError> {
    out.clear();
    put_identity(out, own);
    put_identity(out, sender);
    let before = rest;
    get_u16(&mut rest)?;
    let message = get_message(&mut rest)?;
    if let Some(named) = named_by(&message)
        && !admission.admits(named)
    {
        return Err(MalformedPacketError);
    }
    out.put_slice(&before[..before.len() - rest.len()]);
    let mut claimed = None;
    if rest.is_empty() {
        return Ok(SwimPacket { claimed });
    }
    let stated = get_u16(&mut rest)?;
    let count_at = out.len();
    out.put_u16(0);
    let mut kept: u16 = 0;
    for _ in 0..stated {
        let before = rest;
        let update = PeerCodec.decode_member(&mut rest)?;
        let peer = update.id();
        if peer.uid == own.uid && peer.generation > own.generation {
            claimed = claimed.max(Some(peer.generation));
        } else if peer == own || admission.admits(peer) {
            kept += 1;
            out.put_slice(&before[..before.len() - rest.len()]);
        }
    }
    out[count_at..count_at + 2].copy_from_slice(&kept.to_be_bytes());
    if rest.is_empty() {
        Ok(SwimPacket { claimed })
    } else {
        Err(MalformedPacketError)
    }
}

/// Whom a message asks to send a packet to.
fn named_by(message: &Message<PeerIdentity>) -> Option<&PeerIdentity> {
    match message {
        Message::PingReq { target, .. } | Message::IndirectAck { target, .. } => Some(target),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope() -> Envelope {
        Envelope {
            is_degraded: true,
            number: 7,
            receiver: 9,
            sender: PeerIdentity::new(
                NodeUid([3; 16]),
                5,
                "10.0.0.1:7000".parse().expect("an address"),
            ),
        }
    }

    #[test]
    fn packets_read_as_they_were_written() {
        for body in [
            Body::Swim(b"\0\x01\x0b"),
            Body::Check(u64::MAX),
            Body::CheckAnswer(0),
            Body::AskServers,
            Body::Servers("fleet.example:8443"),
        ] {
            let mut plain = Vec::new();
            write(&envelope(), &body, &mut plain);
            assert_eq!(read(&plain), Ok((envelope(), body)));
        }
    }

    #[test]
    fn bytes_that_are_too_few_or_too_many_are_refused() {
        let mut plain = Vec::new();
        write(&envelope(), &Body::Check(1), &mut plain);
        for length in 0..plain.len() {
            assert_eq!(read(&plain[..length]), Err(MalformedPacketError));
        }
        plain.push(0);
        assert_eq!(read(&plain), Err(MalformedPacketError));
    }

    #[test]
    fn the_address_of_a_server_cannot_carry_control_characters() {
        for text in ["", "a b", "host\u{1b}[31m:1", &"x".repeat(256), "höst:1"] {
            let mut plain = Vec::new();
            write(&envelope(), &Body::Servers(text), &mut plain);
            assert_eq!(read(&plain), Err(MalformedPacketError), "{text:?}");
        }
    }
}
