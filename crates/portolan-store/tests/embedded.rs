//! The embedded engine does what every engine must do.

use std::sync::Arc;
use std::time::Duration;

use portolan_store::conformance::{DiskFault, Extent, ForgetfulDisk, check};
use portolan_store::{BootClock, Embedded, EmbeddedOptions, Engine};

const SEQUENCES: u32 = 150;
const LONG_SEQUENCES: u32 = 3_000;

#[test]
fn the_embedded_engine_conforms() {
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    let sequences = if is_long { LONG_SEQUENCES } else { SEQUENCES };
    eprintln!("sequences on the embedded engine: {sequences} of {LONG_SEQUENCES}");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let options = EmbeddedOptions {
        tick: Duration::from_millis(20),
        ..EmbeddedOptions::default()
    };
    // Real files and their syncs are for the tests of crashes.
    let disk = ForgetfulDisk::new(DiskFault::None);
    let engine = Embedded::open_backend(disk, options, Arc::new(BootClock));
    let engine = Arc::new(engine.expect("opens"));
    let any: Arc<dyn Engine> = engine.clone();
    check(
        &runtime,
        &any,
        Extent {
            sequences,
            seed: 11,
        },
    );
    runtime.block_on(engine.verify()).expect("whole");
}
