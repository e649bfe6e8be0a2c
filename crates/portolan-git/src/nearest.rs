//! Finds existing names similar to one that does not exist.

/// The most names that are offered.
const MAX_OFFERED: usize = 3;
/// Longer names are not compared: the comparison takes time by the square of their length.
const MAX_LENGTH: usize = 200;

/// Up to three of `names` that differ from `wanted` by few letters, or end with it; nearest first.
pub(crate) fn nearest(wanted: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let allowed = (wanted.chars().count() / 3).max(2);
    let mut scored: Vec<(usize, String)> = names
        .into_iter()
        .filter_map(|name| Some((score(wanted, &name, allowed)?, name)))
        .collect();
    scored.sort();
    scored.dedup();
    scored.truncate(MAX_OFFERED);
    scored.into_iter().map(|(_, name)| name).collect()
}

fn score(wanted: &str, name: &str, allowed: usize) -> Option<usize> {
    if wanted.len() > MAX_LENGTH || name.len() > MAX_LENGTH {
        return None;
    }
    if name.rsplit('/').next() == Some(wanted) {
        return Some(1);
    }
    Some(distance(wanted, name)).filter(|score| *score <= allowed)
}

/// How many letters must be added, removed or replaced to make one text the other.
fn distance(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (b, cell) in two.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(wanted: &str, names: &[&str]) -> Vec<String> {
        nearest(wanted, names.iter().map(|name| (*name).to_owned()))
    }

    #[test]
    fn names_with_few_other_letters_are_offered_nearest_first() {
        let names = ["release-1.2", "main", "maint", "develop"];
        assert_eq!(offered("mainn", &names), ["main", "maint"]);
        assert_eq!(offered("develp", &names), ["develop"]);
        assert!(offered("something-else", &names).is_empty());
    }

    #[test]
    fn a_remote_branch_of_the_same_name_is_offered() {
        assert_eq!(offered("fix", &["origin/fix", "main"]), ["origin/fix"]);
    }
}
