//! libFuzzer's program for every target; `PORTOLAN_FUZZ_TARGET` names the one to run.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use portolan_fuzz::{Target, targets};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("PORTOLAN_FUZZ_TARGET").expect("PORTOLAN_FUZZ_TARGET names a target");
    let found = targets().into_iter().find(|target| target.name == name);
    found.expect("PORTOLAN_FUZZ_TARGET names a target that exists")
});

fuzz_target!(|bytes: &[u8]| {
    (TARGET.run)(bytes);
});
