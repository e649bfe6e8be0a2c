//! A user's rules: rows that are added to the lifecycle table or override its own.
//!
//! ```yaml
//! rules:
//! - apiVersion: example.com/v1alpha1
//!   kind: Widget
//!   component: widgets          # the add-on whose releases these are; default: Kubernetes
//!   deprecated: "1.2"
//!   removed: "2.0"
//!   replacement: example.com/v1 # optionally another kind after a space
//!   expires: 2027-01-31         # the last day on which the rule applies
//!   note: why
//! ```

use std::borrow::Cow;

use portolan_object::Day;

use crate::lifecycle::{Api, Basis, KUBERNETES, Lifecycle};
use crate::settings::{Item, SettingsError, items};

/// Rules as a file gives them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    rules: Vec<(Lifecycle, Option<Day>)>,
}

const FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "component",
    "introduced",
    "deprecated",
    "removed",
    "replacement",
    "expires",
    "note",
];

impl Rules {
    /// Reads a rules file.
    pub fn read(bytes: &[u8]) -> Result<Self, SettingsError> {
        let rules = items(bytes, "rules", FIELDS, rule)?;
        Ok(Self { rules })
    }

    /// The rows that count on a day, and a warning for every rule that has expired.
    pub fn rows(self, today: Day) -> (Vec<Lifecycle>, Vec<String>) {
        let (mut rows, mut warnings) = (Vec::new(), Vec::new());
        for (row, expires) in self.rules {
            match expires {
                Some(day) if day < today => {
                    warnings.push(format!("the rule for {} expired on {day}", row.api));
                }
                _ => rows.push(row),
            }
        }
        (rows, warnings)
    }
}

fn rule(item: &Item<'_>) -> Result<(Lifecycle, Option<Day>), SettingsError> {
    let owned = |key: &str| Cow::Owned(item.text(key).unwrap_or_default().to_owned());
    let api = Api::of(item.needed("apiVersion")?, item.needed("kind")?);
    let replacement = item.text("replacement").map(|text| {
        let (api_version, kind) = text.split_once(' ').unwrap_or((text, &api.kind));
        Api::of(api_version, kind)
    });
    let row = Lifecycle {
        component: item
            .text("component")
            .map_or(Cow::Borrowed(KUBERNETES), |name| {
                Cow::Owned(name.to_owned())
            }),
        introduced: item.parsed("introduced")?,
        deprecated: item.parsed("deprecated")?,
        removed: item.parsed("removed")?,
        basis: Basis::Rule,
        replacement,
        resource: Cow::Borrowed(""),
        namespaced: None,
        note: owned("note"),
        api,
    };
    Ok((row, item.parsed("expires")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
rules:
- {apiVersion: example.com/v1alpha1, kind: Widget, removed: 1.30, replacement: example.com/v1}
- {apiVersion: example.com/v1beta1, kind: Widget, deprecated: \"1.20\", expires: 2026-01-01}
";

    #[test]
    fn a_rule_counts_until_it_expires() {
        let rules = Rules::read(FILE.as_bytes()).unwrap();
        let (rows, warnings) = rules.rows("2026-06-01".parse().unwrap());
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].removed.unwrap().to_string(), "1.30");
        assert_eq!(rows[0].replacement_text().unwrap(), "example.com/v1");
        assert_eq!(
            warnings,
            ["the rule for example.com/v1beta1 Widget expired on 2026-01-01"]
        );
    }

    #[test]
    fn misspelt_rules_are_refused_with_their_line() {
        let error = |text: &str| Rules::read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error("rules:\n- kind: A\n"),
            "line 2: `apiVersion` is missing"
        );
        assert_eq!(
            error("rules:\n- {apiVersion: v1, kind: A,\n   remove: 1.2}\n"),
            "line 3: there is no field `remove`"
        );
        assert_eq!(error("rule: []"), "there is no list `rules`");
        assert!(
            error("rules: [{apiVersion: v1, kind: A, removed: soon}]").contains("is not a release")
        );
    }
}
