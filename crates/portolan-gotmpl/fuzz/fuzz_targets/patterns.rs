//! Regular expressions, versions and constraints: any input gives an answer or an error, in bounded time.

#![no_main]

mod family;

use libfuzzer_sys::fuzz_target;

const NAMES: &[&str] = &[
    "mustRegexMatch",
    "mustRegexFind",
    "mustRegexSplit",
    "mustRegexFindAll",
    "mustRegexReplaceAll",
    "semverCompare",
    "semver",
];

fuzz_target!(|call: family::Call| family::call(NAMES, call));
