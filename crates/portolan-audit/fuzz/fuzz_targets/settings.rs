//! Any text as a rules file and as a baseline, used on a finding.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_audit::{Baseline, Checker, Day, Rules, Site, Table};

const OLD: &[u8] = b"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: web}}";

fuzz_target!(|data: &[u8]| {
    let today = Day::of_unix_seconds(1_800_000_000);
    let mut checker = Checker::default();
    if let Ok(rules) = Rules::read(data) {
        let (rows, _) = rules.rows(today);
        checker.table = Table::with(rows);
    }
    let mut findings = checker.check_text(OLD, &Site::default()).findings;
    if let Ok(baseline) = Baseline::read(data) {
        let _ = baseline.apply(&mut findings, today);
    }
});
