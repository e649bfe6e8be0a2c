//! Words of the command line that change a document, and what is wrong with others.

/// Returns a registry that images go to. It is no address: it may have a port and a path.
///
/// # Errors
/// What is wrong with the text, and how it is written.
pub fn parse_registry(text: &str) -> Result<String, String> {
    let example = "write it as `localhost:5000` or `registry.example/team`";
    match text {
        "" => Err(format!("it is empty; {example}")),
        _ if text.contains("://") => Err(format!("it has a scheme; {example}")),
        _ if text.contains('@') => Err(format!("it has a digest or a login; {example}")),
        _ => Ok(text.to_owned()),
    }
}

/// Returns a namespace, which has the name of a label.
///
/// # Errors
/// What a namespace looks like.
pub fn parse_namespace(text: &str) -> Result<String, String> {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_name = !text.is_empty()
        && text.len() <= 63
        && text
            .chars()
            .all(|letter| is_letter(letter) || letter == '-')
        && text.starts_with(is_letter)
        && text.ends_with(is_letter);
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("a namespace has small letters, digits and `-` between them".to_owned())
    }
}

/// Returns a path below `spec` and the value that it gets.
///
/// # Errors
/// When there is no `=`.
pub fn parse_set(text: &str) -> Result<(String, String), String> {
    let (path, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not of the form PATH=VALUE"))?;
    Ok((path.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for bad in ["", "https://registry.example", "a@sha256:1"] {
            assert!(parse_registry(bad).is_err(), "{bad}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", &"a".repeat(64)] {
            assert!(parse_namespace(bad).is_err(), "{bad}");
        }
        assert!(parse_set("a").is_err());
        assert_eq!(
            parse_registry("localhost:5000/a").unwrap(),
            "localhost:5000/a"
        );
        assert_eq!(parse_namespace("a-1").unwrap(), "a-1");
        assert_eq!(
            parse_set("a=b=c").unwrap(),
            ("a".to_owned(), "b=c".to_owned())
        );
    }
}
