//! Formats of addresses: of machines, people and documents.

use std::net::Ipv6Addr;

use super::{ensure, quoted, quoted_char, wrong};

pub(super) fn ipv4(text: &str) -> Result<(), String> {
    let groups: Vec<_> = text.split('.').collect();
    ensure(groups.len() == 4, "expected four decimals")?;
    for group in groups {
        ensure(
            !(group.len() > 1 && group.starts_with('0')),
            "leading zeros",
        )?;
        let Ok(number) = group.parse::<i64>() else {
            return wrong(format!(
                "strconv.Atoi: parsing {}: invalid syntax",
                quoted(group)
            ));
        };
        ensure(
            (0..=255).contains(&number),
            "decimal must be between 0 and 255",
        )?;
    }
    Ok(())
}

pub(super) fn ipv6(text: &str) -> Result<(), String> {
    ensure(text.contains(':'), "missing colon")?;
    let (address, zone) = text.split_once('%').unwrap_or((text, ""));
    if address.parse::<Ipv6Addr>().is_err() {
        return wrong(format!("ParseAddr({}): unable to parse IP", quoted(text)));
    }
    ensure(zone.is_empty(), "zone id is not a part of ipv6 address")
}

pub(super) fn hostname(text: &str) -> Result<(), String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    ensure(text.len() <= 253, "more than 253 characters long")?;
    for label in text.split('.') {
        ensure(
            (1..=63).contains(&label.len()),
            "label must be 1 to 63 characters long",
        )?;
        ensure(!label.starts_with('-'), "label starts with hyphen")?;
        ensure(!label.ends_with('-'), "label ends with hyphen")?;
        let legal = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if let Some(letter) = label.chars().find(|letter| !legal(*letter)) {
            return wrong(format!("invalid character {}", quoted_char(letter)));
        }
    }
    Ok(())
}

pub(super) fn email(text: &str) -> Result<(), String> {
    // The library says one more than it means.
    ensure(text.len() <= 254, "more than 255 characters long")?;
    let Some((local, domain)) = text.rsplit_once('@') else {
        return wrong("missing @");
    };
    ensure(local.len() <= 64, "local part more than 64 characters long")?;
    local_part(local)?;
    let literal = domain.strip_prefix('[').and_then(|d| d.strip_suffix(']'));
    match literal.map(|literal| literal.strip_prefix("IPv6:").ok_or(literal)) {
        Some(Ok(address)) => {
            ipv6(address).map_err(|error| format!("invalid ipv6 address: {error}"))
        }
        Some(Err(address)) => {
            ipv4(address).map_err(|error| format!("invalid ipv4 address: {error}"))
        }
        None => hostname(domain).map_err(|error| format!("invalid domain: {error}")),
    }
}

fn local_part(local: &str) -> Result<(), String> {
    if local.len() > 1 && local.starts_with('"') {
        let inner = local.get(1..local.len() - 1).unwrap_or_default();
        return ensure(
            !inner.contains(['\\', '"']),
            "backslash and quote are not allowed within quoted local part",
        );
    }
    ensure(!local.starts_with('.'), "starts with dot")?;
    ensure(!local.ends_with('.'), "ends with dot")?;
    ensure(!local.contains(".."), "consecutive dots")?;
    let legal =
        |letter: char| letter.is_ascii_alphanumeric() || ".!#$%&'*+-/=?^_`{|}~".contains(letter);
    match local.chars().find(|letter| !legal(*letter)) {
        Some(letter) => wrong(format!("invalid character {}", quoted_char(letter))),
        None => Ok(()),
    }
}

pub(super) fn uri(text: &str) -> Result<(), String> {
    let scheme = parse(text)?;
    ensure(scheme.is_some(), "relative url")
}

pub(super) fn uri_reference(text: &str) -> Result<(), String> {
    ensure(!text.contains('\\'), "contains \\")?;
    parse(text).map(|_| ())
}

pub(super) fn uri_template(text: &str) -> Result<(), String> {
    parse(text)?;
    let path = text.split(['?', '#']).next().unwrap_or(text);
    for part in path.split('/') {
        let mut open = false;
        for letter in part.chars().filter(|letter| "{}".contains(*letter)) {
            ensure(open == (letter == '}'), "nested curly braces")?;
            open = !open;
        }
        ensure(!open, "no matching closing brace")?;
    }
    Ok(())
}

/// Reads an address as Go does, in so far as it may be wrong; the scheme, where there is one.
fn parse(text: &str) -> Result<Option<&str>, String> {
    let failed = |what: &str| wrong(format!("parse {}: {what}", quoted(text)));
    if text.chars().any(|letter| letter.is_ascii_control()) {
        return failed("net/url: invalid control character in URL");
    }
    let (before, _) = text.split_once('#').unwrap_or((text, ""));
    let (scheme, rest) = match before.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        Some(("", _)) => return failed("missing protocol scheme"),
        _ => (None, before),
    };
    if let Some(escape) = bad_escape(text) {
        return failed(&format!("invalid URL escape {}", quoted(escape)));
    }
    let first = rest.split(['/', '?']).next().unwrap_or_default();
    if scheme.is_none() && first.contains(':') {
        return failed("first path segment in URL cannot contain colon");
    }
    if let Some(after) = rest.strip_prefix("//") {
        let authority = after.split(['/', '?']).next().unwrap_or_default();
        match host(authority) {
            Ok(()) => {}
            Err(HostError::OfGo(what)) => return failed(&what),
            Err(HostError::Other(what)) => return wrong(what),
        }
    }
    Ok(scheme)
}

/// Checks what stands between `//` and the path; what Go itself finds wrong is told with the address.
fn host(authority: &str) -> Result<(), HostError> {
    let go = |what: String| Err(HostError::OfGo(what));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    let is_user = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(is_user) {
        return go("net/url: invalid userinfo".to_owned());
    }
    if let Some(literal) = host.strip_prefix('[') {
        let Some((address, _)) = literal.split_once(']') else {
            return go("missing ']' in host".to_owned());
        };
        return ipv6(address).or_else(|error| go(format!("invalid host: {error}")));
    }
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        let port = quoted(&format!(":{port}"));
        return go(format!("invalid port {port} after host"));
    }
    if name.contains(':') {
        let what = "ipv6 address not enclosed in brackets".to_owned();
        return Err(HostError::Other(what));
    }
    match host.chars().find(|letter| " \"<>\\^`{|}".contains(*letter)) {
        Some(letter) => {
            let letter = quoted(&letter.to_string());
            go(format!("invalid character {letter} in host name"))
        }
        None => Ok(()),
    }
}

/// What is wrong with a host, and who says so.
enum HostError {
    OfGo(String),
    Other(String),
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn bad_escape(text: &str) -> Option<&str> {
    let mut escapes = text.match_indices('%').map(|(at, _)| at);
    escapes.find_map(|at| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        let fits = digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let end = (at..=text.len().min(at + 3))
            .rev()
            .find(|end| text.is_char_boundary(*end));
        (!fits).then(|| text.get(at..end?)).flatten()
    })
}
