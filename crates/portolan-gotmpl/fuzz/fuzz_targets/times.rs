//! Layouts, times and durations: any input gives an answer or an error, in bounded time.

#![no_main]

mod family;

use libfuzzer_sys::fuzz_target;

const NAMES: &[&str] = &[
    "mustToDate",
    "toDate",
    "dateInZone",
    "durationRound",
    "mustDateModify",
];

fuzz_target!(|call: family::Call| family::call(NAMES, call));
