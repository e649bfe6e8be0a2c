//! Why something could not be fetched over HTTP.

use std::time::Duration;

use url::Url;

use crate::{Unreachable, host_of};

/// A failed HTTP exchange; addresses in it carry no user name or password.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address is not one that can be fetched.
    #[error("`{url}` is not an http or https address")]
    BadUrl {
        /// The address as written, without login and query.
        url: String,
    },
    /// A certificate or key could not be used.
    #[error("cannot use {what}")]
    Tls {
        /// The part of the TLS settings.
        what: &'static str,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The client could not be set up.
    #[error("cannot set up the HTTP client")]
    Setup(#[source] reqwest::Error),
    /// No answer came.
    #[error("cannot fetch `{url}`")]
    Request {
        /// The address asked for.
        url: String,
        /// What the connection said.
        #[source]
        source: reqwest::Error,
    },
    /// No connection can be made to the host.
    #[error("cannot fetch `{url}`")]
    Unreachable {
        /// The address asked for.
        url: String,
        /// The host and what stands in the way: the same for everything that is wanted from it.
        #[source]
        source: Unreachable,
    },
    /// The answer comes too slowly to wait for its end.
    #[error(
        "`{url}` is too slow: {received} bytes in {} seconds",
        elapsed.as_secs()
    )]
    TooSlow {
        /// The address asked for.
        url: String,
        /// How many bytes had come.
        received: u64,
        /// How long that took.
        elapsed: Duration,
    },
    /// A body is no longer taken, or not answered.
    #[error(
        "`{url}` does not go on: {sent} bytes sent in {} seconds",
        elapsed.as_secs()
    )]
    StuckUpload {
        /// The address it is sent to.
        url: String,
        /// How many bytes were sent.
        sent: u64,
        /// How long that took.
        elapsed: Duration,
    },
    /// The answer broke off.
    #[error("the download of `{url}` broke off after {received} bytes")]
    Truncated {
        /// The address asked for.
        url: String,
        /// How many bytes had come.
        received: u64,
        /// What the connection said.
        #[source]
        source: reqwest::Error,
    },
    /// The server answered, but not with what was asked for.
    #[error("`{url}` answered {status}{}", reason(*status))]
    Status {
        /// The address asked for.
        url: String,
        /// The HTTP status code.
        status: u16,
    },
    /// The answer is larger than the caller allows.
    #[error("`{url}` is larger than {limit} bytes")]
    TooLarge {
        /// The address asked for.
        url: String,
        /// The most that would have been read.
        limit: u64,
    },
}

impl HttpError {
    /// The status code the server answered with, if it answered.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }
}

impl HttpError {
    /// What is wrong with the host itself, if it answers nobody, or everybody with an error of its own.
    pub fn failing_host(&self) -> Option<String> {
        let host = |url: &str| Url::parse(url).map(|url| host_of(&url)).ok();
        match self {
            Self::Status { url, status } if *status >= 500 => Some(format!(
                "`{}` answers {status}{}",
                host(url)?,
                reason(*status)
            )),
            Self::Request { url, source } if !source.is_builder() && !source.is_redirect() => Some(
                format!("`{}` ends connections without an answer", host(url)?),
            ),
            _ => None,
        }
    }
}

fn reason(status: u16) -> String {
    let reason = reqwest::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    reason.map(|text| format!(" ({text})")).unwrap_or_default()
}

/// An address without user name, password, query and fragment: fit for messages.
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for addresses that cannot carry credentials at all.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

impl HttpError {
    /// Says that a text is no address that can be fetched.
    ///
    /// It cannot be parsed, so whatever may be a login or a signature in it is left out.
    pub fn bad_url(text: &str) -> Self {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        // A password may hold any sign, so everything up to the last `@` is taken for one.
        let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let separator = if scheme.is_empty() { "" } else { "://" };
        let url = format!("{scheme}{separator}{rest}");
        Self::BadUrl { url }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let url = Url::parse("https://ada:hunter2@example.com/a?sig=x#y").unwrap();
        assert_eq!(shown(&url), "https://example.com/a");
    }

    #[test]
    fn what_is_no_address_is_shown_without_its_password() {
        for (written, shown) in [
            (
                "http://ada:hunter2@host:99999/a?sig=x",
                "http://host:99999/a",
            ),
            ("http://ada:h/u?n#t@er2@:1", "http://:1"),
            ("ada:hunter2@host", "host"),
            ("host:9090/a", "host:9090/a"),
        ] {
            let error = HttpError::bad_url(written);
            assert_eq!(
                error.to_string(),
                format!("`{shown}` is not an http or https address")
            );
            assert!(!format!("{error:?}").contains("hunter"));
        }
    }
}
