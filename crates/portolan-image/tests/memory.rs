//! Memory does not grow with the image. One test alone in its process, because it counts what the process holds.

use std::io::{self, Read, Write};

use portolan_digest::Digest;
use portolan_image::{
    BlobSink, BlobWriter, BuildIo, Compression, CopySpec, LayerOptions, LayerPlan, Listed,
    ListedKind, Memo, OpenFile, ScanOptions, Source, Stamp, plan_layers, scan, write_layers,
};

/// Files that are made while they are read: 10,000 of 22 kB.
struct GeneratedFiles;

const FILES: u64 = 10_000;
const BYTES: u64 = 22_000;

struct File {
    state: u64,
    left: u64,
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.left as usize);
        for piece in buffer[..length].chunks_mut(8) {
            self.state = self
                .state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            piece.copy_from_slice(&self.state.to_be_bytes()[..piece.len()]);
        }
        self.left -= length as u64;
        Ok(length)
    }
}

impl OpenFile for File {
    fn stamp(&self) -> io::Result<Stamp> {
        Ok(Stamp {
            size: BYTES,
            ..Stamp::default()
        })
    }
}

impl Source for GeneratedFiles {
    fn list(&self, _: &str) -> io::Result<Vec<Listed>> {
        let file = |number: u64| Listed {
            name: format!("f{number}").into_bytes(),
            kind: ListedKind::File,
            mode: 0o644,
            stamp: Stamp {
                size: BYTES,
                ..Stamp::default()
            },
        };
        Ok((0..FILES).map(file).collect())
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(File {
            state: path.len() as u64,
            left: BYTES,
        }))
    }

    fn attribute_names(&self, _: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn attribute(&self, _: &str, _: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// Blobs that go nowhere.
struct Nowhere;

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BlobWriter for Nowhere {
    fn commit(self: Box<Self>, _: &Digest) -> io::Result<()> {
        Ok(())
    }
}

impl BlobSink for Nowhere {
    fn begin(&self) -> io::Result<Box<dyn BlobWriter + '_>> {
        Ok(Box::new(Self))
    }
}

/// The most memory that this process has held, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("a peak");
    let kilobytes: u64 = line
        .split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number");
    kilobytes * 1024
}

#[test]
fn an_image_of_220_megabytes_takes_less_than_64_of_memory() {
    let copy = CopySpec {
        to: "/srv".to_owned(),
        ..CopySpec::default()
    };
    let options = ScanOptions {
        ignore: &[],
        never: &[],
        memo: &Memo::default(),
        now: 0,
        threads: 8,
    };
    let found = scan(&GeneratedFiles, &[copy], &options).expect("a good context");
    assert_eq!(found.size(), FILES * BYTES);
    for compression in [Compression::Zstd, Compression::Gzip { level: 1 }] {
        let options = LayerOptions {
            compression,
            modified: 0,
        };
        let plans = plan_layers(&found.entries, 8, &options, |_| false);
        let plans: Vec<&LayerPlan> = plans.iter().collect();
        let io = BuildIo {
            source: &GeneratedFiles,
            memo: &Memo::default(),
            cache: &(),
            blocks: &(),
            sink: &Nowhere,
            threads: 8,
        };
        write_layers(&found.entries, &plans, &options, &io).expect("it is written");
        let peak = peak();
        println!("peak after {compression:?}: {} MB", peak >> 20);
        assert!(peak <= 64 << 20, "{compression:?}: {} MB", peak >> 20);
    }
}
