//! The report as the comment on a pull request: counts, failures, dangers and images first, each object folded below.
//!
//! The length of a comment is limited. If the report does not fit, long objects are cut first; then objects at the
//! end are only named, then only counted.

use std::fmt::Write as _;

use portolan_object::{Finding, Severity, counted};

use super::line::{Line, clean, lines};
use super::words;
use crate::field::Difference;
use crate::report::{Change, Report};

/// The most characters of a comment on GitHub.
pub const MARKDOWN_LIMIT: usize = 65_536;

/// The first line of every comment, by which the one to be updated is found.
pub const MARKER: &str = "<!-- portolan diff -->";

/// Of each object, when not everything fits.
const SHORT_LINES: usize = 40;

/// Longer lines are cut: nobody reads them in a comment.
const LINE_LENGTH: usize = 2_000;

/// The most characters of a line in the table of what was not rendered.
const CELL_LENGTH: usize = 160;

/// The most failures, dangers and images that are listed.
const MAX_ROWS: usize = 40;

/// The report as Markdown of at most `limit` bytes; a byte is never less than a character.
pub fn markdown(report: &Report, limit: usize) -> String {
    let full = document(report, usize::MAX, usize::MAX);
    if full.len() <= limit {
        return full;
    }
    let short = document(report, SHORT_LINES, usize::MAX);
    if short.len() <= limit {
        return short;
    }
    document(report, SHORT_LINES, limit)
}

fn document(report: &Report, max_lines: usize, limit: usize) -> String {
    let mut out = format!("{MARKER}\n### {}\n", words::headline(report));
    add_failures(report, &mut out);
    add_dangers(report, &mut out);
    add_images(report, &mut out);
    let mut shown = 0;
    // The end is kept for the list of what is left out.
    let room = limit.saturating_sub(limit / 8);
    for change in &report.changes {
        let section = section(report, change, max_lines);
        if out.len().saturating_add(section.len()) > room {
            break;
        }
        out.push_str(&section);
        shown += 1;
    }
    add_rest(report, shown, limit, &mut out);
    // Lists of dangers and images are bounded in rows, not in bytes.
    truncate(out, limit)
}

/// Stands first, so that it stays however much has to be cut.
fn add_failures(report: &Report, out: &mut String) {
    if !report.failures.is_empty() {
        out.push_str("\n**Not rendered**\n\n| | what | why | what differs |\n|---|---|---|---|\n");
    }
    for failure in report.failures.iter().take(MAX_ROWS) {
        let mark = if failure.is_change() {
            "🛑"
        } else {
            "ℹ️"
        };
        let mut why = vec![words::failure(failure)];
        why.extend(failure.causes.iter().map(|cause| clean(cause)));
        let why: Vec<String> = why.iter().map(|line| text(&shortened(line))).collect();
        let inputs: Vec<String> = words::inputs(failure)
            .iter()
            .map(|input| code(&shortened(input)))
            .collect();
        let (name, why, inputs) = (
            words::failed(failure),
            why.join("<br>"),
            inputs.join("<br>"),
        );
        let _ = writeln!(out, "| {mark} | {} | {why} | {inputs} |", code(&name));
    }
    add_more(report.failures.len(), out);
    for line in words::not_covered(report).take(MAX_ROWS) {
        let _ = write!(out, "\n⚠️ {}\n", text(&shortened(&line)));
    }
    for left_out in words::left_out(report) {
        let _ = write!(out, "\n{left_out}.\n");
    }
}

/// A line of a table; longer ones are cut, for every row has to fit.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(CELL_LENGTH) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.to_owned(),
    }
}

fn add_dangers(report: &Report, out: &mut String) {
    if report.dangers.is_empty() {
        return;
    }
    out.push_str("\n| | object | what happens |\n|---|---|---|\n");
    for danger in report.dangers.iter().take(MAX_ROWS) {
        out.push_str(&danger_row(danger));
    }
    add_more(report.dangers.len(), out);
}

/// Says how many there are beyond those that a table lists.
fn add_more(count: usize, out: &mut String) {
    match count.saturating_sub(MAX_ROWS) {
        0 => {}
        1 => out.push_str("\n1 more is not listed.\n"),
        more => {
            let _ = write!(out, "\n{more} more are not listed.\n");
        }
    }
}

fn danger_row(danger: &Finding) -> String {
    let mark = match danger.severity {
        Severity::Error => "🛑 danger",
        Severity::Warning => "⚠️ warning",
        Severity::Note => "ℹ️ note",
    };
    let hint = danger
        .hints
        .first()
        .map(|hint| format!("<br>hint: {}", text(hint)));
    format!(
        "| {mark} | {} | {} ({}){} |\n",
        code(&words::subject(danger)),
        text(&clean(&danger.message())),
        code(danger.rule.id),
        hint.unwrap_or_default()
    )
}

fn add_images(report: &Report, out: &mut String) {
    if report.images.is_empty() {
        return;
    }
    out.push_str("\n| image | from | to | used by |\n|---|---|---|---|\n");
    for image in report.images.iter().take(MAX_ROWS) {
        let version = |reference: Option<&portolan_yaml::Text>| {
            reference.map_or_else(
                || "–".to_owned(),
                |text| {
                    code(&clean(
                        text.strip_prefix(&*image.name)
                            .unwrap_or(text)
                            .trim_start_matches(':'),
                    ))
                },
            )
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            code(&clean(&image.name)),
            version(image.from.as_ref()),
            version(image.to.as_ref()),
            code(&words::users(image)),
        );
    }
    if report.images.len() > MAX_ROWS {
        let _ = write!(
            out,
            "\n{} more images are not listed.\n",
            report.images.len() - MAX_ROWS
        );
    }
}

fn section(report: &Report, change: &Change, max_lines: usize) -> String {
    let mut body = Vec::new();
    for field in change.news() {
        if !field.path.is_root() {
            let word = match field.difference {
                Difference::Reordered(..) => " (order)",
                _ => "",
            };
            body.push(format!(
                "@@ {}{word} @@",
                clean(&field.path.dotted().to_string())
            ));
        }
        let lines = lines(field);
        if lines.is_empty() {
            body.push("! changed, values hidden".to_owned());
        }
        body.extend(lines.iter().map(diff_line));
    }
    if let Some(followed) = words::followed(change) {
        body.push(format!("  follows: {followed}"));
    }
    if body.len() > max_lines {
        let more = body.len() - max_lines;
        body.truncate(max_lines);
        body.push(format!("  … {}", counted(more, "more line")));
    }
    let fence = fence(&body);
    let place = words::because(change).map(|place| format!("<sub>{}</sub>\n\n", html_code(&place)));
    format!(
        "\n<details>\n<summary>{} {}</summary>\n\n{}{fence}diff\n{}\n{fence}\n\n</details>\n",
        html_code(&words::title(change)),
        escape_html(&words::fate(report, change)),
        place.unwrap_or_default(),
        body.join("\n"),
    )
}

fn diff_line(line: &Line) -> String {
    let (mark, text) = match line {
        Line::Old(text) => ('-', text.as_str()),
        Line::New(text) => ('+', text.as_str()),
        Line::Same(text) => (' ', text.as_str()),
        Line::Gap(count) => return format!("  … {}", counted(*count, "line")),
    };
    match text.char_indices().nth(LINE_LENGTH) {
        Some((cut, _)) => format!("{mark} {}…", &text[..cut]),
        None => format!("{mark} {text}"),
    }
}

/// A fence that no line of the body can close.
fn fence(body: &[String]) -> String {
    let run = |line: &String| {
        let mut longest = 0;
        let mut current = 0;
        for letter in line.chars() {
            current = if letter == '`' { current + 1 } else { 0 };
            longest = longest.max(current);
        }
        longest
    };
    let longest = body.iter().map(run).max().unwrap_or(0);
    "`".repeat((longest + 1).max(3))
}

/// The objects that did not fit: by name while there is room, then by number.
fn add_rest(report: &Report, shown: usize, limit: usize, out: &mut String) {
    let rest = report.changes.get(shown..).unwrap_or_default();
    if rest.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "\n**{} not shown: the comment would be too long.**\n\n",
        counted(rest.len(), "more object")
    );
    for (place, change) in rest.iter().enumerate() {
        let line = format!(
            "- {} {}\n",
            code(&words::title(change)),
            escape_html(change.kind.as_str())
        );
        let left = format!("- and {} more\n", rest.len() - place);
        if out.len() + line.len() + left.len() + 32 > limit {
            out.push_str(&left);
            return;
        }
        out.push_str(&line);
    }
}

/// Cuts at the end of a line. What comes after the sections is lists only, so nothing is left open.
fn truncate(text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let kept = text
        .char_indices()
        .map(|(at, _)| at)
        .take_while(|at| *at <= limit)
        .last()
        .unwrap_or(0);
    let end = text[..kept].rfind('\n').map_or(0, |at| at + 1);
    text[..end].to_owned()
}

/// A code span that no backtick inside can end, in one line and safe in a table.
fn code(text: &str) -> String {
    let text = text.replace('\n', " ").replace('|', "\u{2502}");
    let fence = fence(std::slice::from_ref(&text));
    let fence = if text.contains('`') {
        fence
    } else {
        "`".to_owned()
    };
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Words with code spans in them; everything else that Markdown or GitHub would act on is escaped.
fn text(text: &str) -> String {
    let mut out = String::new();
    for (place, part) in text.split('`').enumerate() {
        if place % 2 == 1 {
            out.push_str(&code(part));
        } else {
            out.push_str(&escape_text(part));
        }
    }
    out
}

fn escape_text(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // Somebody of this name would be told of every run.
            '@' => out.push_str("@<!-- -->"),
            '\n' => out.push(' '),
            '\\' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out
}

fn html_code(text: &str) -> String {
    format!("<code>{}</code>", escape_html(text))
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\n', " ")
}
