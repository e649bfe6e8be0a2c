//! A page for people: the findings, their age, and the state of the exporter.

use std::fmt::Write as _;

use portolan_audit::{Finding, Report};

use crate::exporter::{View, now};

const STYLE: &str = "body{font:15px system-ui;margin:2rem;color:#222}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;padding:.3rem .8rem;border-bottom:1px solid #ddd;vertical-align:top}th{background:#f4f4f4}\
.removed,.stored-version,.unparsed,.not-yet-served{color:#a00}.deprecated,.field,.reference,.removed-next{color:#850}\
small{color:#666}.bad{background:#fee;padding:.6rem;border-left:4px solid #a00}";

/// The most rows of the page: people read no more, and browsers show no more.
const MAX_ROWS: usize = 1000;

/// The whole page.
pub(crate) fn page(view: &View) -> String {
    let mut text = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Portolan audit</title><style>{STYLE}</style><h1>Deprecated and removed APIs</h1>"
    );
    if let Some(failure) = &view.last_failure {
        let _ = write!(
            text,
            "<p class=\"bad\">The last scan failed: {}</p>",
            escape(&failure.text)
        );
    }
    if let Some(unsaved) = &view.unsaved {
        let _ = write!(
            text,
            "<p class=\"bad\">The answer is not on disk: {}</p>",
            escape(unsaved)
        );
    }
    match &view.snapshot {
        None => text.push_str("<p>Not scanned yet.</p>"),
        Some(snapshot) => {
            let age = now().saturating_sub(snapshot.taken_at);
            let _ = write!(
                text,
                "<p><small>{age} s old, state: {}</small></p>",
                view.state.name()
            );
            text.push_str(&view.rendered.page);
        }
    }
    text.push_str("<p><small><a href=\"/metrics\">metrics</a> · <a href=\"/api/v1/findings\">findings as JSON</a></small></p></html>\n");
    text
}

/// The part that follows from the report alone.
pub(crate) fn findings(report: &Report) -> String {
    let mut text = format!("<p>{}</p>", escape(&report.summary()));
    for warning in &report.warnings {
        let _ = write!(text, "<p class=\"bad\">{}</p>", escape(warning));
    }
    if report.open().next().is_none() {
        text.push_str("<p>Nothing found.</p>");
        return text;
    }
    text.push_str("<table><tr><th>Level<th>Kind<th>Name<th>API<th>Use<th>Seen in<th>What</tr>");
    for finding in report.open().take(MAX_ROWS) {
        row(&mut text, finding);
    }
    text.push_str("</table>");
    let more = report.open().count().saturating_sub(MAX_ROWS);
    if more > 0 {
        let are = if more == 1 { "is" } else { "are" };
        let _ = write!(
            text,
            "<p>{more} more {are} in the <a href=\"/api/v1/findings\">JSON</a>.</p>"
        );
    }
    text
}

fn row(text: &mut String, finding: &Finding) {
    let evidence: Vec<String> = finding
        .evidence
        .iter()
        .map(|evidence| escape(&evidence.place()))
        .collect();
    let _ = write!(
        text,
        "<tr><td class=\"{level}\">{level}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
        escape(&finding.subject.kind),
        escape(&finding.object()),
        escape(&finding.subject.api_version),
        escape(finding.replacement.as_deref().unwrap_or("-")),
        evidence.join("<br>"),
        escape(&finding.message),
        level = finding.level,
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
