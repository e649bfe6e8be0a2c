//! The layout of keys: `/portolan/v1/<kind>/…`.

/// All keys of this version of the layout.
pub const ROOT: &str = "/portolan/v1/";
/// The operation slots of all processes, `…/<process>/<slot>`.
pub const OPERATIONS: &str = "/portolan/v1/op/";
/// What the store says of itself: incarnation, level, shards.
pub const META: &str = "/portolan/v1/meta/";
/// The keys of shard owners, `…/<shard>`.
pub const SHARDS: &str = "/portolan/v1/shard/";

/// The kind of a key: its first three segments, such as `/portolan/v1/node`; all of it when it has fewer.
pub(crate) fn kind(key: &[u8]) -> &[u8] {
    let mut slashes = key.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.nth(3).map_or(key, |(at, _)| &key[..at])
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn a_kind_is_the_first_three_segments() {
        assert_eq!(kind(b"/portolan/v1/node/web-1"), b"/portolan/v1/node");
        assert_eq!(kind(b"/portolan/v1/node"), b"/portolan/v1/node");
        assert_eq!(kind(b"x"), b"x");
    }
}
