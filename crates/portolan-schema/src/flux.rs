//! The CRDs of Flux's own kinds, so these kinds are checked even if the repository does not contain their CRDs.

use portolan_yaml::{Node, from_json};

/// One definition a line, as JSON without descriptions and status; made by `cargo xtask gen flux-definitions`.
const TABLE: &str = include_str!("../data/flux.jsonl");

/// Every definition.
pub(crate) fn definitions() -> impl Iterator<Item = Node> {
    TABLE.lines().filter_map(|line| from_json(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_definition() {
        assert_eq!(definitions().count(), TABLE.lines().count());
        let kinds =
            definitions().all(|definition| !portolan_object::defined_kinds(&definition).is_empty());
        assert!(kinds);
    }
}
