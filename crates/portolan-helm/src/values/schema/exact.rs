//! Helm 4's validator: drafts 4, 6, 7, 2019-09 and 2020-12, each by its own rules; a schema without a draft uses
//! 2020-12. Formats are checked only up to draft 7, as the later drafts require.

mod check;
mod compile;
mod document;
mod draft;
mod failure;
mod format;
mod meta;
mod number;

use portolan_budget::{Budget, Exceeded};
use portolan_gotmpl::Value;

pub(crate) use compile::Schema;

impl Schema {
    /// A list of what is wrong; none where the value fits.
    pub(crate) fn messages(
        &self,
        value: &Value,
        budget: &Budget,
    ) -> Result<Option<String>, Exceeded> {
        let lines = failure::lines(&self.check(value, budget)?);
        // Every line is begun by a newline, of which Helm moves the first to the end.
        let first = lines.strip_prefix('\n');
        Ok(first.map(|first| format!("{first}\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Tree;

    /// The messages are those of Helm 4's library.
    fn check(schema: &str, values: &str, expected: &str) {
        let values = Tree::read_table(values.as_bytes()).unwrap().thaw();
        let messages = Schema::compile(schema.as_bytes(), None)
            .map(|schema| schema.messages(&values, &Budget::default()).unwrap())
            .map(Option::unwrap_or_default);
        assert_eq!(messages.unwrap_or_else(|refusal| refusal), expected);
    }

    #[test]
    fn messages_name_the_place_of_the_value() {
        check(
            r#"{"properties": {"port": {"type": "integer", "maximum": 65535}, "name": {"type": ["string", "null"]}}, "required": ["job"]}"#,
            "{port: 70000, name: 3}",
            "- at '': missing property 'job'\n- at '/name': got number, want null or string\n- at '/port': maximum: got 70,000, want 65,535\n",
        );
    }

    #[test]
    fn every_alternative_says_why_it_does_not_fit() {
        check(
            r#"{"properties": {"a": {"anyOf": [{"type": "string"}, {"required": ["b"], "type": "object"}]}}}"#,
            "{a: {}}",
            "- at '/a': 'anyOf' failed\n  - at '/a': got object, want string\n  - at '/a': missing property 'b'\n",
        );
        check(
            r#"{"oneOf": [{"properties": {"a": {"enum": ["it's", 1, null]}}}, {"minProperties": 2}]}"#,
            "{a: x}",
            "- at '': 'oneOf' failed, none matched\n  - at '/a': value must be one of 'it\\'s', 1, <nil>\n  - at '': minProperties: got 1, want 2\n",
        );
    }

    #[test]
    fn neighbours_of_a_reference_count_since_2019() {
        let schema = |draft: &str| {
            r##"{"$schema": "DRAFT", "$defs": {"port": {"type": "integer"}}, "properties": {"p": {"$ref": "#/$defs/port", "maximum": 1}}}"##
                .replace("DRAFT", draft)
        };
        let told = "- at '/p': maximum: got 80, want 1\n";
        check(
            &schema("https://json-schema.org/draft/2019-09/schema"),
            "{p: 80}",
            told,
        );
        check(
            &schema("http://json-schema.org/draft-07/schema#"),
            "{p: 80}",
            "",
        );
    }

    #[test]
    fn what_nothing_describes_may_be_forbidden() {
        check(
            r#"{"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false}"#,
            "{a: 1, b: 2}",
            "- at '/b': false schema\n",
        );
    }

    #[test]
    fn lists_are_checked_from_the_first_item_on() {
        check(
            r#"{"properties": {"l": {"prefixItems": [{"type": "string"}], "items": false, "contains": {"const": 3}}}}"#,
            "{l: [a, 1]}",
            "- at '/l/0': false schema\n- at '/l': no items match contains schema\n  - at '/l/0': value must be 3\n  - at '/l/1': value must be 3\n",
        );
    }

    #[test]
    fn names_of_properties_are_values_themselves() {
        check(
            r#"{"propertyNames": {"pattern": "^[a-z]+$"}, "dependentRequired": {"a": ["b", "c"]}}"#,
            "{a: 1, B: 2}",
            "- at '': invalid propertyName 'B'\n  - at '': 'B' does not match pattern '^[a-z]+$'\n- at '': properties 'b', 'c' required, if 'a' exists\n",
        );
    }

    #[test]
    fn formats_count_up_to_draft_7() {
        let rule = r#""properties": {"u": {"format": "uri"}}"#;
        check(&format!("{{{rule}}}"), "{u: x}", "");
        check(
            &format!(r#"{{"$schema": "http://json-schema.org/draft-07/schema#", {rule}}}"#),
            "{u: x}",
            "- at '/u': 'x' is not valid uri: relative url\n",
        );
    }

    #[test]
    fn a_circle_of_references_ends() {
        check(
            r##"{"$ref": "#"}"##,
            "{}",
            "- at '': both /$ref and  resolve to \"file:///values.schema.json#\" causing reference cycle\n",
        );
    }

    #[test]
    fn a_document_that_is_no_schema_is_refused() {
        check(
            r#"{"type": "strin"}"#,
            "{}",
            "\"file:///values.schema.json#\" is not valid against metaschema: jsonschema validation failed with 'https://json-schema.org/draft/2020-12/schema#'\n- at '': 'allOf' failed\n  - at '/type': 'anyOf' failed\n    - at '/type': value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'\n    - at '/type': got string, want array",
        );
    }

    #[test]
    fn schemas_that_lie_elsewhere_are_not_fetched() {
        check(
            r#"{"$ref": "https://example.com/x.json"}"#,
            "{}",
            "failing loading \"https://example.com/x.json\": schemas that lie elsewhere are not fetched",
        );
    }

    #[test]
    fn schemas_and_values_of_any_depth_end() {
        let deep = 5000;
        let schema = format!("{}true{}", r#"{"not": "#.repeat(deep), "}".repeat(deep));
        assert!(Schema::compile(schema.as_bytes(), None).is_err());
    }
}
