//! Plays of Ansible, written again as books.
//!
//! ```text
//! playbook ──▶ play ──▶ tasks ──▶ steps          names in templates are replaced, conditions become CEL
//!                             └─▶ notes          what has no counterpart, with its line
//! ```
//!
//! A task that has no counterpart becomes a step that fails, so that a book never does less than its play without a word.

mod arguments;
mod document;
mod expression;
mod modules;
mod task;

use portolan_yaml::{Dialect, Node, parse};
use serde_json::{Value, json};

use self::document::{Fields, Written};
use self::expression::Names;
use self::task::{json, text};

/// The longest playbook that is read.
const MAX_PLAYBOOK_BYTES: usize = 4 << 20;

/// A book that was a play.
#[derive(Debug, Clone)]
pub struct ConvertedPlay {
    /// The book.
    pub text: String,
    /// What has no counterpart, by line.
    pub notes: Vec<ConversionNote>,
}

/// Something that has no counterpart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionNote {
    /// Where it stands in the playbook.
    pub line: u32,
    /// What it is, as a sentence without a full stop.
    pub message: String,
}

/// Why a playbook cannot be converted at all.
#[derive(Debug, thiserror::Error)]
pub enum ConversionError {
    /// It is too long.
    #[error("the playbook has more than {MAX_PLAYBOOK_BYTES} bytes")]
    TooLong,
    /// It is not YAML.
    #[error("line {line}: {message}")]
    Unreadable {
        /// Where.
        line: u32,
        /// What is wrong.
        message: String,
    },
    /// It has no plays.
    #[error("it is not a list of plays")]
    NotAPlaybook,
    /// The book cannot be written.
    #[error("cannot write the book: {0}")]
    Unwritable(String),
}

/// Converts the plays of a playbook, each into a book.
///
/// # Errors
/// When it is not a playbook.
pub fn convert_playbook(playbook: &str, name: &str) -> Result<Vec<ConvertedPlay>, ConversionError> {
    if playbook.len() > MAX_PLAYBOOK_BYTES {
        return Err(ConversionError::TooLong);
    }
    let documents = parse(playbook.to_owned(), Dialect::Kustomize).map_err(|errors| {
        let first = errors.first();
        ConversionError::Unreadable {
            line: first.at.line,
            message: first.message.clone(),
        }
    })?;
    let plays: Vec<&Node> = documents
        .iter()
        .filter_map(Node::as_list)
        .flatten()
        .collect();
    if plays.is_empty() || plays.iter().any(|play| play.as_map().is_none()) {
        return Err(ConversionError::NotAPlaybook);
    }
    let many = plays.len() > 1;
    let plays = plays.iter().enumerate();
    plays
        .map(|(at, play)| {
            let name = if many {
                format!("{}-{}", book_name(name), at + 1)
            } else {
                book_name(name)
            };
            Converter::default().play(play, &name)
        })
        .collect()
}

/// One play while it is converted.
#[derive(Default)]
struct Converter {
    names: Names,
    notes: Vec<ConversionNote>,
}

/// Keys of a play that are read here, or that mean nothing in a book.
const PLAY_KEYS: &[&str] = &[
    "name",
    "hosts",
    "vars",
    "tasks",
    "pre_tasks",
    "post_tasks",
    "handlers",
    "serial",
    "max_fail_percentage",
    "strategy",
    "gather_facts",
    "become",
    "become_user",
    "become_method",
    "any_errors_fatal",
    "remote_user",
    "connection",
];

impl Converter {
    fn play(mut self, play: &Node, name: &str) -> Result<ConvertedPlay, ConversionError> {
        for entry in play.as_map().into_iter().flat_map(portolan_yaml::Map::iter) {
            let key = entry.key.as_str();
            if !PLAY_KEYS.contains(&key) {
                self.note(
                    entry.key.at.line,
                    format!("`{key}` of a play has no counterpart"),
                );
            }
        }
        let mut spec = Fields::default();
        let vars = self.vars(play);
        let target = self.target(play);
        let mut run = Fields::default();
        self.run_options(play, &mut run);
        // Handlers may be notified by any task, and their own conditions may name results of all.
        let mut steps = Vec::new();
        for part in ["pre_tasks", "tasks", "post_tasks"] {
            if let Some(list) = play.get(part) {
                steps.extend(self.tasks(list, 0));
            }
        }
        let handlers = play.get("handlers").map(|list| self.tasks(list, 0));
        let inputs = self.inputs();
        spec.set_some("inputs", inputs);
        spec.set_some("vars", vars);
        spec.set("target", target);
        spec.extend(run);
        spec.set("steps", unique(steps));
        spec.set_some("handlers", handlers.filter(|handlers| !handlers.is_empty()));
        let mut metadata = Fields::default();
        metadata.set("name", name);
        let mut book = Fields::default();
        book.set("apiVersion", "v1alpha");
        book.set("kind", "TaskBook");
        book.set("metadata", metadata);
        book.set("spec", spec);
        let text = book.to_yaml().map_err(ConversionError::Unwritable)?;
        self.notes.sort_by_key(|note| note.line);
        Ok(ConvertedPlay {
            text,
            notes: self.notes,
        })
    }

    fn note(&mut self, line: u32, message: String) {
        self.notes.push(ConversionNote { line, message });
    }

    fn vars(&mut self, play: &Node) -> Option<Value> {
        let node = play.get("vars")?;
        let vars = json(node).ok()?;
        for name in vars.as_object()?.keys() {
            self.names.vars.insert(name.clone());
        }
        let vars = match self.renamed_values(vars) {
            Ok(vars) => with_own_names(vars),
            Err(reason) => {
                self.note(node.at.line, format!("`vars` are not converted: {reason}"));
                return None;
            }
        };
        let is_open = |value: &Value| value.to_string().contains("vars.");
        let open = vars.as_object()?.iter().filter(|(_, value)| is_open(value));
        let open: Vec<String> = open.map(|(name, _)| name.clone()).collect();
        for name in open {
            let message = format!("the variable `{name}` names another one: write it in `compute`");
            self.note(node.at.line, message);
        }
        Some(vars)
    }

    fn target(&mut self, play: &Node) -> Written {
        let line = play
            .get("hosts")
            .map_or(play.at.line, |hosts| hosts.at.line);
        let hosts = text(play, "hosts").unwrap_or_default();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        match hosts.as_str() {
            "all" | "*" => json!({"all": true}).into(),
            "localhost" | "127.0.0.1" => json!({"nodes": ["localhost"]}).into(),
            name if !name.is_empty() && name.bytes().all(is_name) => {
                json!({ "group": name }).into()
            }
            other => {
                // A group that nobody has: a run fails before it begins, and reaches no node that nobody meant.
                let group = book_name(other);
                self.note(
                    line,
                    format!(
                        "the pattern `{other}` of hosts has no counterpart: `{group}` stands for it"
                    ),
                );
                json!({ "group": group }).into()
            }
        }
    }

    fn run_options(&mut self, play: &Node, run: &mut Fields) {
        if let Some(serial) = play.get("serial") {
            let batches = match json(serial) {
                Ok(Value::Array(sizes)) => sizes,
                Ok(size) => vec![size],
                Err(_) => Vec::new(),
            };
            // `30%` and `5` are written alike in both.
            run.set("batches", batches);
        }
        if let Some(percent) = text(play, "max_fail_percentage") {
            run.set("maxFailures", format!("{percent}%"));
        }
        match text(play, "strategy").as_deref() {
            None | Some("linear") => {}
            Some("free") => run.set("strategy", "free"),
            Some(other) => self.note(
                play.at.line,
                format!("the strategy `{other}` has no counterpart"),
            ),
        }
        if let Some(user) = text(play, "become_user").filter(|user| user != "root") {
            let mut defaults = Fields::default();
            defaults.set("as", user);
            run.set("defaults", defaults);
        }
    }

    /// Names that nobody in the play defines come from whoever starts a run.
    fn inputs(&mut self) -> Option<Written> {
        let names = std::mem::take(&mut self.names.inputs);
        let mut inputs = Fields::default();
        for name in &names {
            inputs.set(name, json!({"type": "string"}));
            self.note(
                0,
                format!("`{name}` is defined outside the play and becomes an input of type string"),
            );
        }
        (!inputs.is_empty()).then(|| inputs.into())
    }
}

/// Variables with the values of those that they name, where these are plain. A book renders each by itself.
fn with_own_names(mut vars: Value) -> Value {
    /// How long a chain of names may be.
    const MAX_CHAIN: usize = 8;
    /// The longest text that is made of others.
    const MAX_BYTES: usize = 64 << 10;
    for _ in 0..MAX_CHAIN {
        let known: Vec<(String, String)> = vars
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| match value {
                Value::String(text) if !text.contains("vars.") => {
                    Some((name.clone(), text.clone()))
                }
                Value::Number(number) => Some((name.clone(), number.to_string())),
                _ => None,
            })
            .collect();
        for value in vars
            .as_object_mut()
            .into_iter()
            .flat_map(serde_json::Map::values_mut)
        {
            let Value::String(text) = value else {
                continue;
            };
            for (name, known) in &known {
                let place = format!("{{{{ vars.{name} }}}}");
                let count = text.matches(&place).count();
                if count.saturating_mul(known.len()) <= MAX_BYTES {
                    *text = text.replace(&place, known);
                }
            }
        }
    }
    vars
}

/// Steps of several lists of tasks, which may have the same names.
fn unique(steps: Vec<Written>) -> Vec<Written> {
    let mut names = std::collections::BTreeSet::new();
    let mut out = Vec::new();
    for step in steps {
        let Written::Map(mut fields) = step else {
            continue;
        };
        let wanted = fields.name().unwrap_or_default();
        let mut name = wanted.clone();
        let mut count = 1;
        while !names.insert(name.clone()) {
            count += 1;
            name = format!("{wanted} ({count})");
        }
        fields.set("name", name);
        out.push(Written::Map(fields));
    }
    out
}

/// A name that a book may have.
fn book_name(name: &str) -> String {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let name: String = name
        .to_ascii_lowercase()
        .chars()
        .map(|letter| if is_letter(letter) { letter } else { '-' })
        .collect();
    let name = name.trim_matches('-');
    if name.is_empty() {
        "book".to_owned()
    } else {
        name.to_owned()
    }
}
