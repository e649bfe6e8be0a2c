//! Dates and durations as sprig offers them.

use portolan_go::strconv::parse_int;
use portolan_go::time::{SECOND, Time, Zone, parse_duration, print_duration};

use crate::function::{Args, Ctx, FuncError};
use crate::value::{IntKind, Value};

type Answer = Result<Value, FuncError>;

pub(super) fn now(ctx: &mut Ctx<'_>, _: Args<'_>) -> Answer {
    Ok(Value::object(present(ctx)))
}

fn present(ctx: &Ctx<'_>) -> Time {
    Time {
        nanoseconds: ctx.host.now(),
        zone: Zone::Utc,
    }
}

/// A time, or an integer as seconds since 1970; anything else is now.
fn time_of(ctx: &Ctx<'_>, value: &Value) -> Time {
    match value {
        Value::Int(_, seconds) => Time {
            nanoseconds: i128::from(*seconds) * SECOND,
            zone: Zone::Utc,
        },
        _ => match value.downcast::<Time>() {
            Some(time) => time.clone(),
            None => present(ctx),
        },
    }
}

fn formatted(ctx: &Ctx<'_>, layout: &str, date: &Value, zone: &str) -> Answer {
    let zone = Zone::named(zone).unwrap_or(Zone::Utc);
    Ok(time_of(ctx, date).in_zone(zone).format(layout).into())
}

pub(super) fn date(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    formatted(ctx, &args.str(0), args.get(1), "UTC")
}

pub(super) fn date_in_zone(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    formatted(ctx, &args.str(0), args.get(1), &args.str(2))
}

pub(super) fn html_date(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    formatted(ctx, "2006-01-02", args.get(0), "UTC")
}

pub(super) fn html_date_in_zone(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    formatted(ctx, "2006-01-02", args.get(0), &args.str(1))
}

pub(super) fn date_modify(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let Some(time) = args.get(1).downcast::<Time>() else {
        return Ok(args.get(1).clone());
    };
    Ok(match parse_duration(&args.str(0)) {
        Ok(duration) => Value::object(time.after(duration)),
        Err(_) => args.get(1).clone(),
    })
}

pub(super) fn must_date_modify(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let duration = parse_duration(&args.str(0)).map_err(FuncError::new)?;
    let time = args.get(1).downcast::<Time>().unwrap_or(&Time::ZERO);
    Ok(Value::object(time.after(duration)))
}

pub(super) fn to_date(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let time = Time::parse(&args.str(0), &args.str(1));
    Ok(Value::object(time.unwrap_or(Time::ZERO)))
}

pub(super) fn must_to_date(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let time = Time::parse(&args.str(0), &args.str(1));
    Ok(Value::object(time.map_err(FuncError::new)?))
}

pub(super) fn unix_epoch(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let time = args.get(0).downcast::<Time>().unwrap_or(&Time::ZERO);
    Ok(time.unix().to_string().into())
}

/// How long ago something was, in whole seconds.
pub(super) fn ago(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let time = match args.get(0) {
        // An `int32` is not looked at here.
        Value::Int(IntKind::Int32, _) => present(ctx),
        value => time_of(ctx, value),
    };
    let elapsed = ctx.host.now() - time.nanoseconds;
    let half = if elapsed < 0 { -SECOND / 2 } else { SECOND / 2 };
    let seconds = (elapsed + half) / SECOND * SECOND;
    Ok(print_duration(bounded(seconds)).into())
}

fn bounded(nanoseconds: i128) -> i64 {
    nanoseconds.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

/// Seconds as a duration, of a string or an `int64` only.
pub(super) fn duration(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let seconds = match args.get(0) {
        Value::Str(text) => parse_int(text, 10).unwrap_or(0),
        Value::Int(IntKind::Int64, seconds) => *seconds,
        _ => 0,
    };
    Ok(print_duration(seconds.wrapping_mul(1_000_000_000)).into())
}

/// The largest unit of a duration that it exceeds.
pub(super) fn duration_round(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let nanoseconds = match args.get(0) {
        Value::Str(text) => parse_duration(text).unwrap_or(0),
        Value::Int(IntKind::Int64, nanoseconds) => *nanoseconds,
        value => match value.downcast::<Time>() {
            Some(time) => bounded(ctx.host.now() - time.nanoseconds),
            None => 0,
        },
    };
    const HOUR: u64 = 3_600_000_000_000;
    let units = [
        ("y", HOUR * 24 * 365),
        ("mo", HOUR * 24 * 30),
        ("d", HOUR * 24),
        ("h", HOUR),
        ("m", HOUR / 60),
        ("s", HOUR / 3600),
    ];
    let size = nanoseconds.unsigned_abs();
    let unit = units.into_iter().find(|(_, length)| size > *length);
    Ok(unit
        .map_or("0s".to_owned(), |(name, length)| {
            format!("{}{name}", size / length)
        })
        .into())
}
