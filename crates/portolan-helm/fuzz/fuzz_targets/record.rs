//! A Helm release's record, as a Secret may hold it: any bytes, and any JSON packed as Helm packs it.
#![no_main]

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use portolan_helm::storage;

fuzz_target!(|data: &[u8]| {
    let _ = storage::decode(data);
    let _ = storage::decode(STANDARD.encode(data).as_bytes());
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(data).expect("memory takes all");
    let packed = packed.finish().expect("memory takes all");
    if let Ok(release) = storage::decode(STANDARD.encode(packed).as_bytes()) {
        let again = storage::encode(&release).expect("what was read can be written");
        assert_eq!(storage::decode(again.as_bytes()).expect("and read again").name, release.name);
    }
});
