//! The drafts of JSON schema: the name of each, and which keywords contain subschemas.

/// A draft; later ones compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    Four,
    Six,
    Seven,
    Of2019,
    Of2020,
}

/// What of a keyword's value is a schema.
#[derive(Debug, Clone, Copy)]
pub(super) enum Within {
    Itself,
    Properties,
    Items,
}

/// Keywords that hold schemas, each with the draft that brought it.
const SUBSCHEMAS: &[(Draft, &str, Within)] = &[
    (Draft::Four, "definitions", Within::Properties),
    (Draft::Four, "not", Within::Itself),
    (Draft::Four, "allOf", Within::Items),
    (Draft::Four, "anyOf", Within::Items),
    (Draft::Four, "oneOf", Within::Items),
    (Draft::Four, "properties", Within::Properties),
    (Draft::Four, "additionalProperties", Within::Itself),
    (Draft::Four, "patternProperties", Within::Properties),
    (Draft::Four, "items", Within::Itself),
    (Draft::Four, "items", Within::Items),
    (Draft::Four, "additionalItems", Within::Itself),
    (Draft::Four, "dependencies", Within::Properties),
    (Draft::Six, "propertyNames", Within::Itself),
    (Draft::Six, "contains", Within::Itself),
    (Draft::Seven, "if", Within::Itself),
    (Draft::Seven, "then", Within::Itself),
    (Draft::Seven, "else", Within::Itself),
    (Draft::Of2019, "$defs", Within::Properties),
    (Draft::Of2019, "dependentSchemas", Within::Properties),
    (Draft::Of2019, "unevaluatedProperties", Within::Itself),
    (Draft::Of2019, "unevaluatedItems", Within::Itself),
    (Draft::Of2019, "contentSchema", Within::Itself),
    (Draft::Of2020, "prefixItems", Within::Items),
];

impl Draft {
    /// What a schema without `$schema` is read as.
    pub(super) const LATEST: Self = Self::Of2020;

    /// The draft that an address names.
    pub(super) fn of_url(url: &str) -> Option<Self> {
        let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
        let path = url
            .strip_prefix("http://")
            .or_else(|| url.strip_prefix("https://"))
            .unwrap_or(url);
        Some(match path {
            _ if !fragment.is_empty() => return None,
            "json-schema.org/schema" => Self::LATEST,
            "json-schema.org/draft/2020-12/schema" => Self::Of2020,
            "json-schema.org/draft/2019-09/schema" => Self::Of2019,
            "json-schema.org/draft-07/schema" => Self::Seven,
            "json-schema.org/draft-06/schema" => Self::Six,
            "json-schema.org/draft-04/schema" => Self::Four,
            _ => return None,
        })
    }

    /// The address of the schema that its schemas must fit.
    pub(super) fn meta_url(self) -> &'static str {
        match self {
            Self::Four => "http://json-schema.org/draft-04/schema",
            Self::Six => "http://json-schema.org/draft-06/schema",
            Self::Seven => "http://json-schema.org/draft-07/schema",
            Self::Of2019 => "https://json-schema.org/draft/2019-09/schema",
            Self::Of2020 => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    /// The keyword that names a schema.
    pub(super) fn id_keyword(self) -> &'static str {
        if self == Self::Four { "id" } else { "$id" }
    }

    /// Whether `$ref` hides everything beside it.
    pub(super) fn reference_stands_alone(self) -> bool {
        self < Self::Of2019
    }

    /// The keywords that hold schemas.
    pub(super) fn subschemas(self) -> impl Iterator<Item = (&'static str, Within)> {
        let known = SUBSCHEMAS.iter().filter(move |(since, ..)| *since <= self);
        known.map(|(_, keyword, within)| (*keyword, *within))
    }
}
