//! A Helm record, read as far as an audit needs it: the manifest, the hooks, the chart's name. The chart itself, most of
//! the bytes, is skipped over without being kept.

use portolan_audit::{Checked, Checker, Evidence, Site, unreadable};
use portolan_cluster::RecordRef;
use portolan_helm::storage;
use serde::Deserialize;

/// What of a record is kept.
#[derive(Deserialize)]
struct Record {
    #[serde(default)]
    manifest: String,
    #[serde(default)]
    hooks: Option<Vec<Hook>>,
    #[serde(default)]
    chart: Option<Chart>,
}

#[derive(Deserialize)]
struct Hook {
    #[serde(default)]
    manifest: String,
}

#[derive(Deserialize)]
struct Chart {
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
}

/// Checks the manifest and the hooks of a record.
pub(crate) fn check(checker: &Checker, reference: &RecordRef, text: &str) -> Checked {
    match storage::unpack(text.as_bytes())
        .map_err(|error| error.to_string())
        .and_then(|json| serde_json::from_slice::<Record>(&json).map_err(|error| error.to_string()))
    {
        Ok(record) => check_record(checker, reference, &record),
        Err(reason) => {
            let site = site(reference, "", false, "");
            let message = format!(
                "the record of revision {} cannot be read: {reason}",
                reference.revision
            );
            Checked {
                findings: vec![unreadable(
                    &site,
                    portolan_yaml::Position::default(),
                    &message,
                )],
                objects: 0,
            }
        }
    }
}

fn check_record(checker: &Checker, reference: &RecordRef, record: &Record) -> Checked {
    let metadata = record
        .chart
        .as_ref()
        .and_then(|chart| chart.metadata.as_ref());
    let chart = metadata
        .map(|metadata| format!("{} {}", metadata.name, metadata.version))
        .unwrap_or_default();
    let mut checked = checker.check_text(
        record.manifest.as_bytes(),
        &site(reference, &chart, false, ""),
    );
    for hook in record.hooks.iter().flatten() {
        checked
            .add(checker.check_text(hook.manifest.as_bytes(), &site(reference, &chart, true, "")));
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
