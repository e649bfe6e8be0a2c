//! Findings as paragraphs for people: one for each cause, with its source line and what to do.

use std::collections::HashSet;
use std::fmt::Write as _;

use camino::Utf8Path;
use portolan_object::{Finding, Place, Severity};
use portolan_report::{Group, group, merge_clusters};
use portolan_secret::{is_in_secret, without_passwords};
use portolan_vfs::Vfs;

use crate::diagnostic::{self, Diagnostic, Level};

/// How findings are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FindingStyle {
    /// Whether the rule's id is written, to look it up by.
    pub(crate) names_rules: bool,
    /// Whether clusters are named: there are several.
    pub(crate) names_clusters: bool,
    /// Whether everything of one cause is listed.
    pub(crate) lists_all: bool,
    /// Whether in colour.
    pub(crate) styled: bool,
}

/// A text for each cause; `files` hold the lines that findings speak of.
pub(crate) fn paragraphs(
    findings: Vec<Finding>,
    files: &dyn Vfs,
    style: FindingStyle,
) -> Vec<String> {
    let mut given = HashSet::new();
    let groups = group(merge_clusters(findings));
    groups
        .iter()
        .map(|group| {
            let mut text = told(group, files, style);
            // Advice is given once, however many need it.
            for hint in group.hints() {
                if given.insert(hint.to_owned()) {
                    let _ = write!(text, "\nhint: {hint}");
                }
            }
            text
        })
        .collect()
}

fn told(group: &Group, files: &dyn Vfs, style: FindingStyle) -> String {
    let finding = &group.first;
    // A note, or a cause that several share, is not about the line of the first.
    let is_about_line = group.others.is_empty() || finding.cause.is_none();
    let place = finding.place.as_ref();
    let place = place.filter(|_| finding.severity > Severity::Note && is_about_line);
    let text = place.map(|place| text_of(finding, place, files));
    let diagnostic = Diagnostic {
        message: heading(group, style),
        place: place
            .zip(text.as_deref())
            .map(|(place, text)| in_text(place, text)),
        hints: Vec::new(),
    };
    let id = style.names_rules.then_some(finding.rule.id);
    let mut drawn = diagnostic.render_as(level(finding.severity), id, style.styled);
    if group.others.is_empty() {
        return drawn;
    }
    if !style.lists_all {
        drawn.push_str("\n  -v lists them all");
        return drawn;
    }
    for each in std::iter::once(finding).chain(&group.others) {
        let _ = write!(drawn, "\n  {}: {}", each.subject(), each.message());
    }
    drawn
}

fn heading(group: &Group, style: FindingStyle) -> String {
    let mut heading = group.heading();
    if style.names_clusters {
        let all = std::iter::once(&group.first).chain(&group.others);
        let mut clusters: Vec<&str> = Vec::new();
        for cluster in all.flat_map(|finding| &finding.clusters) {
            if !clusters.contains(&cluster.as_str()) {
                clusters.push(cluster);
            }
        }
        let _ = write!(heading, " [{}]", clusters.join(", "));
    }
    heading
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    }
}

/// The text of the file that a place is in; empty for one that cannot be read, and for Secrets, whose lines stay where
/// they are.
fn text_of(finding: &Finding, place: &Place, files: &dyn Vfs) -> String {
    let object = finding.object.as_ref();
    if object.is_some_and(|object| object.gvk.kind == "Secret") {
        return String::new();
    }
    let bytes = files.read(Utf8Path::new(place.file.as_str()));
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    if is_in_secret(&text, place.at.line as usize) {
        return String::new();
    }
    without_passwords(&text).into_owned()
}

/// A place to draw, in the text of its file.
fn in_text<'a>(place: &'a Place, text: &'a str) -> diagnostic::Place<'a> {
    diagnostic::Place {
        file: place.file.trim_start_matches('/'),
        text,
        line: place.at.line as usize,
        column: place.at.column as usize,
    }
}
