//! Where an object came from, and what changed it since.
//!
//! An origin is a list of steps that only grows at its end. Objects made from one another share the steps they have in
//! common:
//!
//! ```text
//! read deployment.yaml:12 ◀── namespace transformer ◀── patch prod.yaml:3     (Deployment/shop/web)
//!                                                   ◀── patch test.yaml:3     (the same base in another overlay)
//! ```

use std::fmt;
use std::sync::Arc;

use portolan_yaml::{Position, Text};

/// The history of an object: cloning costs one reference count, adding a step one allocation.
#[derive(Clone, Default)]
pub struct Origin {
    last: Option<Arc<Link>>,
}

struct Link {
    step: Step,
    before: Origin,
}

/// One thing that happened to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What happened.
    pub act: Act,
    /// What did it, in its own words: a transformer's name, a chart, a unit's key. Empty when the place says it all.
    pub by: Text,
    /// The text responsible, where there is one.
    pub place: Option<Place>,
}

/// The kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// It stood in a file.
    Read,
    /// A template printed it.
    Template,
    /// A generator made it.
    Generate,
    /// A patch changed it.
    Patch,
    /// A transformer changed it.
    Transform,
    /// Variables were put in.
    Substitute,
    /// Encrypted values were opened.
    Decrypt,
    /// A Kustomization, `HelmRelease` or the like took it in.
    Build,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file's path, relative to its repository, chart or archive.
    pub file: Text,
    /// Where in it.
    pub at: Position,
}

// === impl Origin ===

impl Origin {
    /// An object that stands in a file.
    ///
    /// ```
    /// use portolan_object::{Act, Origin, Place, Step};
    ///
    /// let base = Origin::read(Place::line("base/web.yaml", 12));
    /// let prod = base.then(Step::new(Act::Patch, "").at(Place::line("prod/patch.yaml", 3)));
    /// assert_eq!(prod.to_string(), "base/web.yaml:12, patch prod/patch.yaml:3");
    /// ```
    pub fn read(place: Place) -> Self {
        Self::default().then(Step::new(Act::Read, "").at(place))
    }

    /// The same history with one more step; `self` does not change.
    #[must_use]
    pub fn then(&self, step: Step) -> Self {
        let before = self.clone();
        Self {
            last: Some(Arc::new(Link { step, before })),
        }
    }

    /// The steps, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Step> {
        let links = std::iter::successors(self.last.as_ref(), |link| link.before.last.as_ref());
        links.map(|link| &link.step)
    }

    /// The steps, oldest first.
    pub fn steps(&self) -> Vec<&Step> {
        let mut steps: Vec<&Step> = self.newest_first().collect();
        steps.reverse();
        steps
    }

    /// Where the object was first written: the place of the oldest step that has one.
    pub fn place(&self) -> Option<&Place> {
        self.newest_first()
            .filter_map(|step| step.place.as_ref())
            .last()
    }

    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        self.last.is_none()
    }
}

/// Unlinks one by one: dropping a long list by recursion would use up the stack.
impl Drop for Origin {
    fn drop(&mut self) {
        let mut last = self.last.take();
        while let Some(mut link) = last.and_then(|link| Arc::try_unwrap(link).ok()) {
            last = link.before.last.take();
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps().into_iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{step}")?;
        }
        Ok(())
    }
}

impl Origin {
    /// The steps in a line, with places relative to the repository's top.
    pub fn to_relative(&self) -> String {
        let relative = |step: &Step| {
            let mut step = step.clone();
            if let Some(place) = &mut step.place {
                place.file = Text::from(place.file.trim_start_matches('/'));
            }
            step.to_string()
        };
        let steps: Vec<String> = self.steps().into_iter().map(relative).collect();
        steps.join(", ")
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Origin({self})")
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        self.newest_first().eq(other.newest_first())
    }
}

impl Eq for Origin {}

// === impl Step ===

impl Step {
    /// A step by something, at no known place.
    pub fn new(act: Act, by: impl Into<Text>) -> Self {
        Self {
            act,
            by: by.into(),
            place: None,
        }
    }

    /// The same step at a place.
    #[must_use]
    pub fn at(self, place: Place) -> Self {
        Self {
            place: Some(place),
            ..self
        }
    }
}

impl fmt::Display for Step {
    /// Reading needs no word: the place says it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if self.act != Act::Read || self.place.is_none() {
            write!(f, "{}", self.act)?;
            separator = " ";
        }
        if !self.by.is_empty() {
            write!(f, "{separator}{}", self.by)?;
            separator = " ";
        }
        match &self.place {
            Some(place) => write!(f, "{separator}{place}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Template => "template",
            Self::Generate => "generate",
            Self::Patch => "patch",
            Self::Transform => "transform",
            Self::Substitute => "substitute",
            Self::Decrypt => "decrypt",
            Self::Build => "build",
        })
    }
}

// === impl Place ===

impl Place {
    /// A position in a file.
    pub fn new(file: impl Into<Text>, at: Position) -> Self {
        Self {
            file: file.into(),
            at,
        }
    }

    /// The beginning of a line.
    pub fn line(file: impl Into<Text>, line: u32) -> Self {
        Self::new(file, Position { line, column: 1 })
    }
}

impl fmt::Display for Place {
    /// `file:line`, or the file alone when the line is not known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.line {
            0 => write!(f, "{}", self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_share_the_steps_they_have_in_common() {
        let base = Origin::read(Place::line("web.yaml", 12));
        let prod = base.then(Step::new(Act::Transform, "namespace"));
        let test = base.then(Step::new(Act::Substitute, ""));
        assert_eq!(base.to_string(), "web.yaml:12");
        assert_eq!(prod.to_string(), "web.yaml:12, transform namespace");
        assert_eq!(test.to_string(), "web.yaml:12, substitute");
        assert_eq!(test.place(), prod.place());
    }

    #[test]
    fn a_place_without_a_line_is_its_file() {
        assert_eq!(
            Place::new("web.yaml", Position::default()).to_string(),
            "web.yaml"
        );
    }

    #[test]
    fn a_very_long_history_is_dropped_without_recursion() {
        let step = Step::new(Act::Patch, "p");
        let long = (0..300_000).fold(Origin::default(), |origin, _| origin.then(step.clone()));
        assert_eq!(long.newest_first().count(), 300_000);
        drop(long);
    }
}
