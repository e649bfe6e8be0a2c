//! Changes to the lines of a text, and the unified diff they make.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How many unchanged lines stand around a change.
const CONTEXT: usize = 3;

/// Changes by line, counted from 1: the lines that stand in its place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    lines: BTreeMap<usize, Vec<String>>,
}

impl Patch {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Puts lines in place of one; an empty list takes it out.
    pub fn replace(&mut self, line: usize, with: Vec<String>) {
        self.lines.insert(line, with);
    }

    /// What stands in place of a line so far.
    pub(crate) fn line(&self, number: usize) -> Option<&Vec<String>> {
        self.lines.get(&number)
    }

    /// Takes in the changes of another part of the same text.
    pub fn add(&mut self, other: Self) {
        self.lines.extend(other.lines);
    }

    /// The changed text.
    pub fn apply(&self, text: &str) -> String {
        let mut changed = String::with_capacity(text.len());
        for (index, line) in text.split_inclusive('\n').enumerate() {
            match self.lines.get(&(index + 1)) {
                None => changed.push_str(line),
                Some(lines) => {
                    let end = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
                    for line in lines {
                        changed.push_str(line);
                        changed.push_str(end);
                    }
                }
            }
        }
        changed
    }

    /// The unified diff, as `git apply` takes it.
    pub fn unified(&self, file: &str, text: &str) -> String {
        let file = file.trim_start_matches('/');
        let mut diff = format!("--- a/{file}\n+++ b/{file}\n");
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let changed: Vec<usize> = self
            .lines
            .keys()
            .copied()
            .filter(|at| *at <= lines.len())
            .collect();
        let mut shift: isize = 0;
        let near = |pair: &usize, next: &usize| next - pair <= 2 * CONTEXT;
        for group in changed.chunk_by(near) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else {
                continue;
            };
            let start = first.saturating_sub(CONTEXT).max(1);
            let end = (last + CONTEXT).min(lines.len());
            shift += self.hunk(&mut diff, &lines, start, end, shift);
        }
        diff
    }

    /// Writes the lines from `start` to `end`; gives how many lines longer they are afterwards.
    fn hunk(
        &self,
        diff: &mut String,
        lines: &[&str],
        start: usize,
        end: usize,
        shift: isize,
    ) -> isize {
        let (mut body, mut after) = (String::new(), 0_usize);
        for (index, line) in lines.iter().enumerate().take(end).skip(start - 1) {
            match self.lines.get(&(index + 1)) {
                None => {
                    push(&mut body, ' ', line);
                    after += 1;
                }
                Some(new) => {
                    push(&mut body, '-', line);
                    let end = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
                    for line in new {
                        push(&mut body, '+', &format!("{line}{end}"));
                    }
                    after += new.len();
                }
            }
        }
        let before = end + 1 - start;
        let new_start = start.saturating_add_signed(shift);
        let _ = writeln!(diff, "@@ -{start},{before} +{new_start},{after} @@");
        diff.push_str(&body);
        after as isize - before as isize
    }
}

fn push(body: &mut String, mark: char, line: &str) {
    body.push(mark);
    body.push_str(line);
    if !line.ends_with('\n') {
        body.push_str("\n\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_become_hunks_with_context() {
        let lines: Vec<String> = (1..=20).map(|n| format!("line {n}\n")).collect();
        let text = lines.concat();
        let mut patch = Patch::default();
        patch.replace(2, vec!["two".into(), "and more".into()]);
        patch.replace(15, Vec::new());
        let diff = patch.unified("a.yaml", &text);
        assert!(diff.starts_with("--- a/a.yaml\n+++ b/a.yaml\n@@ -1,5 +1,6 @@\n line 1\n-line 2\n+two\n+and more\n line 3\n"), "{diff}");
        assert!(diff.contains("@@ -12,7 +13,6 @@\n"), "{diff}");
        assert!(patch.apply(&text).contains("two\nand more\nline 3"));
        assert!(!patch.apply(&text).contains("line 15"));
    }
}
