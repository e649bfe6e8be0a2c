//! Removes user names and passwords from URLs inside texts.

use std::borrow::Cow;

/// Returns a text in which no address has a user or password: `https://me:secret@host/x` becomes `https://host/x`.
///
/// A path that was made of an address and cleaned (`/base/https:/me:secret@host/x`) counts as one. The user `git`, which
/// every repository over SSH has, stays.
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut kept = 0;
    let mut search = 0;
    while let Some(found) = text[search..].find(":/") {
        let colon = search + found;
        let authority = colon + 1 + slashes(&text[colon + 1..]);
        search = authority;
        let has_scheme = text[..colon].ends_with(|letter: char| letter.is_ascii_alphanumeric());
        let Some(end) = user_end(&text[authority..]).filter(|_| has_scheme) else {
            continue;
        };
        if &text[authority..authority + end] != "git" {
            out.push_str(&text[kept..authority]);
            kept = authority + end + 1;
        }
        search = authority + end + 1;
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

fn slashes(text: &str) -> usize {
    text.len() - text.trim_start_matches('/').len()
}

/// Where the `@` behind user and password stands; `None` if the address has neither.
fn user_end(rest: &str) -> Option<usize> {
    let is_end = |letter: char| letter.is_whitespace() || "\"'`<>".contains(letter);
    let address = &rest[..rest.find(is_end).unwrap_or(rest.len())];
    let authority = &address[..address.find(['/', '?', '#']).unwrap_or(address.len())];
    if let Some(at) = authority.rfind('@') {
        // A password may hold an `@` and a `/`; then rather too much is left out than too little.
        let has_password = authority[..at].contains(':');
        return address.rfind('@').filter(|_| has_password).or(Some(at));
    }
    // A password with a slash in it, which should have been escaped. What follows a host's colon is a number.
    let (_, after) = authority.split_once(':')?;
    let is_port = after.bytes().all(|byte| byte.is_ascii_digit());
    if is_port {
        return None;
    }
    address.rfind('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(without_passwords(text), expected, "{text}");
    }

    #[test]
    fn users_and_passwords_are_left_out() {
        check(
            "https://me:PW@host/a.git//x?ref=v1",
            "https://host/a.git//x?ref=v1",
        );
        check(
            "cannot fetch `https://TOKEN@host`: no",
            "cannot fetch `https://host`: no",
        );
        check("/base/https:/me:PW@host/x", "/base/https:/host/x");
        check(
            "a https://u:p@h b ssh://u:p@i:22/x",
            "a https://h b ssh://i:22/x",
        );
        check("https://me:p@ss@host/", "https://host/");
        check("https://me:p/ss@host/", "https://host/");
        check("git::https://me:PW@host/x", "git::https://host/x");
    }

    #[test]
    fn what_is_no_password_stays() {
        for text in [
            "https://host:8080/x@v1",
            "https://host/x?user=a@b",
            "ssh://git@github.com/x/y",
            "me@host: /x",
            "no address, only me@example.com",
            "",
            ":/",
            "://@",
        ] {
            check(text, text);
        }
    }

    /// Any user and password, between any two texts.
    #[test]
    fn no_password_comes_through() {
        // A small generator of its own: the same cases every time.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let letters: Vec<char> = "abcXYZ019-._~!$&()*+,;=%:@/ä€".chars().collect();
        let around: Vec<char> = "ab `'\"/:@#?\n".chars().collect();
        for _ in 0..20_000 {
            let mut draw = |from: &[char], most: u64| -> String {
                let count = next(most + 1);
                let pick = |_| from[next(from.len() as u64) as usize];
                (0..count).map(pick).collect()
            };
            let before = draw(&around, 5);
            let password = format!("p{}SECRET{}", draw(&letters, 6), draw(&letters, 6));
            let after = draw(&around, 5);
            let text = format!("{before} https://me:{password}@host/path {after}");
            let clean = without_passwords(&text);
            assert!(!clean.contains("SECRET"), "{text:?} {clean:?}");
            assert_eq!(without_passwords(&clean), clean, "{text:?}");
        }
    }
}
