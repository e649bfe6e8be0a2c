//! The types of values, as far as they are known before an expression is evaluated.

use std::collections::BTreeMap;
use std::fmt;

/// What is known about a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// Nothing: everything is allowed.
    Any,
    /// The null value.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A number with a fraction.
    Number,
    /// A text.
    Text,
    /// A length of time.
    Duration,
    /// A list of such items.
    List(Box<Self>),
    /// A map of free keys to such values.
    Map(Box<Self>),
    /// A map whose keys are all known.
    Record(Record),
}

/// The fields of a map whose keys are all known.
pub type Record = BTreeMap<String, Type>;

impl Type {
    /// A list of such items.
    pub fn list(item: Self) -> Self {
        Self::List(Box::new(item))
    }

    /// A map of free keys to such values.
    pub fn map(value: Self) -> Self {
        Self::Map(Box::new(value))
    }

    /// A record of these fields.
    pub fn record<'a>(fields: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        let fields = fields.into_iter();
        Self::Record(fields.map(|(name, kind)| (name.to_owned(), kind)).collect())
    }

    /// Whether a value of one type can be equal to a value of the other.
    pub fn meets(&self, other: &Self) -> bool {
        let is_number = |kind: &Self| matches!(kind, Self::Integer | Self::Number);
        match (self, other) {
            // A key that may be absent is compared with null.
            (Self::Any | Self::Null, _)
            | (_, Self::Any | Self::Null)
            | (Self::Map(_), Self::Record(_))
            | (Self::Record(_), Self::Map(_) | Self::Record(_)) => true,
            (Self::List(one), Self::List(other)) | (Self::Map(one), Self::Map(other)) => {
                one.meets(other)
            }
            (one, other) => one == other || (is_number(one) && is_number(other)),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Any => "any value",
            Self::Null => "null",
            Self::Boolean => "true or false",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::Duration => "a duration",
            Self::List(_) => "a list",
            Self::Map(_) | Self::Record(_) => "a map",
        })
    }
}
