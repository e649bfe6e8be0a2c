//! Times as templates see them: values with Go's methods, and the named numbers that these return.

use std::borrow::Cow;

use portolan_go::time::{MONTHS, Time, WEEKDAYS, Zone, name, print_duration};

use crate::function::{Args, Ctx, FuncError, Param};
use crate::object::{Kind, Object, Signature};
use crate::value::{IntKind, Value};

type Answer = Result<Value, FuncError>;

/// The Go type of [`Time`].
const TYPE: &str = "time.Time";

impl Object for Time {
    fn type_name(&self) -> Cow<'static, str> {
        TYPE.into()
    }

    fn method(&self, name: &str) -> Option<Signature> {
        const OTHER: Signature = Signature::new(&[Param::Object(TYPE)]);
        const TEXT: Signature = Signature::new(&[Param::Str]);
        const DURATION: Signature = Signature::new(&[Param::Object("time.Duration")]);
        const DATE: Signature = Signature::new(&[Param::Int, Param::Int, Param::Int]);
        match name {
            "Year" | "Month" | "Day" | "Weekday" | "YearDay" | "Hour" | "Minute" | "Second"
            | "Nanosecond" | "Unix" | "UnixMilli" | "UnixMicro" | "UnixNano" | "UTC" | "Local"
            | "String" | "IsZero" => Some(Signature::NONE),
            "Format" => Some(TEXT),
            "Add" => Some(DURATION),
            "AddDate" => Some(DATE),
            "After" | "Before" | "Equal" | "Compare" | "Sub" => Some(OTHER),
            _ => None,
        }
    }

    fn call(&self, _: &mut Ctx<'_>, method: &str, args: Args<'_>) -> Answer {
        let clock = self.clock();
        let int = |value: u32| Ok(Value::int(i64::from(value)));
        let other = args.get(0).downcast::<Self>().unwrap_or(&Self::ZERO);
        match method {
            "Year" => Ok(Value::int(clock.year)),
            "Month" => Ok(Value::object(Named::month(clock.month))),
            "Weekday" => Ok(Value::object(Named::weekday(clock.weekday))),
            "Day" => int(clock.day),
            "YearDay" => int(clock.year_day),
            "Hour" => int(clock.hour),
            "Minute" => int(clock.minute),
            "Second" => int(clock.second),
            "Nanosecond" => int(clock.nanosecond),
            "Unix" => Ok(Value::int64(self.unix())),
            "UnixMilli" => Ok(Value::int64(self.nanoseconds.div_euclid(1_000_000) as i64)),
            "UnixMicro" => Ok(Value::int64(self.nanoseconds.div_euclid(1_000) as i64)),
            "UnixNano" => Ok(Value::int64(self.nanoseconds as i64)),
            "UTC" | "Local" => Ok(Value::object(self.in_zone(Zone::Utc))),
            "String" => Ok(self.to_go_string().into()),
            "IsZero" => Ok((self.nanoseconds == Self::ZERO.nanoseconds).into()),
            "Format" => Ok(self.format(&args.str(0)).into()),
            "Add" => {
                let duration = args
                    .get(0)
                    .downcast::<Named>()
                    .map_or(0, |named| named.number);
                Ok(Value::object(self.after(duration)))
            }
            "AddDate" => Ok(Value::object(self.add_date(
                args.int(0),
                args.int(1),
                args.int(2),
            ))),
            "After" => Ok((self.nanoseconds > other.nanoseconds).into()),
            "Before" => Ok((self.nanoseconds < other.nanoseconds).into()),
            "Equal" => Ok((self.nanoseconds == other.nanoseconds).into()),
            "Compare" => Ok(Value::int(self.nanoseconds.cmp(&other.nanoseconds) as i64)),
            "Sub" => {
                let difference = self.nanoseconds - other.nanoseconds;
                let limits = (i128::from(i64::MIN), i128::from(i64::MAX));
                Ok(Value::object(Named::duration(
                    difference.clamp(limits.0, limits.1) as i64,
                )))
            }
            _ => Err(FuncError::new(format!("no method {method}"))),
        }
    }

    fn print(&self, out: &mut String) {
        out.push_str(&self.to_go_string());
    }

    fn truth(&self) -> bool {
        true
    }
}

/// A number with a Go type of its own that prints as a name: a month, a weekday, a duration.
pub(crate) struct Named {
    type_name: &'static str,
    kind: IntKind,
    number: i64,
    printed: String,
}

impl Named {
    fn month(month: u32) -> Self {
        Self {
            type_name: "time.Month",
            kind: IntKind::Int,
            number: i64::from(month),
            printed: name(&MONTHS, month.saturating_sub(1)).to_owned(),
        }
    }

    fn weekday(weekday: u32) -> Self {
        Self {
            type_name: "time.Weekday",
            kind: IntKind::Int,
            number: i64::from(weekday),
            printed: name(&WEEKDAYS, weekday).to_owned(),
        }
    }

    fn duration(nanoseconds: i64) -> Self {
        Self {
            type_name: "time.Duration",
            kind: IntKind::Int64,
            number: nanoseconds,
            printed: print_duration(nanoseconds),
        }
    }

    /// What sprig's conversions make of it; they do not know durations.
    pub(crate) fn number(&self) -> i64 {
        match self.kind {
            IntKind::Int => self.number,
            _ => 0,
        }
    }
}

impl Object for Named {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
    }

    fn kind(&self) -> Kind {
        Value::Int(self.kind, self.number).kind()
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let known = match name {
            "String" => true,
            "Hours" | "Minutes" | "Seconds" | "Milliseconds" | "Microseconds" | "Nanoseconds" => {
                self.kind == IntKind::Int64
            }
            _ => false,
        };
        known.then_some(Signature::NONE)
    }

    fn call(&self, _: &mut Ctx<'_>, name: &str, _: Args<'_>) -> Answer {
        let seconds = self.number as f64 / 1e9;
        Ok(match name {
            "Hours" => Value::float(seconds / 3600.0),
            "Minutes" => Value::float(seconds / 60.0),
            "Seconds" => Value::float(seconds),
            "Milliseconds" => Value::int64(self.number / 1_000_000),
            "Microseconds" => Value::int64(self.number / 1_000),
            "Nanoseconds" => Value::int64(self.number),
            _ => self.printed.as_str().into(),
        })
    }

    fn print(&self, out: &mut String) {
        out.push_str(&self.printed);
    }

    fn data(&self) -> Option<Value> {
        Some(Value::Int(self.kind, self.number))
    }
}
