//! Functions that cut, wrap and spell strings: any input gives an answer or an error, in bounded time.

#![no_main]

mod family;

use libfuzzer_sys::fuzz_target;

const NAMES: &[&str] = &[
    "camelcase",
    "snakecase",
    "kebabcase",
    "swapcase",
    "title",
    "untitle",
    "initials",
    "nospace",
    "abbrev",
    "abbrevboth",
    "wrap",
    "wrapWith",
    "trunc",
    "substr",
    "splitn",
    "replace",
    "quote",
    "dir",
    "base",
    "clean",
    "int",
    "float64",
    "toDecimal",
];

fuzz_target!(|call: family::Call| family::call(NAMES, call));
