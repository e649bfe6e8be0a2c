//! Rows of plain texts with column titles, for CSV and Markdown.

/// Rows of texts below their titles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grid {
    /// The columns' titles.
    pub titles: Vec<&'static str>,
    /// The rows, each with a text for every column.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// Comma-separated values by RFC 4180.
    pub fn csv(&self) -> String {
        let titles = self
            .titles
            .iter()
            .map(|title| (*title).to_owned())
            .collect();
        let mut text = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let cells: Vec<String> = row.iter().map(|cell| csv_cell(cell)).collect();
            text.push_str(&cells.join(","));
            text.push_str("\r\n");
        }
        text
    }

    /// A Markdown table.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = line(
            &self
                .titles
                .iter()
                .map(|title| (*title).to_owned())
                .collect::<Vec<_>>(),
        );
        text.push_str(&line(&vec!["---".to_owned(); self.titles.len()]));
        for row in &self.rows {
            text.push_str(&line(
                &row.iter()
                    .map(|cell| markdown_cell(cell))
                    .collect::<Vec<_>>(),
            ));
        }
        text
    }
}

/// A cell that a spreadsheet would take for a formula begins with an apostrophe.
fn csv_cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '@', '-']) && text.len() > 1;
    let text = if formula {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

fn markdown_cell(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace(['\n', '\r'], " ")
        .replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cannot_break_out_of_their_row() {
        let grid = Grid {
            titles: vec!["A", "B"],
            rows: vec![
                vec!["x,\"y\"".into(), "=1+1".into()],
                vec!["a|b\nc".into(), String::new()],
            ],
        };
        assert_eq!(
            grid.csv(),
            "A,B\r\n\"x,\"\"y\"\"\",'=1+1\r\n\"a|b\nc\",\r\n"
        );
        assert_eq!(
            grid.markdown(),
            "| A | B |\n| --- | --- |\n| x,\"y\" | =1+1 |\n| a\\|b c |  |\n"
        );
    }
}
