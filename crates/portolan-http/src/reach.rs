//! Hosts that cannot be reached: each is tried once per run, and all other requests to it get the same error.
//!
//! ```text
//!   first request ──▶ turn of the host ──▶ tried ──▶ reached: all others go ahead at once
//!   the others    ──▶ wait for the turn            └▶ not reached: all others get the same `Unreachable`
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;
use url::Url;

/// A host that no connection can be made to; the same for everything that was wanted from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[error("cannot reach `{host}`: {why}")]
pub struct Unreachable {
    /// The host, with its port when the address names one.
    pub host: String,
    /// What stands in the way.
    pub why: UnreachableReason,
}

/// What stands in the way of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnreachableReason {
    /// No address is known for the name.
    UnknownName,
    /// Nobody listens there.
    Refused,
    /// The network does not lead there.
    NoRoute,
    /// Nobody answered in time.
    TimedOut,
    /// It is an address of the machine's own link, which is not called.
    OnLink,
}

/// What a run learned about hosts; clones share it.
#[derive(Debug, Clone, Default)]
pub struct KnownHosts(Arc<Hosts>);

#[derive(Debug, Default)]
struct Hosts {
    /// Whether nothing is remembered: every request tries its host.
    forgets: bool,
    unreachable: Mutex<HashMap<String, Unreachable>>,
    /// Whether a host was tried already; locked while somebody tries it.
    tried: Mutex<HashMap<String, Arc<tokio::sync::Mutex<bool>>>>,
}

/// The right to try a host first; others wait until it is dropped.
#[derive(Debug)]
pub struct FirstTry(OwnedMutexGuard<bool>);

// === impl Unreachable ===

impl Unreachable {
    /// Finds out from an error and its causes whether the host could not be reached.
    ///
    /// `None` means that a connection was made, or that the error is about something else.
    pub fn from_causes(error: &(dyn Error + 'static), url: &Url) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(known) = error.downcast_ref::<Self>() {
                return Some(known.clone());
            }
            if let Some(why) = UnreachableReason::of(error) {
                let host = host_of(url);
                return Some(Self { host, why });
            }
            cause = error.source();
        }
        None
    }
}

// === impl UnreachableReason ===

impl UnreachableReason {
    fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let is_slow = |error: &reqwest::Error| error.is_connect() && error.is_timeout();
        if error.downcast_ref().is_some_and(is_slow) {
            return Some(Self::TimedOut);
        }
        error.downcast_ref().and_then(Self::of_io_error)
    }

    fn of_io_error(error: &std::io::Error) -> Option<Self> {
        // An error inside of another is not among the causes that the outer one names.
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        if let Some(inner) = inner {
            return Self::of_io_error(inner);
        }
        match error.kind() {
            ErrorKind::ConnectionRefused => Some(Self::Refused),
            ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::AddrNotAvailable => Some(Self::NoRoute),
            // The standard library has no kind for failed lookups, only this text.
            _ if error
                .to_string()
                .starts_with("failed to lookup address information") =>
            {
                Some(Self::UnknownName)
            }
            _ => None,
        }
    }
}

impl fmt::Display for UnreachableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownName => "its name cannot be resolved",
            Self::Refused => "it refuses connections",
            Self::NoRoute => "there is no route to it",
            Self::TimedOut => "it does not answer",
            Self::OnLink => "it is an address of the machine's own link, which is never called",
        })
    }
}

// === impl KnownHosts ===

impl KnownHosts {
    /// Remembers nothing: for programs that run for long, whose hosts come back.
    pub fn forgetful() -> Self {
        Self(Arc::new(Hosts {
            forgets: true,
            ..Hosts::default()
        }))
    }

    /// Whether nothing is remembered.
    pub(crate) fn is_forgetful(&self) -> bool {
        self.0.forgets
    }

    /// Waits while somebody else tries the host for the first time.
    ///
    /// Returns `None` when the host is known to be reachable, the right to try it when nobody did so far, and an error
    /// when it is known to be out of reach.
    pub async fn turn(&self, url: &Url) -> Result<Option<FirstTry>, Unreachable> {
        if self.0.forgets {
            return Ok(None);
        }
        let tried = self.tried(url).lock_owned().await;
        self.first_try(url, tried)
    }

    /// Why a host cannot be reached, if somebody tried in vain.
    pub fn check(&self, url: &Url) -> Result<(), Unreachable> {
        match held(&self.0.unreachable).get(&host_of(url)) {
            Some(known) => Err(known.clone()),
            None => Ok(()),
        }
    }

    /// Writes down that a host cannot be reached.
    pub fn add(&self, unreachable: &Unreachable) {
        tracing::debug!(host = %unreachable.host, why = %unreachable.why, "host is out of reach");
        if self.0.forgets {
            return;
        }
        let mut all = held(&self.0.unreachable);
        all.entry(unreachable.host.clone())
            .or_insert_with(|| unreachable.clone());
    }

    fn first_try(
        &self,
        url: &Url,
        tried: OwnedMutexGuard<bool>,
    ) -> Result<Option<FirstTry>, Unreachable> {
        self.check(url)?;
        Ok((!*tried).then(|| FirstTry(tried)))
    }

    fn tried(&self, url: &Url) -> Arc<tokio::sync::Mutex<bool>> {
        Arc::clone(held(&self.0.tried).entry(host_of(url)).or_default())
    }
}

// === impl FirstTry ===

impl FirstTry {
    /// Lets the others go on: the host was tried, and whether in vain is written down.
    pub fn done(mut self) {
        *self.0 = true;
    }
}

/// The host of an address, with its port when it is not the scheme's own.
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn causes_are_told_apart_by_what_the_system_says() {
        let cases = [
            (
                ErrorKind::ConnectionRefused,
                Some(UnreachableReason::Refused),
            ),
            (
                ErrorKind::NetworkUnreachable,
                Some(UnreachableReason::NoRoute),
            ),
            (ErrorKind::ConnectionReset, None),
        ];
        for (kind, why) in cases {
            let error = std::io::Error::other(std::io::Error::from(kind));
            let found = Unreachable::from_causes(&error, &url("https://a.example/x"));
            assert_eq!(found.map(|found| found.why), why, "{kind:?}");
        }
        let text = "failed to lookup address information: Name or service not known";
        let error = std::io::Error::other(text);
        let found = Unreachable::from_causes(&error, &url("https://a.example:8443/x")).unwrap();
        assert_eq!(
            found.to_string(),
            "cannot reach `a.example:8443`: its name cannot be resolved"
        );
    }

    #[tokio::test]
    async fn a_host_is_tried_by_one_at_a_time_until_it_is_known() {
        let hosts = KnownHosts::default();
        let address = url("https://a.example/x");
        let first = hosts.turn(&address).await.unwrap().unwrap();
        let other = hosts.clone();
        let waiting = tokio::spawn(async move { other.turn(&url("https://a.example/y")).await });
        let gone = Unreachable {
            host: "a.example".to_owned(),
            why: UnreachableReason::Refused,
        };
        hosts.add(&gone);
        first.done();
        assert_eq!(waiting.await.unwrap().unwrap_err(), gone);
        assert!(
            hosts
                .turn(&url("https://b.example"))
                .await
                .unwrap()
                .is_some()
        );
    }

    #[tokio::test]
    async fn a_forgetful_memory_lets_everybody_try() {
        let hosts = KnownHosts::forgetful();
        let address = url("https://a.example/x");
        hosts.add(&Unreachable {
            host: "a.example".to_owned(),
            why: UnreachableReason::Refused,
        });
        assert!(hosts.check(&address).is_ok());
        assert!(hosts.turn(&address).await.unwrap().is_none());
    }

    /// Whoever is cancelled while trying says nothing about the host.
    #[tokio::test]
    async fn a_try_that_is_given_up_is_made_by_the_next() {
        let hosts = KnownHosts::default();
        let address = url("https://a.example/x");
        drop(hosts.turn(&address).await.unwrap().unwrap());
        let second = hosts.turn(&address).await.unwrap().unwrap();
        second.done();
        assert!(hosts.turn(&address).await.unwrap().is_none());
    }
}
