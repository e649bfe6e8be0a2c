//! Annotations in the log of a GitHub workflow: `::warning file=…,line=…,title=…::message`.

use portolan_object::Severity;

use super::words;
use crate::report::Report;

/// The headline, what could not be rendered, every danger at its file, and every changed object.
///
/// `prefix` is the way from the git repository's top to that of the Flux repository, where they differ.
pub fn github(report: &Report, prefix: &str) -> String {
    let mut out = command(
        "notice",
        &[("title", "portolan diff")],
        &words::headline(report),
    );
    for failure in &report.failures {
        let level = if failure.is_change() {
            "error"
        } else {
            "warning"
        };
        let mut message = vec![words::failure(failure)];
        message.extend(words::inputs(failure));
        message.extend(failure.causes.iter().cloned());
        let (place, title) = (failure.place.as_ref(), words::failed(failure));
        out.push_str(&at(level, place, prefix, &title, &message.join("\n")));
    }
    for finding in &report.not_covered {
        let place = finding.place.as_ref();
        out.push_str(&at(
            "warning",
            place,
            prefix,
            finding.rule.id,
            &finding.message(),
        ));
    }
    for danger in &report.dangers {
        let level = match danger.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let title = format!("{}: {}", words::subject(danger), danger.rule.id);
        let message = match danger.hints.first() {
            Some(hint) => format!("{}\nhint: {hint}", danger.message()),
            None => danger.message(),
        };
        let place = danger.place.as_ref();
        out.push_str(&at(level, place, prefix, &title, &message));
    }
    for change in &report.changes {
        let message = words::fate(report, change);
        let cause = change.causes.first().map(|cause| &cause.place);
        out.push_str(&at(
            "notice",
            cause.or(change.place.as_ref()),
            prefix,
            &words::title(change),
            &message,
        ));
    }
    out
}

fn at(
    level: &str,
    place: Option<&portolan_object::Place>,
    prefix: &str,
    title: &str,
    message: &str,
) -> String {
    let Some(place) = place else {
        return command(level, &[("title", title)], message);
    };
    let file = format!("{prefix}{}", place.file.trim_start_matches('/'));
    let line = place.at.line.max(1).to_string();
    command(
        level,
        &[("file", &file), ("line", &line), ("title", title)],
        message,
    )
}

fn command(level: &str, properties: &[(&str, &str)], message: &str) -> String {
    let properties: Vec<String> = properties
        .iter()
        .map(|(key, value)| {
            format!(
                "{key}={}",
                escape(value).replace(':', "%3A").replace(',', "%2C")
            )
        })
        .collect();
    format!("::{level} {}::{}\n", properties.join(","), escape(message))
}

/// As GitHub wants it; nothing that is left can start another command.
fn escape(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
