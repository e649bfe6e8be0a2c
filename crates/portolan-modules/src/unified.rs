//! Unified diffs of texts, for people: bounded, and without the bytes of what is no text.

use std::fmt::Write as _;

use portolan_diff::{Run, align};

/// Lines around a change that are shown.
const CONTEXT: usize = 3;

/// The most lines of a diff; what comes after is counted.
pub const MAX_DIFF_LINES: usize = 2_000;

/// The most bytes of one line that are shown.
const MAX_LINE_BYTES: usize = 1_000;

/// The unified diff of two contents; empty if they are equal. `None` stands for a file that is not there.
pub fn unified(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    if old == new {
        return String::new();
    }
    let name = |side: &str, content: Option<&[u8]>| match content {
        Some(_) => format!("{side}{path}"),
        None => "/dev/null".to_owned(),
    };
    let mut out = format!("--- {}\n+++ {}\n", name("a", old), name("b", new));
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let (Some(old_text), Some(new_text)) = (as_text(old), as_text(new)) else {
        let _ = writeln!(
            out,
            "the contents are not text: {} bytes become {}",
            old.len(),
            new.len()
        );
        return out;
    };
    let (old_lines, new_lines) = (lines(old_text), lines(new_text));
    for hunk in hunks(&align(&old_lines, &new_lines)) {
        hunk.write(&old_lines, &new_lines, &mut out);
    }
    shorten(out)
}

/// The text of a content; `None` if it is binary.
fn as_text(content: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(content).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// Lines with their endings, so that a missing last newline is a difference.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Changes that stand near each other.
struct Hunk<'r> {
    runs: Vec<&'r Run>,
}

/// Joins changes between which there are few equal lines.
fn hunks(runs: &[Run]) -> Vec<Hunk<'_>> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    let mut is_open = false;
    for run in runs {
        match run {
            Run::Replaced { .. } if is_open => {
                if let Some(hunk) = hunks.last_mut() {
                    hunk.runs.push(run);
                }
            }
            Run::Replaced { .. } => {
                hunks.push(Hunk { runs: vec![run] });
                is_open = true;
            }
            Run::Same { count, .. } if *count > 2 * CONTEXT => is_open = false,
            Run::Same { .. } => {
                if let Some(hunk) = hunks.last_mut().filter(|_| is_open) {
                    hunk.runs.push(run);
                }
            }
        }
    }
    hunks
}

impl Hunk<'_> {
    fn write(&self, old: &[&str], new: &[&str], out: &mut String) {
        let (old_range, new_range) = self.ranges();
        let before = CONTEXT.min(old_range.start).min(new_range.start);
        let after = CONTEXT.min(old.len() - old_range.end);
        let old_count = before + old_range.len() + after;
        let new_count = before + new_range.len() + after;
        let _ = writeln!(
            out,
            "@@ -{} +{} @@",
            position(old_range.start - before, old_count),
            position(new_range.start - before, new_count)
        );
        write_lines(out, ' ', &old[old_range.start - before..old_range.start]);
        for run in &self.runs {
            match run {
                Run::Same {
                    old: from, count, ..
                } => {
                    write_lines(out, ' ', &old[*from..from + count]);
                }
                Run::Replaced { old: from, new: to } => {
                    write_lines(out, '-', &old[from.clone()]);
                    write_lines(out, '+', &new[to.clone()]);
                }
            }
        }
        write_lines(out, ' ', &old[old_range.end..old_range.end + after]);
    }

    /// The lines of both sides from the first change to the last one.
    fn ranges(&self) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let bounds = |run: &Run| match run {
            Run::Same { old, new, count } => (*old..old + count, *new..new + count),
            Run::Replaced { old, new } => (old.clone(), new.clone()),
        };
        let first = self.runs.first().map(|run| bounds(run)).unwrap_or_default();
        let last = self.runs.last().map(|run| bounds(run)).unwrap_or_default();
        (first.0.start..last.0.end, first.1.start..last.1.end)
    }
}

/// The place of some lines as unified diffs write it: lines count from one, and no lines stand after the line before.
fn position(start: usize, count: usize) -> String {
    match count {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{count}", start + 1),
    }
}

fn write_lines(out: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        out.push(sign);
        let text = line.strip_suffix('\n');
        let shown = text.unwrap_or(line);
        out.push_str(&shown[..shown.floor_char_boundary(MAX_LINE_BYTES)]);
        if shown.len() > MAX_LINE_BYTES {
            out.push('…');
        }
        out.push('\n');
        if text.is_none() {
            out.push_str("\\ No newline at end of file\n");
        }
    }
}

fn shorten(diff: String) -> String {
    let Some((end, _)) = diff.match_indices('\n').nth(MAX_DIFF_LINES - 1) else {
        return diff;
    };
    let rest = diff[end + 1..].lines().count();
    if rest == 0 {
        return diff;
    }
    format!("{}… {rest} more lines\n", &diff[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_shown_with_three_lines_around_it() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let new = "a\nb\nc\nd\nE\nf\ng\nh\n";
        let diff = unified("/x", Some(old.as_bytes()), Some(new.as_bytes()));
        let expected = "--- a/x\n+++ b/x\n@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n";
        assert_eq!(diff, expected);
    }

    #[test]
    fn new_removed_and_unfinished_files_are_told() {
        let diff = unified("/x", None, Some(b"a"));
        let expected = "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n";
        assert_eq!(diff, expected);
        assert!(unified("/x", Some(b"a\n"), None).ends_with("@@ -1 +0,0 @@\n-a\n"));
        assert_eq!(unified("/x", Some(b"a"), Some(b"a")), "");
    }

    #[test]
    fn binary_contents_are_only_counted() {
        let diff = unified("/x", Some(b"\0\x01"), Some(b"abc"));
        assert!(
            diff.ends_with("the contents are not text: 2 bytes become 3\n"),
            "{diff}"
        );
    }

    #[test]
    fn a_long_diff_ends_at_its_limit() {
        let new = "line\n".repeat(MAX_DIFF_LINES * 2);
        let diff = unified("/x", None, Some(new.as_bytes()));
        assert_eq!(diff.lines().count(), MAX_DIFF_LINES + 1);
        assert!(diff.ends_with("more lines\n"));
    }
}
