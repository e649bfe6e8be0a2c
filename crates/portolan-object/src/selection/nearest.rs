//! Finds the name that a user may have meant when the written one does not exist.

/// The thing whose name takes the fewest changes to get to from one of the wanted; `None` if there is nothing.
///
/// ```
/// use portolan_object::nearest;
///
/// let known = ["grafana", "podinfo"];
/// assert_eq!(nearest(&["grafna"], known, |name| name), Some("grafana"));
/// ```
pub fn nearest<T>(
    wanted: &[impl AsRef<str>],
    known: impl IntoIterator<Item = T>,
    name: impl Fn(&T) -> &str,
) -> Option<T> {
    known.into_iter().min_by_key(|thing| {
        let distances = wanted
            .iter()
            .map(|wanted| distance(wanted.as_ref(), name(thing)));
        distances.min()
    })
}

/// Beyond this many changes a word is another one.
const MAX_CHANGES: usize = 3;

/// The thing whose name is so near to the wanted one that it may be a slip of the pen; `None` if there is none.
///
/// ```
/// use portolan_object::similar;
///
/// let known = ["tag", "pullPolicy"];
/// assert_eq!(similar("tga", known, |name| name), Some("tag"));
/// assert_eq!(similar("replicas", known, |name| name), None);
/// ```
pub fn similar<T>(
    wanted: &str,
    known: impl IntoIterator<Item = T>,
    name: impl Fn(&T) -> &str,
) -> Option<T> {
    let most = wanted.chars().count().div_ceil(2).min(MAX_CHANGES);
    let near = nearest(&[wanted], known, &name);
    near.filter(|thing| distance(wanted, name(thing)) <= most)
}

/// How many letters have to be changed, added or taken away to make one word of another.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_takes_the_fewest_changes() {
        let known = ["grafana", "podinfo", "redis"];
        let near = |wanted: &str| nearest(&[wanted], known, |name| name);
        assert_eq!(near("grafna"), Some("grafana"));
        assert_eq!(near("pod"), Some("podinfo"));
    }
}
