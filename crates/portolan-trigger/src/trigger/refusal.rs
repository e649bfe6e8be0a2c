//! Why an event does not start a run, for programs and for people.

use jiff::Timestamp;

/// Why an event does not count for a trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// It is of a type that the trigger does not ask for.
    #[error("the type `{0}` is not one of its types")]
    Type(String),
    /// It is of a namespace that the trigger does not see.
    #[error("it does not see events of the namespace `{0}`")]
    Namespace(String),
    /// The condition is false.
    #[error("`when` is false")]
    When,
    /// The condition has no value for this event.
    #[error("`when` has no value for this event: {0}")]
    Condition(String),
}

/// Why an event that counts for a trigger, or a firing, is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A run that this trigger started led to the event.
    #[error("a loop: this trigger itself led to the event")]
    SameTrigger,
    /// Too many runs that triggers started stand behind it.
    #[error("a loop: the run would be number {depth} in a chain of triggers, of at most {most}")]
    TooDeep {
        /// The depth of the run.
        depth: usize,
        /// The most that is allowed.
        most: usize,
    },
    /// It was seen before.
    #[error("the same event was seen before")]
    Duplicate,
    /// Its node sent later events more than five seconds ago.
    #[error("it is {0} ms later than the newest event of its node allows")]
    TooLate(i64),
    /// There are too many groups.
    #[error("there are {0} groups already, as many as are remembered")]
    TooManyGroups(usize),
    /// Its group fired a short while ago.
    #[error("its group cools down until {0}")]
    Cooldown(Timestamp),
    /// It fired as often as it may in an hour.
    #[error("it fired {most} times within an hour; the next time is {until}")]
    PerHour {
        /// How often it may fire.
        most: u32,
        /// When it may fire again.
        until: Timestamp,
    },
    /// It is switched off because it fired too often.
    #[error("it is switched off since {since} because it fired too often{}", back(*until))]
    Tripped {
        /// Since when.
        since: Timestamp,
        /// When it is switched on again; only by hand without it.
        until: Option<Timestamp>,
    },
    /// It cannot start now, and is not held.
    #[error("{0}, and it is not held")]
    Blocked(Blocked),
}

/// Why a firing cannot start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Blocked {
    /// Its times are closed.
    #[error("none of its times of the week is now")]
    Closed,
    /// Its runs are active.
    #[error("{0} of its runs are active, as many as may be")]
    Active(u32),
    /// All triggers together start too many runs.
    #[error("triggers started {0} runs within a minute, as many as may be")]
    Budget(u32),
}

fn back(until: Option<Timestamp>) -> String {
    match until {
        Some(until) => format!("; it is switched on again at {until}"),
        None => "; somebody has to switch it on again".to_owned(),
    }
}

impl Refusal {
    /// A word for programs and for counters.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SameTrigger => "same-trigger",
            Self::TooDeep { .. } => "too-deep",
            Self::Duplicate => "duplicate",
            Self::TooLate(_) => "too-late",
            Self::TooManyGroups(_) => "too-many-groups",
            Self::Cooldown(_) => "cooldown",
            Self::PerHour { .. } => "per-hour",
            Self::Tripped { .. } => "tripped",
            Self::Blocked(Blocked::Closed) => "closed",
            Self::Blocked(Blocked::Active(_)) => "active",
            Self::Blocked(Blocked::Budget(_)) => "budget",
        }
    }
}
