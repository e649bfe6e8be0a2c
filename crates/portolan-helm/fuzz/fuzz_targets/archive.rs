//! Any bytes as a chart archive, packed (as they come) and unpacked (as the tar inside), then rendered if they load.
#![no_main]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use portolan_helm::{Chart, Package, Release, TemplateInput, template};

fuzz_target!(|bytes: &[u8]| {
    let _ = Package::from_archive(bytes);
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    if packed.write_all(bytes).is_err() {
        return;
    }
    let Ok(packed) = packed.finish() else { return };
    if let Ok(package) = Package::from_archive(&packed) {
        let _ = template(&Chart::new(package), &TemplateInput::new(Release::new("fuzz", "default")));
    }
});
