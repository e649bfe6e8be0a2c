//! Messages of a watch over gRPC, made of bytes that all watches share: a change is encoded once, however many follow it.

use bytes::{BufMut as _, Bytes, BytesMut};
use portolan_kinds::wire::WatchRequest;
use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::watching::WatchMessage;

/// The numbers of the fields of `portolan.v1alpha.WatchEvent`.
const TYPE: u32 = 1;
const OBJECT: u32 = 2;
const RESOURCE_VERSION: u32 = 3;

/// The bytes of a `portolan.v1alpha.WatchEvent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EncodedEvent(Bytes);

impl EncodedEvent {
    pub(super) fn of(message: &WatchMessage) -> Self {
        let (word, version) = (message.kind.word(), message.position.to_string());
        let object = message.object_message();
        let mut bytes = BytesMut::with_capacity(64 + object.as_ref().map_or(0, Bytes::len));
        put(TYPE, word.as_bytes(), &mut bytes);
        if let Some(object) = &object {
            put(OBJECT, object, &mut bytes);
        }
        put(RESOURCE_VERSION, version.as_bytes(), &mut bytes);
        Self(bytes.freeze())
    }
}

fn put(field: u32, value: &[u8], bytes: &mut BytesMut) {
    encode_key(field, WireType::LengthDelimited, bytes);
    encode_varint(value.len() as u64, bytes);
    bytes.put_slice(value);
}

/// Reads requests for watches, and sends events that are encoded already.
#[derive(Debug, Clone, Copy)]
pub(super) struct WatchCodec;

impl Codec for WatchCodec {
    type Encode = EncodedEvent;
    type Decode = WatchRequest;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for WatchCodec {
    type Item = EncodedEvent;
    type Error = Status;

    fn encode(&mut self, event: EncodedEvent, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(event.0);
        Ok(())
    }
}

impl Decoder for WatchCodec {
    type Item = WatchRequest;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<WatchRequest>, Status> {
        let read = WatchRequest::decode(from);
        read.map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}
