//! Any bytes: Helm's reading must not panic, and what it prints must read and print the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_yaml::{Dialect, parse_bytes, parse_one, to_json, write_v2, write_v3_pretty};

fuzz_target!(|bytes: &[u8]| {
    let Ok(nodes) = parse_bytes(bytes, Dialect::Helm) else {
        return;
    };
    for node in &nodes {
        let _ = (to_json(node), write_v3_pretty(node));
        // Go prints a key `<<` without quotes, which makes a merge of it when it is read again.
        if let Ok(printed) = write_v2(node)
            && !printed.contains("<<")
        {
            let read = parse_one(printed.as_str(), Dialect::Helm).expect("reads its own text");
            assert_eq!(write_v2(&read).expect("prints again"), printed);
        }
    }
});
