//! An audit's report on stdout: columns for people, other formats for programs.

use portolan_audit::{Finding, Format, Level, Report};
use portolan_object::Severity;

use crate::error::CommandError;
use crate::printer::Printer;
use crate::table::{Cell, Table, Tone};

/// Output format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum OutputFormat {
    /// Columns
    Table,
    /// Columns, with what is wrong in a sentence and what changes
    Wide,
    /// Everything, for programs
    Json,
    /// The same as YAML
    Yaml,
    /// One row a finding
    Csv,
    /// A table for a comment
    Markdown,
    /// For code scanning
    Sarif,
    /// For test reports
    Junit,
    /// Annotations of GitHub Actions
    Github,
}

/// How many things that could not be looked at are listed: often all have one cause, such as a missing network.
const LISTED: usize = 9;

/// Prints the report; people get a summary on stderr too.
pub(super) fn print(
    report: &Report,
    output: OutputFormat,
    printer: &Printer,
) -> Result<(), CommandError> {
    let format = match output {
        OutputFormat::Table | OutputFormat::Wide => {
            return print_table(report, output == OutputFormat::Wide, printer);
        }
        OutputFormat::Json => Format::Json,
        OutputFormat::Yaml => Format::Yaml,
        OutputFormat::Csv => Format::Csv,
        OutputFormat::Markdown => Format::Markdown,
        OutputFormat::Sarif => Format::Sarif,
        OutputFormat::Junit => Format::Junit,
        OutputFormat::Github => Format::Github,
    };
    for warning in &report.warnings {
        printer.warning(warning);
    }
    printer.data(report.text(format, env!("CARGO_PKG_VERSION")))
}

fn print_table(report: &Report, wide: bool, printer: &Printer) -> Result<(), CommandError> {
    let state = format!("IN {}", report.target);
    let mut titles = vec!["KIND", "NAME", "WHERE", "API", &state, "USE"];
    if wide {
        titles.extend(["GONE IN", "SWITCH IN", "WHAT"]);
    }
    let mut table = Table::new(titles);
    let mut folded = 0;
    let mut unparsed = 0;
    for finding in report.open() {
        unparsed += usize::from(finding.level == Level::Unparsed);
        if finding.level == Level::Unparsed && unparsed > LISTED && !printer.is_verbose() {
            folded += 1;
        } else {
            table.push(row(finding, wide));
        }
    }
    if report.open().next().is_some() {
        printer.data(table.render(printer.canvas()))?;
    }
    if folded > 0 {
        printer.note(&format!(
            "{folded} more could not be looked at; -v lists them all"
        ));
    }
    for warning in &report.warnings {
        printer.warning(warning);
    }
    printer.say_unless_quiet(&report.summary());
    for hop in report.hops.iter().filter(|hop| !hop.removed.is_empty()) {
        printer.say_unless_quiet(&format!(
            "  {} refuses {} of them first",
            hop.release,
            hop.removed.len()
        ));
    }
    let fixable = report.open().filter(|finding| finding.fixable).count();
    if fixable > 0 {
        printer.note(&format!("--fix prints a patch for {fixable} of them"));
    }
    Ok(())
}

fn row(finding: &Finding, wide: bool) -> Vec<Cell> {
    let plain = |text: &str| Cell::new(text, Tone::Plain);
    let tone = match finding.level.rule().severity {
        Severity::Note | Severity::Warning => Tone::Warning,
        Severity::Error => Tone::Bad,
    };
    let used = match (&finding.replacement, finding.level) {
        (Some(replacement), _) => replacement.clone(),
        (None, Level::Unparsed) => finding.message.clone(),
        (None, _) => "-".to_owned(),
    };
    let mut cells = vec![
        plain(&finding.subject.kind),
        Cell::name(finding.object()),
        plain(&finding.place()),
        plain(&finding.subject.api_version),
        Cell::new(finding.level.name(), tone),
        plain(&used),
    ];
    if wide {
        let gone = finding
            .removed_in
            .map(|release| release.to_string())
            .unwrap_or_default();
        let between = finding
            .migrate_between
            .map(|(start, end)| format!("{start} to {end}"))
            .unwrap_or_default();
        cells.extend([plain(&gone), plain(&between), plain(&finding.message)]);
    }
    cells
}
