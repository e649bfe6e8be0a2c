//! The readers and writers of YAML, JSON, TOML, base 64, base 32 and URLs: any input gives an answer or an error, in bounded time.

#![no_main]

mod family;

use libfuzzer_sys::fuzz_target;

const NAMES: &[&str] = &[
    "fromYaml",
    "fromYamlArray",
    "fromJson",
    "fromJsonArray",
    "mustFromJson",
    "fromToml",
    "b64dec",
    "b32dec",
    "urlParse",
];

fuzz_target!(|call: family::Call| family::call(NAMES, call));
