//! Files that Portolan wrote itself and reads again after a crash: journals and the exporter's last answer.

use std::fmt::Write as _;
use std::fs;

use portolan_audit::{Checker, Counts, Report, Site};
use portolan_engine::{Durability, Journal, JournalOptions, Record};
use portolan_exporter::Snapshot;

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "journal-record",
        about: "one line of an event stream: what is read is written as something that reads the same",
        run: record,
        seeds: records,
    },
    Target {
        name: "journal-segment",
        about: "the newest file of a journal: opened and read to its end",
        run: segment,
        seeds: || {
            let mut whole = String::new();
            for line in records() {
                let line = String::from_utf8(line).expect("texts");
                let _ = writeln!(whole, "{:08x} {line}", crc32fast::hash(line.as_bytes()));
            }
            vec![
                whole.clone().into_bytes(),
                whole.as_bytes()[..whole.len() / 2].to_vec(),
            ]
        },
    },
    Target {
        name: "exporter-snapshot",
        about: "the file in which the exporter keeps its last answer",
        run: snapshot,
        seeds: || {
            let checker = Checker::default();
            let found = checker.check_text(OLD, &Site::default()).findings;
            let report = Report::new(found, Counts::default(), &checker.target);
            let report = serde_json::to_string(&report).expect("a report is JSON");
            let whole = format!("{{\"format\":3,\"snapshot\":{SNAPSHOT},\"report\":{report}}}");
            texts(&[&whole, "{\"format\":1}"])
        },
    },
];

const OLD: &[u8] =
    b"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: web}}";

const SNAPSHOT: &str = r#"{"takenAt":7,"effort":{"tookMs":8,"requests":9},"checker":"x","knowledge":{"releases":{},"live":{},"requests":[],"warnings":["w"],"resume":{},"kept":0,"limit":1,"leftOut":0}}"#;

fn records() -> Vec<Vec<u8>> {
    texts(&[
        "{\"seq\":1,\"at\":0,\"key\":\"a\",\"event\":\"queued\"}",
        "{\"seq\":2,\"at\":1,\"key\":\"a\",\"event\":\"started\",\"attempt\":1}",
        "{\"seq\":3,\"at\":2,\"key\":\"a\",\"event\":\"failed\",\"error\":\"x\",\"tookUs\":5}",
    ])
}

fn record(bytes: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(bytes) else {
        return false;
    };
    let Ok(record) = Record::from_json(line) else {
        return false;
    };
    let again = Record::from_json(&record.to_json()).expect("reads its own line");
    assert_eq!(again, record);
    true
}

fn segment(bytes: &[u8]) -> bool {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("1.journal"), bytes).expect("a file");
    let Ok(journal) = Journal::open(
        directory.path(),
        Durability::Written,
        JournalOptions::default(),
    ) else {
        return false;
    };
    journal.close();
    let mut reader = journal.after(0);
    let mut records = 0;
    while let Ok(Some(batch)) = reader.try_next() {
        records += batch.iter().count();
    }
    assert_eq!(records as u64, journal.last());
    records > 0
}

fn snapshot(bytes: &[u8]) -> bool {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("snapshot.json"), bytes).expect("a file");
    let Ok(Some((snapshot, report))) = Snapshot::load(directory.path()) else {
        return false;
    };
    snapshot
        .save(&report, directory.path())
        .expect("writes what it read");
    true
}
