//! Any text as manifests: checked, merged, fixed, and printed in every form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_audit::{Baseline, Checker, Counts, Day, Format, Report, Site, merge};

fuzz_target!(|data: &[u8]| {
    let checker = Checker::default();
    let site = Site {
        file: Some("a.yaml".to_owned()),
        ..Site::default()
    };
    let checked = checker.check_text(data, &site);
    let findings = merge(checked.findings);
    let accepted = Baseline::text(&findings, "reason", Day::of_unix_seconds(0));
    if !findings.is_empty() {
        Baseline::read(accepted.as_bytes()).expect("what we write we read");
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let patch = checker.fix(text);
        let fixed = patch.apply(text);
        assert!(patch.is_empty() || fixed != text, "a patch changes something");
        let _ = patch.unified("a.yaml", text);
    }
    let report = Report::new(findings, Counts::default(), &checker.target);
    for format in [
        Format::Json,
        Format::Yaml,
        Format::Csv,
        Format::Markdown,
        Format::Sarif,
        Format::Junit,
        Format::Github,
    ] {
        let _ = report.text(format, "0");
    }
});
