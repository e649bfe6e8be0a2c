//! The report for a terminal: one block per object, values below one another or side by side.

use std::fmt::Write as _;

use portolan_object::{Finding, Severity, counted};

use super::line::{Line, lines};
use super::paint::{Colour, Ink};
use super::words;
use crate::failure::{Failure, InputChange};
use crate::field::{Difference, Field};
use crate::report::{Change, ChangeKind, Report};

/// Where the word for what becomes of an object stands.
const FATE_COLUMN: usize = 62;

/// How many lines of an added object are shown, unless all are asked for.
const ADDED_LINES: usize = 25;

/// How a report is shown on a terminal.
#[derive(Debug, Clone, Copy, Default)]
pub struct TerminalOptions {
    /// Whether in colour.
    pub colour: Colour,
    /// The terminal's width in characters; used side by side.
    pub width: usize,
    /// Whether added and removed objects are shown with all of their content.
    pub full: bool,
}

/// The report with old values above new ones.
pub fn unified(report: &Report, options: &TerminalOptions) -> String {
    print(report, options, &mut |field, out| {
        for line in shown_lines(field, options.full) {
            out.push(unified_line(&line, options.colour));
        }
    })
}

/// The report with old values left of new ones; for terminals of 100 characters and more.
pub fn side_by_side(report: &Report, options: &TerminalOptions) -> String {
    // Two columns, with four characters before, between and after them.
    let column = (options.width.max(40) - 6) / 2;
    print(report, options, &mut |field, out| {
        for (old, new) in rows(shown_lines(field, options.full)) {
            let left = fit(&old.unwrap_or_default(), column);
            let right = fit(&new.unwrap_or_default(), column);
            let left = options.colour.paint(Ink::Removed, &left);
            let right = options.colour.paint(Ink::Added, right.trim_end());
            out.push(format!("  {left} │ {right}").trim_end().to_owned());
        }
    })
}

/// The changed images, a line each, and what could not be rendered.
pub fn image_lines(report: &Report, options: &TerminalOptions) -> String {
    let mut text = String::new();
    for image in &report.images {
        let name = options.colour.paint(Ink::Name, &words::image(image));
        let _ = writeln!(text, "{name} ({})", words::users(image));
    }
    let mut rest = Vec::new();
    print_failures(report, options.colour, &mut rest);
    add_left_out(report, options.colour, &mut rest);
    for line in rest {
        let _ = writeln!(text, "{line}");
    }
    text
}

type PrintField<'a> = &'a mut dyn FnMut(&Field, &mut Vec<String>);

fn print(report: &Report, options: &TerminalOptions, print_field: PrintField<'_>) -> String {
    let colour = options.colour;
    let mut out = vec![colour.paint(Ink::Strong, &words::headline(report))];
    print_failures(report, colour, &mut out);
    for change in &report.changes {
        print_change(report, change, options, print_field, &mut out);
    }
    let elsewhere = report.restarts.iter().filter(|restart| {
        let is_it = |change: &&Change| change.id == restart.id && change.owner == restart.owner;
        !report.changes.iter().any(|change| is_it(&change))
    });
    for restart in elsewhere {
        out.push(String::new());
        let name = colour.paint(Ink::Name, &words::object(&restart.id));
        out.push(format!("{name} {}", words::rolls(restart)));
    }
    print_images(report, colour, &mut out);
    add_left_out(report, colour, &mut out);
    out.join("\n") + "\n"
}

fn add_left_out(report: &Report, colour: Colour, out: &mut Vec<String>) {
    for line in words::not_covered(report) {
        out.push(String::new());
        out.push(colour.paint(Ink::Strong, &format!("warning: {line}")));
    }
    for left_out in words::left_out(report) {
        out.push(String::new());
        out.push(colour.paint(Ink::Faint, &left_out));
    }
}

/// The changes of unknown content; what fails on both sides and gives the same is told elsewhere.
fn print_failures(report: &Report, colour: Colour, out: &mut Vec<String>) {
    let mut last_causes: &[String] = &[];
    let mut failures = report.unknown_changes().peekable();
    while let Some(failure) = failures.next() {
        let mut alike = Vec::new();
        while let Some(next) = failures.next_if(|next| is_same_change(failure, next)) {
            alike.push(next);
        }
        let title = match alike.len() {
            0 => words::failed(failure),
            more => format!("{} and {more} more", words::failed(failure)),
        };
        let padding = FATE_COLUMN.saturating_sub(title.chars().count()).max(2);
        let fate = colour.paint(Ink::Error, &words::failure(failure));
        out.push(String::new());
        let name = colour.paint(Ink::Name, &title);
        out.push(format!("{name}{}{fate}", " ".repeat(padding)));
        for change in failure.inputs.iter().take(words::MAX_INPUTS) {
            print_input(change, colour, out);
        }
        match failure.inputs.len().saturating_sub(words::MAX_INPUTS) {
            0 => {}
            more => out.push(format!("  and {more} more")),
        }
        // What many have in common is said once.
        if failure.causes != last_causes {
            let causes = failure.causes.iter();
            out.extend(causes.map(|cause| format!("  {}", super::line::clean(cause))));
            last_causes = &failure.causes;
        }
        if let Some(place) = &failure.place {
            let place = place.to_string();
            let place = format!("  in {}", place.trim_start_matches('/'));
            out.push(colour.paint(Ink::Faint, &super::line::clean(&place)));
        }
    }
}

/// Whether two owners change by the same edit, so that it is told once: the same inputs, written in the same place.
fn is_same_change(one: &Failure, other: &Failure) -> bool {
    !one.inputs.is_empty()
        && one.inputs == other.inputs
        && one.place == other.place
        && (one.side, one.effect) == (other.side, other.effect)
        && one.owner.cluster == other.owner.cluster
}

fn print_input(change: &InputChange, colour: Colour, out: &mut Vec<String>) {
    let name = super::line::clean(&change.input);
    if change.hidden {
        return out.push(format!("  {name} (hidden)"));
    }
    out.push(format!("  {name}"));
    if let Some(from) = &change.from {
        let line = Line::Old(super::line::clean(from));
        out.push(unified_line(&line, colour));
    }
    if let Some(to) = &change.to {
        let line = Line::New(super::line::clean(to));
        out.push(unified_line(&line, colour));
    }
}

fn print_change(
    report: &Report,
    change: &Change,
    options: &TerminalOptions,
    print_field: PrintField<'_>,
    out: &mut Vec<String>,
) {
    let colour = options.colour;
    // Objects without content below them stand without gaps between them.
    let has_body = change.kind == ChangeKind::Changed || options.full;
    out.push(String::new());
    out.push(heading(report, change, colour));
    for danger in report.dangers_of(change) {
        print_danger(danger, colour, out);
    }
    for field in change.news() {
        if !field.path.is_root() {
            let word = match &field.difference {
                Difference::Reordered(..) => " (order)",
                _ if super::line::lines(field).is_empty() => " (hidden)",
                _ => "",
            };
            out.push(format!(
                "  {}{word}",
                super::line::clean(&field.path.dotted().to_string())
            ));
        }
        if change.kind != ChangeKind::Removed || has_body {
            print_field(field, out);
        }
    }
    if let Some(followed) = words::followed(change) {
        out.push(colour.paint(Ink::Faint, &format!("  follows: {followed}")));
    }
    if let Some(place) = words::because(change) {
        let lead = words::lead(change);
        out.push(colour.paint(Ink::Faint, &format!("  {lead} {place}")));
    }
}

fn heading(report: &Report, change: &Change, colour: Colour) -> String {
    let title = words::title(change);
    let padding = FATE_COLUMN.saturating_sub(title.chars().count()).max(2);
    let ink = match change.kind {
        ChangeKind::Added => Ink::Added,
        ChangeKind::Removed => Ink::Removed,
        ChangeKind::Changed => Ink::Warning,
    };
    let fate = colour.paint(ink, &words::fate(report, change));
    format!(
        "{}{}{fate}",
        colour.paint(Ink::Name, &title),
        " ".repeat(padding)
    )
}

fn print_danger(danger: &Finding, colour: Colour, out: &mut Vec<String>) {
    if words::is_told_in_fate(danger) {
        return;
    }
    let (ink, word) = match danger.severity {
        Severity::Error => (Ink::Error, "▲ danger"),
        Severity::Warning => (Ink::Warning, "▲ warning"),
        Severity::Note => (Ink::Faint, "· note"),
    };
    let message = super::line::clean(&danger.message());
    out.push(format!(
        "  {}: {message} [{}]",
        colour.paint(ink, word),
        danger.rule.id
    ));
    for hint in &danger.hints {
        out.push(format!("    hint: {hint}"));
    }
}

fn print_images(report: &Report, colour: Colour, out: &mut Vec<String>) {
    if report.images.is_empty() {
        return;
    }
    out.push(String::new());
    for (place, image) in report.images.iter().enumerate() {
        let label = if place == 0 { "images" } else { "      " };
        let name = colour.paint(Ink::Name, &words::image(image));
        out.push(format!("{label}  {name} ({})", words::users(image)));
    }
}

/// The lines of a field; a whole object is cut unless all is asked for.
fn shown_lines(field: &Field, full: bool) -> Vec<Line> {
    let mut lines = lines(field);
    if field.path.is_root() && !full && lines.len() > ADDED_LINES {
        let more = lines.len() - ADDED_LINES;
        lines.truncate(ADDED_LINES);
        lines.push(Line::Gap(more));
    }
    lines
}

fn unified_line(line: &Line, colour: Colour) -> String {
    match line {
        Line::Old(text) => colour.paint(Ink::Removed, &format!("-   {text}")),
        Line::New(text) => colour.paint(Ink::Added, &format!("+   {text}")),
        Line::Same(text) => format!("    {text}"),
        Line::Gap(count) => colour.paint(Ink::Faint, &format!("    … {}", counted(*count, "line"))),
    }
}

/// Old and new lines beside each other; runs of old lines stand beside the new lines that follow them.
fn rows(lines: Vec<Line>) -> Vec<(Option<String>, Option<String>)> {
    let mut rows: Vec<(Option<String>, Option<String>)> = Vec::new();
    let mut open = 0;
    for line in lines {
        match line {
            Line::Old(text) => rows.push((Some(text), None)),
            Line::New(text) => {
                open = open.max(
                    rows.iter()
                        .rposition(|(old, _)| old.is_none())
                        .map_or(0, |at| at + 1),
                );
                match rows.get_mut(open) {
                    Some((Some(_), right @ None)) => *right = Some(text),
                    _ => rows.push((None, Some(text))),
                }
                open += 1;
            }
            Line::Same(text) => {
                rows.push((Some(text.clone()), Some(text)));
                open = rows.len();
            }
            Line::Gap(count) => {
                let text = format!("… {}", counted(count, "line"));
                rows.push((Some(text.clone()), Some(text)));
                open = rows.len();
            }
        }
    }
    rows
}

/// A text in a column: cut or filled.
fn fit(text: &str, width: usize) -> String {
    let text = text.replace('\t', "    ");
    let length = text.chars().count();
    if length <= width {
        return text + &" ".repeat(width - length);
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
