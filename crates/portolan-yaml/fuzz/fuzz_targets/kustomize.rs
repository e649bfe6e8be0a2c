//! Any bytes: kustomize's reading must not panic, and what it prints must read and print the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_yaml::{Dialect, outline, parse_bytes, parse_one, write_kustomize};

fuzz_target!(|bytes: &[u8]| {
    let _ = outline(bytes);
    let Ok(nodes) = parse_bytes(bytes, Dialect::Kustomize) else {
        return;
    };
    for node in &nodes {
        let Ok(printed) = write_kustomize(node) else {
            continue;
        };
        // Go prints a key `<<` without quotes, which makes a merge of it when it is read again.
        if printed.contains("<<") {
            continue;
        }
        // The printed text is for Helm's half of the world: it is read with the old rules.
        let read = parse_one(printed.as_str(), Dialect::Helm).expect("reads its own text");
        assert_eq!(write_kustomize(&read).expect("prints again"), printed);
    }
});
