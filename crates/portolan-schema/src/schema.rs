//! What a value must look like: the common form of Kubernetes' own types and of CRDs.

use std::borrow::Cow;

use crate::check::Check;

/// A value's type and what else must hold for it.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    pub(crate) shape: Shape,
    /// Beyond the type; none for Kubernetes' own types, whose documents have none.
    pub(crate) checks: Vec<Check>,
    /// The server fills in a value when none is given, so a missing one is never missed.
    pub(crate) has_default: bool,
}

/// The types.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// Anything.
    Any,
    /// A single value.
    Scalar(Scalar),
    /// A list.
    List { item: Box<Schema>, unique: Unique },
    /// A map with free keys.
    Map(Box<Schema>),
    /// A map with known keys.
    Record(Record),
    /// A type of the Kubernetes table, by its number there.
    Named(usize),
}

/// The types of single values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Bool,
    Int32,
    Int64,
    Number,
    Bytes,
    Time,
    Quantity,
    IntOrString,
}

/// Which items of a list may not stand in it twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unique {
    /// All may.
    No,
    /// Equal values may not.
    Values,
    /// Items that agree in these fields may not.
    Keys(Vec<String>),
}

/// Known keys, sorted by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    pub(crate) fields: Vec<Field>,
    /// Required names that need not be among the fields.
    pub(crate) required: Vec<String>,
    /// Unknown keys are kept, not refused.
    pub(crate) open: bool,
}

/// A known key.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: Cow<'static, str>,
    pub(crate) required: bool,
    pub(crate) schema: Schema,
}

impl Schema {
    pub(crate) fn of(shape: Shape) -> Self {
        Self {
            shape,
            checks: Vec::new(),
            has_default: false,
        }
    }
}

impl Record {
    pub(crate) fn new(mut fields: Vec<Field>) -> Self {
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            fields,
            ..Self::default()
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let found = self
            .fields
            .binary_search_by(|field| (*field.name).cmp(name));
        found.ok().and_then(|index| self.fields.get(index))
    }

    /// The field whose name is nearest to a mistyped one.
    pub(crate) fn similar(&self, name: &str) -> Option<String> {
        /// Jaro-Winkler similarity from which on a name is worth offering.
        const ALIKE: f64 = 0.85;
        let alike =
            |field: &Field| strsim::jaro_winkler(&field.name.to_lowercase(), &name.to_lowercase());
        let best = self
            .fields
            .iter()
            .max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
        (alike(best) >= ALIKE).then(|| best.name.to_string())
    }
}

impl Scalar {
    /// The type in a message.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::String => "text",
            Self::Bool => "`true` or `false`",
            Self::Int32 | Self::Int64 => "a whole number",
            Self::Number => "a number",
            Self::Bytes => "text in base64",
            Self::Time => "a time like `2026-01-31T12:00:00Z`",
            Self::Quantity => "a quantity like `500m` or `1Gi`",
            Self::IntOrString => "a whole number or text",
        }
    }
}
