//! What the control plane's store reads from disk or etcd: its own records and backups, which others may have
//! changed.

use portolan_store::blob::BlobName;
use portolan_store::embedded::decode_stored;
use portolan_store::{Incarnation, Position, ShardLayout, read_backup};

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "store-backup",
        about: "a backup of a store: read to its end",
        run: backup,
        seeds: || vec![whole_backup(), whole_backup()[..40].to_vec()],
    },
    Target {
        name: "store-meta",
        about: "what a store says of itself, and positions and names of blobs that clients send",
        run: meta,
        seeds: || {
            texts(&[
                "1 000102030405060708090a0b0c0d0e0f -",
                "7 000102030405060708090a0b0c0d0e0f 00000000000000aa",
                "8 000102030405060708090a0b0c0d0e0f - 7.1042",
                "16 sha256-8",
                "3.1042",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ])
        },
    },
    Target {
        name: "store-record",
        about: "a stored version of a key: taken only with its checksum",
        run: record,
        seeds: || vec![tombstone(), vec![1; 41], Vec::new()],
    },
];

/// A backup without records, made by hand: its digest is the last part.
fn whole_backup() -> Vec<u8> {
    let mut bytes = b"portolan-store 1\n".to_vec();
    bytes.extend(1_u64.to_be_bytes());
    bytes.extend(9_u64.to_be_bytes());
    bytes.extend(u32::MAX.to_be_bytes());
    bytes.extend(0_u64.to_be_bytes());
    let digest = <sha2::Sha256 as sha2::Digest>::digest(&bytes);
    bytes.extend(digest);
    bytes
}

/// The deletion of key `/a` at revision 9.
fn tombstone() -> Vec<u8> {
    let mut hashed = 2_u64.to_be_bytes().to_vec();
    hashed.extend(b"/a");
    hashed.extend(9_u64.to_be_bytes());
    hashed.push(2);
    hashed.extend([0; 24]);
    let digest = <sha2::Sha256 as sha2::Digest>::digest(&hashed);
    let mut bytes = vec![2];
    bytes.extend(&digest[..16]);
    bytes.extend([0; 24]);
    bytes
}

fn backup(bytes: &[u8]) -> bool {
    let mut records = 0;
    let read = read_backup(&mut &bytes[..], |_, _| {
        records += 1;
        Ok(())
    });
    read.is_ok_and(|summary| summary.records == records)
}

fn meta(bytes: &[u8]) -> bool {
    let incarnation = Incarnation::parse(bytes);
    if let Some(incarnation) = &incarnation {
        let again = Incarnation::parse(incarnation.to_string().as_bytes());
        assert_eq!(again.as_ref(), Some(incarnation));
    }
    let text = String::from_utf8_lossy(bytes);
    let position = text.parse::<Position>();
    if let Ok(position) = position {
        assert_eq!(position.to_string().parse(), Ok(position));
    }
    let is_blob = text
        .parse::<BlobName>()
        .is_ok_and(|name| name.to_string() == text);
    incarnation.is_some() || ShardLayout::parse(bytes).is_some() || position.is_ok() || is_blob
}

fn record(bytes: &[u8]) -> bool {
    decode_stored(b"/a", 9, bytes).is_ok()
}
