//! `urlParse` and `urlJoin`: URLs, parsed and built as Go's `net/url` does.

use std::fmt::Write;

use crate::fmt::quote;
use crate::function::{Args, Ctx, FuncError};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

pub(super) fn url_parse(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let text = args.str(0);
    let url = Url::parse(&text)
        .map_err(|error| FuncError::new(format!("unable to parse url: {error}")))?;
    let user = url.user.as_ref().map(Userinfo::print).unwrap_or_default();
    let entries = [
        ("fragment", url.fragment.as_str()),
        ("host", &url.host),
        ("hostname", url.hostname()),
        ("opaque", &url.opaque),
        ("path", &url.path),
        ("query", &url.query),
        ("scheme", &url.scheme),
        ("userinfo", &user),
    ];
    let entries = entries.map(|(key, value)| (key.into(), value.into()));
    Ok(Value::map(entries.into_iter().collect()))
}

pub(super) fn url_join(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let part = |key: &str| match args.map(0).and_then(|map| map.get(key)) {
        None => Ok(String::new()),
        Some(Value::Str(text)) => Ok(text.as_str().to_owned()),
        Some(Value::Nil) => Err(FuncError::new(
            "runtime error: invalid memory address or nil pointer dereference",
        )),
        Some(other) => Err(FuncError::new(format!(
            "unable to parse {key} key, must be of type string, but {} found",
            other.kind().name()
        ))),
    };
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        ..Url::default()
    };
    let user = part("userinfo")?;
    if !user.is_empty() {
        let text = format!("proto://{user}@host");
        let parsed = Url::parse(&text).map_err(|error| {
            FuncError::new(format!("unable to parse userinfo in dict: {error}"))
        })?;
        url.user = parsed.user;
    }
    Ok(url.print().into())
}

fn parse_error(text: &str, reason: &str) -> String {
    format!("parse {}: {reason}", quote(text.as_bytes(), false))
}

/// The parts of an address, escapes resolved in all but the query.
#[derive(Default)]
struct Url {
    scheme: String,
    opaque: String,
    user: Option<Userinfo>,
    host: String,
    path: String,
    query: String,
    fragment: String,
}

struct Userinfo {
    name: String,
    password: Option<String>,
}

/// Which part of an address a text is; what must be escaped depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    User,
    Host,
    Zone,
    Fragment,
}

impl Userinfo {
    fn print(&self) -> String {
        let mut text = escape(&self.name, Part::User);
        if let Some(password) = &self.password {
            text.push(':');
            text.push_str(&escape(password, Part::User));
        }
        text
    }
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url =
            Self::parse_without_fragment(rest).map_err(|reason| parse_error(rest, &reason))?;
        url.fragment =
            unescape(fragment, Part::Fragment).map_err(|reason| parse_error(text, &reason))?;
        Ok(url)
    }

    fn parse_without_fragment(text: &str) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            "*".clone_into(&mut url.path);
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        query.clone_into(&mut url.query);
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if rest
                .split('/')
                .next()
                .is_some_and(|first| first.contains(':'))
            {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let mut path = rest;
        let no_authority = url.scheme.is_empty() && rest.starts_with("///");
        if let Some(after) = rest.strip_prefix("//").filter(|_| !no_authority) {
            let end = after.find('/').unwrap_or(after.len());
            url.take_authority(&after[..end])?;
            path = &after[end..];
        }
        url.path = unescape(path, Part::Path)?;
        Ok(url)
    }

    fn take_authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = parse_host(host)?;
        let Some(user) = user else {
            return Ok(());
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(allowed) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = match user.split_once(':') {
            Some((name, password)) => (name, Some(unescape(password, Part::User)?)),
            None => (user, None),
        };
        self.user = Some(Userinfo {
            name: unescape(name, Part::User)?,
            password,
        });
        Ok(())
    }

    fn hostname(&self) -> &str {
        let host = strip_port(&self.host);
        match host.strip_prefix('[') {
            Some(inner) => inner.split(']').next().unwrap_or(inner),
            None => host,
        }
    }

    fn print(&self) -> String {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            let _ = write!(out, "{}:", self.scheme);
        }
        if self.opaque.is_empty() {
            self.print_hierarchy(&mut out);
        } else {
            out.push_str(&self.opaque);
        }
        if !self.query.is_empty() {
            let _ = write!(out, "?{}", self.query);
        }
        if !self.fragment.is_empty() {
            let _ = write!(out, "#{}", escape(&self.fragment, Part::Fragment));
        }
        out
    }

    fn print_hierarchy(&self, out: &mut String) {
        let has_authority = !self.host.is_empty() || self.user.is_some();
        if has_authority || (!self.scheme.is_empty() && !self.path.is_empty()) {
            out.push_str("//");
        }
        if let Some(user) = &self.user {
            let _ = write!(out, "{}@", user.print());
        }
        out.push_str(&escape(&self.host, Part::Host));
        let path = match self.path.as_str() {
            "*" => "*".to_owned(),
            path => escape(path, Part::Path),
        };
        if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
            out.push('/');
        }
        if out.is_empty()
            && path
                .split('/')
                .next()
                .is_some_and(|first| first.contains(':'))
        {
            // The first part would be taken for a scheme.
            out.push_str("./");
        }
        out.push_str(&path);
    }
}

/// The letters before a `:`; none when something else stands there first.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_host(host: &str) -> Result<String, String> {
    if !host.starts_with('[') {
        if let Some(colon) = host.rfind(':') {
            check_port(&host[colon..])?;
        }
        return unescape(host, Part::Host);
    }
    let Some(end) = host.rfind(']') else {
        return Err("missing ']' in host".to_owned());
    };
    check_port(&host[end + 1..])?;
    let Some(zone) = host[..end].find("%25") else {
        return unescape(host, Part::Host);
    };
    let address = unescape(&host[..zone], Part::Host)?;
    let zone = unescape(&host[zone..end], Part::Zone)?;
    Ok(format!(
        "{address}{zone}{}",
        unescape(&host[end..], Part::Host)?
    ))
}

/// Nothing, or a colon and digits.
fn check_port(port: &str) -> Result<(), String> {
    let digits = port.strip_prefix(':').unwrap_or(port);
    let valid =
        port.is_empty() || (port.starts_with(':') && digits.bytes().all(|b| b.is_ascii_digit()));
    if valid {
        return Ok(());
    }
    Err(format!(
        "invalid port {} after host",
        quote(port.as_bytes(), false)
    ))
}

fn strip_port(host: &str) -> &str {
    let bracket = host.rfind(']').map_or(0, |end| end + 1);
    match host[bracket..].rfind(':') {
        Some(colon) => &host[..bracket + colon],
        None => host,
    }
}

fn must_escape(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
        return false;
    }
    match part {
        Part::Host | Part::Zone => !b"!$&'()*+,;=:[]<>\"".contains(&byte),
        Part::Path => !b"$&+,/:;=@".contains(&byte) || byte == b'?',
        Part::User => !b"$&+,;=".contains(&byte),
        Part::Fragment => !b"$&+,/:;=?@!()*".contains(&byte),
    }
}

fn escape(text: &str, part: Part) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if must_escape(byte, part) {
            let _ = write!(out, "%{byte:02X}");
        } else {
            out.push(char::from(byte));
        }
    }
    out
}

fn unescape(text: &str, part: Part) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        if *first != b'%' {
            let in_host = matches!(part, Part::Host | Part::Zone);
            if in_host && first.is_ascii() && must_escape(*first, part) {
                let shown = quote(&[*first], false);
                return Err(format!("invalid character {shown} in host name"));
            }
            out.push(*first);
            continue;
        }
        let digits = rest
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let hex = digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(value) = hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            let end = rest.len().min(2);
            let shown = [b"%", &rest[..end]].concat();
            return Err(format!("invalid URL escape {}", quote(&shown, false)));
        };
        // In a host only what is not ASCII may be escaped, and `%25` before a zone.
        if part == Part::Host && value < 0x80 && value != b'%' {
            let shown = [b"%", &rest[..2]].concat();
            return Err(format!("invalid URL escape {}", quote(&shown, false)));
        }
        out.push(value);
        bytes = &rest[2..];
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}
