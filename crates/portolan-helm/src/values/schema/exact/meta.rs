//! Metaschemas: a document must be valid against one of them before it is read as a schema.
//!
//! The files are unchanged copies of those of json-schema.org.

use std::sync::LazyLock;

use portolan_budget::Budget;

use super::super::document::read;
use super::super::elsewhere::Elsewhere;
use super::compile::{Formats, Schema};
use super::document::Document;
use super::draft::Draft;
use super::failure::{lines, quoted};
use crate::values::strvals::from_json;

/// Schemas by address, without scheme and host.
const TEXTS: &[(&str, &str)] = &[
    ("draft-04/schema", include_str!("meta/draft-04.json")),
    ("draft-06/schema", include_str!("meta/draft-06.json")),
    ("draft-07/schema", include_str!("meta/draft-07.json")),
    ("draft/2019-09/schema", include_str!("meta/2019-09.json")),
    (
        "draft/2019-09/meta/applicator",
        include_str!("meta/2019-09-applicator.json"),
    ),
    (
        "draft/2019-09/meta/content",
        include_str!("meta/2019-09-content.json"),
    ),
    (
        "draft/2019-09/meta/core",
        include_str!("meta/2019-09-core.json"),
    ),
    (
        "draft/2019-09/meta/format",
        include_str!("meta/2019-09-format.json"),
    ),
    (
        "draft/2019-09/meta/meta-data",
        include_str!("meta/2019-09-meta-data.json"),
    ),
    (
        "draft/2019-09/meta/validation",
        include_str!("meta/2019-09-validation.json"),
    ),
    ("draft/2020-12/schema", include_str!("meta/2020-12.json")),
    (
        "draft/2020-12/meta/applicator",
        include_str!("meta/2020-12-applicator.json"),
    ),
    (
        "draft/2020-12/meta/content",
        include_str!("meta/2020-12-content.json"),
    ),
    (
        "draft/2020-12/meta/core",
        include_str!("meta/2020-12-core.json"),
    ),
    (
        "draft/2020-12/meta/format-annotation",
        include_str!("meta/2020-12-format-annotation.json"),
    ),
    (
        "draft/2020-12/meta/format-assertion",
        include_str!("meta/2020-12-format-assertion.json"),
    ),
    (
        "draft/2020-12/meta/meta-data",
        include_str!("meta/2020-12-meta-data.json"),
    ),
    (
        "draft/2020-12/meta/unevaluated",
        include_str!("meta/2020-12-unevaluated.json"),
    ),
    (
        "draft/2020-12/meta/validation",
        include_str!("meta/2020-12-validation.json"),
    ),
];

/// The text of a schema that everybody has.
pub(super) fn text(url: &str) -> Option<&'static str> {
    let path = url
        .strip_prefix("http://json-schema.org/")
        .or_else(|| url.strip_prefix("https://json-schema.org/"))?;
    let path = match path {
        "schema" => "draft/2020-12/schema",
        path => path,
    };
    let found = TEXTS.iter().find(|(known, _)| *known == path)?;
    Some(found.1)
}

/// Checks that a document is a schema of the draft it says it is of.
pub(super) fn check(document: &Document<'_>) -> Result<(), String> {
    let draft = document
        .resource("")
        .map_or(Draft::LATEST, |root| root.draft);
    let schema = schema_of(draft).as_ref().map_err(Clone::clone)?;
    let value = from_json(&document.json.to_value()).thaw();
    let failures = schema
        .check(&value, &Budget::default())
        .map_err(|exceeded| exceeded.to_string())?;
    if failures.is_empty() {
        return Ok(());
    }
    let (url, meta) = (&document.url, quoted(&format!("{}#", draft.meta_url())));
    Err(format!(
        "\"{url}#\" is not valid against metaschema: jsonschema validation failed with {meta}{}",
        lines(&failures)
    ))
}

fn schema_of(draft: Draft) -> &'static Result<Schema, String> {
    type Compiled = LazyLock<Result<Schema, String>>;
    static FOUR: Compiled = LazyLock::new(|| compile(Draft::Four));
    static SIX: Compiled = LazyLock::new(|| compile(Draft::Six));
    static SEVEN: Compiled = LazyLock::new(|| compile(Draft::Seven));
    static OF_2019: Compiled = LazyLock::new(|| compile(Draft::Of2019));
    static OF_2020: Compiled = LazyLock::new(|| compile(Draft::Of2020));
    match draft {
        Draft::Four => &FOUR,
        Draft::Six => &SIX,
        Draft::Seven => &SEVEN,
        Draft::Of2019 => &OF_2019,
        Draft::Of2020 => &OF_2020,
    }
}

fn compile(draft: Draft) -> Result<Schema, String> {
    let url = draft.meta_url();
    let text = text(url).unwrap_or("true");
    let document = Document::new(url, read(text.as_bytes())?)?;
    Schema::of(document, Formats::Always, &Elsewhere::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_of_schemas_can_be_used() {
        for draft in [
            Draft::Four,
            Draft::Six,
            Draft::Seven,
            Draft::Of2019,
            Draft::Of2020,
        ] {
            let schema = schema_of(draft).as_ref().unwrap();
            let own = read(text(draft.meta_url()).unwrap().as_bytes()).unwrap();
            let value = from_json(&own.to_value()).thaw();
            let failures = schema.check(&value, &Budget::default()).unwrap();
            assert_eq!(lines(&failures), "", "{draft:?}");
        }
    }
}
