//! Which releases of etcd have bugs that matter here.

/// For a minor release of 3: the patch release that mended it, and what was wrong before.
const BUGS: &[(u32, u32, &str)] = &[
    (4, 24, "watches tell events twice"),
    (4, 25, "a watch can go back in time"),
    (
        4,
        31,
        "a stalled old leader revokes leases that are alive; events are lost after a compaction",
    ),
    (4, 32, "the revision can decrease"),
    (
        4,
        36,
        "a delete at the revision of a compaction is not told",
    ),
    (4, 38, "renewing a revoked lease seems to succeed"),
    (4, 42, "reads can be stale after a pause of the leader"),
    (5, 3, "data can be corrupted when it is killed under load"),
];

/// The bugs of a release such as `3.4.23`; none for one that cannot be read.
pub fn known_bugs(version: &str) -> Vec<&'static str> {
    let mut numbers = version.split(['.', '-', '+']).map(str::parse::<u32>);
    let (Some(Ok(3)), Some(Ok(minor)), Some(Ok(patch))) =
        (numbers.next(), numbers.next(), numbers.next())
    else {
        return Vec::new();
    };
    let own = BUGS
        .iter()
        .filter(|(in_minor, mended, _)| *in_minor == minor && patch < *mended);
    own.map(|(.., bug)| *bug).collect()
}

#[cfg(test)]
mod tests {
    use super::known_bugs;

    #[test]
    fn a_release_has_the_bugs_that_were_mended_after_it() {
        assert_eq!(known_bugs("3.4.23").len(), 7);
        assert_eq!(
            known_bugs("3.4.41"),
            ["reads can be stale after a pause of the leader"]
        );
        assert!(known_bugs("3.4.42").is_empty() && known_bugs("3.7.3").is_empty());
        assert_eq!(known_bugs("3.5.2-rc.1").len(), 1);
        assert!(known_bugs("unknown").is_empty());
    }
}
