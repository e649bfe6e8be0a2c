//! `--fix`: one patch for all files that can be rewritten automatically.

use std::fmt::Write as _;

use portolan_audit::{Checker, Finding};
use portolan_object::counted;

use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Prints the patch, as `git apply` takes it; what needs a person is told on stderr. `read` gives the text of a file.
pub(super) fn fix(
    checker: &Checker,
    findings: &[Finding],
    read: impl Fn(&str) -> Option<String>,
    printer: &Printer,
) -> CommandResult {
    let open = || findings.iter().filter(|finding| finding.accepted.is_none());
    let fixable = open().filter(|finding| finding.fixable);
    let mut files: Vec<&str> = fixable
        .filter_map(|finding| finding.file.as_deref())
        .collect();
    files.sort_unstable();
    files.dedup();
    let mut text = String::new();
    for file in files {
        // A template cannot be read as YAML, so it gets no patch.
        let Some(content) = read(file) else { continue };
        let patch = checker.fix(&content);
        if !patch.is_empty() {
            let _ = write!(text, "{}", patch.unified(file, &content));
        }
    }
    printer.data(&text)?;
    let left: Vec<&Finding> = open().filter(|finding| !finding.fixable).collect();
    if let Some(first) = left.first() {
        printer.note(&format!(
            "{} of {} {} a person; the first is {} at {}",
            left.len(),
            counted(findings.len(), "finding"),
            if left.len() == 1 { "needs" } else { "need" },
            first.subject.kind,
            first.place()
        ));
    }
    Ok(ExitStatus::Clean)
}
