//! Which of many tags a version range selects.

use portolan_semver::{Constraints, Version};

/// The newest candidate in a range; candidates that are no versions are passed over.
///
/// As in Flux, a version must have all three parts, and may begin with `v`; an exact match wins over the range.
pub(crate) fn newest<'a>(
    candidates: impl IntoIterator<Item = &'a str>,
    range: &str,
) -> Result<Option<&'a str>, String> {
    let wanted = if range.is_empty() { "*" } else { range };
    let constraints = Constraints::parse(wanted).map_err(|error| error.to_string())?;
    let mut best: Option<(Version, &str)> = None;
    for candidate in candidates {
        if candidate == range {
            return Ok(Some(candidate));
        }
        let Some(version) = parse(candidate).filter(|version| constraints.check(version)) else {
            continue;
        };
        // Equal versions differ in build metadata only; the text decides, so that the choice is stable.
        let is_newer = |(held, text): &(Version, &str)| {
            version.cmp(held).then_with(|| candidate.cmp(text)).is_gt()
        };
        if best.as_ref().is_none_or(is_newer) {
            best = Some((version, candidate));
        }
    }
    Ok(best.map(|(_, text)| text))
}

/// Whether a text is one version and not a range.
pub(crate) fn is_exact(text: &str) -> bool {
    parse(text).is_some()
}

fn parse(text: &str) -> Option<Version> {
    Version::parse_strict(text.strip_prefix('v').unwrap_or(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(candidates: &[&str], range: &str, expected: Option<&str>) {
        let found = newest(candidates.iter().copied(), range).unwrap();
        assert_eq!(found, expected, "{range}");
    }

    #[test]
    fn the_newest_version_in_the_range_is_chosen() {
        let tags = ["latest", "1.2.0", "1.10.0", "2.0.0-rc.1", "v1.9.0", "7"];
        check(&tags, "^1", Some("1.10.0"));
        check(&tags, "", Some("1.10.0"));
        check(&tags, "1.9.x", Some("v1.9.0"));
        check(&tags, ">=2.0.0-0", Some("2.0.0-rc.1"));
        check(&tags, ">3", None);
    }

    #[test]
    fn an_exact_match_wins_and_build_metadata_is_kept() {
        check(&["1.0.0", "1.0.0+b"], "1.0.0", Some("1.0.0"));
        check(&["1.0.0", "1.0.0+a", "1.0.0+b"], "~1.0", Some("1.0.0+b"));
    }

    #[test]
    fn a_range_that_cannot_be_read_is_an_error() {
        assert!(newest(["1.0.0"], "not a range").is_err());
        assert!(is_exact("1.2.3") && is_exact("v1.2.3") && !is_exact("1.2") && !is_exact("^1"));
    }
}
