//! Arithmetic. Integers wrap as Go's do; the functions that end in `f` compute with decimals.

use crate::function::{Args, Ctx, FuncError};
use crate::functions::convert::{float_of, int_of};
use crate::functions::decimal::Decimal;
use crate::value::{ElementType, Value};

type Answer = Result<Value, FuncError>;

// === Integers ===

pub(super) fn add(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let sum = args.all().iter().map(int_of).fold(0, i64::wrapping_add);
    Ok(Value::int64(sum))
}

pub(super) fn add1(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::int64(int_of(args.get(0)).wrapping_add(1)))
}

pub(super) fn sub(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::int64(
        int_of(args.get(0)).wrapping_sub(int_of(args.get(1))),
    ))
}

pub(super) fn mul(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let product = args.all().iter().map(int_of).fold(1, i64::wrapping_mul);
    Ok(Value::int64(product))
}

pub(super) fn div(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    divided(args, i64::wrapping_div)
}

pub(super) fn modulo(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    divided(args, i64::wrapping_rem)
}

fn divided(args: Args<'_>, operation: fn(i64, i64) -> i64) -> Answer {
    match int_of(args.get(1)) {
        0 => Err(FuncError::new("runtime error: integer divide by zero")),
        divisor => Ok(Value::int64(operation(int_of(args.get(0)), divisor))),
    }
}

pub(super) fn max(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::int64(
        args.all().iter().map(int_of).max().unwrap_or(0),
    ))
}

pub(super) fn min(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::int64(
        args.all().iter().map(int_of).min().unwrap_or(0),
    ))
}

// === Floats ===

pub(super) fn maxf(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let greater = |left: f64, right: f64| match (left, right) {
        _ if left == f64::INFINITY || right == f64::INFINITY => f64::INFINITY,
        _ if left.is_nan() || right.is_nan() => f64::NAN,
        // Of the two zeros the positive one is greater.
        _ if left == right && left.is_sign_positive() => left,
        _ if left == right => right,
        _ => left.max(right),
    };
    Ok(reduced(args, greater))
}

pub(super) fn minf(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let smaller = |left: f64, right: f64| match (left, right) {
        _ if left == f64::NEG_INFINITY || right == f64::NEG_INFINITY => f64::NEG_INFINITY,
        _ if left.is_nan() || right.is_nan() => f64::NAN,
        _ if left == right && left.is_sign_negative() => left,
        _ if left == right => right,
        _ => left.min(right),
    };
    Ok(reduced(args, smaller))
}

fn reduced(args: Args<'_>, choose: impl Fn(f64, f64) -> f64) -> Value {
    Value::float(
        args.all()
            .iter()
            .map(float_of)
            .reduce(choose)
            .unwrap_or(0.0),
    )
}

pub(super) fn floor(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::float(float_of(args.get(0)).floor()))
}

pub(super) fn ceil(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::float(float_of(args.get(0)).ceil()))
}

/// Rounds up where the fraction reaches a half, or what the third argument says; negative numbers have negative
/// fractions, so they always go down.
pub(super) fn round(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let places = args.int(1).clamp(-400, 400) as i32;
    let limit = if args.len() > 2 { args.float(2) } else { 0.5 };
    let power = 10_f64.powi(places);
    let scaled = power * float_of(args.get(0));
    let rounded = if scaled.fract() >= limit {
        scaled.ceil()
    } else {
        scaled.floor()
    };
    Ok(Value::float(rounded / power))
}

// === Decimals ===

pub(super) fn add1f(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let one = Decimal::from_float(1.0)?;
    let sum = Decimal::from_float(float_of(args.get(0)))?.add(&one);
    Ok(Value::float(sum.to_float()))
}

pub(super) fn addf(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    decimal_fold(Decimal::from_float(0.0)?, args.all(), |left, right| {
        Ok(left.add(right))
    })
}

pub(super) fn subf(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    decimal_chain(args, |left, right| Ok(left.sub(right)))
}

pub(super) fn mulf(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    decimal_chain(args, |left, right| {
        ctx.step(left.len().saturating_mul(right.len()) as u64)?;
        Ok(left.mul(right))
    })
}

pub(super) fn divf(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    decimal_chain(args, |left, right| {
        left.div(right)
            .ok_or_else(|| FuncError::new("decimal division by 0"))
    })
}

fn decimal_chain(
    args: Args<'_>,
    operation: impl Fn(&Decimal, &Decimal) -> Result<Decimal, FuncError>,
) -> Answer {
    let first = Decimal::from_float(float_of(args.get(0)))?;
    decimal_fold(first, args.rest(1), operation)
}

fn decimal_fold(
    first: Decimal,
    rest: &[Value],
    operation: impl Fn(&Decimal, &Decimal) -> Result<Decimal, FuncError>,
) -> Answer {
    let mut result = first;
    for value in rest {
        result = operation(&result, &Decimal::from_float(float_of(value))?)?;
    }
    Ok(Value::float(result.to_float()))
}

// === Sequences ===

pub(super) fn until(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let stop = args.int(0);
    let step = if stop < 0 { -1 } else { 1 };
    Ok(int_list(numbers(ctx, 0, stop, step)?))
}

pub(super) fn until_step(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(int_list(numbers(
        ctx,
        args.int(0),
        args.int(1),
        args.int(2),
    )?))
}

fn int_list(numbers: Vec<i64>) -> Value {
    let items = numbers.into_iter().map(Value::int).collect();
    Value::typed_list(ElementType::Int, items)
}

/// Numbers from `start` up to but not including `stop`; none when the step leads away from it.
fn numbers(ctx: &Ctx<'_>, start: i64, stop: i64, step: i64) -> Result<Vec<i64>, FuncError> {
    let (distance, stride) = (i128::from(stop) - i128::from(start), i128::from(step));
    if stride == 0 || (stop < start) != (step < 0) {
        return Ok(Vec::new());
    }
    let count = (distance.abs() + stride.abs() - 1) / stride.abs();
    ctx.check_items(usize::try_from(count).unwrap_or(usize::MAX))?;
    let at = |index| (i128::from(start) + index * stride) as i64;
    Ok((0..count).map(at).collect())
}

/// Numbers like the shell's `seq`, as text: `seq 0` counts down from one.
pub(super) fn seq(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (start, step, end) = match args.len() {
        1 => (1, None, args.int(0)),
        2 => (args.int(0), None, args.int(1)),
        3 => (args.int(0), Some(args.int(1)), args.int(2)),
        _ => return Ok("".into()),
    };
    let direction = if end < start { -1 } else { 1 };
    if end < start && step.is_some_and(|step| step > 0) {
        return Ok("".into());
    }
    let stop = end.wrapping_add(direction);
    let numbers = numbers(ctx, start, stop, step.unwrap_or(direction))?;
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    Ok(texts.join(" ").into())
}
