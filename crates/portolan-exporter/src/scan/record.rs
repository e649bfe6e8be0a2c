//! Reads the parts of a Helm record that an audit needs: the manifest, the hooks, the chart's name. The chart itself
//! is most of the bytes; it is skipped and not kept.
//!
//! ```text
//! text ──base64 (once or twice)──▶ gzip ──▶ JSON ──▶ manifest, hooks ──document by document──▶ findings
//! ```
//!
//! Anybody who may write a Secret can write a record, and a small one can unpack to gigabytes. So it is read as a
//! stream and under limits; a record beyond them is a finding that says that it was not checked.

mod unpack;

use portolan_audit::{Checked, Checker, DocumentLimits, Evidence, Site, unreadable};
use portolan_cluster::RecordRef;
use portolan_yaml::Position;

use unpack::{Record, unpack};
pub(super) use unpack::{RecordError, RecordLimits};

/// What almost every record fits in; several of them are read at the same time.
pub(super) const LIGHT: RecordLimits = RecordLimits {
    unpacked: 1024 * 1024,
    kept: 256 * 1024,
};

/// The largest record that is read, one at a time. Kubernetes allows a packed record of one megabyte, and charts pack to a
/// tenth of their size.
pub(super) const HEAVY: RecordLimits = RecordLimits {
    unpacked: 32 * 1024 * 1024,
    kept: 8 * 1024 * 1024,
};

/// What of a manifest is looked at. No API server takes an object of more bytes; no release that people wrote has so many
/// findings.
const DOCUMENTS: DocumentLimits = DocumentLimits {
    bytes: 3 * 512 * 1024,
    findings: 1000,
};

/// Checks the manifest and the hooks of a record.
///
/// `None` if the record is larger than the limits allow, and larger limits are still to be tried.
pub(super) fn check_light(checker: &Checker, reference: &RecordRef, text: &str) -> Option<Checked> {
    match unpack(text.as_bytes(), &LIGHT) {
        Err(RecordError::TooLarge(_)) => None,
        other => Some(check_unpacked(checker, reference, other)),
    }
}

/// The same for any record; a finding says when it is too large to be looked at.
pub(super) fn check_heavy(checker: &Checker, reference: &RecordRef, text: &str) -> Checked {
    check_unpacked(checker, reference, unpack(text.as_bytes(), &HEAVY))
}

/// What is told of a record that could not be looked at.
pub(super) fn not_checked(reference: &RecordRef, reason: &str) -> Checked {
    let site = site(reference, "", false, "");
    let revision = reference.revision;
    let message = format!("the record of revision {revision} was not checked: {reason}");
    Checked {
        findings: vec![unreadable(&site, Position::default(), &message)],
        objects: 0,
    }
}

fn check_unpacked(
    checker: &Checker,
    reference: &RecordRef,
    record: Result<Record, RecordError>,
) -> Checked {
    match record {
        Ok(record) => check_record(checker, reference, &record),
        Err(error) => not_checked(reference, &error.to_string()),
    }
}

fn check_record(checker: &Checker, reference: &RecordRef, record: &Record) -> Checked {
    let chart = record.chart();
    let check = |manifest: &str, hook: bool| {
        let site = site(reference, &chart, hook, "");
        checker.check_documents(manifest, &DOCUMENTS, &site)
    };
    let mut checked = check(&record.manifest, false);
    for hook in &record.hooks {
        if checked.findings.len() > DOCUMENTS.findings {
            // The last finding says that the rest was not checked.
            break;
        }
        checked.add(check(hook, true));
    }
    for finding in &mut checked.findings {
        let said = finding.subject.api_version.clone();
        for evidence in &mut finding.evidence {
            if let Evidence::Helm { api_version, .. } = evidence {
                api_version.clone_from(&said);
            }
        }
    }
    checked
}

fn site(reference: &RecordRef, chart: &str, hook: bool, api_version: &str) -> Site {
    Site {
        file: None,
        evidence: vec![Evidence::Helm {
            release: reference.release.clone(),
            namespace: reference.namespace.clone(),
            revision: reference.revision,
            status: reference.status.clone(),
            chart: chart.to_owned(),
            hook,
            api_version: api_version.to_owned(),
        }],
        namespace: reference.namespace.clone(),
    }
}

#[cfg(test)]
mod tests;
