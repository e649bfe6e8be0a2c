//! Columns of text for people: the one place that aligns, clips and colours them.
//!
//! ```text
//! columns + rows of cells ──▶ widths ──(terminal width)──▶ lines
//! ```
//!
//! In a pipe, a table is never cut, because a program may read it. On a terminal that is too narrow, the widest
//! columns are cut first and end with `…`; then whole columns are left out. Names are cut last.

use anstyle::{AnsiColor, Style};
use portolan_review::clip;
use unicode_width::UnicodeWidthStr;

/// What stands between two columns.
const GAP: usize = 3;

/// No column is clipped below this: so little of a text says nothing.
const MIN_WIDTH: usize = 10;

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
    /// Whether a part of it says nothing: its column is left out rather than clipped.
    is_whole: bool,
}

/// Rows of cells below their titles.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    titles: Vec<String>,
    rows: Vec<Vec<Cell>>,
    /// Columns that are left out first where there is no room, in this order; then the others from the right.
    first_to_go: Vec<usize>,
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
        Self {
            text,
            tone,
            is_whole: false,
        }
    }

    /// A text that is shown whole or not at all, as a namespace or a kind.
    pub(crate) fn whole(text: impl Into<String>) -> Self {
        Self {
            is_whole: true,
            ..Self::new(text, Tone::Plain)
        }
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
            first_to_go: Vec::new(),
        }
    }

    /// The same table, of which these columns are left out first where there is no room.
    #[must_use]
    pub(crate) fn leaving_out_first(self, first_to_go: Vec<usize>) -> Self {
        Self {
            first_to_go,
            ..self
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
        let columns = self.layout(canvas.width);
        let titles: Vec<Cell> = self.titles.iter().map(Cell::from).collect();
        let has_titles = self.titles.iter().any(|title| !title.is_empty());
        let mut text = String::new();
        for row in std::iter::once(&titles)
            .filter(|_| has_titles)
            .chain(&self.rows)
        {
            push_line(&mut text, row, &columns, canvas.styled);
        }
        text
    }

    /// The columns that are shown with their widths, so that a line fits if it can.
    fn layout(&self, limit: Option<usize>) -> Vec<Column> {
        let mut columns = self.columns();
        let Some(limit) = limit else {
            return columns;
        };
        let mut to_go = self.order_to_go(&columns).into_iter();
        loop {
            let mut fitted = columns.clone();
            if fit(&mut fitted, limit, |column| {
                !column.is_name && !column.is_whole
            }) {
                return fitted;
            }
            match to_go.next() {
                Some(at) => columns.retain(|column| column.at != at),
                None => {
                    fit(&mut columns, limit, |_| true);
                    return columns;
                }
            }
        }
    }

    /// Every column as wide as its widest cell.
    fn columns(&self) -> Vec<Column> {
        let titles = self.titles.iter().enumerate();
        let mut columns: Vec<Column> = titles
            .map(|(at, title)| Column {
                at,
                width: title.width(),
                is_name: false,
                is_whole: false,
            })
            .collect();
        for row in &self.rows {
            for (column, cell) in columns.iter_mut().zip(row) {
                column.width = column.width.max(cell.text.width());
                column.is_name |= cell.tone == Tone::Name;
                column.is_whole |= cell.is_whole;
            }
        }
        // A tree has its names in the first column, whatever their colour.
        let has_name = columns.iter().any(|column| column.is_name);
        if let Some(first) = columns.first_mut().filter(|_| !has_name) {
            first.is_name = true;
        }
        columns
    }

    /// The columns but names, those first that are least missed.
    fn order_to_go(&self, columns: &[Column]) -> Vec<usize> {
        let others = columns.iter().rev().map(|column| column.at);
        let mut order: Vec<usize> = self.first_to_go.clone();
        order.extend(others.filter(|at| !self.first_to_go.contains(at)));
        let is_name = |at: usize| {
            columns
                .iter()
                .any(|column| column.at == at && column.is_name)
        };
        order.retain(|at| !is_name(*at));
        order
    }
}

/// A column that is shown.
#[derive(Debug, Clone)]
struct Column {
    /// Which of the table's.
    at: usize,
    width: usize,
    is_name: bool,
    is_whole: bool,
}

/// Takes from the widest columns that may shrink until all of them fit; says whether they do.
fn fit(columns: &mut [Column], limit: usize, may_shrink: impl Fn(&Column) -> bool) -> bool {
    let gaps = columns.len().saturating_sub(1) * GAP;
    let width: usize = columns.iter().map(|column| column.width).sum();
    let mut excess = (width + gaps).saturating_sub(limit);
    while excess > 0 {
        let shrinking = columns
            .iter_mut()
            .filter(|column| column.width > MIN_WIDTH && may_shrink(column));
        let Some(widest) = shrinking.max_by_key(|column| column.width) else {
            return false;
        };
        widest.width -= 1;
        excess -= 1;
    }
    true
}

fn push_line(text: &mut String, row: &[Cell], columns: &[Column], styled: bool) {
    let begin = text.len();
    let empty = Cell::default();
    for (index, column) in columns.iter().enumerate() {
        let cell = row.get(column.at).unwrap_or(&empty);
        let shown = clip(&cell.text, column.width);
        let padding = if index + 1 == columns.len() {
            0
        } else {
            column.width - shown.width() + GAP
        };
        text.push_str(&cell.tone.paint(&shown, styled));
        text.extend(std::iter::repeat_n(' ', padding));
    }
    let end = text.trim_end_matches(' ').len();
    text.truncate(end.max(begin));
    text.push('\n');
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

    fn at_width(width: usize) -> String {
        table().render(Canvas {
            width: Some(width),
            styled: false,
        })
    }

    #[test]
    fn a_column_goes_before_a_name_is_clipped() {
        insta::assert_snapshot!(at_width(25), @r"
        NAME    PATH
        apps    ./clusters/produ…
        größe   ./x
        ");
        insta::assert_snapshot!(at_width(15), @r"
        NAME
        apps
        größe
        ");
    }

    #[test]
    fn columns_that_are_least_missed_go_first() {
        let canvas = Canvas {
            width: Some(25),
            styled: false,
        };
        let table = table().leaving_out_first(vec![1]);
        assert_eq!(table.render(canvas).lines().next(), Some("NAME    READY"));
    }

    #[test]
    fn a_namespace_is_shown_whole_or_not_at_all() {
        let mut table = Table::new(["NAMESPACE", "NAME", "PATH"]);
        table.push(vec![
            Cell::whole("a-long-namespace"),
            Cell::name("apps"),
            "./clusters/production/apps".into(),
        ]);
        let at_width = |width| {
            let canvas = Canvas {
                width: Some(width),
                styled: false,
            };
            table.render(canvas).lines().last().map(str::to_owned)
        };
        assert_eq!(
            at_width(38).as_deref(),
            Some("a-long-namespace   apps   ./clusters/…")
        );
        assert_eq!(at_width(30).as_deref(), Some("a-long-namespace   apps"));
        assert_eq!(at_width(20).as_deref(), Some("apps"));
    }

    #[test]
    fn a_name_that_is_wider_than_the_terminal_is_clipped_at_last() {
        let mut table = Table::new(["NAME", "READY"]);
        table.push(vec![Cell::name("a-name-of-many-letters"), "True".into()]);
        let canvas = Canvas {
            width: Some(16),
            styled: false,
        };
        assert_eq!(table.render(canvas), "NAME\na-name-of-many-…\n");
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
