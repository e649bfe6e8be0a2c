//! A message about a place in a file, printed with that line.
//!
//! Libraries report positions as numbers; this module reads the line and prints it with `annotate-snippets`.

pub(crate) use annotate_snippets::Level;
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Origin, Renderer, Snippet};

/// A place in a text the user can open.
#[derive(Debug, Clone)]
pub(crate) struct Place<'a> {
    /// The file's name as the user wrote it, or `<stdin>`.
    pub(crate) file: &'a str,
    /// The whole text of the file.
    pub(crate) text: &'a str,
    /// The line, from 1; 0 when it is not known.
    pub(crate) line: usize,
    /// The column in characters, from 1; 0 when it is not known.
    pub(crate) column: usize,
}

/// One error with its place and advice.
#[derive(Debug, Clone)]
pub(crate) struct Diagnostic<'a> {
    pub(crate) message: String,
    pub(crate) place: Option<Place<'a>>,
    pub(crate) hints: Vec<String>,
}

impl Diagnostic<'_> {
    /// Draws the message as an error; with colour codes when `styled`.
    pub(crate) fn render(&self, styled: bool) -> String {
        self.render_as(Level::ERROR, None, styled)
    }

    /// Draws the message as grave as it is, with the id to look it up by.
    pub(crate) fn render_as(&self, level: Level<'_>, id: Option<&str>, styled: bool) -> String {
        let renderer = if styled {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut title = level.primary_title(self.message.as_str());
        if let Some(id) = id {
            title = title.id(id);
        }
        let group = match &self.place {
            // Nothing can be shown of a file that cannot be read; the place is told all the same.
            Some(place) if place.text.is_empty() => title.element(place.origin()),
            Some(place) => title.element(place.snippet()),
            None => annotate_snippets::Group::with_title(title),
        };
        let mut drawn = renderer.decor_style(DecorStyle::Unicode).render(&[group]);
        for hint in &self.hints {
            drawn.push_str("\nhint: ");
            drawn.push_str(hint);
        }
        drawn
    }
}

/// The most characters of a line that are drawn: minified files have lines of megabytes.
const MAX_LINE_CHARS: usize = 400;

impl<'a> Place<'a> {
    fn origin(&self) -> Origin<'a> {
        let origin = Origin::path(self.file);
        if self.line == 0 {
            return origin;
        }
        origin.line(self.line).char_column(self.column.max(1))
    }

    fn snippet(&self) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let line = self
            .text
            .split('\n')
            .nth(self.line.saturating_sub(1))
            .unwrap_or_default();
        let line = clip(line.trim_end_matches('\r'));
        let start = line
            .char_indices()
            .nth(self.column.saturating_sub(1))
            .map_or(line.len(), |(at, _)| at);
        let end = line[start..]
            .chars()
            .next()
            .map_or(start, |c| start + c.len_utf8());
        Snippet::source(line)
            .path(self.file)
            .line_start(self.line.max(1))
            .annotation(AnnotationKind::Primary.span(start..end))
    }
}

fn clip(line: &str) -> &str {
    line.char_indices()
        .nth(MAX_LINE_CHARS)
        .map_or(line, |(end, _)| &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_and_the_place_in_it_are_drawn() {
        let place = Place {
            file: "a.yaml",
            text: "a: 1\nb: [\n",
            line: 2,
            column: 4,
        };
        let diagnostic = Diagnostic {
            message: "did not find the end of the list".into(),
            place: Some(place),
            hints: vec!["close it with `]`".into()],
        };
        insta::assert_snapshot!(diagnostic.render(false), @r"
        error: did not find the end of the list
          ╭▸ a.yaml:2:4
          │
        2 │ b: [
          ╰╴   ━
        hint: close it with `]`
        ");
    }

    #[test]
    fn a_place_beyond_the_text_is_drawn_at_its_end() {
        let place = Place {
            file: "a.yaml",
            text: "é",
            line: 7,
            column: 9,
        };
        let diagnostic = Diagnostic {
            message: "odd".into(),
            place: Some(place),
            hints: vec![],
        };
        insta::assert_snapshot!(diagnostic.render(false), @r"
        error: odd
          ╭▸ a.yaml:7:1
          │
        7 │
          ╰╴━
        ");
    }
}
