//! How members, messages and updates are written as bytes, for foca and for our own packets alike.

use std::net::{IpAddr, SocketAddr};

use bytes::{Buf, BufMut};
use foca::{Codec, Header, Member, Message, State};

use crate::peer::PeerIdentity;
use crate::uid::NodeUid;

/// A text, a number or a member that is not written as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the packet is not written as it should be")]
pub(crate) struct MalformedPacketError;

type Result<T> = std::result::Result<T, MalformedPacketError>;

const V4: u8 = 4;
const V6: u8 = 6;

/// The most bytes that a member takes: uid, generation, kind of address, address, port.
const MOST_IDENTITY_BYTES: usize = 16 + 4 + 1 + 16 + 2;

/// What comes before an update's state: the member, and its incarnation.
const INCARNATION_BYTES: usize = 2;

pub(crate) fn put_identity(out: &mut impl BufMut, peer: &PeerIdentity) {
    out.put_slice(&peer.uid.0);
    out.put_u32(peer.generation);
    let address = peer.address();
    match address.ip() {
        IpAddr::V4(ip) => {
            out.put_u8(V4);
            out.put_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.put_u8(V6);
            out.put_slice(&ip.octets());
        }
    }
    out.put_u16(address.port());
}

pub(crate) fn get_identity(data: &mut impl Buf) -> Result<PeerIdentity> {
    let uid = NodeUid(get_array(data)?);
    let generation = data.try_get_u32().map_err(|_| MalformedPacketError)?;
    let ip = match get_u8(data)? {
        V4 => IpAddr::from(get_array::<4>(data)?),
        V6 => IpAddr::from(get_array::<16>(data)?),
        _ => return Err(MalformedPacketError),
    };
    let port = get_u16(data)?;
    Ok(PeerIdentity::new(
        uid,
        generation,
        SocketAddr::new(ip, port),
    ))
}

pub(crate) fn get_array<const N: usize>(data: &mut impl Buf) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    data.try_copy_to_slice(&mut bytes)
        .map_err(|_| MalformedPacketError)?;
    Ok(bytes)
}

pub(crate) fn get_u8(data: &mut impl Buf) -> Result<u8> {
    data.try_get_u8().map_err(|_| MalformedPacketError)
}

pub(crate) fn get_u16(data: &mut impl Buf) -> Result<u16> {
    data.try_get_u16().map_err(|_| MalformedPacketError)
}

/// What foca writes and reads: the receiver, the sender, its incarnation, the message; then updates.
pub(crate) struct PeerCodec;

pub(crate) const PING: u8 = 1;
const ACK: u8 = 2;
const PING_REQUEST: u8 = 3;
const INDIRECT_PING: u8 = 4;
const INDIRECT_ACK: u8 = 5;
const FORWARDED_ACK: u8 = 6;
pub(crate) const ANNOUNCE: u8 = 7;
const FEED: u8 = 8;
const GOSSIP: u8 = 9;
const BROADCAST: u8 = 10;
const TURN_UNDEAD: u8 = 11;

impl Codec<PeerIdentity> for PeerCodec {
    type Error = MalformedPacketError;

    fn encode_header(&mut self, header: &Header<PeerIdentity>, mut out: impl BufMut) -> Result<()> {
        if out.remaining_mut() < 3 * MOST_IDENTITY_BYTES + INCARNATION_BYTES + 2 {
            return Err(MalformedPacketError);
        }
        put_identity(&mut out, &header.dst);
        put_identity(&mut out, &header.src);
        out.put_u16(header.src_incarnation);
        put_message(&mut out, &header.message);
        Ok(())
    }

    fn decode_header(&mut self, mut data: impl Buf) -> Result<Header<PeerIdentity>> {
        Ok(Header {
            dst: get_identity(&mut data)?,
            src: get_identity(&mut data)?,
            src_incarnation: get_u16(&mut data)?,
            message: get_message(&mut data)?,
        })
    }

    fn encode_member(&mut self, member: &Member<PeerIdentity>, mut out: impl BufMut) -> Result<()> {
        if out.remaining_mut() < MOST_IDENTITY_BYTES + INCARNATION_BYTES + 1 {
            return Err(MalformedPacketError);
        }
        put_identity(&mut out, member.id());
        out.put_u16(member.incarnation());
        out.put_u8(match member.state() {
            State::Alive => 0,
            State::Suspect => 1,
            State::Down => 2,
        });
        Ok(())
    }

    fn decode_member(&mut self, mut data: impl Buf) -> Result<Member<PeerIdentity>> {
        let peer = get_identity(&mut data)?;
        let incarnation = get_u16(&mut data)?;
        let state = match get_u8(&mut data)? {
            0 => State::Alive,
            1 => State::Suspect,
            2 => State::Down,
            _ => return Err(MalformedPacketError),
        };
        Ok(Member::new(peer, incarnation, state))
    }
}

fn put_message(out: &mut impl BufMut, message: &Message<PeerIdentity>) {
    let (kind, peer, number) = match message {
        Message::Ping(number) => (PING, None, Some(number)),
        Message::Ack(number) => (ACK, None, Some(number)),
        Message::PingReq {
            target,
            probe_number,
        } => (PING_REQUEST, Some(target), Some(probe_number)),
        Message::IndirectPing {
            origin,
            probe_number,
        } => (INDIRECT_PING, Some(origin), Some(probe_number)),
        Message::IndirectAck {
            target,
            probe_number,
        } => (INDIRECT_ACK, Some(target), Some(probe_number)),
        Message::ForwardedAck {
            origin,
            probe_number,
        } => (FORWARDED_ACK, Some(origin), Some(probe_number)),
        Message::Announce => (ANNOUNCE, None, None),
        Message::Feed => (FEED, None, None),
        Message::Gossip => (GOSSIP, None, None),
        Message::Broadcast => (BROADCAST, None, None),
        Message::TurnUndead => (TURN_UNDEAD, None, None),
    };
    out.put_u8(kind);
    if let Some(peer) = peer {
        put_identity(out, peer);
    }
    if let Some(number) = number {
        out.put_u8(*number);
    }
}

pub(crate) fn get_message(data: &mut impl Buf) -> Result<Message<PeerIdentity>> {
    Ok(match get_u8(data)? {
        PING => Message::Ping(get_u8(data)?),
        ACK => Message::Ack(get_u8(data)?),
        PING_REQUEST => Message::PingReq {
            target: get_identity(data)?,
            probe_number: get_u8(data)?,
        },
        INDIRECT_PING => Message::IndirectPing {
            origin: get_identity(data)?,
            probe_number: get_u8(data)?,
        },
        INDIRECT_ACK => Message::IndirectAck {
            target: get_identity(data)?,
            probe_number: get_u8(data)?,
        },
        FORWARDED_ACK => Message::ForwardedAck {
            origin: get_identity(data)?,
            probe_number: get_u8(data)?,
        },
        ANNOUNCE => Message::Announce,
        FEED => Message::Feed,
        GOSSIP => Message::Gossip,
        BROADCAST => Message::Broadcast,
        TURN_UNDEAD => Message::TurnUndead,
        _ => return Err(MalformedPacketError),
    })
}
