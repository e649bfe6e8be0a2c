//! What could not be rendered on one side, and so could not be compared object by object.

use portolan_object::{Owner, Place};
use portolan_secret::HIDDEN;
use portolan_yaml::Text;

use crate::mask::Mask;

/// On which side something could not be rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailedSide {
    /// The old one.
    Before,
    /// The new one.
    After,
    /// Both.
    Both,
}

/// A Kustomization, HelmRelease or the like that could not be rendered on a side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What could not be rendered.
    pub owner: Owner,
    /// On which side.
    pub side: FailedSide,
    /// Whether it changes, as far as that can be told from what it is made of. What cannot be told counts as a change.
    pub effect: Effect,
    /// Why it could not be rendered, in one sentence: `chart web 1.0.0 → 1.1.0 cannot be fetched`.
    pub reason: String,
    /// What that comes from, one sentence each.
    pub causes: Vec<String>,
    /// What it is made of that differs.
    pub inputs: Vec<InputChange>,
    /// Where it is written.
    pub place: Option<Place>,
}

/// What a failure means for the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Only the new side has it.
    Added,
    /// Only the old side had it.
    Removed,
    /// Both sides have it, made of other inputs.
    Changed,
    /// Both sides have it, made of the same: whatever it gives is equal.
    None,
}

/// An input that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputChange {
    /// Which one: `chart version`, `values image.tag`.
    pub input: String,
    /// What it was; `None` if it was not there or cannot be shown.
    pub from: Option<Text>,
    /// What it is to be; `None` if it is not there or cannot be shown.
    pub to: Option<Text>,
    /// Whether it is secret.
    pub hidden: bool,
}

impl Failure {
    /// Whether it is a change of unknown content.
    pub fn is_change(&self) -> bool {
        self.effect != Effect::None
    }

    /// The same with everything secret taken out.
    pub(crate) fn masked(&self, mask: &Mask) -> Self {
        let text = |text: &String| mask.text(&Text::from(text.as_str())).to_string();
        let input = |input: &InputChange| {
            let shown = |value: &Option<Text>| value.as_ref().map(|value| mask.text(value));
            let (from, to) = (shown(&input.from), shown(&input.to));
            let is_cleaned = [&from, &to]
                .into_iter()
                .flatten()
                .any(|value| value.contains(HIDDEN));
            let hidden = input.hidden || (is_cleaned && from == to);
            InputChange {
                input: text(&input.input),
                from: from.filter(|_| !hidden),
                to: to.filter(|_| !hidden),
                hidden,
            }
        };
        Self {
            reason: text(&self.reason),
            causes: self.causes.iter().map(text).collect(),
            inputs: self.inputs.iter().map(input).collect(),
            ..self.clone()
        }
    }
}

impl FailedSide {
    /// The word for it: `before`, `after` or `both`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Both => "both",
        }
    }
}

impl Effect {
    /// The word for it: `added`, `removed`, `changed` or `none`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
            Self::None => "none",
        }
    }
}
