//! The functions that rules may call: how many arguments each takes, and what a call may cost.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, Expr};
use kube_cel::cel::{Context, ExecutionError, IdedExpr, Value};

use crate::failure::Failure;
use crate::meter::{Meter, STEPS_PER_COPY};

/// What a call costs beyond a walk over its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    /// No more.
    Linear,
    /// Every part of one argument meets every part of the others.
    Product,
    /// As many items as a number says.
    Range,
    /// A text for each occurrence of another.
    Replace,
    /// A text between each two of a list.
    Join,
    /// Numbers with as many digits as the text says.
    Format,
    /// The exponent decides the size of what is computed.
    Quantity,
}

/// A function that rules may call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    cost: Cost,
}

/// Least and most arguments, with the value that a method is called on; the cost; the names.
const FUNCTIONS: [(usize, usize, Cost, &str); 15] = [
    (
        0,
        0,
        Cost::Linear,
        "format.byte format.date format.datetime format.dns1035Label format.dns1035LabelPrefix format.dns1123Label \
         format.dns1123LabelPrefix format.dns1123Subdomain format.dns1123SubdomainPrefix format.labelValue \
         format.qualifiedName format.uri format.uuid optional.none",
    ),
    (
        1,
        1,
        Cost::Linear,
        "asApproximateFloat asInteger base64.decode base64.encode bytes cidr double duration family first format.named \
         getDate getDayOfMonth getDayOfWeek getDayOfYear getEscapedPath getFullYear getHost getHostname getHours \
         getMilliseconds getMinutes getMonth getPort getQuery getScheme getSeconds hasValue int ip ip.isCanonical isCIDR \
         isCIDRv4 isCIDRv6 isGlobalUnicast isIP isIPv4 isIPv6 isInteger isLinkLocalMulticast isLinkLocalUnicast \
         isLoopback isSorted isURL isUnspecified jsonpatch.escapeKey last lowerAscii major masked math.abs math.bitNot \
         math.ceil math.floor math.isFinite math.isInf math.isNaN math.round math.sign math.sqrt math.trunc minor \
         optional.of optional.ofNonZeroValue patch prefixLength reverse sign sort string strings.quote sum timestamp \
         trim uint upperAscii url value",
    ),
    (1, 1, Cost::Quantity, "isQuantity quantity"),
    (1, 1, Cost::Product, "distinct"),
    (1, 1, Cost::Range, "lists.range"),
    (1, 2, Cost::Linear, "flatten isSemver semver"),
    (1, 2, Cost::Join, "join"),
    (1, 9, Cost::Linear, "math.greatest math.least max min"),
    (
        2,
        2,
        Cost::Linear,
        "add charAt compareTo containsCIDR containsIP endsWith isGreaterThan isLessThan math.bitAnd math.bitOr \
         math.bitShiftLeft math.bitShiftRight math.bitXor or orValue startsWith sub validate",
    ),
    (
        2,
        2,
        Cost::Product,
        "contains sets.contains sets.equivalent sets.intersects",
    ),
    (2, 2, Cost::Format, "format"),
    (2, 3, Cost::Linear, "split substring"),
    (2, 3, Cost::Product, "indexOf lastIndexOf"),
    (3, 3, Cost::Linear, "slice"),
    (3, 4, Cost::Replace, "replace"),
];

/// Returns the function of a name that takes so many arguments; `None` if rules cannot call it here.
pub(crate) fn named(name: &str, arguments: usize) -> Option<Function> {
    let is_meant = |(least, most, _, names): &&(usize, usize, Cost, &str)| {
        // The library takes for granted that each argument is there.
        (*least..=*most).contains(&arguments) && names.split(' ').any(|known| known == name)
    };
    let (_, _, cost, _) = FUNCTIONS.iter().find(is_meant)?;
    Some(Function { cost: *cost })
}

impl Function {
    /// Charges a call before it is made. The first argument is the value that a method is called on.
    pub(crate) fn charge(self, arguments: &[Value], meter: &mut Meter<'_>) -> Result<(), Failure> {
        for argument in arguments {
            meter.copies(argument)?;
        }
        match (self.cost, arguments) {
            (Cost::Product, [first]) => meter.items(extent(first).saturating_mul(extent(first))),
            (Cost::Product, [first, second, ..]) => {
                // Texts are searched in one pass; lists compare each item with each.
                let both = matches!(first, Value::List(_));
                let times = if both { extent(second).max(1) } else { 1 };
                meter.items(extent(first).saturating_mul(times))
            }
            (Cost::Range, [Value::Int(count)]) => {
                let count = u64::try_from(*count).unwrap_or_default();
                meter.step(count.saturating_mul(STEPS_PER_COPY))
            }
            (
                Cost::Replace,
                [
                    Value::String(text),
                    Value::String(from),
                    Value::String(to),
                    ..,
                ],
            ) => {
                let most = text.len().checked_div(from.len()).unwrap_or(text.len() + 1);
                meter.bytes(most.saturating_mul(to.len()))
            }
            (Cost::Join, [Value::List(list), Value::String(between)]) => {
                meter.bytes(list.len().saturating_mul(between.len()))
            }
            (Cost::Format, [Value::String(text), ..]) if has_long_number(text) => {
                let why = "it formats a number with more than 999 digits";
                Err(Failure::Unsupported(why.to_owned()))
            }
            (Cost::Quantity, [Value::String(text)]) if !is_small_quantity(text) => {
                let why = "a quantity has too many digits";
                Err(Failure::Undefined(why.to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// Items of a list, or what stands for them.
fn extent(value: &Value) -> usize {
    match value {
        Value::List(list) => list.len(),
        Value::Map(map) => map.map.len(),
        _ => 1,
    }
}

fn has_long_number(text: &str) -> bool {
    let digits = text.split(|c: char| !c.is_ascii_digit()).map(str::len);
    digits.max().unwrap_or(0) > 3
}

/// Whether a quantity's digits and exponent fit the numbers that it is computed with.
fn is_small_quantity(text: &str) -> bool {
    let exponent = text.rsplit(['e', 'E']).next().unwrap_or_default();
    let exponent = exponent.trim_start_matches(['+', '-']);
    let is_exponent = text.contains(['e', 'E']) && !exponent.is_empty();
    text.len() <= 24 && !(is_exponent && exponent.len() > 1)
}

thread_local! {
    static LIBRARY: Context<'static> = Context::default().with_all();
}

/// Names for arguments that no rule can spell.
const NAMES: [&str; 10] = ["@0", "@1", "@2", "@3", "@4", "@5", "@6", "@7", "@8", "@9"];

/// Calls a function whose call was charged.
pub(crate) fn call(
    name: &str,
    target: Option<Value>,
    arguments: Vec<Value>,
) -> Result<Value, Failure> {
    let ident = |name: &str| IdedExpr {
        id: 0,
        expr: Expr::Ident(name.to_owned()),
    };
    let count = arguments.len();
    let call = IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: target.is_some().then(|| Box::new(ident("@this"))),
            args: NAMES.iter().take(count).map(|name| ident(name)).collect(),
        }),
    };
    let answer = LIBRARY.with(|library| {
        let mut scope = library.new_inner_scope();
        if let Some(target) = target {
            scope.add_variable_from_value("@this", target);
        }
        for (name, argument) in NAMES.iter().zip(arguments) {
            scope.add_variable_from_value(*name, argument);
        }
        // The library's arithmetic is not checked everywhere.
        catch_unwind(AssertUnwindSafe(|| Value::resolve(&call, &scope)))
    });
    match answer {
        Ok(answer) => answer.map_err(|error| explained(&error, name)),
        Err(_) => Err(Failure::Undefined(format!("`{name}` has no result"))),
    }
}

/// An error of the library without the values that it shows.
pub(crate) fn explained(error: &ExecutionError, what: &str) -> Failure {
    match error {
        ExecutionError::UndeclaredReference(_) => {
            Failure::Unsupported(format!("`{what}` is not known here"))
        }
        ExecutionError::NoSuchKey(key) => Failure::Undefined(format!("there is no key `{key}`")),
        _ => Failure::Undefined(format!("`{what}` has no result for these values")),
    }
}
