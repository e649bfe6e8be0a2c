//! The path of a field, as in `spec.rules[0].verbs`.

use std::fmt;

/// One step down into an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// Steps from the top of an object to a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FieldPath(Vec<Step>);

impl FieldPath {
    /// The path of a field of the object itself.
    pub(crate) fn top(key: &str) -> Self {
        Self::default().key(key)
    }

    pub(crate) fn key(&self, key: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Key(key.to_owned()));
        Self(steps)
    }

    pub(crate) fn index(&self, index: usize) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Index(index));
        Self(steps)
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(out, "[{index}]")?,
                Step::Key(key) if is_plain(key) && number == 0 => out.write_str(key)?,
                Step::Key(key) if is_plain(key) => write!(out, ".{key}")?,
                Step::Key(key) => write!(out, "[{key:?}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/');
    !key.is_empty() && key.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_people_write_it() {
        let path = FieldPath::top("spec").key("rules").index(2).key("a.b");
        assert_eq!(path.to_string(), "spec.rules[2][\"a.b\"]");
    }
}
