//! Counts that an address answers with: `{"bad": 1, "total": 100}`, or such for `canary` and `stable`.

use portolan_judge::Counts;
use serde::Deserialize;

use crate::answer::Answer;

/// The counts in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum HttpCounts {
    Both { canary: Counts, stable: Counts },
    One(Counts),
}

/// Reads the body of an answer with this HTTP status.
pub(crate) fn read_counts(status: u16, body: &[u8]) -> Result<HttpCounts, Answer> {
    match status {
        200..=299 => {}
        408 | 429 | 503 | 504 => return Err(Answer::Slow(format!("HTTP status {status}"))),
        400..=499 => return Err(Answer::Refused(format!("HTTP status {status}"))),
        _ => return Err(Answer::Down(format!("HTTP status {status}"))),
    }
    serde_json::from_slice(body).map_err(|_| {
        Answer::Down(
            "the answer is not `{\"bad\": …, \"total\": …}`, nor such for `canary` and `stable`"
                .to_owned(),
        )
    })
}

impl HttpCounts {
    pub(crate) fn one(self) -> Result<Counts, Answer> {
        match self {
            Self::One(counts) => valid(counts),
            Self::Both { .. } => Err(Answer::Down(
                "the answer has both revisions, though one was asked for".to_owned(),
            )),
        }
    }

    pub(crate) fn both(self) -> Result<(Counts, Counts), Answer> {
        match self {
            Self::Both { canary, stable } => Ok((valid(canary)?, valid(stable)?)),
            Self::One(_) => Err(Answer::Down(
                "the answer has one revision; the address needs `$(slot)`, `$(revision)` or `$(arm)` to be asked for each".to_owned(),
            )),
        }
    }
}

fn valid(counts: Counts) -> Result<Counts, Answer> {
    Counts::new(counts.total, counts.bad)
        .map_err(|error| Answer::Down(format!("the answer has {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_one_or_both_revisions_are_read() {
        let one = read_counts(200, br#"{"bad": 1, "total": 9, "note": "x"}"#);
        assert_eq!(
            one.and_then(HttpCounts::one),
            Ok(Counts { total: 9, bad: 1 })
        );
        let both = br#"{"canary": {"bad": 1, "total": 9}, "stable": {"bad": 0, "total": 90}}"#;
        let both = read_counts(200, both).and_then(HttpCounts::both);
        assert_eq!(
            both,
            Ok((Counts { total: 9, bad: 1 }, Counts { total: 90, bad: 0 }))
        );
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        assert!(matches!(read_counts(503, b""), Err(Answer::Slow(_))));
        assert!(matches!(read_counts(404, b""), Err(Answer::Refused(_))));
        assert!(matches!(read_counts(500, b""), Err(Answer::Down(_))));
        assert!(matches!(read_counts(200, b"[]"), Err(Answer::Down(_))));
        let impossible = read_counts(200, br#"{"bad": 2, "total": 1}"#);
        assert_eq!(
            impossible.and_then(HttpCounts::one),
            Err(Answer::Down(
                "the answer has 2 bad requests of 1".to_owned()
            ))
        );
    }
}
