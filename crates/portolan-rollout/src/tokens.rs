//! One-shot commands.
//!
//! A token is any text in a field of the spec or in an annotation. It is acted on once, when its text differs from the one
//! in the status. So a person, a program and Git can give a command without the operator ever changing the spec.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The tokens of one place: the spec or the annotations.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Makes the new revision the stable one without judging it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<String>,
    /// Makes the running canary the stable revision now, or ends its soaking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promote: Option<String>,
    /// Goes back to the old revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort: Option<String>,
    /// Tries a revision again that was rolled back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
    /// Holds the weight where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<String>,
    /// Ends `pause`, and a step that waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// Goes back to the revision that was stable before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Command {
    /// See [`Tokens::abort`].
    Abort,
    /// See [`Tokens::undo`].
    Undo,
    /// See [`Tokens::pause`].
    Pause,
    /// See [`Tokens::resume`].
    Resume,
    /// See [`Tokens::retry`].
    Retry,
    /// See [`Tokens::promote`].
    Promote,
    /// See [`Tokens::force`].
    Force,
}

/// What was acted on: the last text of each command in each place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ActedOn {
    /// Texts of the spec.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    spec: BTreeMap<Command, String>,
    /// Texts of the annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<Command, String>,
}

/// The start of an annotation that holds a token; the command's name follows.
pub const ANNOTATION_PREFIX: &str = "portolan.dev/";

/// The longest text of a token that is kept; longer ones are cut, so that a status stays small.
const LONGEST: usize = 128;

impl Command {
    /// Every command, those that go back before those that go forward: when several come at once, going back wins.
    pub const ALL: [Self; 7] = [
        Self::Abort,
        Self::Undo,
        Self::Pause,
        Self::Resume,
        Self::Retry,
        Self::Promote,
        Self::Force,
    ];

    /// Returns whether the command may make a revision serve more traffic.
    pub fn goes_forward(self) -> bool {
        matches!(
            self,
            Self::Resume | Self::Retry | Self::Promote | Self::Force
        )
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Abort => "abort",
            Self::Undo => "undo",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::Promote => "promote",
            Self::Force => "force",
        })
    }
}

impl Tokens {
    /// Reads the tokens among the annotations of an object.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Self {
        let text = |command: Command| {
            let name = format!("{ANNOTATION_PREFIX}{command}");
            annotations.get(&name).cloned()
        };
        Self {
            force: text(Command::Force),
            promote: text(Command::Promote),
            abort: text(Command::Abort),
            retry: text(Command::Retry),
            pause: text(Command::Pause),
            resume: text(Command::Resume),
            undo: text(Command::Undo),
        }
    }

    /// Returns the text of a command; an empty one is none.
    fn text(&self, command: Command) -> Option<String> {
        let text = match command {
            Command::Force => &self.force,
            Command::Promote => &self.promote,
            Command::Abort => &self.abort,
            Command::Retry => &self.retry,
            Command::Pause => &self.pause,
            Command::Resume => &self.resume,
            Command::Undo => &self.undo,
        };
        let text = text.as_deref().filter(|text| !text.is_empty())?;
        Some(text.chars().take(LONGEST).collect())
    }
}

impl ActedOn {
    /// Returns whether every command was seen.
    pub fn covers(&self, spec: &Tokens, annotations: &Tokens) -> bool {
        self.clone().take(spec, annotations).is_empty()
    }

    /// Returns the commands whose text is new, and records them as acted on.
    pub fn take(&mut self, spec: &Tokens, annotations: &Tokens) -> Vec<Command> {
        let mut new = Vec::new();
        for command in Command::ALL {
            let in_spec = record(&mut self.spec, command, spec);
            let in_annotations = record(&mut self.annotations, command, annotations);
            if in_spec || in_annotations {
                new.push(command);
            }
        }
        new
    }
}

/// Records the text of a command; returns whether it is new. A text that is gone stays recorded, so that bringing the
/// same text back gives no second command.
fn record(known: &mut BTreeMap<Command, String>, command: Command, tokens: &Tokens) -> bool {
    let Some(text) = tokens.text(command) else {
        return false;
    };
    known.insert(command, text.clone()).as_ref() != Some(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(abort: Option<&str>, promote: Option<&str>) -> Tokens {
        Tokens {
            abort: abort.map(str::to_owned),
            promote: promote.map(str::to_owned),
            ..Tokens::default()
        }
    }

    #[test]
    fn a_token_is_new_once() {
        let mut acted_on = ActedOn::default();
        let none = Tokens::default();
        let first = tokens(Some("1"), None);
        assert_eq!(acted_on.take(&first, &none), [Command::Abort]);
        assert_eq!(acted_on.take(&first, &none), []);
        assert_eq!(acted_on.take(&none, &none), []);
        assert_eq!(acted_on.take(&first, &none), []);
        let second = tokens(Some("2"), None);
        assert_eq!(acted_on.take(&second, &none), [Command::Abort]);
    }

    #[test]
    fn spec_and_annotations_are_two_places() {
        let mut acted_on = ActedOn::default();
        let (one, other) = (tokens(Some("1"), None), tokens(Some("1"), Some("x")));
        assert_eq!(acted_on.take(&one, &Tokens::default()), [Command::Abort]);
        let both = acted_on.take(&one, &other);
        assert_eq!(both, [Command::Abort, Command::Promote]);
        assert_eq!(acted_on.take(&one, &other), []);
    }

    #[test]
    fn an_empty_text_is_no_command() {
        let mut acted_on = ActedOn::default();
        assert_eq!(
            acted_on.take(&tokens(Some(""), None), &Tokens::default()),
            []
        );
    }

    #[test]
    fn annotations_carry_the_name_of_the_command() {
        let annotations = [
            ("portolan.dev/abort".to_owned(), "now".to_owned()),
            ("example.com/promote".to_owned(), "now".to_owned()),
        ];
        let read = Tokens::from_annotations(&annotations.into_iter().collect());
        assert_eq!(read, tokens(Some("now"), None));
    }
}
