//! A table of counts judged row by row: what a recorded release would have been decided as.
//!
//! ```text
//! time,canary_total,canary_bad,stable_total,stable_bad ──read──▶ intervals ──observe──▶ evidence after each row
//! ```

use serde::Serialize;
use thiserror::Error;

use crate::counts::{Counts, CountsError, Interval};
use crate::evidence::Evidence;
use crate::settings::Settings;
use crate::verdict::Verdict;

/// What the rows of a table say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// The first decision that a row led to.
    pub decision: Verdict,
    /// That row, from 1; `None` when nothing was decided.
    pub row: Option<usize>,
    /// The evidence after each row, those after the decision included.
    pub rows: Vec<RowEvidence>,
}

/// The evidence after a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RowEvidence {
    /// For a rollback, as a natural logarithm.
    pub ln_rollback: f64,
    /// For a promotion, as a natural logarithm.
    pub ln_promote: f64,
}

/// Why a table is refused. Lines count from 1, the header's included.
#[derive(Debug, Error)]
pub enum RowsError {
    /// The first line does not name the columns.
    #[error("line 1: the header must name {}, once each", COLUMNS.join(", "))]
    Header,
    /// A row has more or fewer fields than the header.
    #[error("line {line}: {found} fields; the header names {}", COLUMNS.len())]
    Fields {
        /// The line.
        line: u64,
        /// How many fields it has.
        found: usize,
    },
    /// A field is not a count.
    #[error("line {line}: `{text}` in column `{column}` is not a whole number from 0 on")]
    Number {
        /// The line.
        line: u64,
        /// The column.
        column: &'static str,
        /// What stands there.
        text: String,
    },
    /// Counts that no arm can have.
    #[error("line {line}: the {arm} has {source}")]
    Counts {
        /// The line.
        line: u64,
        /// Which arm.
        arm: &'static str,
        /// What is wrong with them.
        source: CountsError,
    },
    /// Not text in columns.
    #[error("line {line}: {reason}")]
    Syntax {
        /// The line.
        line: u64,
        /// What the reader says.
        reason: String,
    },
    /// More rows than are read.
    #[error("more than {MOST_ROWS} rows")]
    TooMany,
}

const COLUMNS: [&str; 5] = [
    "time",
    "canary_total",
    "canary_bad",
    "stable_total",
    "stable_bad",
];

/// A year of intervals of ten seconds takes three times as many; nobody judges one release by that.
const MOST_ROWS: usize = 1_000_000;

/// A new part of the evidence begins after so many seconds, or so many rows where the times are no times.
const SECONDS_A_PART: f64 = 600.0;
const ROWS_A_PART: usize = 10;

/// Judges a table of comma-separated counts.
///
/// The settings must have passed [`Settings::check`]. Times are any text; with corrections, those that are numbers of
/// seconds or RFC 3339 tell where ten minutes are over.
pub fn judge_rows(table: &str, settings: &Settings) -> Result<Judgement, RowsError> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(table.as_bytes());
    let order = columns(&mut reader)?;
    let mut judgement = Judgement {
        decision: Verdict::Hold,
        row: None,
        rows: Vec::new(),
    };
    let mut evidence = Evidence::new(settings);
    let mut part = Part::default();
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(syntax)?;
        if index == MOST_ROWS {
            return Err(RowsError::TooMany);
        }
        let interval = interval(&record, &order)?;
        if part.is_over(record.get(order[0]).unwrap_or_default()) {
            evidence.begin_part();
        }
        evidence.observe(settings, &interval);
        let explanation = evidence.explain(settings);
        judgement.rows.push(RowEvidence {
            ln_rollback: explanation.ln_rollback,
            ln_promote: explanation.ln_promote,
        });
        if judgement.row.is_none() && explanation.verdict != Verdict::Hold {
            judgement.decision = explanation.verdict;
            judgement.row = Some(index + 1);
        }
    }
    Ok(judgement)
}

/// Where each column of [`COLUMNS`] stands in a row.
fn columns(reader: &mut csv::Reader<&[u8]>) -> Result<[usize; COLUMNS.len()], RowsError> {
    let header = reader.headers().map_err(syntax)?;
    if header.len() != COLUMNS.len() {
        return Err(RowsError::Header);
    }
    let mut order = [0; COLUMNS.len()];
    for (place, column) in order.iter_mut().zip(COLUMNS) {
        let found = header.iter().position(|name| name == column);
        *place = found.ok_or(RowsError::Header)?;
    }
    Ok(order)
}

fn interval(
    record: &csv::StringRecord,
    order: &[usize; COLUMNS.len()],
) -> Result<Interval, RowsError> {
    let line = record.position().map_or(0, csv::Position::line);
    if record.len() != COLUMNS.len() {
        let found = record.len();
        return Err(RowsError::Fields { line, found });
    }
    let number = |index: usize| {
        let text = record.get(order[index]).unwrap_or_default();
        text.parse::<u64>().map_err(|_| RowsError::Number {
            line,
            column: COLUMNS[index],
            text: text.to_owned(),
        })
    };
    let counts = |arm, total, bad| {
        Counts::new(number(total)?, number(bad)?).map_err(|source| RowsError::Counts {
            line,
            arm,
            source,
        })
    };
    Ok(Interval {
        canary: counts("canary", 1, 2)?,
        stable: counts("stable arm", 3, 4)?,
    })
}

fn syntax(error: csv::Error) -> RowsError {
    RowsError::Syntax {
        line: error.position().map_or(1, csv::Position::line),
        reason: match error.into_kind() {
            csv::ErrorKind::Utf8 { .. } => "not UTF-8".to_owned(),
            other => format!("not a row of fields ({other:?})"),
        },
    }
}

/// The part of the evidence that rows fall into.
#[derive(Debug, Default)]
struct Part {
    begins: Option<f64>,
    rows: usize,
}

impl Part {
    /// Returns whether a new part begins with the row of this time.
    fn is_over(&mut self, time: &str) -> bool {
        let seconds = seconds(time);
        let is_over = match (self.begins, seconds) {
            (Some(begins), Some(now)) => now - begins >= SECONDS_A_PART,
            _ => self.rows >= ROWS_A_PART,
        };
        if is_over || self.rows == 0 {
            self.begins = seconds;
            self.rows = 0;
        }
        self.rows += 1;
        is_over
    }
}

/// The seconds that a time stands for: a number of them, or RFC 3339.
fn seconds(time: &str) -> Option<f64> {
    let number = time.parse::<f64>().ok().filter(|number| number.is_finite());
    let stamp = || time.parse::<jiff::Timestamp>().ok();
    number.or_else(|| stamp().map(|stamp| stamp.as_millisecond() as f64 / 1_000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "time,canary_total,canary_bad,stable_total,stable_bad\n";

    fn judge(rows: &str, settings: &Settings) -> Result<Judgement, RowsError> {
        judge_rows(&format!("{HEADER}{rows}"), settings)
    }

    fn refusal(table: &str) -> String {
        let refused = judge_rows(table, &Settings::plain()).expect_err("refused");
        refused.to_string()
    }

    #[test]
    fn rows_go_on_after_the_decision() {
        let rows = "a,1000,50,9000,9\nb,1000,60,9000,9\nc,1000,0,9000,9\n";
        let judgement = judge(rows, &Settings::plain()).expect("judged");
        assert_eq!(
            (judgement.decision, judgement.row),
            (Verdict::Rollback, Some(1))
        );
        assert_eq!(judgement.rows.len(), 3);
    }

    #[test]
    fn a_table_without_rows_is_held() {
        let judgement = judge("", &Settings::plain()).expect("judged");
        assert_eq!((judgement.decision, judgement.row), (Verdict::Hold, None));
    }

    #[test]
    fn columns_may_stand_in_any_order_and_times_may_be_quoted() {
        let table = "stable_bad,stable_total,canary_bad,canary_total,time\n9,9000,50,1000,\"noon, about\"\n";
        let judgement = judge_rows(table, &Settings::plain()).expect("judged");
        assert_eq!(judgement.row, Some(1));
    }

    #[test]
    fn what_is_not_a_count_is_refused_with_its_line() {
        assert_eq!(
            refusal(&format!("{HEADER}a,1,2,3,0\n")),
            "line 2: the canary has 2 bad requests of 1"
        );
        assert_eq!(
            refusal(&format!("{HEADER}a,1,0,3,0\nb,-1,0,3,0\n")),
            "line 3: `-1` in column `canary_total` is not a whole number from 0 on"
        );
        assert_eq!(
            refusal(&format!("{HEADER}a,1,0\n")),
            "line 2: 3 fields; the header names 5"
        );
        let header = "line 1: the header must name time, canary_total, canary_bad, stable_total, stable_bad, once each";
        for table in [
            "",
            "a,1,0,3,0\n",
            "time,time,canary_bad,stable_total,stable_bad\n",
        ] {
            assert_eq!(refusal(table), header);
        }
    }

    #[test]
    fn ten_minutes_are_told_by_the_clock_or_by_rows() {
        let parts = |times: &[&str]| {
            let mut part = Part::default();
            times.iter().filter(|time| part.is_over(time)).count()
        };
        assert_eq!(parts(&["0", "300", "600", "900", "1200"]), 2);
        assert_eq!(parts(&["2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"]), 1);
        assert_eq!(parts(&["row"; 21]), 2);
    }
}
