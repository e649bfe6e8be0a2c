//! Cookies in routes: to find requests that have one, to give one, and to take it away.

use crate::spec::StickySessions;

/// Returns an expression for a `Cookie` header that has this cookie with this value, and not one that only contains it.
pub(super) fn has_cookie(name: &str, value: &str) -> String {
    format!(r"^(.*;\s*)?{}={}(;.*)?$", escaped(name), escaped(value))
}

/// Returns an expression for a `Cookie` header that has this cookie.
pub(super) fn has_any_cookie(name: &str) -> String {
    format!(r"^(.*;\s*)?{}=.*$", escaped(name))
}

/// Returns the `Set-Cookie` header that keeps a client with a revision.
pub(super) fn keep(sticky: &StickySessions, revision: &str) -> String {
    let (name, seconds) = (&sticky.cookie_name, sticky.max_age.seconds());
    format!("{name}={revision}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax")
}

/// Returns the `Set-Cookie` header that lets a client go.
pub(super) fn expire(sticky: &StickySessions) -> String {
    format!("{}=; Path=/; Max-Age=0", sticky.cookie_name)
}

pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if !letter.is_ascii_alphanumeric() && letter != '_' && letter != '-' {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_letters_stand_for_themselves() {
        assert_eq!(has_cookie("a-b", "r1.x"), r"^(.*;\s*)?a-b=r1\.x(;.*)?$");
    }
}
