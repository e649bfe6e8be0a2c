//! A certificate that its server renews while it runs.

use std::sync::Arc;

use tokio::sync::watch;

/// A certificate chain and its key, to be replaced at any time; the next connection gets the new one.
#[derive(Clone)]
pub struct SharedCertificate {
    current: Arc<watch::Sender<Pair>>,
}

struct Pair {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl SharedCertificate {
    /// Begins with a chain and a key in PEM format.
    pub fn new(chain: &str, key: &str) -> Self {
        Self {
            current: Arc::new(watch::Sender::new(Pair::new(chain, key))),
        }
    }

    /// Replaces them.
    pub fn set(&self, chain: &str, key: &str) {
        self.current.send_replace(Pair::new(chain, key));
    }

    pub(super) fn current(&self) -> (Vec<u8>, Vec<u8>) {
        let pair = self.current.borrow();
        (pair.chain.clone(), pair.key.clone())
    }

    /// Tells when they were replaced; the first time at once, because that may have been before.
    pub(super) fn replacements(&self) -> Replacements {
        let mut receiver = self.current.subscribe();
        receiver.mark_changed();
        Replacements(receiver)
    }
}

/// Waits for replacements of a certificate.
pub(super) struct Replacements(watch::Receiver<Pair>);

impl Replacements {
    pub(super) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Pair {
    fn new(chain: &str, key: &str) -> Self {
        Self {
            chain: chain.as_bytes().to_vec(),
            key: key.as_bytes().to_vec(),
        }
    }
}

impl std::fmt::Debug for SharedCertificate {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("SharedCertificate([redacted])")
    }
}

impl PartialEq for SharedCertificate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.current, &other.current)
    }
}

impl Eq for SharedCertificate {}
