//! The `format` keyword: the formats that Helm's schema library checks, as loosely as it does. Other formats accept
//! every text.

use std::net::{Ipv4Addr, Ipv6Addr};

use portolan_gotmpl::functions::GoRegex;

/// Whether a text has a format.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date" => date(text),
        "time" => time(text),
        "date-time" => date_time(text) || date(text) || time(text),
        "hostname" => hostname(text),
        "email" | "idn-email" => email(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok() || (text.contains('.') && ipv6(text)),
        "ipv6" => ipv6(text),
        "uri" | "iri" => uri_reference(text) && has_scheme(text),
        "uri-reference" | "iri-reference" => uri_reference(text),
        "uri-template" => uri_reference(text) && balanced(text),
        "uuid" => uuid(text),
        "regex" => GoRegex::new(text).is_ok(),
        "json-pointer" => json_pointer(text),
        "relative-json-pointer" => relative_json_pointer(text),
        _ => true,
    }
}

/// Digits of a fixed width that lie in a range.
fn number(text: &str, range: std::ops::RangeInclusive<u32>) -> bool {
    text.bytes().all(|b| b.is_ascii_digit()) && text.parse().is_ok_and(|n| range.contains(&n))
}

fn date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    if year.len() != 4 || month.len() != 2 || day.len() != 2 {
        return false;
    }
    let (Ok(year), Ok(month)) = (year.parse::<u32>(), month.parse::<u32>()) else {
        return false;
    };
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        1..=12 => 31,
        _ => return false,
    };
    number(day, 1..=days)
}

fn time(text: &str) -> bool {
    let clock = text
        .strip_suffix('Z')
        .unwrap_or_else(|| match text.rfind(['+', '-']) {
            Some(at) if offset(&text[at + 1..]) => &text[..at],
            _ => text,
        });
    let parts: Vec<_> = clock.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else {
        return false;
    };
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    (1..=2).contains(&hours.len())
        && number(hours, 0..=23)
        && minutes.len() == 2
        && number(minutes, 0..=59)
        && seconds.len() == 2
        && number(seconds, 0..=59)
        && !fraction.is_empty()
        && fraction.bytes().all(|b| b.is_ascii_digit())
}

fn offset(text: &str) -> bool {
    matches!(text.split_once(':'), Some((hours, minutes))
        if hours.len() == 2 && minutes.len() == 2 && number(hours, 0..=24) && number(minutes, 0..=59))
}

fn date_time(text: &str) -> bool {
    let Some((day, clock)) = text.split_once('T') else {
        return false;
    };
    let zoned = clock.ends_with('Z') || clock.contains(['+', '-']);
    date(day) && zoned && time(clock)
}

fn hostname(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() < 256 && text.split('.').all(label)
}

fn email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(at), Some(_)) => &text[at + 1..text.len() - 1],
        _ => text,
    };
    let legal =
        |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c) || !c.is_ascii();
    match address.rsplit_once('@') {
        Some((local, domain)) => {
            let dots = |part: &str| part.split('.').all(|piece| !piece.is_empty());
            let quoted = local.len() > 1 && local.starts_with('"') && local.ends_with('"');
            (quoted || (dots(local) && local.chars().all(legal)))
                && dots(domain)
                && domain.chars().all(legal)
        }
        None => false,
    }
}

fn ipv6(text: &str) -> bool {
    text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

fn has_scheme(text: &str) -> bool {
    match text.split_once(':') {
        Some((scheme, _)) => {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        }
        None => false,
    }
}

/// What Go's URL parser takes: no control characters, no broken escapes, no colon in a first part without a scheme.
fn uri_reference(text: &str) -> bool {
    let escapes = text.match_indices('%').all(|(at, _)| {
        let digits = text.get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
    });
    let first = text.split(['/', '?', '#']).next().unwrap_or_default();
    let colon = !first.contains(':') || has_scheme(text);
    escapes && colon && !text.contains('\\') && !text.chars().any(|c| c.is_ascii_control())
}

fn balanced(text: &str) -> bool {
    let mut open = false;
    for letter in text.chars() {
        match letter {
            '{' if open => return false,
            '{' => open = true,
            '}' => open = false,
            _ => {}
        }
    }
    !open
}

fn uuid(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts
            .iter()
            .all(|part| part.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn json_pointer(text: &str) -> bool {
    let escapes = |part: &str| {
        part.match_indices('~')
            .all(|(at, _)| matches!(part.as_bytes().get(at + 1), Some(b'0' | b'1')))
    };
    text.is_empty() || (text.starts_with('/') && text.split('/').all(escapes))
}

fn relative_json_pointer(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let canonical = number == "0" || (digits > 0 && !number.starts_with('0'));
    canonical && (rest == "#" || json_pointer(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_checked_loosely() {
        for (format, text) in [
            ("date", "2024-02-29"),
            ("time", "10:00:00Z"),
            ("date-time", "2024-01-01T10:00:00.5+02:00"),
            ("hostname", "a.example"),
            ("email", "a.b@example.com"),
            ("ipv4", "10.0.0.1"),
            ("ipv6", "::1"),
            ("uri", "https://example.com/a?b=c"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000"),
            ("made-up", "anything"),
        ] {
            assert!(fits(format, text), "{format} {text}");
        }
        for (format, text) in [
            ("date", "2023-02-29"),
            ("hostname", "-a"),
            ("email", "example"),
            ("ipv4", "10.0.0"),
            ("uri", "example.com"),
            ("uri", ""),
            ("uuid", "x"),
        ] {
            assert!(!fits(format, text), "{format} {text}");
        }
    }
}
