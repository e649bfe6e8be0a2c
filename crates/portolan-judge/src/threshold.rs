//! A plain line that a measured value must not pass, for people who want that.

use serde::{Deserialize, Serialize};

use crate::verdict::Verdict;

/// A range that a value must stay in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Threshold {
    /// The least allowed value.
    pub min: Option<f64>,
    /// The largest allowed value.
    pub max: Option<f64>,
    /// So many values outside of the range, one right after the other, are a rollback.
    pub consecutive: u32,
}

/// What was measured so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdState {
    /// Values outside of the range since the last one inside.
    outside: u32,
    /// Values inside of the range since the last one outside.
    inside: u32,
}

impl ThresholdState {
    /// Takes a measured value into account and returns what follows. A value that could not be had, or that is not a
    /// number, is no reason for anything: the counts stay as they are.
    pub fn observe(&mut self, threshold: &Threshold, value: Option<f64>) -> Verdict {
        let Some(value) = value.filter(|value| !value.is_nan()) else {
            return Verdict::Hold;
        };
        let is_inside = threshold.min.is_none_or(|min| value >= min)
            && threshold.max.is_none_or(|max| value <= max);
        if is_inside {
            self.inside = self.inside.saturating_add(1);
            self.outside = 0;
            return Verdict::Promote;
        }
        self.inside = 0;
        self.outside = self.outside.saturating_add(1);
        if self.outside >= threshold.consecutive.max(1) {
            Verdict::Rollback
        } else {
            Verdict::Hold
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_in_a_row_count_and_missing_ones_change_nothing() {
        let threshold = Threshold {
            min: Some(99.0),
            max: None,
            consecutive: 2,
        };
        let mut state = ThresholdState::default();
        let values = [
            Some(98.0),
            Some(99.5),
            Some(98.0),
            None,
            Some(f64::NAN),
            Some(97.0),
        ];
        let verdicts = values.map(|value| state.observe(&threshold, value));
        use Verdict::{Hold, Promote, Rollback};
        assert_eq!(verdicts, [Hold, Promote, Hold, Hold, Hold, Rollback]);
    }
}
