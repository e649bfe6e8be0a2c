//! Remote schemas: how they are fetched, and those that were fetched for one `values.schema.json`.
//!
//! The compiler asks for a text by its address. If the text is not there, the compiler stops, the text is fetched and
//! the compiler starts again, until nothing is missing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;

/// Brings schemas that `values.schema.json` refers to by an address.
pub trait SchemaSource: Send + Sync {
    /// The schema's text, or why there is none.
    fn fetch(&self, url: &str) -> Result<Vec<u8>, SchemaFetchError>;
}

/// Why a schema could not be brought.
pub type SchemaFetchError = Box<dyn Error + Send + Sync>;

/// How many schemas one chart may refer to.
pub const MAX_FETCHED_SCHEMAS: usize = 100;

/// The texts at hand.
#[derive(Default)]
pub(crate) struct Elsewhere {
    texts: BTreeMap<String, Vec<u8>>,
    missing: RefCell<Option<String>>,
}

impl Elsewhere {
    /// A text; that it was asked for in vain is remembered.
    pub(crate) fn text(&self, url: &str) -> Option<&[u8]> {
        let found = self.texts.get(url);
        if found.is_none() {
            self.missing.replace(Some(url.to_owned()));
        }
        found.map(Vec::as_slice)
    }

    /// All texts by address.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.texts
            .iter()
            .map(|(url, text)| (url.as_str(), text.as_slice()))
    }
}

/// Compiles, and brings what is missing.
pub(crate) fn compile_with<T>(
    source: Option<&dyn SchemaSource>,
    compile: impl Fn(&Elsewhere) -> Result<T, String>,
) -> Result<T, String> {
    let mut elsewhere = Elsewhere::default();
    loop {
        let compiled = compile(&elsewhere);
        let missing = elsewhere.missing.take();
        let (Err(_), Some(url), Some(source)) = (&compiled, missing, source) else {
            return compiled;
        };
        if elsewhere.texts.len() >= MAX_FETCHED_SCHEMAS {
            return Err(format!("more than {MAX_FETCHED_SCHEMAS} schemas elsewhere"));
        }
        let text = source.fetch(&url).map_err(|error| with_causes(&*error))?;
        elsewhere.texts.insert(url, text);
    }
}

/// An error and what led to it, as one text.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use portolan_budget::Budget;

    use super::super::{exact, loose};
    use super::*;
    use crate::package::{ChartFile, Package};
    use crate::profile::Profile;
    use crate::values::Tree;

    /// A server that has two schemas, of which one refers to the other.
    struct Shelf;

    impl SchemaSource for Shelf {
        fn fetch(&self, url: &str) -> Result<Vec<u8>, SchemaFetchError> {
            let text = match url {
                "https://example.com/common/values.schema.json" => {
                    r#"{"properties": {"port": {"$ref": "parts/port.json#/whole"}}}"#
                }
                "https://example.com/common/parts/port.json" => {
                    r##"{"whole": {"$ref": "#/low"}, "low": {"type": "integer", "maximum": 9}}"##
                }
                _ => return Err(format!("Get \"{url}\": 404").into()),
            };
            Ok(text.as_bytes().to_vec())
        }
    }

    /// Helm 3's and Helm 4's answers, which were compared with theirs on a local server.
    fn answers(schema: &str, values: &str) -> [String; 2] {
        let values = Tree::read_table(values.as_bytes()).unwrap().thaw();
        let loose = loose::Schema::compile(schema.as_bytes(), Some(&Shelf))
            .map(|schema| schema.messages(&values, &Budget::default()).unwrap())
            .map(Option::unwrap_or_default);
        let exact = exact::Schema::compile(schema.as_bytes(), Some(&Shelf))
            .map(|schema| schema.messages(&values, &Budget::default()).unwrap())
            .map(Option::unwrap_or_default);
        [loose, exact].map(|answer| answer.unwrap_or_else(|refusal| refusal))
    }

    #[test]
    fn schemas_that_refer_to_each_other_are_brought() {
        let schema = r#"{"$ref": "https://example.com/common/values.schema.json"}"#;
        assert_eq!(answers(schema, "{port: 8}"), ["", ""]);
        let [loose, exact] = answers(schema, "{port: 80}");
        assert_eq!(loose, "- port: Must be less than or equal to 9\n");
        assert_eq!(exact, "- at '/port': maximum: got 80, want 9\n");
    }

    #[test]
    fn a_relative_reference_starts_at_the_name_of_its_document() {
        let schema = r#"{"$id": "https://example.com/common/mine.json", "properties": {"a": {"$ref": "parts/port.json#/low"}}}"#;
        assert_eq!(answers(schema, "{a: 8}"), ["", ""]);
        assert!(
            answers(schema, "{a: 80}")
                .iter()
                .all(|answer| !answer.is_empty())
        );
    }

    #[test]
    fn what_nobody_brought_is_asked_for_again() {
        let file = |name: &str, text: &str| ChartFile::new(name.to_owned(), text.as_bytes());
        let schema = r#"{"$ref": "https://example.com/common/values.schema.json"}"#;
        let package = Package::from_files(vec![
            file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            file("values.schema.json", schema),
        ]);
        let package = package.unwrap();
        let values = Tree::read_table(b"{port: 8}").unwrap().thaw();
        for profile in [Profile::Helm3, Profile::Helm4] {
            let budget = Budget::default();
            let messages = |source| package.schema_messages(&values, profile, source, &budget);
            assert!(messages(None).unwrap().is_some());
            assert_eq!(messages(Some(&Shelf)), Ok(None));
            assert_eq!(messages(None), Ok(None));
        }
    }

    #[test]
    fn what_cannot_be_brought_is_told() {
        let schema = r#"{"$ref": "https://example.com/nothing.json"}"#;
        let [loose, exact] = answers(schema, "{}");
        assert_eq!(loose, "Get \"https://example.com/nothing.json\": 404");
        assert_eq!(exact, loose);
    }
}
