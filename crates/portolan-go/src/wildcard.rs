//! File name patterns as `filepath.Match` reads them: `*`, `?`, `[a-z]`, `[^a]` and `\x`, none crossing a slash.

/// A pattern that cannot be read: an open bracket, or a backslash at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadPattern;

/// Says whether the whole name matches the pattern.
///
/// As in Go, a broken pattern is only noticed when matching comes to the broken place.
pub fn matches(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    match_from(&pattern, &name)
}

/// Matches chunk by chunk: after a `*` the next chunk is tried at every later place, first hit wins.
fn match_from(mut pattern: &[char], mut name: &[char]) -> Result<bool, BadPattern> {
    while !pattern.is_empty() {
        let star = pattern.first() == Some(&'*');
        let (chunk, rest) = next_chunk(pattern);
        pattern = rest;
        if star && chunk.is_empty() {
            return Ok(!name.contains(&'/'));
        }
        match match_chunk(chunk, name)? {
            Some(left) if left.is_empty() || !pattern.is_empty() => {
                name = left;
                continue;
            }
            _ => {}
        }
        if !star {
            return Ok(false);
        }
        match skip_to(chunk, name, pattern.is_empty())? {
            Some(left) => name = left,
            None => return Ok(false),
        }
    }
    Ok(name.is_empty())
}

/// Tries a chunk behind a star at every place the star can reach.
fn skip_to<'n>(
    chunk: &[char],
    name: &'n [char],
    last: bool,
) -> Result<Option<&'n [char]>, BadPattern> {
    for (at, letter) in name.iter().enumerate() {
        if *letter == '/' {
            break;
        }
        let Some(left) = match_chunk(chunk, name.get(at + 1..).unwrap_or_default())? else {
            continue;
        };
        if last && !left.is_empty() {
            continue;
        }
        return Ok(Some(left));
    }
    Ok(None)
}

/// Splits off leading stars and the text up to the next star outside brackets.
fn next_chunk(pattern: &[char]) -> (&[char], &[char]) {
    let start = pattern.iter().take_while(|c| **c == '*').count();
    let pattern = pattern.get(start..).unwrap_or_default();
    let mut in_brackets = false;
    let mut at = 0;
    while let Some(letter) = pattern.get(at) {
        match letter {
            '\\' => at += 1,
            '[' => in_brackets = true,
            ']' => in_brackets = false,
            '*' if !in_brackets => break,
            _ => {}
        }
        at += 1;
    }
    pattern.split_at(at.min(pattern.len()))
}

/// Matches a chunk without stars at the beginning of the name and returns what is left of the name.
fn match_chunk<'n>(
    mut chunk: &[char],
    mut name: &'n [char],
) -> Result<Option<&'n [char]>, BadPattern> {
    let mut failed = false;
    while let Some(first) = chunk.first() {
        failed |= name.is_empty();
        match first {
            '[' => {
                let letter = if failed { None } else { name.first().copied() };
                let (hit, rest) = match_brackets(&chunk[1..], letter)?;
                failed |= !hit;
                chunk = rest;
            }
            '?' => {
                failed |= name.first() == Some(&'/');
                chunk = &chunk[1..];
            }
            '\\' => {
                let Some(literal) = chunk.get(1) else {
                    return Err(BadPattern);
                };
                failed |= name.first() != Some(literal);
                chunk = &chunk[2..];
            }
            literal => {
                failed |= name.first() != Some(literal);
                chunk = &chunk[1..];
            }
        }
        if !failed {
            name = name.get(1..).unwrap_or_default();
        }
    }
    Ok((!failed).then_some(name))
}

/// Matches one letter against `a-z]…`, the part behind the opening bracket.
fn match_brackets(mut class: &[char], letter: Option<char>) -> Result<(bool, &[char]), BadPattern> {
    let negated = class.first() == Some(&'^');
    if negated {
        class = &class[1..];
    }
    let mut hit = false;
    let mut ranges = 0;
    loop {
        if class.first() == Some(&']') && ranges > 0 {
            return Ok((letter.is_some() && hit != negated, &class[1..]));
        }
        let (low, rest) = class_letter(class)?;
        let (high, rest) = match rest.first() {
            Some('-') => class_letter(&rest[1..])?,
            _ => (low, rest),
        };
        hit |= letter.is_some_and(|letter| (low..=high).contains(&letter));
        class = rest;
        ranges += 1;
    }
}

fn class_letter(class: &[char]) -> Result<(char, &[char]), BadPattern> {
    let (letter, rest) = match class {
        [] | ['-' | ']', ..] | ['\\'] => return Err(BadPattern),
        ['\\', letter, rest @ ..] | [letter, rest @ ..] => (*letter, rest),
    };
    if rest.is_empty() {
        return Err(BadPattern);
    }
    Ok((letter, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of Go's own `path.Match` tests.
    #[test]
    fn matches_as_go_does() {
        let yes = [
            ("abc", "abc"),
            ("*", "abc"),
            ("*c", "abc"),
            ("a*", "a"),
            ("a*", "abc"),
            ("a*/b", "abc/b"),
            ("a*b*c*d*e*/f", "axbxcxdxe/f"),
            ("a*b?c*x", "abxbbxdbxebxczzx"),
            ("ab[c]", "abc"),
            ("ab[b-d]", "abc"),
            ("ab[^e-g]", "abc"),
            ("a\\*b", "a*b"),
            ("a?b", "a☺b"),
            ("[a-ζ]*", "α"),
            ("[\\]a]", "]"),
            ("*x", "xxx"),
        ];
        for (pattern, name) in yes {
            assert_eq!(matches(pattern, name), Ok(true), "{pattern} {name}");
        }
        let no = [
            ("a*", "ab/c"),
            ("a*/b", "a/c/b"),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/fff"),
            ("a*b?c*x", "abxbbxdbxebxczzy"),
            ("ab[e-g]", "abc"),
            ("ab[^b-d]", "abc"),
            ("a\\*b", "ab"),
            ("a[^a][^a]b", "a☺b"),
            ("*[a-ζ]", "A"),
            ("a?b", "a/b"),
            ("a*b", "a/b"),
        ];
        for (pattern, name) in no {
            assert_eq!(matches(pattern, name), Ok(false), "{pattern} {name}");
        }
    }

    #[test]
    fn broken_patterns_are_reported() {
        for pattern in ["[]a]", "[-]", "[x-]", "[-x]", "\\", "[a-b-c]", "[", "[^"] {
            assert_eq!(matches(pattern, "a"), Err(BadPattern), "{pattern}");
        }
    }
}
