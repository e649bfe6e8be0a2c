//! The slots of a schedule: the moments that a cron expression means in a time zone.
//!
//! Where the clocks of a zone are put forward, a time that does not exist is taken as the first moment after the gap.
//! Where they are put back, a fixed time (`30 2 * * *`) has one slot, the first, and a repeating one (`*/15 * * * *`)
//! has its slots in both hours. Several fixed times (`30 2,4 * * *`) are treated each as if it stood alone. A slot is a moment in UTC, so no two slots of a schedule have the same name.
//!
//! The rules of time zones are compiled in (jiff's bundled database): servers and agents of one release agree about
//! every slot, and a node without zone files, or with old ones, has the same slots as the others.

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::span::earlier;

mod config;
mod step;

pub use config::{Concurrency, MissedPolicy, ScheduleSpec};
pub use step::{
    CronSchedule, ScheduleState, ScheduleStep, SkipReason, SkippedSlot, SlotFiring, SlotRange,
};

/// When something is to happen: a cron expression of five fields in a time zone.
///
/// ```
/// use portolan_trigger::Schedule;
///
/// let schedule = Schedule::parse("30 2 * * *", Some("Europe/Berlin"))?;
/// let next = schedule.next_after("2026-03-28T12:00:00Z".parse()?);
/// // On this day there is no half past two in Berlin: clocks go from two to three.
/// assert_eq!(next, Some("2026-03-29T01:00:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
    text: String,
    /// Whether its times of day are fixed, and none of its minutes or hours is `*`.
    is_fixed: bool,
}

/// Why a schedule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The expression cannot be read.
    #[error("`{expression}` is not a cron expression such as `30 2 * * 1-5`: {why}")]
    Expression {
        /// What was written.
        expression: String,
        /// What is wrong with it.
        why: String,
    },
    /// The expression names a day that never comes.
    #[error("`{0}` has no slot at all: its day does not exist in its months")]
    Never(String),
    /// The time zone is not known.
    #[error("`{0}` is not a time zone such as `Europe/Berlin` or `UTC`")]
    Zone(String),
}

/// The longest expression that is read.
const MAX_EXPRESSION: usize = 256;

impl Schedule {
    /// Reads a cron expression; without a time zone it is in UTC.
    ///
    /// # Errors
    /// When the expression or the zone cannot be read, or when no day fits.
    pub fn parse(expression: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let wrong = |why: String| ScheduleError::Expression {
            expression: expression.chars().take(MAX_EXPRESSION).collect(),
            why,
        };
        if expression.len() > MAX_EXPRESSION {
            return Err(wrong(format!("it is longer than {MAX_EXPRESSION} bytes")));
        }
        if !has_slot(expression.trim()) {
            return Err(ScheduleError::Never(expression.trim().to_owned()));
        }
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let cron = parser
            .parse(expression.trim())
            .map_err(|error| wrong(error.to_string().trim_end_matches('.').to_owned()))?;
        let zone = zone_named(zone.unwrap_or("UTC"))?;
        Ok(Self {
            text: format!(
                "{} {}",
                expression.trim(),
                zone.iana_name().unwrap_or("UTC")
            ),
            cron,
            zone,
            is_fixed: is_fixed(expression.trim()),
        })
    }

    /// The expression and the zone, as one text that changes when either does.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The first slot after a moment; `None` beyond the calendar.
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        let local = moment.to_zoned(self.zone.clone());
        if self.is_fixed {
            return self.next_fixed(moment, local.datetime());
        }
        let found = self.cron.find_next_occurrence(&local, false).ok()?;
        Some(found.timestamp())
    }

    /// The first slot after a moment, by times of day: each has one slot a day, whatever the clocks of the zone do.
    fn next_fixed(&self, moment: Timestamp, local: DateTime) -> Option<Timestamp> {
        let mut local = local;
        // Times in an hour that comes again were in its first pass; there are no more of them than minutes.
        for _ in 0..MAX_REPEATED {
            local = self.cron.find_next_occurrence(&local, false).ok()?;
            let slot = self.moment_of(local)?;
            if slot > moment {
                return Some(slot);
            }
        }
        None
    }

    /// The moment of a time of day: the first of two, or the first moment after a gap that it is in.
    fn moment_of(&self, local: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset }
            | AmbiguousOffset::Fold { before: offset, .. } => offset.to_timestamp(local).ok(),
            AmbiguousOffset::Gap { after, .. } => {
                let before_gap = after.to_timestamp(local).ok()?;
                let change = self.zone.following(before_gap).next()?;
                Some(change.timestamp())
            }
        }
    }

    /// The slots after one moment and up to another, the earliest first.
    pub fn slots(&self, after: Timestamp, until: Timestamp) -> impl Iterator<Item = Timestamp> {
        let first = self.next_after(after);
        let all = std::iter::successors(first, |slot| self.next_after(*slot));
        all.take_while(move |slot| *slot <= until)
    }

    /// The last slot up to a moment, but after another.
    pub fn last_slot(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        // Only searches forward say what a slot is where clocks are put forward or back, so the search begins further
        // and further back until there is one.
        let starts = (0..MAX_DOUBLINGS).map(|power| {
            let span = Duration::from_secs(60 << power);
            earlier(until, span).max(after)
        });
        let mut found = starts.map(|start| self.slots(start, until).last());
        found.find_map(|slot| slot)
    }
}

/// Zones repeat at most a few hours.
const MAX_REPEATED: usize = 1_000;

/// Whether minutes and hours are given, as cron of Vixie asks it: neither field begins with `*`.
fn is_fixed(expression: &str) -> bool {
    match expression.to_ascii_lowercase().as_str() {
        "@hourly" => false,
        nickname if nickname.starts_with('@') => true,
        expression => {
            let fields = expression.split_whitespace().take(2);
            fields.into_iter().all(|field| !field.starts_with('*'))
        }
    }
}

/// Two to this power is more minutes than there are between any two slots: a leap day that is a Monday comes every
/// 28 years, or 40 around a century.
const MAX_DOUBLINGS: u32 = 26;

/// Whether an expression that can be read has a slot at all. The search is kept to the years after which the calendar
/// repeats leap days and days of the week; without that, one for a day that never comes takes seconds.
fn has_slot(expression: &str) -> bool {
    let parser = CronParser::builder()
        .seconds(Seconds::Required)
        .year(Year::Required)
        .build();
    let Ok(cron) = parser.parse(&format!("0 {expression} 2001-2040")) else {
        return true;
    };
    let begin = jiff::civil::DateTime::constant(2001, 1, 1, 0, 0, 0, 0);
    cron.find_next_occurrence(&begin, true).is_ok()
}

/// The time zone of a name in the compiled-in database.
pub(crate) fn zone_named(name: &str) -> Result<TimeZone, ScheduleError> {
    let known = (name.len() <= 64).then(|| jiff::tz::db().get(name).ok());
    known
        .flatten()
        .ok_or_else(|| ScheduleError::Zone(name.chars().take(64).collect()))
}
