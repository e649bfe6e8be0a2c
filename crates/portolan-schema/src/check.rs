//! What a CRD requires of a value beyond its type.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use portolan_object::canonical_json;
use portolan_yaml::Node;

use crate::pattern::Pattern;
use crate::schema::Schema;

/// One keyword of JSON schema.
#[derive(Debug, Clone)]
pub(crate) enum Check {
    Enum(Vec<Node>),
    Pattern(Pattern),
    Format(Format),
    MinLength(usize),
    MaxLength(usize),
    MinItems(usize),
    MaxItems(usize),
    MinProperties(usize),
    MaxProperties(usize),
    Minimum(Bound),
    Maximum(Bound),
    MultipleOf(f64),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Box<Schema>),
}

/// One end of a range of numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) limit: f64,
    pub(crate) exclusive: bool,
}

/// The formats of text that an API server checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Ipv4,
    Ipv6,
    Cidr,
    Uuid,
    Date,
}

impl Check {
    /// Returns the steps that a look at a value takes, without those of the alternatives inside.
    pub(crate) fn steps(&self, node: &Node) -> usize {
        let text = node.as_str().map_or(0, str::len);
        match self {
            // Both values are spelled out.
            Self::Enum(allowed) => 4 * allowed.len(),
            Self::Pattern(_) => 1 + text,
            _ => 1 + text / 64,
        }
    }

    /// What the value must be, when it is not; combinations are judged by whoever can walk a tree.
    pub(crate) fn broken_by(&self, node: &Node) -> Option<String> {
        match self {
            Self::Enum(allowed) => (!allowed.iter().any(|value| same(value, node)))
                .then(|| format!("must be one of {}", listed(allowed))),
            Self::Pattern(_) | Self::Format(_) | Self::MinLength(_) | Self::MaxLength(_) => {
                self.broken_by_text(node.as_str()?)
            }
            Self::Minimum(_) | Self::Maximum(_) | Self::MultipleOf(_) => {
                self.broken_by_number(node.number()?.as_f64())
            }
            Self::MinItems(_) | Self::MaxItems(_) => {
                self.broken_by_count(node.as_list()?.len(), "items")
            }
            Self::MinProperties(_) | Self::MaxProperties(_) => {
                self.broken_by_count(node.as_map()?.len(), "entries")
            }
            Self::AllOf(_) | Self::AnyOf(_) | Self::OneOf(_) | Self::Not(_) => None,
        }
    }

    fn broken_by_text(&self, text: &str) -> Option<String> {
        match self {
            Self::Pattern(pattern) => {
                (!pattern.matches(text)).then(|| format!("must match `{pattern}`"))
            }
            Self::Format(format) => {
                (!format.fits(text)).then(|| format!("must be {}", format.described()))
            }
            Self::MinLength(least) => (text.chars().count() < *least)
                .then(|| format!("must have at least {least} characters")),
            Self::MaxLength(most) => (text.chars().count() > *most)
                .then(|| format!("must have at most {most} characters")),
            _ => None,
        }
    }

    fn broken_by_number(&self, number: f64) -> Option<String> {
        match self {
            Self::Minimum(Bound {
                limit,
                exclusive: true,
            }) => (number <= *limit).then(|| format!("must be greater than {limit}")),
            Self::Minimum(Bound { limit, .. }) => {
                (number < *limit).then(|| format!("must be at least {limit}"))
            }
            Self::Maximum(Bound {
                limit,
                exclusive: true,
            }) => (number >= *limit).then(|| format!("must be less than {limit}")),
            Self::Maximum(Bound { limit, .. }) => {
                (number > *limit).then(|| format!("must be at most {limit}"))
            }
            Self::MultipleOf(factor) => {
                let times = number / factor;
                ((times - times.round()).abs() > 1e-9)
                    .then(|| format!("must be a multiple of {factor}"))
            }
            _ => None,
        }
    }

    fn broken_by_count(&self, count: usize, what: &str) -> Option<String> {
        match self {
            Self::MinItems(least) | Self::MinProperties(least) => {
                (count < *least).then(|| format!("must have at least {least} {what}"))
            }
            Self::MaxItems(most) | Self::MaxProperties(most) => {
                (count > *most).then(|| format!("must have at most {most} {what}"))
            }
            _ => None,
        }
    }
}

impl Format {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "uuid" => Self::Uuid,
            "date" => Self::Date,
            _ => return None,
        })
    }

    fn described(self) -> &'static str {
        match self {
            Self::Ipv4 => "an IPv4 address",
            Self::Ipv6 => "an IPv6 address",
            Self::Cidr => "an address range like `10.0.0.0/8`",
            Self::Uuid => "a UUID",
            Self::Date => "a date like `2026-01-31`",
        }
    }

    fn fits(self, text: &str) -> bool {
        match self {
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Cidr => is_cidr(text),
            Self::Uuid => {
                let digits = text.chars().filter(|c| *c != '-');
                digits.clone().count() == 32 && digits.clone().all(|c| c.is_ascii_hexdigit())
            }
            Self::Date => is_date(text),
        }
    }
}

/// The first two equal values of a list that may have none.
pub(crate) fn repeated<'a>(keys: impl Iterator<Item = Option<Vec<&'a Node>>>) -> Option<usize> {
    let mut seen = HashSet::new();
    for (index, key) in keys.enumerate() {
        let Some(key) = key else { continue };
        let text: Vec<String> = key.into_iter().map(spelled).collect();
        if !seen.insert(text) {
            return Some(index);
        }
    }
    None
}

fn same(one: &Node, other: &Node) -> bool {
    spelled(one) == spelled(other)
}

/// One spelling for equal values; what has none (a NaN) equals only its like.
fn spelled(node: &Node) -> String {
    canonical_json(node).unwrap_or_default()
}

/// What an enumeration allows; it comes from the definition, so it holds no secret.
fn listed(allowed: &[Node]) -> String {
    let texts: Vec<String> = allowed.iter().map(spelled).collect();
    texts.join(", ")
}

/// Whether a text is a range of addresses like `10.0.0.0/8`.
pub fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    let number =
        |text: &str, digits: usize| (text.len() == digits).then(|| text.parse::<u32>().ok())?;
    number(year, 4).is_some()
        && number(month, 2).is_some_and(|month| (1..=12).contains(&month))
        && number(day, 2).is_some_and(|day| (1..=31).contains(&day))
}
