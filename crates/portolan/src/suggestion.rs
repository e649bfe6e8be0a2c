//! What somebody may have meant who wrote a name that is not there.

use portolan_flux::api::NamespacedName;

use crate::error::CommandError;

/// Says that a name was not found, which one is near, and how to list all of them.
pub(crate) fn not_found<'a>(
    kind: &str,
    wanted: &[String],
    known: impl IntoIterator<Item = &'a NamespacedName>,
    list_command: &str,
) -> CommandError {
    let mut known: Vec<&NamespacedName> = known.into_iter().collect();
    known.sort();
    known.dedup();
    let error = CommandError::usage(format!("no {kind} named `{}`", wanted.join("`, `")));
    let near = nearest(wanted, known.iter().copied(), |id| id.name.as_str());
    match near {
        Some(id) if id.namespace.is_empty() => error.hint(format!(
            "there is `{}`; `{list_command}` lists all {}",
            id.name,
            known.len()
        )),
        Some(id) => error.hint(format!(
            "there is `{}` in {}; `{list_command}` lists all {}",
            id.name,
            id.namespace,
            known.len()
        )),
        None => error.hint(format!("there is no {kind} at all")),
    }
}

/// Says that nothing lies in a namespace, and which namespace is near.
pub(crate) fn no_namespace<'a>(
    wanted: &str,
    known: impl IntoIterator<Item = &'a String>,
) -> CommandError {
    let error = CommandError::usage(format!("nothing lies in the namespace `{wanted}`"));
    let known: Vec<&String> = known.into_iter().filter(|name| !name.is_empty()).collect();
    match nearest(&[wanted.to_owned()], known.into_iter(), |name| {
        name.as_str()
    }) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("nothing in the repository names a namespace"),
    }
}

/// The thing whose name takes the fewest changes to get to.
pub(crate) fn nearest<T>(
    wanted: &[String],
    known: impl Iterator<Item = T>,
    name: impl Fn(&T) -> &str,
) -> Option<T> {
    known.min_by_key(|thing| {
        let distances = wanted.iter().map(|wanted| distance(wanted, name(thing)));
        distances.min()
    })
}

/// How many letters have to be changed, added or taken away to make one word of another.
fn distance(a: &str, b: &str) -> usize {
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
        let near = |wanted: &str| nearest(&[wanted.to_owned()], known.into_iter(), |name| name);
        assert_eq!(near("grafna"), Some("grafana"));
        assert_eq!(near("pod"), Some("podinfo"));
    }
}
