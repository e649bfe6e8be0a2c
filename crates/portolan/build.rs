//! Links the program at a fixed address.
//!
//! A position-independent program has every pointer of its tables (about 55,000) written anew at each start: a
//! megabyte of memory that cannot be shared and two milliseconds, as long as rendering a small overlay takes. Shared
//! libraries, stack and heap keep their random places.

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| var(key).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
