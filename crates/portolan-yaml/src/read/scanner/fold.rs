//! Line breaks between two pieces of a scalar, and what remains of them after folding.

/// One or more line breaks.
pub(super) struct Fold {
    first: char,
    /// Those after the first.
    pub more: String,
}

impl Fold {
    pub(super) fn new(first: char) -> Self {
        Self {
            first,
            more: String::new(),
        }
    }

    /// One line break folds to a space, more keep all but the first; U+2028 and U+2029 always stay.
    pub(super) fn write(&self, text: &mut String) {
        if self.first != '\n' {
            text.push(self.first);
        } else if self.more.is_empty() {
            text.push(' ');
        }
        text.push_str(&self.more);
    }
}
