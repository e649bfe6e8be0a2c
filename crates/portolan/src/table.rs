//! Columns of text for people: the one place that aligns, clips and colours them.
//!
//! ```text
//! columns + rows of cells ──▶ widths ──(terminal width)──▶ lines
//! ```
//!
//! Piped, a table is never clipped: a program may read it. On a terminal that is too narrow the widest columns give way
//! first, and say so by `…`.

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands between two columns.
const GAP: usize = 3;

/// No column is clipped below this.
const MIN_WIDTH: usize = 8;

/// What a cell wants to say by its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    /// Nothing.
    #[default]
    Plain,
    /// It is a name.
    Name,
    /// All is well.
    Good,
    /// Somebody should look.
    Warning,
    /// Something is wrong.
    Bad,
}

/// One text of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

/// Rows of cells below their titles.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    titles: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// For what a table is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Canvas {
    /// How many columns there are; nothing is clipped without it.
    pub(crate) width: Option<usize>,
    /// Whether colour is shown.
    pub(crate) styled: bool,
}

// === impl Tone ===

impl Tone {
    /// How it looks on a terminal.
    pub(crate) fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Name => AnsiColor::Cyan.on_default(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
        }
    }

    /// The text in this tone.
    pub(crate) fn paint(self, text: &str, styled: bool) -> String {
        let style = self.style();
        if styled && self != Self::Plain && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

// === impl Cell ===

impl Cell {
    /// A text in a tone. Line breaks would break the table: only the first line is shown.
    pub(crate) fn new(text: impl Into<String>, tone: Tone) -> Self {
        let mut text = text.into();
        if let Some(end) = text.find(['\n', '\r']) {
            text.truncate(end);
            text.push('…');
        }
        text.retain(|letter| !letter.is_control());
        Self { text, tone }
    }

    /// The text of a name.
    pub(crate) fn name(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Name)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

// === impl Table ===

impl Table {
    /// A table without rows; when all titles are empty they are not shown.
    pub(crate) fn new<T: Into<String>>(titles: impl IntoIterator<Item = T>) -> Self {
        Self {
            titles: titles.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; cells beyond the titles are not shown.
    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Draws the table; nothing when it has no row.
    pub(crate) fn render(&self, canvas: Canvas) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let widths = self.widths(canvas.width);
        let titles: Vec<Cell> = self.titles.iter().map(Cell::from).collect();
        let has_titles = self.titles.iter().any(|title| !title.is_empty());
        let mut text = String::new();
        for row in std::iter::once(&titles)
            .filter(|_| has_titles)
            .chain(&self.rows)
        {
            push_line(&mut text, row, &widths, canvas.styled);
        }
        text
    }

    /// The width of each column, so that a line fits if it can.
    fn widths(&self, limit: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.titles.iter().map(|title| title.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        if let Some(limit) = limit {
            fit(&mut widths, limit);
        }
        widths
    }
}

/// Takes from the widest columns until all of them fit, as far as they may shrink.
fn fit(widths: &mut [usize], limit: usize) {
    let gaps = widths.len().saturating_sub(1) * GAP;
    let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(limit);
    while excess > 0 {
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > MIN_WIDTH) else {
            return;
        };
        *widest -= 1;
        excess -= 1;
    }
}

fn push_line(text: &mut String, row: &[Cell], widths: &[usize], styled: bool) {
    let begin = text.len();
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        let shown = clip(&cell.text, *width);
        let padding = if index + 1 == widths.len() {
            0
        } else {
            width - shown.width() + GAP
        };
        text.push_str(&cell.tone.paint(&shown, styled));
        text.extend(std::iter::repeat_n(' ', padding));
    }
    let end = text.trim_end_matches(' ').len();
    text.truncate(end.max(begin));
    text.push('\n');
}

/// As much of the text as fits; what was cut off leaves `…`.
pub(crate) fn clip(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut clipped = String::new();
    let mut used = 1;
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > width {
            break;
        }
        clipped.push(letter);
    }
    clipped.push('…');
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["NAME", "PATH", "READY"]);
        table.push(vec![
            Cell::name("apps"),
            "./clusters/production/apps".into(),
            Cell::new("True", Tone::Good),
        ]);
        table.push(vec![
            Cell::name("größe"),
            "./x".into(),
            Cell::new("False", Tone::Bad),
        ]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        insta::assert_snapshot!(table().render(Canvas::default()), @r"
        NAME    PATH                         READY
        apps    ./clusters/production/apps   True
        größe   ./x                          False
        ");
    }

    #[test]
    fn a_narrow_terminal_clips_the_widest_column() {
        let canvas = Canvas {
            width: Some(30),
            styled: false,
        };
        insta::assert_snapshot!(table().render(canvas), @r"
        NAME    PATH             READY
        apps    ./clusters/pr…   True
        größe   ./x              False
        ");
    }

    #[test]
    fn the_narrowest_terminal_still_shows_every_column() {
        let canvas = Canvas {
            width: Some(1),
            styled: false,
        };
        let drawn = table().render(canvas);
        assert_eq!(drawn.lines().next(), Some("NAME    PATH       READY"));
    }

    #[test]
    fn colour_does_not_count_as_width() {
        let canvas = Canvas {
            width: None,
            styled: true,
        };
        let plain = anstream::adapter::strip_str(&table().render(canvas)).to_string();
        assert_eq!(plain, table().render(Canvas::default()));
    }

    #[test]
    fn a_message_of_several_lines_shows_its_first() {
        let mut table = Table::new(["STATUS"]);
        table.push(vec!["first\nsecond\u{1b}[31m".into()]);
        assert_eq!(table.render(Canvas::default()), "STATUS\nfirst…\n");
    }

    #[test]
    fn no_rows_draw_nothing() {
        assert_eq!(Table::new(["NAME"]).render(Canvas::default()), "");
    }
}
