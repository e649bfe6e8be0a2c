//! How sources are reached: options for all sources, and for each source.

use std::fmt;
use std::sync::Arc;

use portolan_http::{ByteProgress, Credentials, HttpOptions, Tls};
use portolan_oci::DockerConfig;

use crate::Limits;

/// What holds for every source.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Refuses every network access.
    pub offline: bool,
    /// What pins are worth.
    pub pinning: Pinning,
    /// Time limits, redirects, concurrency, proxy; its TLS settings hold for sources without their own.
    pub http: HttpOptions,
    /// Logins of registries, as the binary found them (`$DOCKER_CONFIG/config.json` or `~/.docker/config.json`).
    pub docker_config: Arc<DockerConfig>,
    /// Bounds on what is fetched.
    pub limits: Limits,
    /// Whether git sources may be `file://` addresses.
    pub allow_local_git: bool,
    /// Is told of everything that is fetched.
    pub watch: Watch,
}

/// Is told by name of everything that is fetched, before a connection is opened.
#[derive(Clone, Default)]
pub struct Watch(Option<Arc<Listener>>);

type Listener = dyn Fn(&str) + Send + Sync;

/// What a pin is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pinning {
    /// What is pinned is used; what is not is resolved.
    #[default]
    Prefer,
    /// Everything is resolved afresh.
    Update,
    /// What is not pinned is an error.
    Require,
}

/// What holds for one source, as its Secrets and fields say.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// User name and password.
    pub credentials: Option<Credentials>,
    /// Sends the credentials to other hosts that a chart repository names, too.
    pub pass_credentials: bool,
    /// Whom to trust for this source.
    pub tls: Option<Tls>,
    /// Speaks plain HTTP with a registry (`insecure: true`).
    pub plain_http: bool,
    /// Logins of registries for this source (a Secret of type `kubernetes.io/dockerconfigjson`).
    pub docker_config: Option<Arc<DockerConfig>>,
    /// Is told of the bytes that have come.
    pub progress: ByteProgress,
}

// === impl Watch ===

impl Watch {
    /// Calls a function with the name of what is about to be fetched.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(crate) fn tell(&self, what: &str) {
        if let Some(tell) = &self.0 {
            tell(what);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.0.is_some()).finish()
    }
}
