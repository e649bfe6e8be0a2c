//! The report as a separate HTML page: no script, nothing loaded, light and dark.

use std::fmt::Write as _;

use portolan_object::{Finding, counted};

use super::line::{Line, clean, lines};
use super::words;
use crate::failure::Failure;
use crate::field::{Difference, Field};
use crate::report::{Change, Report};

const STYLE: &str = include_str!("page.css");

/// Objects with more lines than this are folded at first.
const OPEN_LINES: usize = 60;

/// The report as an HTML document with this title.
pub fn html(report: &Report, title: &str) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<p>{headline}</p>\n</header>\n<main>\n",
        title = escape(&clean(title)),
        headline = escape(&words::headline(report)),
    );
    add_failures(report, &mut out);
    add_dangers(report, &mut out);
    add_images(report, &mut out);
    for change in &report.changes {
        add_change(report, change, &mut out);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn add_failures(report: &Report, out: &mut String) {
    if !report.failures.is_empty() {
        out.push_str("<section>\n<h2>Not rendered</h2>\n<ul class=\"dangers\">\n");
        for failure in &report.failures {
            add_failure(failure, out);
        }
        out.push_str("</ul>\n</section>\n");
    }
    for line in words::not_covered(report) {
        let _ = writeln!(out, "<p class=\"warning\">{}</p>", escape(&line));
    }
    for left_out in words::left_out(report) {
        let _ = writeln!(out, "<p>{left_out}</p>");
    }
}

fn add_failure(failure: &Failure, out: &mut String) {
    let class = if failure.is_change() { "error" } else { "note" };
    let _ = write!(
        out,
        "<li class=\"{class}\"><b>{}</b> {}",
        escape(&words::failed(failure)),
        escape(&words::failure(failure))
    );
    let causes = failure.causes.iter().map(|cause| clean(cause));
    for line in words::inputs(failure).into_iter().chain(causes) {
        let _ = write!(out, "<br><small>{}</small>", escape(&line));
    }
    out.push_str("</li>\n");
}

fn add_dangers(report: &Report, out: &mut String) {
    if report.dangers.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>Dangers</h2>\n<ul class=\"dangers\">\n");
    for danger in &report.dangers {
        let _ = writeln!(
            out,
            "<li class=\"{}\"><b>{}</b> {}</li>",
            danger.severity.as_str(),
            escape(&words::subject(danger)),
            danger_text(danger)
        );
    }
    out.push_str("</ul>\n</section>\n");
}

fn danger_text(danger: &Finding) -> String {
    let mut text = format!(
        "{} <code>{}</code>",
        escape(&clean(&danger.message())),
        danger.rule.id
    );
    for hint in &danger.hints {
        let _ = write!(text, "<br><small>hint: {}</small>", escape(hint));
    }
    text
}

fn add_images(report: &Report, out: &mut String) {
    if report.images.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>Images</h2>\n<table>\n<tr><th>image</th><th>used by</th></tr>\n");
    for image in &report.images {
        let _ = writeln!(
            out,
            "<tr><td title=\"{}\">{}</td><td>{}</td></tr>",
            escape(&clean(&image.name)),
            escape(&words::image(image)),
            escape(&words::users(image))
        );
    }
    out.push_str("</table>\n</section>\n");
}

fn add_change(report: &Report, change: &Change, out: &mut String) {
    let fields: Vec<(&Field, Vec<Line>)> =
        change.news().map(|field| (field, lines(field))).collect();
    let count: usize = fields.iter().map(|(_, lines)| lines.len()).sum();
    let open = if count <= OPEN_LINES { " open" } else { "" };
    let kind = change.kind.as_str();
    let _ = writeln!(
        out,
        "<details class=\"{kind}\"{open}>\n<summary><span class=\"name\">{}</span> <span class=\"fate\">{}</span></summary>",
        escape(&words::title(change)),
        escape(&words::fate(report, change)),
    );
    for danger in report.dangers_of(change) {
        let _ = writeln!(
            out,
            "<p class=\"{}\">{}</p>",
            danger.severity.as_str(),
            danger_text(danger)
        );
    }
    for (field, lines) in fields {
        add_field(field, &lines, out);
    }
    if let Some(followed) = words::followed(change) {
        let _ = writeln!(out, "<p class=\"place\">follows: {}</p>", escape(&followed));
    }
    if let Some(place) = words::because(change) {
        let lead = words::lead(change);
        let _ = writeln!(out, "<p class=\"place\">{lead} {}</p>", escape(&place));
    }
    out.push_str("</details>\n");
}

fn add_field(field: &Field, lines: &[Line], out: &mut String) {
    if !field.path.is_root() {
        let word = match field.difference {
            Difference::Reordered(..) => " (order)",
            _ if lines.is_empty() => " (values hidden)",
            _ => "",
        };
        let _ = writeln!(
            out,
            "<p class=\"path\">{}{word}</p>",
            escape(&clean(&field.path.dotted().to_string()))
        );
    }
    if lines.is_empty() {
        return;
    }
    let has = |is_it: fn(&Line) -> bool| lines.iter().any(is_it);
    let is_changed =
        has(|line| matches!(line, Line::Old(_))) && has(|line| matches!(line, Line::New(_)));
    // Both sides stand beside each other where there is room; what only one side has needs no second column.
    out.push_str(if is_changed {
        "<pre class=\"both\">"
    } else {
        "<pre>"
    });
    let is_run = |line: &Line| matches!(line, Line::Old(_) | Line::New(_));
    for run in lines.chunk_by(|one, other| is_run(one) && is_run(other)) {
        add_run(run, is_changed, out);
    }
    out.push_str("</pre>\n");
}

/// Lines that changed together, or one that is the same on both sides.
fn add_run(run: &[Line], is_changed: bool, out: &mut String) {
    if is_changed {
        out.push_str("<span class=\"run\">");
    }
    for line in run {
        let _ = match line {
            Line::Old(text) => write!(out, "<del>{}</del>", escape(text)),
            Line::New(text) => write!(out, "<ins>{}</ins>", escape(text)),
            Line::Gap(count) => write!(out, "<i>… {}</i>", counted(*count, "line")),
            Line::Same(text) => write!(out, "<span>{}</span>", escape(text)),
        };
        if let (Line::Same(text), true) = (line, is_changed) {
            let _ = write!(
                out,
                "<span class=\"twin\" aria-hidden=\"true\">{}</span>",
                escape(text)
            );
        }
    }
    if is_changed {
        out.push_str("</span>");
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
