//! Builds an image of a directory into a store, for `bench/image.sh`: `image CONTEXT STORE NAME gzip-LEVEL|zstd [BUCKETS]`.
//!
//! Prints the digest, how many layers were written, and the most memory that the process held.

use std::time::{SystemTime, UNIX_EPOCH};

use camino::Utf8Path;
use portolan_image::{
    BuildIo, Compression, ConfigSpec, CopySpec, ImageSpec, LayerOptions, ScanOptions, build_image,
    image_key, scan,
};
use portolan_layout::{ActionResult, Directory, Store};

#[expect(clippy::print_stdout, reason = "its output is its answer")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [context, store, name, method, rest @ ..] = args.as_slice() else {
        return Err("usage: image CONTEXT STORE NAME gzip-LEVEL|zstd [BUCKETS]".into());
    };
    let compression = match method.strip_prefix("gzip-") {
        Some(level) => Compression::Gzip {
            level: level.parse()?,
        },
        None => Compression::Zstd,
    };
    let buckets = rest.first().map_or(Ok(8), |buckets| buckets.parse())?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let store = Store::open(Utf8Path::new(store))?;
    let run = store.begin()?;
    let source = Directory::open(Utf8Path::new(context))?;
    let memo = run.memo(name);
    let copy = CopySpec {
        to: "/".to_owned(),
        ..CopySpec::default()
    };
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
    let options = ScanOptions {
        ignore: &[],
        never: &[],
        memo: &memo,
        now,
        threads,
    };
    let found = scan(&source, &[copy], &options)?;
    run.keep_memo(name, &found.memo);
    let spec = ImageSpec {
        config: ConfigSpec::default(),
        platform: "linux/amd64".parse()?,
        layers: LayerOptions {
            compression,
            modified: 0,
        },
        buckets,
    };
    let key = image_key(&found, &spec, None, env!("CARGO_PKG_VERSION"));
    if let Some(result) = run.cached(&key)? {
        run.tag(name, &result.image)?;
        println!("{} cached, {}", result.image.digest, peak());
        return Ok(());
    }
    let blocks = run.blocks(name);
    let io = BuildIo {
        source: &source,
        memo: &found.memo,
        cache: &run,
        blocks: &blocks,
        sink: &run,
        threads,
    };
    let image = build_image(&found.entries, &spec, None, &io)?;
    blocks.keep(image.layers.iter().map(|layer| &layer.digest));
    run.tag(name, &image.manifest)?;
    let written = image.written;
    let result = ActionResult {
        image: image.manifest,
        inputs: Vec::new(),
    };
    run.record(&key, &result)?;
    println!(
        "{} {written} layers written, {}",
        result.image.digest,
        peak()
    );
    Ok(())
}

/// The most memory that this process has held.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.unwrap_or("peak unknown").to_owned()
}
