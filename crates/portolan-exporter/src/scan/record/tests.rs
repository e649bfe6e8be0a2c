//! Helm records: ordinary ones, and ones written to fill the memory.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use portolan_cluster::Driver;

use super::*;

/// What reading one record may take. The shipped limit is 128 MiB, and the rest of the process needs less than 40.
const MEMORY: u64 = 80 * 1024 * 1024;

fn reference() -> RecordRef {
    RecordRef {
        namespace: "shop".to_owned(),
        release: "web".to_owned(),
        revision: 3,
        status: "deployed".to_owned(),
        driver: Driver::Secret,
        name: "sh.helm.release.v1.web.v3".to_owned(),
        uid: String::new(),
        resource_version: String::new(),
    }
}

fn gzip(parts: &[(&str, usize)]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    for (part, count) in parts {
        // In large pieces: a record of these tests has many megabytes.
        let piece = part.repeat(1000);
        for _ in 0..count / 1000 {
            packed.write_all(piece.as_bytes()).unwrap();
        }
        packed
            .write_all(part.repeat(count % 1000).as_bytes())
            .unwrap();
    }
    packed.finish().unwrap()
}

/// A record as the API server gives it, of parts that are repeated.
fn record(parts: &[(&str, usize)]) -> String {
    STANDARD.encode(STANDARD.encode(gzip(parts)))
}

fn check(text: &str) -> Checked {
    let checker = Checker::new(portolan_audit::Target::kubernetes("1.32".parse().unwrap()));
    check_light(&checker, &reference(), text)
        .unwrap_or_else(|| check_heavy(&checker, &reference(), text))
}

fn messages(checked: &Checked) -> Vec<&str> {
    let findings = checked.findings.iter();
    findings.map(|finding| finding.message.as_str()).collect()
}

const JOB: &str = r"apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: a}\n---\n";

#[test]
fn a_record_is_read_in_all_its_forms_and_the_chart_is_skipped() {
    let json = format!(
        r#"{{"name": "web", "chart": {{"files": [{{"data": "AAAA"}}], "metadata": {{"name": "web", "version": "1.2.0", "x": [1]}}, "lock": null}},
            "hooks": [{{"name": "h", "manifest": "{JOB}"}}, {{}}], "config": {{"manifest": "no"}}, "manifest": "{JOB}{JOB}"}}"#
    );
    let once = STANDARD.encode(gzip(&[(&json, 1)]));
    let forms = [STANDARD.encode(&once), once, STANDARD.encode(&json)];
    for text in forms {
        let checked = check(&text);
        assert_eq!(checked.objects, 3);
        let place = checked.findings[0].place();
        assert!(place.contains("web"), "{place}");
        let hooks = checked.findings.iter().filter(|finding| {
            matches!(&finding.evidence[0], Evidence::Helm { chart, hook: true, .. } if chart == "web 1.2.0")
        });
        assert_eq!(hooks.count(), 1);
    }
}

#[test]
fn a_large_record_with_a_small_manifest_is_checked() {
    let manifest = format!(r#""}}, "hooks": null, "manifest": "{JOB}"}}"#);
    let text = record(&[
        (r#"{"chart": {"templates": ""#, 1),
        ("x", 8_000_000),
        (&manifest, 1),
    ]);
    let checker = Checker::default();
    assert!(check_light(&checker, &reference(), &text).is_none());
    assert_eq!(check(&text).objects, 1);
}

#[test]
fn what_is_no_record_is_told() {
    for text in ["", "%%%", "QUJD", &STANDARD.encode("{\"manifest\": 7}")] {
        let checked = check(text);
        let told = messages(&checked);
        assert_eq!(told.len(), 1, "{text}");
        let begin = "the record of revision 3 was not checked: it cannot be read: ";
        assert!(told[0].starts_with(begin), "{}", told[0]);
    }
}

/// Records that unpack to much more than a pod has: each is a finding that says so, and fits.
#[test]
fn a_hostile_record_is_told_and_fits_into_the_shipped_memory() {
    let too_large: [(&str, &[(&str, usize)]); 4] = [
        ("manifest", &[(r#"{"manifest": ""#, 1), ("x", 60_000_000)]),
        ("chart", &[(r#"{"chart": {"a": ""#, 1), ("x", 60_000_000)]),
        ("key", &[(r#"{""#, 1), ("x", 60_000_000)]),
        ("nesting", &[(r#"{"a": "#, 1), ("[", 60_000_000)]),
    ];
    for (name, parts) in too_large {
        let text = record(parts);
        let mut checked = Checked::default();
        let used = allocation_counter::measure(|| checked = check(&text));
        let told = messages(&checked);
        assert_eq!(told.len(), 1, "{name}");
        assert!(
            told[0].contains("was not checked: it is larger than "),
            "{}",
            told[0]
        );
        assert!(used.bytes_max < MEMORY, "{name}: {} bytes", used.bytes_max);
    }
}

/// Manifests below the limits of size that cost much when they are parsed or judged.
#[test]
fn a_manifest_that_is_costly_to_check_fits_into_the_shipped_memory() {
    let end = (r#""}"#, 1);
    let begin = (r#"{"manifest": ""#, 1);
    let hooks = (r#"{"hooks": ["#, 1);
    let costly: [(&str, &[(&str, usize)]); 6] = [
        ("findings", &[begin, (JOB, 100_000), end]),
        ("empty documents", &[begin, (r"---\n", 1_300_000), end]),
        ("list items", &[begin, (r"- a\n", 380_000), end]),
        ("flow", &[begin, ("[", 1), ("[],", 500_000), ("]", 1), end]),
        (
            "items",
            &[
                begin,
                (r"kind: List\napiVersion: v1\nitems:\n", 1),
                (r"- {apiVersion: batch/v1beta1, kind: CronJob}\n", 30_000),
                end,
            ],
        ),
        (
            "hooks",
            &[hooks, (r#"{"manifest":"a"},"#, 400_000), ("{}]}", 1)],
        ),
    ];
    for (name, parts) in costly {
        let text = record(parts);
        let mut checked = Checked::default();
        let used = allocation_counter::measure(|| checked = check(&text));
        assert!(checked.findings.len() <= DOCUMENTS.findings + 2, "{name}");
        assert!(used.bytes_max < MEMORY, "{name}: {} bytes", used.bytes_max);
    }
}
