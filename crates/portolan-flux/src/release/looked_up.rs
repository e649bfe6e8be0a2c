//! Which kinds a chart's templates look up in the cluster, found in their text.

use std::collections::BTreeSet;

use memchr::memmem;
use portolan_helm::values::Tree;
use portolan_yaml::Text;

const LOOKUP: &str = "lookup";

/// The kinds that a chart may look up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LookedUp {
    kinds: BTreeSet<String>,
    /// A kind that shows only when the chart is rendered.
    anything: bool,
}

impl LookedUp {
    /// No kind at all.
    pub(crate) const NOTHING: Self = Self {
        kinds: BTreeSet::new(),
        anything: false,
    };

    /// Any kind, as far as anybody knows.
    pub(crate) const ANYTHING: Self = Self {
        kinds: BTreeSet::new(),
        anything: true,
    };

    /// Adds what a template looks up.
    pub(crate) fn read(&mut self, text: &[u8]) {
        for arguments in calls(text) {
            match literal_kind(arguments) {
                Some(kind) => _ = self.kinds.insert(kind.to_owned()),
                None => self.anything = true,
            }
        }
    }

    /// Adds what templates in values look up, for charts that run those.
    pub(crate) fn read_values(&mut self, values: &Tree) {
        match values {
            Tree::Text(text) if is_template(text) => self.read(text.as_bytes()),
            Tree::List(items) => items.iter().for_each(|item| self.read_values(item)),
            Tree::Table(table) => table.values().for_each(|value| self.read_values(value)),
            _ => {}
        }
    }

    /// Adds what another one looks up.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.kinds.extend(other.kinds.iter().cloned());
        self.anything |= other.anything;
    }

    /// Whether nothing is looked up.
    pub(crate) fn is_empty(&self) -> bool {
        !self.anything && self.kinds.is_empty()
    }

    /// Whether objects of a kind may be looked up.
    pub(crate) fn includes(&self, kind: &str) -> bool {
        self.anything || self.kinds.contains(kind)
    }

    /// Whether objects of one of some kinds may be looked up.
    pub(crate) fn includes_any(&self, kinds: &BTreeSet<Text>) -> bool {
        kinds.iter().any(|kind| self.includes(kind))
    }
}

/// Whether a template in values looks something up.
pub(crate) fn values_may_look_up(values: &Tree) -> bool {
    match values {
        Tree::Text(text) => is_template(text) && may_look_up(text.as_bytes()),
        Tree::List(items) => items.iter().any(values_may_look_up),
        Tree::Table(table) => table.values().any(values_may_look_up),
        _ => false,
    }
}

fn is_template(text: &str) -> bool {
    text.contains("{{")
}

/// Whether a template looks something up.
fn may_look_up(text: &[u8]) -> bool {
    calls(text).next().is_some()
}

/// What follows each `lookup` that stands by itself; in `"common.secrets.lookup"` it is a part of a name.
fn calls(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    memmem::find_iter(text, LOOKUP).filter_map(move |at| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        let after = text.get(at + LOOKUP.len()..)?;
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-\"$/".contains(byte);
        let is_call = !before.is_some_and(is_name) && !after.first().is_some_and(is_name);
        is_call.then_some(after)
    })
}

/// The kind in `lookup "v1" "Secret" …`, where it is written out.
fn literal_kind(arguments: &[u8]) -> Option<&str> {
    let after_version = match arguments.trim_ascii_start() {
        [quote @ (b'"' | b'`'), rest @ ..] => after(rest, *quote)?,
        [b'(', rest @ ..] => after(rest, b')')?,
        written => after(written, b' ')?,
    };
    let [quote @ (b'"' | b'`'), rest @ ..] = after_version.trim_ascii_start() else {
        return None;
    };
    let end = memchr::memchr(*quote, rest)?;
    let kind = std::str::from_utf8(rest.get(..end)?).ok()?;
    let is_word = kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word.then_some(kind)
}

fn after(text: &[u8], end: u8) -> Option<&[u8]> {
    let at = memchr::memchr(end, text)?;
    text.get(at + 1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_up(text: &str) -> LookedUp {
        let mut found = LookedUp::default();
        found.read(text.as_bytes());
        found
    }

    #[test]
    fn kinds_that_are_written_out_are_known_before_rendering() {
        let text = "{{ $a := (lookup \"v1\" \"Secret\" .ns .name).data }}{{ lookup `v1` `Node` \"\" \"\" }}{{ lookup .version \"Pod\" }}{{lookup (include \"v\" .) \"Job\"}}";
        let found = looked_up(text);
        assert!(!found.anything, "{found:?}");
        let kinds = ["Job", "Node", "Pod", "Secret"].map(str::to_owned);
        assert_eq!(found.kinds, kinds.into());
        assert!(found.includes("Pod") && !found.includes("Service"));
    }

    #[test]
    fn any_other_call_may_be_about_anything() {
        for text in [
            "{{ lookup .version .kind }}",
            "{{ lookup \"v1\" .kind \"\" \"\" }}",
            "{{ list \"v1\" | first | lookup }}",
            "{{ lookup",
        ] {
            assert!(looked_up(text).anything, "{text}");
        }
    }

    #[test]
    fn a_part_of_a_name_is_no_call() {
        let text = "{{ include \"common.secrets.lookup\" . }} {{ .Values.lookup }} lookups $lookup";
        assert!(looked_up(text).is_empty());
        assert!(!may_look_up(text.as_bytes()));
        assert!(may_look_up(b"{{lookup \"v1\"}}"));
    }
}
