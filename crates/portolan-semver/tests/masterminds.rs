//! Versions and constraints compared with the answers of the original, in `data/masterminds-3.3.0.tsv`.

use portolan_semver::{Constraints, Version};

const ANSWERS: &str = include_str!("data/masterminds-3.3.0.tsv");

#[test]
fn versions_and_constraints_are_answered_as_the_original_does() {
    let readable: Vec<Version> = rows("v")
        .filter_map(|row| Version::parse(&unquote(row[1])).ok())
        .collect();
    for row in rows("v") {
        let text = unquote(row[1]);
        assert_eq!(printed(Version::parse(&text)), row[2], "{text:?}");
        assert_eq!(
            printed(Version::parse_strict(&text)),
            row[3],
            "strict {text:?}"
        );
    }
    for row in rows("c") {
        let text = unquote(row[1]);
        let answer = match Constraints::parse(&text) {
            Err(error) => format!("error: {error}"),
            Ok(constraints) => readable
                .iter()
                .map(|version| if constraints.check(version) { '1' } else { '0' })
                .collect(),
        };
        assert_eq!(answer, row[2], "{text:?}");
    }
}

#[test]
fn refusals_are_explained_in_the_words_of_the_original() {
    let beta = Version::parse("1.2.3-beta.2").unwrap();
    let reasons: Vec<String> = rows("c")
        .filter_map(|row| Constraints::parse(&unquote(row[1])).ok())
        .flat_map(|constraints| constraints.validate(&beta).err().unwrap_or_default())
        .collect();
    let expected: Vec<&str> = rows("r").map(|row| row[1]).collect();
    assert_eq!(reasons, expected);

    for row in rows("w") {
        let version = Version::parse(row[1]).unwrap();
        let constraints = Constraints::parse(&unquote(row[2])).unwrap();
        let reasons = constraints.validate(&version).unwrap_err();
        assert!(
            reasons.iter().any(|reason| reason == row[3]),
            "{row:?}: {reasons:?}"
        );
    }
}

#[test]
fn successors_keep_the_v_and_drop_the_rest() {
    let version = Version::parse("v1.2.3-rc.1+meta").unwrap();
    assert_eq!(version.next_patch().original(), "v1.2.3");
    assert_eq!(version.next_minor().to_string(), "1.3.0");
    assert_eq!(version.next_major().original(), "v2.0.0");
    assert_eq!(
        version.with_prerelease("a.1").unwrap().to_string(),
        "1.2.3-a.1+meta"
    );
    assert!(version.with_metadata("a_b").is_err());
}

fn rows(kind: &str) -> impl Iterator<Item = Vec<&'static str>> {
    ANSWERS
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(move |row| row[0] == kind)
}

fn unquote(text: &str) -> String {
    text.trim_matches('"')
        .replace("\\t", "\t")
        .replace("\\n", "\n")
}

fn printed(answer: Result<Version, portolan_semver::VersionError>) -> String {
    answer.map_or_else(
        |error| format!("error: {error}"),
        |version| version.to_string(),
    )
}
