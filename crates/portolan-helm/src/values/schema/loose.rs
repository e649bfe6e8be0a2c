//! Helm 3's validator: a library that knows drafts 4 to 7, reads every other draft as a mixture of them and ignores
//! all keywords beside a `$ref`. A stricter validator would refuse charts that Helm 3 installs.

mod check;
mod compile;
mod format;
mod pool;

use portolan_budget::{Budget, Exceeded};
use portolan_gotmpl::Value;

pub(crate) use compile::Schema;

impl Schema {
    /// One line for each message; none where the value fits.
    pub(crate) fn messages(
        &self,
        value: &Value,
        budget: &Budget,
    ) -> Result<Option<String>, Exceeded> {
        let findings = self.check(value, budget)?;
        let lines: Vec<_> = findings.iter().map(|found| format!("- {found}")).collect();
        Ok((!lines.is_empty()).then(|| lines.join("\n") + "\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Tree;

    fn check(schema: &str, values: &str, expected: &str) {
        let schema = Schema::compile(schema.as_bytes(), None).unwrap();
        let values = Tree::read_table(values.as_bytes()).unwrap().thaw();
        let messages = schema.messages(&values, &Budget::default());
        let messages = messages.unwrap().unwrap_or_default();
        assert_eq!(messages, expected);
    }

    #[test]
    fn types_and_ranges_are_checked() {
        let schema = r#"{"properties": {"age": {"type": "integer", "minimum": 0}, "name": {"type": ["string", "null"]}}, "required": ["job"]}"#;
        check(
            schema,
            "{age: -5, name: 3}",
            "- (root): job is required\n- age: Must be greater than or equal to 0\n- name: Invalid type. Expected: [string,null], given: integer\n",
        );
        check(schema, "{age: 5, name: null, job: x}", "");
    }

    #[test]
    fn the_nearest_alternative_explains_itself() {
        let schema = r#"{"anyOf": [{"properties": {"a": {"const": true}}}, {"required": ["b"]}]}"#;
        check(
            schema,
            "{a: false}",
            "- (root): Must validate at least one schema (anyOf)\n- a: a does not match: true\n",
        );
    }

    #[test]
    fn references_lead_into_the_document_and_hide_their_neighbours() {
        let schema = r##"{"$defs": {"port": {"type": "integer"}}, "properties": {"p": {"$ref": "#/$defs/port", "maximum": 1}}}"##;
        check(schema, "{p: 80}", "");
        check(
            schema,
            "{p: x}",
            "- p: Invalid type. Expected: integer, given: string\n",
        );
    }

    #[test]
    fn a_reference_to_itself_ends() {
        let schema = r##"{"$ref": "#"}"##;
        let schema = Schema::compile(schema.as_bytes(), None).unwrap();
        assert!(
            schema
                .messages(&Value::Nil, &Budget::default())
                .unwrap()
                .unwrap()
                .contains("nested too deep")
        );
    }

    #[test]
    fn enums_are_listed_as_json() {
        check(
            r#"{"properties": {"a": {"enum": ["x", 1, null]}}}"#,
            "{a: y}",
            "- a: a must be one of the following: \"x\", 1, null\n",
        );
    }

    #[test]
    fn additional_properties_may_be_forbidden() {
        check(
            r#"{"properties": {"a": {}}, "patternProperties": {"^x-": {}}, "additionalProperties": false}"#,
            "{a: 1, x-b: 2, c: 3}",
            "- (root): Additional property c is not allowed\n",
        );
    }

    #[test]
    fn a_remote_reference_is_refused_with_its_address() {
        let error =
            Schema::compile(br#"{"$ref": "https://example.com/x.json"}"#, None).unwrap_err();
        assert!(error.contains("https://example.com/x.json"), "{error}");
    }
}
