//! `--limit NAME=VALUE`: how much work one render may do, and the clock that measures its time.

use std::str::FromStr;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use portolan_budget::{Budget, Limits, Stop};

/// The option, for commands that render.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct LimitArgs {
    /// Limit on what one render may use: `steps=N`, `memory=BYTES`, `depth=N` or `time=SECONDS`; may be repeated
    ///
    /// A template or schema that needs more fails with an error that names the limit. The defaults are a hundred times
    /// what the largest public charts need. Bytes may end in `Ki`, `Mi` or `Gi`.
    #[arg(long = "limit", value_name = "NAME=VALUE", help_heading = "Limits")]
    limits: Vec<Limit>,
}

/// One limit and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Steps(u64),
    Memory(u64),
    Depth(u32),
    Time(Duration),
}

impl LimitArgs {
    /// A budget whose time begins now.
    pub(crate) fn budget(&self) -> Budget {
        Budget::timed(self.limits(), Stop::default(), clock)
    }

    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for limit in &self.limits {
            match *limit {
                Limit::Steps(steps) => limits.steps = steps,
                Limit::Memory(bytes) => limits.bytes = bytes,
                Limit::Depth(depth) => limits.depth = depth,
                Limit::Time(time) => limits.time = time,
            }
        }
        limits
    }
}

fn clock() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, value)) = text.split_once('=') else {
            return Err("write NAME=VALUE, such as steps=1000000".to_owned());
        };
        let number = |value: &str| match value.parse::<u64>() {
            Ok(0) | Err(_) => Err(format!("`{value}` is not a number above 0")),
            Ok(number) => Ok(number),
        };
        match name {
            "steps" => number(value).map(Self::Steps),
            "memory" => bytes(value).map(Self::Memory),
            "depth" => {
                let depth = number(value)?;
                let depth = u32::try_from(depth).map_err(|_| format!("{depth} is too deep"))?;
                Ok(Self::Depth(depth))
            }
            "time" => number(value).map(|seconds| Self::Time(Duration::from_secs(seconds))),
            _ => Err(format!(
                "`{name}` is none of the limits steps, memory, depth and time"
            )),
        }
    }
}

/// A number of bytes, with or without a unit.
fn bytes(text: &str) -> Result<u64, String> {
    let units = [("Ki", 10), ("Mi", 20), ("Gi", 30)];
    let unit = units
        .into_iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    let number: Option<u64> = digits.parse().ok().filter(|number| *number > 0);
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| format!("`{text}` is not a number of bytes above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_names_and_units() {
        let read = |text: &str| text.parse::<Limit>();
        assert_eq!(read("steps=5"), Ok(Limit::Steps(5)));
        assert_eq!(read("memory=2Gi"), Ok(Limit::Memory(2 << 30)));
        assert_eq!(read("memory=64"), Ok(Limit::Memory(64)));
        assert_eq!(read("time=9"), Ok(Limit::Time(Duration::from_secs(9))));
        for wrong in [
            "steps",
            "steps=",
            "steps=0",
            "memory=1Ti",
            "depth=5000000000",
            "size=1",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
