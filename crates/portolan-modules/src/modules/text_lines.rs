//! The lines of a text file, changed without touching the others: each keeps its ending.

use regex::bytes::Regex;

use crate::parameters::Parameters;

/// The lines of a file.
pub(crate) struct TextLines {
    lines: Vec<Line>,
    /// The ending that the file uses; `\n` if it has none.
    ending: &'static [u8],
}

struct Line {
    text: Vec<u8>,
    ending: &'static [u8],
}

/// Where something is put.
#[derive(Debug, Clone)]
pub(crate) enum Position {
    /// At the end of the file.
    End,
    /// After the last line that matches; at the end if none does.
    After(Regex),
    /// Before the last line that matches; at the end if none does.
    Before(Regex),
}

impl Position {
    /// Reads `after` and `before`.
    pub(crate) fn parse(parameters: &mut Parameters<'_>) -> Self {
        match parameters.at_most_one(&["after", "before"]) {
            Some("after") => parse_regex(parameters, "after").map_or(Self::End, Self::After),
            Some(_) => parse_regex(parameters, "before").map_or(Self::End, Self::Before),
            None => Self::End,
        }
    }
}

/// Reads a regular expression.
pub(crate) fn parse_regex(parameters: &mut Parameters<'_>, name: &str) -> Option<Regex> {
    let text = parameters.text(name)?;
    match Regex::new(text) {
        Ok(regex) => Some(regex),
        Err(error) => {
            parameters.fault(name, format!("is not a regular expression: {error}"));
            None
        }
    }
}

impl TextLines {
    pub(crate) fn of(content: &[u8]) -> Self {
        let lines: Vec<Line> = content
            .split_inclusive(|byte| *byte == b'\n')
            .map(Line::of)
            .collect();
        let ending = lines.first().map_or(&b"\n"[..], |line| line.ending);
        Self {
            ending: if ending.is_empty() { b"\n" } else { ending },
            lines,
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in &self.lines {
            bytes.extend_from_slice(&line.text);
            bytes.extend_from_slice(line.ending);
        }
        bytes
    }

    /// The texts of the lines, without their endings.
    pub(crate) fn texts(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.lines.iter().map(|line| line.text.as_slice())
    }

    /// The last line that matches.
    pub(crate) fn last_match(&self, regex: &Regex) -> Option<usize> {
        self.texts().rposition(|text| regex.is_match(text))
    }

    /// Gives a line another text; it keeps its ending.
    pub(crate) fn set(&mut self, at: usize, text: &[u8]) {
        if let Some(line) = self.lines.get_mut(at) {
            text.clone_into(&mut line.text);
        }
    }

    /// Keeps only the lines for which this is true.
    pub(crate) fn retain(&mut self, keep: impl Fn(&[u8]) -> bool) {
        self.lines.retain(|line| keep(&line.text));
    }

    /// Removes lines.
    pub(crate) fn remove(&mut self, range: std::ops::Range<usize>) {
        self.lines.drain(range);
    }

    /// Puts lines before the one with this number, with the ending that the file uses.
    pub(crate) fn insert(&mut self, at: usize, texts: &[&[u8]]) {
        let at = at.min(self.lines.len());
        // Only what is put at the end gives the line before it an ending.
        if at == self.lines.len()
            && let Some(last) = self.lines.last_mut()
            && last.ending.is_empty()
        {
            last.ending = self.ending;
        }
        let ending = self.ending;
        let lines = texts.iter().map(|text| Line {
            text: text.to_vec(),
            ending,
        });
        self.lines.splice(at..at, lines);
    }

    /// The number of the line before which something is put.
    pub(crate) fn place(&self, position: &Position) -> usize {
        let found = match position {
            Position::End => None,
            Position::After(regex) => self.last_match(regex).map(|at| at + 1),
            Position::Before(regex) => self.last_match(regex),
        };
        found.unwrap_or(self.lines.len())
    }
}

impl Line {
    fn of(bytes: &[u8]) -> Self {
        let (text, ending): (&[u8], &'static [u8]) = if let Some(text) = bytes.strip_suffix(b"\r\n")
        {
            (text, b"\r\n")
        } else if let Some(text) = bytes.strip_suffix(b"\n") {
            (text, b"\n")
        } else {
            (bytes, b"")
        };
        Self {
            text: text.to_vec(),
            ending,
        }
    }
}
