//! Layers: the same bytes from the same entries, whatever the threads; small changes change one layer.

use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use portolan_digest::Digest;
use portolan_image::{
    BlobSink, BlockCache, BlockIndex, BuildIo, Compression, CopySpec, Entry, Layer, LayerOptions,
    LayerPlan, Memo, Memory, MemoryBlobs, Node, Owner, PackedBlock, Scan, ScanOptions, plan_layers,
    scan, write_layers,
};

const KINDS: [Compression; 4] = [
    Compression::Gzip { level: 1 },
    Compression::Gzip { level: 6 },
    Compression::Gzip { level: 9 },
    Compression::Zstd,
];

fn scanned(files: &Memory) -> Scan {
    let copy = CopySpec {
        to: "/".to_owned(),
        ..CopySpec::default()
    };
    let options = ScanOptions {
        ignore: &[],
        never: &[],
        memo: &Memo::default(),
        now: 0,
        threads: 1,
    };
    scan(files, &[copy], &options).expect("a good context")
}

fn options(compression: Compression) -> LayerOptions {
    LayerOptions {
        compression,
        modified: 0,
    }
}

/// Nothing is known from before.
fn io<'a>(source: &'a Memory, sink: &'a dyn BlobSink) -> BuildIo<'a> {
    static NOTHING: std::sync::LazyLock<Memo> = std::sync::LazyLock::new(Memo::default);
    BuildIo {
        source,
        memo: &NOTHING,
        cache: &(),
        blocks: &(),
        sink,
        threads: 4,
    }
}

fn layers(
    files: &Memory,
    buckets: usize,
    compression: Compression,
    threads: usize,
) -> (Vec<Layer>, MemoryBlobs) {
    let entries = scanned(files).entries;
    let plans = plan_layers(&entries, buckets, &options(compression), |_| false);
    let blobs = MemoryBlobs::default();
    let plans: Vec<&LayerPlan> = plans.iter().collect();
    let options = options(compression);
    let io = BuildIo {
        threads,
        ..io(files, &blobs)
    };
    let layers = write_layers(&entries, &plans, &options, &io).expect("it works");
    (layers, blobs)
}

/// Bytes that compress about as programs do, and look random.
fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 16);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state.is_multiple_of(3) {
            bytes.extend_from_slice(b"some text that comes again and again, ");
        }
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn tree() -> Memory {
    let mut files = Memory::default();
    for directory in 0..40 {
        for file in 0..5 {
            let path = format!("srv/d{directory}/f{file}");
            files.file(&path, 0o644, &content(directory * 5 + file, 3_000));
        }
    }
    files
        .file("srv/large", 0o755, &content(1, 5_000_000))
        .link("srv/link", "d1/f1")
        .directory("var/empty", 0o755);
    files
}

fn unpacked(layer: &Layer, blobs: &MemoryBlobs) -> Vec<u8> {
    let packed = blobs.get(&layer.blob).expect("the blob is there");
    assert_eq!(packed.len() as u64, layer.size);
    let mut plain = Vec::new();
    if layer.media_type.ends_with("gzip") {
        let mut reader = flate2::read::GzDecoder::new(packed.as_slice());
        reader.read_to_end(&mut plain).expect("one gzip member");
        let mut rest = Vec::new();
        reader
            .into_inner()
            .read_to_end(&mut rest)
            .expect("it works");
        assert!(rest.is_empty(), "nothing follows the member");
    } else {
        plain = zstd::decode_all(packed.as_slice()).expect("zstd");
    }
    assert_eq!(Digest::of(&plain), layer.diff_id);
    plain
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    for compression in KINDS {
        let (one, _) = layers(&tree(), 8, compression, 1);
        let (many, blobs) = layers(&tree(), 8, compression, 8);
        assert_eq!(one, many, "{compression:?}");
        for layer in &many {
            unpacked(layer, &blobs);
        }
    }
}

/// Compressed blocks in memory, and how many of them were asked for and found.
#[derive(Default)]
struct MemoryBlocks {
    blobs: MemoryBlobs,
    index: Mutex<BlockIndex>,
    found: AtomicUsize,
}

impl BlockCache for MemoryBlocks {
    fn get(&self, key: &[u8; 32], output: &mut Vec<u8>) -> Option<u32> {
        let place = *self.index.lock().expect("a lock").get(key)?;
        let start = usize::try_from(place.offset).expect("in memory");
        let blob = self.blobs.get(&place.blob).expect("a known blob");
        output.clear();
        output.extend_from_slice(&blob[start..start + place.block.length as usize]);
        assert!(place.block.is(output));
        self.found.fetch_add(1, Ordering::Relaxed);
        Some(place.block.checksum)
    }

    fn put(&self, blob: &Digest, start: u64, blocks: Vec<PackedBlock>) {
        self.index
            .lock()
            .expect("a lock")
            .insert(*blob, start, blocks);
    }
}

/// A block that was compressed before is copied, and the layer is the one that it is without.
#[test]
fn known_blocks_change_no_byte() {
    let mut files = Memory::default();
    for file in 0..30 {
        files.file(&format!("f{file:02}"), 0o644, &content(file, 100_000));
    }
    files.file("large", 0o644, &content(99, 4_000_000));
    for compression in [Compression::Gzip { level: 1 }, Compression::Zstd] {
        let known = MemoryBlocks::default();
        let write = |files: &Memory| {
            let entries = scanned(files).entries;
            let options = options(compression);
            let plans = plan_layers(&entries, 1, &options, |_| false);
            let io = BuildIo {
                blocks: &known,
                ..io(files, &known.blobs)
            };
            known.found.store(0, Ordering::Relaxed);
            let written = write_layers(&entries, &[&plans[0]], &options, &io).expect("it works");
            assert_eq!(
                written,
                layers(files, 1, compression, 2).0,
                "{compression:?}"
            );
            unpacked(&written[0], &known.blobs);
            known.found.load(Ordering::Relaxed)
        };
        assert_eq!(write(&files), 0);
        let mut same_length = files.clone();
        same_length.file("f15", 0o644, &content(1000, 100_000));
        let all = known.index.lock().unwrap().clone();
        let found = write(&same_length);
        assert!(found >= 2, "{found} blocks found");
        *known.index.lock().unwrap() = all;
        let mut longer = files.clone();
        longer.file("f25", 0o644, &content(1000, 200_000));
        let found = write(&longer);
        assert!((1..4).contains(&found), "only blocks before it: {found}");
        let mut other_mode = files.clone();
        other_mode.file("f00", 0o755, &content(0, 100_000));
        assert!(write(&other_mode) >= 2);
    }
}

#[test]
fn a_reader_of_tar_finds_every_entry_as_it_was() {
    let mut files = tree();
    let long = format!("{}/{}", "a".repeat(120), "b".repeat(130));
    let deep = vec!["directory"; 30].join("/");
    files
        .file(&long, 0o644, b"long")
        .file(&format!("{deep}/file"), 0o644, b"deep")
        .file("ünïcode/ß", 0o644, b"letters")
        .link("far", &"x/".repeat(100))
        .link("weit", "ünïcode")
        .file("bin/capable", 0o755, b"")
        .attribute("bin/capable", "security.capability", b"\x01\x00=\xff");
    let mut entries = scanned(&files).entries;
    for entry in &mut entries {
        if entry.path == "bin/capable" {
            entry.capability = Some(b"\x01\x00=\xff".to_vec());
            entry.owner = Owner {
                user: 4_000_000_000,
                group: 65532,
            };
        }
    }
    let plans = plan_layers(&entries, 1, &options(Compression::default()), |_| false);
    let blobs = MemoryBlobs::default();
    let options = LayerOptions {
        modified: 1_700_000_000,
        ..options(Compression::default())
    };
    let written = write_layers(&entries, &[&plans[0]], &options, &io(&files, &blobs)).unwrap();
    let plain = unpacked(&written[0], &blobs);
    let mut archive = tar::Archive::new(plain.as_slice());
    let mut found = 0;
    for (entry, expected) in archive.entries().unwrap().zip(&entries) {
        let mut entry = entry.unwrap();
        check_entry(&mut entry, expected);
        found += 1;
    }
    assert_eq!(found, entries.len());
}

fn check_entry<R: Read>(entry: &mut tar::Entry<'_, R>, expected: &Entry) {
    let path = String::from_utf8(entry.path_bytes().into_owned()).expect("it works");
    assert_eq!(path.trim_end_matches('/'), expected.path);
    let extensions: Vec<(String, Vec<u8>)> = match entry.pax_extensions().expect("it works") {
        None => Vec::new(),
        Some(records) => records
            .map(|record| record.expect("it works"))
            .map(|record| {
                (
                    record.key().expect("it works").to_owned(),
                    record.value_bytes().to_vec(),
                )
            })
            .collect(),
    };
    let extension = |name: &str| {
        extensions
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
    };
    assert_eq!(
        extension("SCHILY.xattr.security.capability"),
        expected.capability
    );
    let header = entry.header();
    assert_eq!(header.mode().expect("it works"), expected.mode);
    assert_eq!(header.mtime().expect("it works"), 1_700_000_000);
    let user = extension("uid").map_or(header.uid().expect("it works").to_string(), |uid| {
        String::from_utf8(uid).expect("it works")
    });
    assert_eq!(user, expected.owner.user.to_string());
    assert_eq!(
        header.gid().expect("it works"),
        u64::from(expected.owner.group)
    );
    let kind = header.entry_type();
    match &expected.node {
        Node::Directory => assert!(kind.is_dir() && path.ends_with('/')),
        Node::Link(target) => {
            assert!(kind.is_symlink());
            assert_eq!(
                entry.link_name_bytes().expect("it works").as_ref(),
                target.as_bytes()
            );
        }
        Node::File { size, .. } => {
            assert!(kind.is_file());
            assert_eq!(entry.size(), *size);
            std::io::copy(entry, &mut std::io::sink()).expect("it works");
        }
    }
}

#[test]
fn a_header_is_extended_only_where_a_value_does_not_fit() {
    let (layers, blobs) = layers(&tree(), 1, Compression::default(), 1);
    let plain = unpacked(&layers[0], &blobs);
    let mut archive = tar::Archive::new(plain.as_slice());
    let kinds = archive
        .entries()
        .unwrap()
        .raw(true)
        .map(|entry| entry.unwrap().header().entry_type());
    assert!(
        kinds
            .into_iter()
            .all(|kind| kind != tar::EntryType::XHeader)
    );
}

#[test]
fn a_changed_file_changes_one_layer_and_a_new_directory_at_most_one() {
    let (before, _) = layers(&tree(), 8, Compression::Zstd, 2);
    assert_eq!(before.len(), 8);
    let changed = |change: fn(&mut Memory)| {
        let mut files = tree();
        change(&mut files);
        let (after, _) = layers(&files, 8, Compression::Zstd, 2);
        assert_eq!(after.len(), before.len());
        after.iter().filter(|layer| !before.contains(layer)).count()
    };
    assert_eq!(
        changed(|files| drop(files.file("srv/d7/f1", 0o644, b"x").clone())),
        1
    );
    assert_eq!(
        changed(|files| drop(files.file("srv/d7/new", 0o644, b"x").clone())),
        1
    );
    assert_eq!(
        changed(|files| drop(files.file("srv/new/f", 0o644, b"x").clone())),
        1
    );
    assert_eq!(changed(|files| drop(files.remove("srv/d9").clone())), 1);
    assert_eq!(changed(|_| {}), 0);
}

/// Rendezvous hashing: of nine buckets, each gets about a ninth of every one of the eight before.
#[test]
fn another_number_of_layers_moves_few_directories() {
    let entries = scanned(&tree()).entries;
    let directories = |buckets| -> Vec<usize> {
        let plans = plan_layers(&entries, buckets, &options(Compression::Zstd), |_| false);
        let of = |at: usize| {
            plans
                .iter()
                .position(|plan| plan.entries.contains(&at))
                .expect("every entry is in a layer")
        };
        let files = entries.iter().enumerate();
        let files = files.filter(|(_, entry)| matches!(entry.node, Node::File { .. }));
        files.map(|(at, _)| of(at)).collect()
    };
    let moved = directories(8)
        .iter()
        .zip(directories(9))
        .filter(|(a, b)| **a != *b)
        .count();
    assert!(moved < 60, "{moved} of 201 files moved");
}

#[test]
fn directories_that_are_there_are_not_written() {
    let entries = scanned(&tree()).entries;
    let all = plan_layers(&entries, 8, &options(Compression::Zstd), |entry| {
        entry.path == "srv"
    });
    let srv = entries
        .iter()
        .position(|entry| entry.path == "srv")
        .unwrap();
    assert!(all.iter().all(|plan| !plan.entries.contains(&srv)));
    let nothing = plan_layers(&entries[..0], 8, &options(Compression::Zstd), |_| false);
    assert!(nothing.is_empty());
}

#[test]
fn a_file_that_is_not_what_it_was_fails_the_layer() {
    let files = tree();
    let entries = scanned(&files).entries;
    let plans = plan_layers(&entries, 8, &options(Compression::Zstd), |_| false);
    let plans: Vec<&LayerPlan> = plans.iter().collect();
    for other in [
        &b"shorter"[..],
        &content(1, 5_000_001),
        &content(2, 5_000_000),
    ] {
        let mut changed = files.clone();
        changed.file("srv/large", 0o755, other);
        let blobs = MemoryBlobs::default();
        let error = write_layers(
            &entries,
            &plans,
            &options(Compression::Zstd),
            &io(&changed, &blobs),
        );
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "`srv/large` changed while the image was built");
    }
    let mut gone = files.clone();
    gone.remove("srv/large");
    let error = write_layers(
        &entries,
        &plans,
        &options(Compression::Zstd),
        &io(&gone, &MemoryBlobs::default()),
    );
    assert_eq!(error.unwrap_err().to_string(), "cannot read `srv/large`");
}

mod full_disk {
    use std::io::{self, Write};

    use portolan_image::BlobWriter;

    use super::*;

    /// A disk that takes some bytes and no more.
    struct Full(usize);

    struct Writer(usize);

    impl Write for Writer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl BlobWriter for Writer {
        fn commit(self: Box<Self>, _: &Digest) -> io::Result<()> {
            Ok(())
        }
    }

    impl BlobSink for Full {
        fn begin(&self) -> io::Result<Box<dyn BlobWriter + '_>> {
            Ok(Box::new(Writer(self.0)))
        }
    }

    #[test]
    fn a_full_disk_ends_the_work_with_one_error() {
        let files = tree();
        let entries = scanned(&files).entries;
        let plans = plan_layers(&entries, 8, &options(Compression::Zstd), |_| false);
        let plans: Vec<&LayerPlan> = plans.iter().collect();
        for room in [0, 1_000, 100_000, 2_000_000] {
            let failed = write_layers(
                &entries,
                &plans,
                &options(Compression::Zstd),
                &io(&files, &Full(room)),
            );
            assert_eq!(
                failed.unwrap_err().to_string(),
                "cannot write a layer",
                "{room}"
            );
        }
    }
}

/// A change of these digests is a change of every image: raise the version of the compression (blobs) or of keys (tar) with it.
#[test]
fn golden_digests_of_tar_and_blobs() {
    let mut files = Memory::default();
    files
        .file("app/run", 0o755, &content(1, 2_500_000))
        .file(
            "app/text",
            0o644,
            &b"all work and no play makes jack a dull boy\n".repeat(1000),
        )
        .link("bin", "app")
        .directory("tmp", 0o755);
    let mut found = Vec::new();
    for compression in KINDS {
        let (layers, _) = layers(&files, 1, compression, 2);
        found.push(format!(
            "{} {} {}",
            compression.version(),
            layers[0].diff_id,
            layers[0].blob
        ));
    }
    assert_eq!(found, GOLDEN);
}

const GOLDEN: [&str; 4] = [
    "gzip-1/1 sha256:2e95617aee5a0b55b2d5a0512f16c90da29dcf03b3ade33d2b7bc02cacce03eb sha256:c95fb644a6e2cf51664c4de6a394539896b9bf80dd6eff1f5785dcb1de77d3f1",
    "gzip-6/1 sha256:2e95617aee5a0b55b2d5a0512f16c90da29dcf03b3ade33d2b7bc02cacce03eb sha256:b4d845f2ffd9684cbd93a7d9cd8d87347f3c6f448798520b609b1f91ee1428c6",
    "gzip-9/1 sha256:2e95617aee5a0b55b2d5a0512f16c90da29dcf03b3ade33d2b7bc02cacce03eb sha256:709c1659efc5cfab25c3fd122324420670a6fc062a14cd74beeeb25e36aa66e2",
    "zstd-3/1 sha256:2e95617aee5a0b55b2d5a0512f16c90da29dcf03b3ade33d2b7bc02cacce03eb sha256:ff2f2897659d037a557d4c774272437bdbd82dce624271da35bba1e578561ad6",
];
