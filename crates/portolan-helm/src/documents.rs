//! The documents of a rendered file, split as text before they are read as YAML.

use memchr::memmem;

use crate::profile::Profile;

/// Cuts a stream of documents as Helm does, and leaves out those that are only white space.
pub(crate) fn split(text: &str, profile: Profile) -> Vec<&str> {
    match profile {
        Profile::Helm3 => split_trimmed(text),
        Profile::Helm4 => split_at_marks(text),
    }
}

/// Helm 3: the separator takes all white space around it, and what follows it on the line stays.
fn split_trimmed(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut documents = Vec::new();
    let mut start = 0;
    let mut search = 0;
    if let Some(rest) = text.strip_prefix("---") {
        start = text.len() - skip_space(rest).len();
        search = start;
    }
    let separator = memmem::Finder::new("\n---");
    while let Some(found) = text
        .as_bytes()
        .get(search..)
        .and_then(|rest| separator.find(rest))
    {
        let newline = search + found;
        let before = text.get(start..newline).unwrap_or_default();
        push_document(&mut documents, before);
        let rest = text.get(newline + 4..).unwrap_or_default();
        start = text.len() - skip_space(rest).len();
        search = start;
    }
    push_document(&mut documents, text.get(start..).unwrap_or_default());
    documents
}

fn push_document<'t>(documents: &mut Vec<&'t str>, text: &'t str) {
    let text = text.trim_end_matches(is_space);
    if !text.is_empty() {
        documents.push(text.trim());
    }
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

/// White space as `\s` of Go's regular expressions has it.
fn is_space(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\x0c' | '\r' | ' ')
}

/// Helm 4: a document begins behind the marks of a separator and keeps the white space at its end.
fn split_at_marks(text: &str) -> Vec<&str> {
    let text = text.trim_start();
    let mut documents = Vec::new();
    let mut rest = text.strip_prefix("---").unwrap_or(text);
    loop {
        let end = memmem::find(rest.as_bytes(), b"\n---").map(|newline| newline + 1);
        let document = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let document = document.trim_start();
        if !document.is_empty() {
            documents.push(document);
        }
        match end.and_then(|end| rest.get(end + 3..)) {
            Some(behind) => rest = behind,
            None => return documents,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helm_3_cuts_white_space_away() {
        let split = |text| split(text, Profile::Helm3);
        assert_eq!(split("---\na\n---\nb\n"), ["a", "b"]);
        assert_eq!(split("a\n\n---  \n\n---x\nb"), ["a", "---x\nb"]);
        assert_eq!(split("a: |\n  x\n  ---\n  y"), ["a: |\n  x\n  ---\n  y"]);
        assert_eq!(split("---# c\na"), ["# c\na"]);
        assert!(split(" \n").is_empty());
        assert!(split("---\n---").len() <= 1);
    }

    /// The documents are those of helm 4.2.4.
    #[test]
    fn helm_4_keeps_white_space_at_the_end() {
        let split = |text| split(text, Profile::Helm4);
        assert_eq!(split("\n---\na\n---\nb\n\n"), ["a\n", "b\n\n"]);
        assert_eq!(split("a\n\n---  \n\n---x\nb"), ["a\n\n", "x\nb"]);
        assert_eq!(split("a: |\n  x\n  ---\n  y"), ["a: |\n  x\n  ---\n  y"]);
        assert_eq!(split("---# c\na\n---"), ["# c\na\n"]);
        assert!(split("---\n---\n \n").is_empty());
    }
}
