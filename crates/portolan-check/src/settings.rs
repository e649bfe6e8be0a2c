//! Which findings are reported: the `test` section of `portolan.yaml`, and an annotation on the object itself.
//!
//! ```yaml
//! test:
//!   disable: [reference/missing]
//!   ignore:
//!   - rule: schema/*
//!     kind: Deployment
//!     namespace: legacy
//!     reason: goes away with the old cluster
//!   producers:
//!   - group: example.com
//!     kind: Login
//!     makes: [Secret]
//!     name: '{spec.secretName|name}-token'
//! ```

use portolan_object::{API_VERSION, Finding, Object, ObjectId, Producer, Rule};
use portolan_yaml::{Dialect, Node, Position, parse};
use thiserror::Error;

use crate::finding::Subject;

/// Names the rules, separated by commas, that an object is excused from; `schema/*` means the whole group, `*` all.
pub const IGNORE_ANNOTATION: &str = "portolan.dev/ignore";

/// What is switched off for everything or for some objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    disabled: Vec<String>,
    ignored: Vec<Ignored>,
    producers: Vec<Producer>,
}

/// One excuse; what is not named may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Ignored {
    rule: String,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

/// Why settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// It is not YAML.
    #[error("{message}")]
    Syntax {
        /// What is wrong with it.
        message: String,
        /// Where.
        at: Position,
    },
    /// A rule is named that does not exist.
    #[error("no rule is called `{rule}`")]
    UnknownRule {
        /// The name.
        rule: String,
        /// Where it stands.
        at: Position,
    },
    /// An entry of a list lacks what it needs.
    #[error("an entry of `test.{list}` needs `{field}`")]
    Incomplete {
        /// The list.
        list: &'static str,
        /// What it needs.
        field: &'static str,
        /// Where it stands.
        at: Position,
    },
    /// A value is of the wrong type.
    #[error("`{field}` must be {expected}")]
    WrongType {
        /// The field.
        field: String,
        /// What it must be.
        expected: &'static str,
        /// Where it stands.
        at: Position,
    },
    /// A document is of a kind that nobody reads.
    #[error("nothing reads a document of `kind: {kind}`")]
    UnknownKind {
        /// The kind.
        kind: String,
        /// Where it stands.
        at: Position,
    },
    /// A document of settings is of a version that does not exist.
    #[error("settings have no `apiVersion: {version}`")]
    UnknownVersion {
        /// The version.
        version: String,
        /// Where it stands.
        at: Position,
    },
    /// There is a second document of settings.
    #[error("there is a second document with settings")]
    Several {
        /// Where it begins.
        at: Position,
    },
    /// A field is named that does not exist.
    #[error("there is no setting `{field}`")]
    UnknownField {
        /// The field.
        field: String,
        /// Where it stands.
        at: Position,
    },
}

/// The parts of a document of settings.
const PARTS: &[&str] = &["apiVersion", "kind", "test", "versions"];

/// The parts of settings without a kind.
const BARE_PARTS: &[&str] = &["test", "versions"];

/// The kind of a document of settings.
const KIND: &str = "Settings";

/// Kinds of documents that others read.
const OTHER_KINDS: &[&str] = &["Ship"];

/// The fields of `test`.
const TEST_FIELDS: &[&str] = &["disable", "ignore", "producers"];

/// The fields of an entry of `test.producers`.
const PRODUCER_FIELDS: &[&str] = &["group", "kind", "makes", "name", "everywhere"];

/// The fields of an entry of `test.ignore`.
const IGNORE_FIELDS: &[&str] = &["rule", "kind", "namespace", "name", "reason"];

/// Finds the settings in the text of a `portolan.yaml`, which may hold documents of other kinds; null if there are none.
/// Refuses what is not YAML, parts and kinds that do not exist, and a second document of settings.
pub fn parse_settings(yaml: &str) -> Result<Node, SettingsError> {
    let documents =
        parse(yaml.to_owned(), Dialect::Helm).map_err(|errors| SettingsError::Syntax {
            message: errors.first().message.clone(),
            at: errors.first().at,
        })?;
    let mut found = None;
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        if !is_settings(&document)? {
            continue;
        }
        if found.is_some() {
            return Err(SettingsError::Several { at: document.at });
        }
        found = Some(document);
    }
    Ok(found.unwrap_or_else(Node::null))
}

/// Whether settings say what they are, as a document of `kind: Settings` does.
pub fn has_kind(settings: &Node) -> bool {
    settings.is_null() || settings.get("kind").is_some()
}

/// Whether a document holds settings; one without a kind does.
fn is_settings(document: &Node) -> Result<bool, SettingsError> {
    let Some(kind) = document.get("kind") else {
        check_fields(document, "", BARE_PARTS)?;
        return Ok(true);
    };
    let name = kind.as_str().unwrap_or_default();
    if OTHER_KINDS.contains(&name) {
        return Ok(false);
    }
    if name != KIND {
        let kind_name = name.to_owned();
        return Err(SettingsError::UnknownKind {
            kind: kind_name,
            at: kind.at,
        });
    }
    let version = document.get("apiVersion");
    if version.and_then(Node::as_str) != Some(API_VERSION) {
        return Err(SettingsError::UnknownVersion {
            version: version
                .and_then(Node::as_str)
                .unwrap_or_default()
                .to_owned(),
            at: version.map_or(kind.at, |version| version.at),
        });
    }
    check_fields(document, "", PARTS)?;
    Ok(true)
}

/// Reads what a settings file says that controllers make; nothing without it.
pub fn parse_producers(root: &Node) -> Result<Vec<Producer>, SettingsError> {
    let Some(test) = root.get("test").filter(|test| !test.is_null()) else {
        return Ok(Vec::new());
    };
    check_fields(test, "test", TEST_FIELDS)?;
    let entries = items(test, "producers")?.into_iter().map(producers);
    Ok(entries.collect::<Result<Vec<_>, _>>()?.concat())
}

impl Settings {
    /// Reads the `test` part of a settings file, which may name these rules; a file without one switches nothing off.
    pub fn of(root: &Node, rules: &[&Rule]) -> Result<Self, SettingsError> {
        let Some(test) = root.get("test").filter(|test| !test.is_null()) else {
            return Ok(Self::default());
        };
        check_fields(test, "test", TEST_FIELDS)?;
        let disabled = items(test, "disable")?.into_iter();
        let ignored = items(test, "ignore")?.into_iter();
        Ok(Self {
            disabled: disabled
                .map(|node| pattern(node, rules))
                .collect::<Result<_, _>>()?,
            ignored: ignored
                .map(|node| excuse(node, rules))
                .collect::<Result<_, _>>()?,
            producers: parse_producers(root)?,
        })
    }

    /// What controllers make that the built-in table does not know.
    pub(crate) fn producers(&self) -> &[Producer] {
        &self.producers
    }

    /// Whether a rule counts at all.
    pub fn enables(&self, rule: &Rule) -> bool {
        !self.disabled.iter().any(|pattern| covers(pattern, rule.id))
    }

    /// Whether a finding about an owner counts, such as one that does not build.
    pub fn wants_finding(&self, finding: &Finding) -> bool {
        let id = finding.rule.id;
        let excused = finding.owner.as_ref().is_some_and(|owner| {
            self.excuses(id, owner.kind.as_str(), &owner.namespace, &owner.name)
        });
        !excused && self.enables(finding.rule)
    }

    /// Whether a finding about an owner counts, whose definition may excuse it too.
    pub fn wants_finding_of(&self, finding: &Finding, definition: &Object) -> bool {
        self.wants_finding(finding) && !annotated(finding.rule.id, definition)
    }

    /// Whether a finding about an object counts.
    pub(crate) fn wants(&self, rule: &Rule, subject: &Subject<'_>) -> bool {
        let ObjectId {
            gvk,
            namespace,
            name,
        } = &subject.id;
        let excused =
            self.excuses(rule.id, &gvk.kind, namespace, name) || annotated(rule.id, subject.object);
        !excused && self.enables(rule)
    }

    fn excuses(&self, id: &str, kind: &str, namespace: &str, name: &str) -> bool {
        let fits = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == value)
        };
        self.ignored.iter().any(|ignored| {
            covers(&ignored.rule, id)
                && fits(&ignored.kind, kind)
                && fits(&ignored.namespace, namespace)
                && fits(&ignored.name, name)
        })
    }
}

impl SettingsError {
    /// Where in the file the mistake stands; line 0 if that is not known.
    pub fn at(&self) -> Position {
        match self {
            Self::Syntax { at, .. }
            | Self::UnknownRule { at, .. }
            | Self::Incomplete { at, .. }
            | Self::WrongType { at, .. }
            | Self::UnknownKind { at, .. }
            | Self::UnknownVersion { at, .. }
            | Self::Several { at }
            | Self::UnknownField { at, .. } => *at,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Syntax { .. } => "fix the YAML of the file".to_owned(),
            Self::UnknownKind { .. } => "`portolan.yaml` holds documents of `kind: Settings` and `kind: Ship`".to_owned(),
            Self::UnknownVersion { .. } => format!("write `apiVersion: {API_VERSION}`"),
            Self::Several { .. } => "put all settings into one document".to_owned(),
            Self::UnknownRule { .. } => {
                "`portolan test --explain all` lists the rules; `schema/*` means a whole group".to_owned()
            }
            Self::Incomplete {
                list: "producers", ..
            } => {
                "an entry names the `kind` of an object, with its `group`, which kinds its controller `makes` and their `name`, such as `{name}-token`; `everywhere: true` if it makes them in every namespace".to_owned()
            }
            Self::Incomplete { .. } => {
                "an entry names a `rule` and a `reason`, and may name `kind`, `namespace` and `name`".to_owned()
            }
            Self::WrongType { .. } => {
                "`test.disable` is a list of rules, `test.ignore` a list of maps with `rule` and `reason`, `test.producers` one of maps with `kind`, `makes` and `name`".to_owned()
            }
            Self::UnknownField { .. } => {
                format!(
                    "the file has {}; `test` has {}; an entry of `test.ignore` has {}; one of `test.producers` has {}",
                    PARTS.join(" and "),
                    TEST_FIELDS.join(", "),
                    IGNORE_FIELDS.join(", "),
                    PRODUCER_FIELDS.join(", ")
                )
            }
        }
    }
}

fn annotated(id: &str, object: &Object) -> bool {
    let patterns = object.annotation(IGNORE_ANNOTATION).unwrap_or_default();
    patterns
        .split(',')
        .any(|pattern| covers(pattern.trim(), id))
}

fn covers(pattern: &str, id: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(group) => id.starts_with(group),
        None => pattern == id,
    }
}

/// Refuses what is not a map, and fields that are not known; the whole file has no name.
fn check_fields(node: &Node, name: &str, known: &[&str]) -> Result<(), SettingsError> {
    if node.is_null() {
        return Ok(());
    }
    let map = node.as_map().ok_or_else(|| match name {
        "" => wrong_type("the file", "a map", node),
        name => wrong_type(name, "a map", node),
    })?;
    let is_unknown = |key: &str| !known.contains(&key);
    match map.iter().find(|entry| is_unknown(entry.key.as_str())) {
        Some(entry) => Err(SettingsError::UnknownField {
            field: match name {
                "" => entry.key.as_str().to_owned(),
                name => format!("{name}.{}", entry.key.as_str()),
            },
            at: entry.key.at,
        }),
        None => Ok(()),
    }
}

fn wrong_type(field: &str, expected: &'static str, node: &Node) -> SettingsError {
    SettingsError::WrongType {
        field: field.to_owned(),
        expected,
        at: node.at,
    }
}

/// The items of a list of `test`; none if it is not there.
fn items<'n>(test: &'n Node, field: &str) -> Result<Vec<&'n Node>, SettingsError> {
    let Some(node) = test.get(field).filter(|node| !node.is_null()) else {
        return Ok(Vec::new());
    };
    let list = node.as_list();
    let list = list.ok_or_else(|| wrong_type(&format!("test.{field}"), "a list", node))?;
    Ok(list.iter().collect())
}

fn pattern(node: &Node, rules: &[&Rule]) -> Result<String, SettingsError> {
    let text = node
        .as_str()
        .ok_or_else(|| wrong_type("rule", "the name of a rule", node))?;
    if rules.iter().any(|rule| covers(text, rule.id)) {
        return Ok(text.to_owned());
    }
    Err(SettingsError::UnknownRule {
        rule: text.to_owned(),
        at: node.at,
    })
}

fn excuse(node: &Node, rules: &[&Rule]) -> Result<Ignored, SettingsError> {
    check_fields(node, "test.ignore", IGNORE_FIELDS)?;
    let text = |key: &str| match node.get(key).filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(wrong_type(&format!("test.ignore.{key}"), "a text", value)),
        },
    };
    let incomplete = |field| SettingsError::Incomplete {
        list: "ignore",
        field,
        at: node.at,
    };
    // The reason is for people; asking for it keeps excuses from gathering without one.
    text("reason")?.ok_or_else(|| incomplete("reason"))?;
    let rule = pattern(node.get("rule").ok_or_else(|| incomplete("rule"))?, rules)?;
    Ok(Ignored {
        rule,
        kind: text("kind")?,
        namespace: text("namespace")?,
        name: text("name")?,
    })
}

/// What one entry of `test.producers` says: a producer for each kind that is made.
fn producers(node: &Node) -> Result<Vec<Producer>, SettingsError> {
    check_fields(node, "test.producers", PRODUCER_FIELDS)?;
    let text = |key: &'static str| match node.get(key).filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text)),
            None => Err(wrong_type(
                &format!("test.producers.{key}"),
                "a text",
                value,
            )),
        },
    };
    let needed = |field| SettingsError::Incomplete {
        list: "producers",
        field,
        at: node.at,
    };
    // The core group has no name.
    let group = text("group")?.unwrap_or_default();
    let kind = text("kind")?.ok_or_else(|| needed("kind"))?;
    let name = text("name")?.ok_or_else(|| needed("name"))?;
    let everywhere = match node.get("everywhere").filter(|value| !value.is_null()) {
        None => false,
        Some(value) => value
            .as_bool()
            .ok_or_else(|| wrong_type("test.producers.everywhere", "true or false", value))?,
    };
    let makes = node.get("makes").ok_or_else(|| needed("makes"))?;
    let made: Vec<&Node> = match makes.as_list() {
        Some(list) => list.iter().collect(),
        None => vec![makes],
    };
    let producer = |made: &Node| {
        let expected = "a kind or a list of kinds";
        let made = made.as_str();
        let made = made.ok_or_else(|| wrong_type("test.producers.makes", expected, makes))?;
        let producer = Producer::new(group, kind, made, name);
        Ok(if everywhere {
            producer.everywhere()
        } else {
            producer
        })
    };
    made.into_iter().map(producer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::RULES;

    fn read(yaml: &str) -> Result<Settings, SettingsError> {
        Settings::of(&parse_settings(yaml)?, RULES)
    }

    fn refused(yaml: &str) -> (String, u32, u32) {
        let error = read(yaml).expect_err(yaml);
        (error.to_string(), error.at().line, error.at().column)
    }

    #[test]
    fn a_mistake_is_told_where_it_stands() {
        let check = |yaml: &str, message: &str, line: u32, column: u32| {
            assert_eq!(refused(yaml), (message.to_owned(), line, column), "{yaml}");
        };
        check(
            "test:\n  disable: [schema/nothing]\n",
            "no rule is called `schema/nothing`",
            2,
            13,
        );
        check(
            "test: {ignore: [{rule: schema/*}]}",
            "an entry of `test.ignore` needs `reason`",
            1,
            17,
        );
        check(
            "test:\n  disable: all\n",
            "`test.disable` must be a list",
            2,
            12,
        );
        check(
            "test:\n  ignroe: []\n",
            "there is no setting `test.ignroe`",
            2,
            3,
        );
        check(
            "test:\n  ignore:\n  - {rule: schema/*, reason: r, namspace: x}\n",
            "there is no setting `test.ignore.namspace`",
            3,
            33,
        );
        check(
            "test:\n  producers:\n  - {kind: Login, makes: Secret}\n",
            "an entry of `test.producers` needs `name`",
            3,
            5,
        );
        check(
            "test: {producers: [{kind: Login, makes: {a: b}, name: x}]}",
            "`test.producers.makes` must be a kind or a list of kinds",
            1,
            41,
        );
        check("[test]", "`the file` must be a map", 1, 1);
        check("tests: {}", "there is no setting `tests`", 1, 1);
    }

    #[test]
    fn a_file_that_is_not_yaml_is_refused_with_its_line() {
        let (_, line, _) = refused("test:\n  disable: [a\nother: 1\n");
        assert!(line > 0);
    }

    #[test]
    fn an_empty_file_switches_nothing_off() {
        for yaml in ["", "# nothing\n", "test:\n", "versions: {flux: 2.8}\n"] {
            assert_eq!(read(yaml), Ok(Settings::default()), "{yaml}");
        }
    }

    #[test]
    fn a_pattern_covers_its_group() {
        assert!(covers("schema/*", "schema/rule") && covers("*", "owner/duplicate"));
        assert!(!covers("schema/*", "owner/duplicate") && !covers("", "schema/rule"));
    }
}
