//! A text of YAML or JSON documents, checked object by object.
//!
//! A document that cannot be read is a finding; the other documents of the text are still checked.

use portolan_object::expand_lists;
use portolan_yaml::{Dialect, Node, Position, parse_bytes};

use crate::checker::{Checker, Site, head};
use crate::finding::{Evidence, Finding, Subject};
use crate::level::Level;
use crate::lifecycle::KUBERNETES;

/// What checking gave.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// What was found.
    pub findings: Vec<Finding>,
    /// How many objects were checked.
    pub objects: usize,
}

/// How much of a text is looked at when whoever wrote it is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLimits {
    /// The bytes of a document; a larger one is not parsed.
    pub bytes: usize,
    /// The findings after which no further object is checked.
    pub findings: usize,
}

impl Checked {
    /// Takes in what another text gave.
    pub fn add(&mut self, other: Self) {
        self.findings.extend(other.findings);
        self.objects += other.objects;
    }
}

impl Checker {
    /// Checks every object of a text.
    pub fn check_text(&self, bytes: &[u8], site: &Site) -> Checked {
        self.check_up_to(usize::MAX, bytes, site)
    }

    /// Checks the objects of a text one document after the other, so that no more than one is in memory. What the
    /// limits leave out is told in a last finding.
    pub fn check_documents(&self, text: &str, limits: &DocumentLimits, site: &Site) -> Checked {
        let mut checked = Checked::default();
        let mut too_large = 0_usize;
        for (_, piece) in pieces(text) {
            // One more than is kept shows that there are more.
            let room = (limits.findings + 1).saturating_sub(checked.findings.len());
            if piece.len() > limits.bytes {
                too_large += 1;
            } else if room > 0 {
                checked.add(self.check_up_to(room, piece.as_bytes(), site));
            }
        }
        let too_many = checked.findings.len() > limits.findings;
        checked.findings.truncate(limits.findings);
        if too_large > 0 {
            let bytes = limits.bytes;
            let message =
                format!("documents larger than {bytes} bytes were not checked: {too_large}");
            let finding = unreadable(site, Position::default(), &message);
            checked.findings.push(finding);
        }
        if too_many {
            let findings = limits.findings;
            let message = format!("what follows after {findings} findings was not checked");
            let finding = unreadable(site, Position::default(), &message);
            checked.findings.push(finding);
        }
        checked
    }

    /// The same until there are so many findings.
    fn check_up_to(&self, room: usize, bytes: &[u8], site: &Site) -> Checked {
        let mut checked = Checked::default();
        match parse_bytes(bytes, Dialect::Helm) {
            Ok(documents) => {
                for document in documents {
                    self.check_document(room, document, site, &mut checked);
                }
            }
            Err(errors) => match std::str::from_utf8(bytes) {
                Ok(text) => self.check_pieces(room, text, site, &mut checked),
                Err(_) => {
                    checked
                        .findings
                        .push(unreadable(site, errors.first().at, &errors.to_string()));
                }
            },
        }
        checked
    }

    fn check_document(&self, room: usize, document: Node, site: &Site, checked: &mut Checked) {
        for object in expand_lists(document) {
            if checked.findings.len() >= room {
                return;
            }
            let Some((api_version, kind)) = head(&object) else {
                continue;
            };
            checked.objects += 1;
            if let Some(word) = [api_version, kind]
                .into_iter()
                .find(|word| is_template(word))
            {
                let message = format!("`{word}` is not filled in, so the object cannot be judged");
                checked.findings.push(unreadable(site, object.at, &message));
                continue;
            }
            checked.findings.extend(self.check(&object, site));
        }
    }

    /// Reads the documents of a broken text one by one, so that only the broken ones are lost.
    fn check_pieces(&self, room: usize, text: &str, site: &Site, checked: &mut Checked) {
        for (offset, piece) in pieces(text) {
            let room = room.saturating_sub(checked.findings.len());
            let mut part = Checked::default();
            match parse_bytes(piece.as_bytes(), Dialect::Helm) {
                Ok(documents) => {
                    for document in documents {
                        self.check_document(room, document, site, &mut part);
                    }
                }
                Err(errors) => {
                    let error = errors.first();
                    let mut message = error.message.clone();
                    if piece.contains("{{") {
                        message.push_str("; it looks like a template: give the chart's directory to have it rendered");
                    }
                    part.findings.push(unreadable(site, error.at, &message));
                }
            }
            part.findings
                .iter_mut()
                .for_each(|finding| shift(finding, offset));
            checked.add(part);
        }
    }
}

/// Texts that a template engine or Flux would replace.
fn is_template(word: &str) -> bool {
    word.contains("{{") || word.contains("${")
}

/// The documents of a text with the number of lines before each.
fn pieces(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let mut lines = text.split_inclusive('\n').enumerate();
    let (mut start, mut first, mut at) = (0, 0, 0);
    let mut ended = false;
    std::iter::from_fn(move || {
        for (number, line) in lines.by_ref() {
            let (from, marker) = (at, line.trim_end());
            at += line.len();
            if from > start && (marker == "---" || marker.starts_with("--- ")) {
                let piece = (first, &text[start..from]);
                (start, first) = (from, number as u32);
                return Some(piece);
            }
        }
        let last = (first, &text[start..]);
        (!std::mem::replace(&mut ended, true)).then_some(last)
    })
}

fn shift(finding: &mut Finding, lines: u32) {
    if let Some(line) = &mut finding.line {
        *line += lines;
    }
    for evidence in &mut finding.evidence {
        if let Evidence::File { line, .. } = evidence {
            *line += lines;
        }
    }
}

/// A finding for what could not be read.
pub fn unreadable(site: &Site, at: Position, message: &str) -> Finding {
    let line = (at.line > 0 && site.file.is_some()).then_some(at.line);
    let mut evidence = site.evidence.clone();
    if let (Some(file), Some(line)) = (&site.file, line) {
        let file = file.clone();
        evidence.insert(0, Evidence::File { file, line });
    }
    Finding {
        id: String::new(),
        level: Level::Unparsed,
        file: site.file.clone(),
        line,
        column: line.map(|_| at.column.max(1)),
        subject: Subject::default(),
        component: KUBERNETES.to_owned(),
        deprecated_in: None,
        removed_in: None,
        replacement: None,
        path: None,
        message: message.trim_end_matches('.').to_owned(),
        changes: Vec::new(),
        migrate_between: None,
        fixable: false,
        accepted: None,
        evidence,
    }
    .with_id()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    fn check(text: &str) -> Vec<(u32, String, String)> {
        let checker = Checker::new(Target::kubernetes("1.32".parse().unwrap()));
        let site = Site {
            file: Some("a.yaml".into()),
            ..Site::default()
        };
        let checked = checker.check_text(text.as_bytes(), &site);
        let row = |finding: &Finding| {
            (
                finding.line.unwrap_or(0),
                finding.level.to_string(),
                finding.subject.kind.clone(),
            )
        };
        checked.findings.iter().map(row).collect()
    }

    fn found(line: u32, level: &str, kind: &str) -> (u32, String, String) {
        (line, level.into(), kind.into())
    }

    #[test]
    fn a_broken_document_does_not_hide_the_others() {
        let text = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\n---\na: [\n---\n# two\napiVersion: batch/v1beta1\nkind: CronJob\n";
        assert_eq!(
            check(text),
            [
                found(1, "removed", "PodDisruptionBudget"),
                found(5, "unparsed", ""),
                found(7, "removed", "CronJob"),
            ]
        );
    }

    #[test]
    fn what_the_limits_leave_out_is_told() {
        let checker = Checker::new(Target::kubernetes("1.32".parse().unwrap()));
        let check = |text: &str, bytes: usize, findings: usize| {
            let limits = DocumentLimits { bytes, findings };
            let checked = checker.check_documents(text, &limits, &Site::default());
            let levels = checked.findings.into_iter();
            levels.map(|finding| finding.message).collect::<Vec<_>>()
        };
        let job = "apiVersion: batch/v1beta1\nkind: CronJob\n---\n";
        assert_eq!(check(&job.repeat(3), 1000, 10).len(), 3);
        let large = format!("a: {}\n---\n{job}", "x".repeat(1000));
        let told = check(&large, 1000, 10);
        assert_eq!(told.len(), 2);
        assert_eq!(
            told[1],
            "documents larger than 1000 bytes were not checked: 1"
        );
        let told = check(&job.repeat(9), 1000, 4);
        assert_eq!(told.len(), 5);
        assert_eq!(told[4], "what follows after 4 findings was not checked");
        let item = "- {apiVersion: batch/v1beta1, kind: CronJob}\n";
        let list = format!("apiVersion: v1\nkind: List\nitems:\n{}", item.repeat(9));
        let told = check(&list, 1000, 4);
        assert_eq!(told.len(), 5);
        assert_eq!(told[4], "what follows after 4 findings was not checked");
    }

    #[test]
    fn items_of_lists_are_objects_whatever_the_kind_of_list() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: apps/v1\n  kind: Deployment\n- apiVersion: apps/v1beta2\n  kind: Deployment\n";
        assert_eq!(check(text), [found(6, "removed", "Deployment")]);
        let typed = "apiVersion: batch/v1beta1\nkind: CronJobList\nitems:\n- metadata: {name: a}\n";
        assert_eq!(check(typed).len(), 1);
    }

    #[test]
    fn marks_carriage_returns_and_json_are_read() {
        assert_eq!(
            check("\u{feff}apiVersion: batch/v1beta1\r\nkind: CronJob\r\n").len(),
            1
        );
        assert_eq!(
            check("{\"apiVersion\": \"batch/v1beta1\", \"kind\": \"CronJob\"}").len(),
            1
        );
        assert_eq!(check("key: value\n---\n---\n- a\n"), []);
        assert_eq!(check("a: =\n"), []);
    }

    #[test]
    fn what_is_not_filled_in_is_told() {
        assert_eq!(
            check("apiVersion: \"{{ .Values.api }}\"\nkind: A\n"),
            [found(1, "unparsed", "")]
        );
        assert_eq!(
            check("apiVersion: {{ .Values.api }}\nkind: A\n{{- if .x }}\n"),
            // The place is where the reader gave up.
            [found(4, "unparsed", "")]
        );
    }
}
