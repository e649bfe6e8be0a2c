//! A list in the format that the user chose: `-o table|wide|yaml|json|name`.
//!
//! ```text
//! columns + entries (cells, record, name) ──▶ Listing ──▶ aligned text, or one object with `items` for programs
//! ```
//!
//! The records' field names are stable for scripts; the columns are not.

use portolan_object::API_VERSION;
use portolan_secret::readable_json;
use portolan_yaml::{List, Map, Node, Value};

use crate::error::CommandError;
use crate::printer::Printer;
use crate::table::{Cell, Table};

/// Output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// Columns
    #[default]
    Table,
    /// More columns
    Wide,
    /// Records as YAML
    Yaml,
    /// Records as JSON
    Json,
    /// Names only
    Name,
}

/// A column of a listing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    /// Always there.
    Always(&'static str),
    /// Left out first where there is no room.
    Roomy(&'static str),
    /// Only in the wide form.
    Wide(&'static str),
}

/// One thing of a list.
#[derive(Debug)]
pub(crate) struct Entry {
    /// A cell for each column, those of the wide form included.
    pub(crate) cells: Vec<Cell>,
    /// What programs get.
    pub(crate) record: Node,
    /// What `-o name` prints.
    pub(crate) name: String,
}

/// A list of things.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The kind of the object that programs get.
    kind: &'static str,
    columns: Vec<Column>,
    entries: Vec<Entry>,
    /// What is said of an empty table.
    otherwise: &'static str,
}

impl Listing {
    /// Returns an empty list; `kind` is what programs get it as, `ImageList` for instance.
    pub(crate) fn new(kind: &'static str, columns: Vec<Column>) -> Self {
        Self {
            kind,
            columns,
            entries: Vec::new(),
            otherwise: "nothing found",
        }
    }

    /// The same list, which says something else when it is empty.
    pub(crate) fn otherwise(self, otherwise: &'static str) -> Self {
        Self { otherwise, ..self }
    }

    /// Adds a thing.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Prints the list; an empty table says so on stderr, as kubectl does.
    pub(crate) fn print(&self, format: Format, printer: &Printer) -> Result<(), CommandError> {
        match format {
            Format::Table | Format::Wide if self.entries.is_empty() => {
                printer.say_unless_quiet(self.otherwise);
                Ok(())
            }
            Format::Table | Format::Wide => {
                let table = self.table(format == Format::Wide);
                printer.data(table.render(printer.canvas()))
            }
            Format::Yaml => printer.data(written(portolan_yaml::write_kustomize(&self.answer()))?),
            Format::Json => printer.data(written(
                portolan_yaml::to_json(&self.answer()).map(|json| indented(&readable_json(&json))),
            )?),
            Format::Name => printer.data(self.names()),
        }
    }

    fn table(&self, wide: bool) -> Table {
        let shown = |column: &Column| wide || !matches!(column, Column::Wide(_));
        let columns = || self.columns.iter().filter(|column| shown(column));
        let of_kind = |is_it: fn(&Column) -> bool| {
            let columns = columns()
                .enumerate()
                .filter(move |(_, column)| is_it(column));
            columns.map(|(at, _)| at).collect::<Vec<_>>()
        };
        let mut first_to_go = of_kind(|column| matches!(column, Column::Roomy(_)));
        first_to_go.extend(of_kind(|column| matches!(column, Column::Wide(_))));
        first_to_go.reverse();
        let titles = columns().map(|column| match column {
            Column::Always(title) | Column::Roomy(title) | Column::Wide(title) => *title,
        });
        let mut table = Table::new(titles).leaving_out_first(first_to_go);
        for entry in &self.entries {
            let cells = self.columns.iter().zip(&entry.cells);
            let cells = cells.filter(|(column, _)| shown(column));
            table.push(cells.map(|(_, cell)| cell.clone()).collect());
        }
        table
    }

    /// The object that programs get.
    fn answer(&self) -> Node {
        let records = self.entries.iter().map(|entry| entry.record.clone());
        list(self.kind, records.collect())
    }

    fn names(&self) -> String {
        let mut names = String::new();
        for entry in &self.entries {
            names.push_str(&entry.name);
            names.push('\n');
        }
        names
    }
}

/// Records as one object of a kind.
pub(crate) fn list(kind: &'static str, records: Vec<Node>) -> Node {
    record([
        ("apiVersion", Node::string(API_VERSION)),
        ("kind", Node::string(kind)),
        ("items", Node::new(Value::List(List::from_items(records)))),
    ])
}

/// A record of fields in this order.
pub(crate) fn record<const N: usize>(fields: [(&'static str, Node); N]) -> Node {
    let mut map = Map::new();
    for (name, value) in fields {
        map.insert(name, value);
    }
    Node::new(Value::Map(map))
}

/// A list of texts.
pub(crate) fn texts<T: ToString>(items: impl IntoIterator<Item = T>) -> Node {
    let items = items.into_iter().map(|item| Node::string(item.to_string()));
    Node::new(Value::List(List::from_items(items.collect())))
}

fn written<E: std::error::Error + Send + Sync + 'static>(
    text: Result<String, E>,
) -> Result<String, CommandError> {
    text.map_err(CommandError::user)
}

/// Compact JSON put on lines, two spaces a level.
pub(crate) fn indented(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut letters = json.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                text.push('"');
                let mut escaped = false;
                for letter in letters.by_ref() {
                    text.push(letter);
                    if letter == '"' && !escaped {
                        break;
                    }
                    escaped = letter == '\\' && !escaped;
                }
            }
            '[' | '{' => {
                text.push(letter);
                match letters.next_if(|next| matches!(next, ']' | '}')) {
                    Some(end) => text.push(end),
                    None => {
                        depth += 1;
                        break_line(&mut text, depth);
                    }
                }
            }
            ']' | '}' => {
                depth -= 1;
                break_line(&mut text, depth);
                text.push(letter);
            }
            ',' => {
                text.push(',');
                break_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => text.push(letter),
        }
    }
    text.push('\n');
    text
}

fn break_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_put_on_lines_and_strings_are_left_alone() {
        let text = indented(r#"{"a":[1,{"b":"{\"x\":[,]}\\"}],"c":{},"d":[]}"#);
        insta::assert_snapshot!(text, @r#"
        {
          "a": [
            1,
            {
              "b": "{\"x\":[,]}\\"
            }
          ],
          "c": {},
          "d": []
        }
        "#);
    }
}
