//! Pulls from a real registry, and from servers that misbehave.

#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

mod docker_registry;
mod hostile;
mod logins;

use std::sync::Arc;

use portolan_http::{Client, HttpOptions, Proxy, Tls};
use portolan_oci::{Descriptor, DockerConfig, OciError, Registry, RegistryOptions, Repository};

/// A client with no logins, no proxy and no second tries.
fn anonymous() -> Registry {
    with_logins(DockerConfig::default())
}

fn with_logins(logins: DockerConfig) -> Registry {
    let options = RegistryOptions {
        logins: Arc::new(logins),
        ..RegistryOptions::default()
    };
    Registry::new(client(Tls::default()), options)
}

fn client(tls: Tls) -> Client {
    let options = HttpOptions {
        tls,
        proxy: Proxy::None,
        retries: 0,
        ..HttpOptions::default()
    };
    Client::new(&options).unwrap()
}

async fn read_blob(
    registry: &Registry,
    repository: &Repository,
    descriptor: &Descriptor,
) -> Result<Vec<u8>, OciError> {
    let mut content = Vec::new();
    let store = |piece: &[u8]| {
        content.extend_from_slice(piece);
        Ok(())
    };
    registry.blob(repository, descriptor, store).await?;
    Ok(content)
}
