//! The metrics, in `OpenMetrics` text format. The part that depends only on the snapshot is written once; a request
//! adds the few numbers that change: the age of the data, the state, the counts of scans.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::body::Bytes;
use portolan_audit::{Finding, NEWEST, Report};
use portolan_cluster::ErrorKind;

use crate::exporter::{View, now};
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::web::page;

/// Room for what moves.
const MOVING_BYTES: usize = 4096;

/// The texts that follow from a snapshot alone, made once and shared by all answers.
#[derive(Default)]
pub(crate) struct Rendered {
    pub(crate) metrics: String,
    /// The report as JSON; empty before there is one.
    pub(crate) findings: Bytes,
    pub(crate) page: String,
    /// What was found, in a line.
    pub(crate) summary: String,
}

impl Rendered {
    pub(crate) fn of(snapshot: &Snapshot, report: &Report, series: usize) -> Self {
        Self {
            metrics: fixed(snapshot, report, series),
            findings: serde_json::to_vec_pretty(&report.answer())
                .unwrap_or_default()
                .into(),
            page: page::findings(report),
            summary: report.summary(),
        }
    }
}

/// The exporter's part of the answer to a scrape; the listener adds its own and the last line.
pub(crate) fn metrics(view: &View) -> String {
    let fixed = &view.rendered.metrics;
    let mut text = String::with_capacity(fixed.len() + MOVING_BYTES);
    text.push_str(fixed);
    state(&mut text, view);
    data(&mut text, view.snapshot.as_deref());
    text
}

fn state(text: &mut String, view: &View) {
    head(
        text,
        "portolan_audit_scan_state",
        "stateset",
        "Where the exporter stands.",
    );
    for state in State::ALL {
        let (name, on) = (state.name(), u8::from(view.state == state));
        let _ = writeln!(
            text,
            "portolan_audit_scan_state{{portolan_audit_scan_state=\"{name}\"}} {on}"
        );
    }
    head(
        text,
        "portolan_audit_refreshes",
        "counter",
        "Times that what changed was taken in between scans.",
    );
    let _ = writeln!(text, "portolan_audit_refreshes_total {}", view.refreshes);
    head(
        text,
        "portolan_audit_lists",
        "gauge",
        "Lists of the cluster that are followed between scans, and such that may not be.",
    );
    let _ = writeln!(
        text,
        "portolan_audit_lists{{followed=\"yes\"}} {}\nportolan_audit_lists{{followed=\"no\"}} {}",
        view.followed, view.unfollowed
    );
    head(
        text,
        "portolan_audit_snapshot_unsaved",
        "gauge",
        "Whether the last snapshot could not be put on disk.",
    );
    let _ = writeln!(
        text,
        "portolan_audit_snapshot_unsaved {}",
        u8::from(view.unsaved.is_some())
    );
    head(
        text,
        "portolan_audit_scans",
        "counter",
        "Scans that ended well.",
    );
    let _ = writeln!(text, "portolan_audit_scans_total {}", view.scans);
    head(
        text,
        "portolan_audit_scan_failures",
        "counter",
        "Scans that failed.",
    );
    let _ = writeln!(text, "portolan_audit_scan_failures_total {}", view.failures);
    head(
        text,
        "portolan_audit_last_scan_error",
        "stateset",
        "How the last scan failed; all 0 when it did not.",
    );
    for kind in ErrorKind::ALL {
        let on = view
            .last_failure
            .as_ref()
            .is_some_and(|failure| failure.kind == kind);
        let _ = writeln!(
            text,
            "portolan_audit_last_scan_error{{portolan_audit_last_scan_error=\"{}\"}} {}",
            kind.name(),
            u8::from(on)
        );
    }
}

/// Without a snapshot these are absent: *not scanned yet* is not *nothing found*.
fn data(text: &mut String, snapshot: Option<&Snapshot>) {
    head(
        text,
        "portolan_audit_has_data",
        "gauge",
        "Whether there is an answer at all.",
    );
    let _ = writeln!(
        text,
        "portolan_audit_has_data {}",
        u8::from(snapshot.is_some())
    );
    let Some(snapshot) = snapshot else { return };
    head(
        text,
        "portolan_audit_data_age_seconds",
        "gauge",
        "How old the answer is.",
    );
    let _ = writeln!(
        text,
        "portolan_audit_data_age_seconds {}",
        now().saturating_sub(snapshot.taken_at)
    );
}

fn fixed(snapshot: &Snapshot, report: &Report, series: usize) -> String {
    let mut text = String::new();
    let gauge = |text: &mut String, name: &str, help: &str, value: f64| {
        head(text, name, "gauge", help);
        let _ = writeln!(text, "{name} {value}");
    };
    gauge(
        &mut text,
        "portolan_audit_last_success_timestamp_seconds",
        "When the last good scan ended.",
        snapshot.taken_at as f64,
    );
    gauge(
        &mut text,
        "portolan_audit_scan_duration_seconds",
        "How long the last good scan took.",
        snapshot.effort.took_ms as f64 / 1000.0,
    );
    gauge(
        &mut text,
        "portolan_audit_scan_requests",
        "How many requests the last good scan sent.",
        snapshot.effort.requests as f64,
    );
    gauge(
        &mut text,
        "portolan_audit_releases_scanned",
        "Helm releases checked.",
        report.checked.releases as f64,
    );
    gauge(
        &mut text,
        "portolan_audit_objects_scanned",
        "Objects checked.",
        report.checked.objects as f64,
    );
    gauge(
        &mut text,
        "portolan_audit_warnings",
        "Odd things the last good scan met.",
        report.warnings.len() as f64,
    );
    gauge(
        &mut text,
        "portolan_audit_findings_left_out",
        "Findings beyond the limit, which are counted here and told nowhere else.",
        snapshot.knowledge.left_out() as f64,
    );
    head(
        &mut text,
        "portolan_audit_table_newest_release",
        "info",
        "The newest release of Kubernetes that the table knows, and the one checked for.",
    );
    let _ = writeln!(
        text,
        "portolan_audit_table_newest_release_info{{newest=\"{NEWEST}\",target=\"{}\"}} 1",
        report.target
    );
    counts(&mut text, report.open());
    single(&mut text, &report.open().collect::<Vec<_>>(), series);
    text
}

/// A bounded number of series: there are only so many APIs.
fn counts<'a>(text: &mut String, findings: impl Iterator<Item = &'a Finding>) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for finding in findings {
        let labels = format!(
            "level=\"{}\",component=\"{}\",api_version=\"{}\",kind=\"{}\",removed_in=\"{}\"",
            finding.level,
            label(&finding.component),
            label(&finding.subject.api_version),
            label(&finding.subject.kind),
            finding
                .removed_in
                .map(|release| release.to_string())
                .unwrap_or_default(),
        );
        *counts.entry(labels).or_default() += 1;
    }
    head(
        text,
        "portolan_audit_findings",
        "gauge",
        "Open findings by level and API.",
    );
    for (labels, count) in counts {
        let _ = writeln!(text, "portolan_audit_findings{{{labels}}} {count}");
    }
}

/// One series a finding, up to a limit; no label changes when a release is upgraded.
fn single(text: &mut String, findings: &[&Finding], limit: usize) {
    if limit == 0 {
        return;
    }
    head(text, "portolan_audit_finding", "info", "An open finding.");
    for finding in findings.iter().take(limit) {
        let subject = &finding.subject;
        let _ = writeln!(
            text,
            "portolan_audit_finding_info{{id=\"{}\",level=\"{}\",api_version=\"{}\",kind=\"{}\",namespace=\"{}\",name=\"{}\",replacement=\"{}\"}} 1",
            finding.id,
            finding.level,
            label(&subject.api_version),
            label(&subject.kind),
            label(&subject.namespace),
            label(&subject.name),
            label(finding.replacement.as_deref().unwrap_or_default()),
        );
    }
    head(
        text,
        "portolan_audit_finding_series_dropped",
        "gauge",
        "Open findings beyond the limit of series.",
    );
    let _ = writeln!(
        text,
        "portolan_audit_finding_series_dropped {}",
        findings.len().saturating_sub(limit)
    );
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {name} {kind}\n# HELP {name} {help}");
}

fn label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
