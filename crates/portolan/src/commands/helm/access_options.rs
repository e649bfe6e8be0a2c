//! How the `helm` commands reach repositories and registries.

use std::sync::Arc;

use anyhow::Context;
use camino::Utf8PathBuf;
use portolan_http::{Credentials, Identity, Tls};
use portolan_oci::DockerConfig;
use portolan_sources::{Access, Lock, Options, Sources};

use crate::error::CommandError;
use crate::places;

/// The flags of Helm that say how charts are fetched.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AccessOptions {
    /// Fetch nothing: use what was fetched before
    #[arg(long, help_heading = "Sources and network")]
    offline: bool,

    /// Keep what is fetched here, and not in the user's cache
    #[arg(long, value_name = "DIR", help_heading = "Sources and network")]
    cache_dir: Option<Utf8PathBuf>,

    /// The user name at the repository
    #[arg(
        long,
        value_name = "NAME",
        requires = "password",
        help_heading = "Sources and network"
    )]
    username: Option<String>,

    /// The password at the repository
    #[arg(
        long,
        value_name = "PASSWORD",
        requires = "username",
        help_heading = "Sources and network"
    )]
    password: Option<String>,

    /// Send user name and password to every host the repository names
    #[arg(long, help_heading = "Sources and network")]
    pass_credentials: bool,

    /// Trust the certificate authorities in this file
    #[arg(long, value_name = "FILE", help_heading = "Sources and network")]
    ca_file: Option<Utf8PathBuf>,

    /// Show this client certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "key_file",
        help_heading = "Sources and network"
    )]
    cert_file: Option<Utf8PathBuf>,

    /// The key of the client certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "cert_file",
        help_heading = "Sources and network"
    )]
    key_file: Option<Utf8PathBuf>,

    /// Trust any certificate
    #[arg(long, help_heading = "Sources and network")]
    insecure_skip_tls_verify: bool,

    /// Speak plain HTTP with registries
    #[arg(long, help_heading = "Sources and network")]
    plain_http: bool,

    /// Read logins of registries from this file, and not from Docker's
    #[arg(long, value_name = "FILE", help_heading = "Sources and network")]
    registry_config: Option<Utf8PathBuf>,
}

impl AccessOptions {
    /// Opens the cache.
    pub(crate) fn sources(&self) -> Sources {
        let cache = self.cache_dir.clone();
        let cache = cache.unwrap_or_else(places::cache_directory);
        let options = Options {
            offline: self.offline,
            docker_config: Arc::new(self.docker_config()),
            ..Options::default()
        };
        Sources::open(&cache, Lock::default(), options)
    }

    /// How the one repository of the command is reached.
    pub(crate) fn access(&self) -> Result<Access, CommandError> {
        let login = self.username.as_ref().zip(self.password.as_ref());
        Ok(Access {
            credentials: login.map(|(name, password)| Credentials::new(name, password)),
            pass_credentials: self.pass_credentials,
            tls: self.tls()?,
            plain_http: self.plain_http,
            ..Access::default()
        })
    }

    fn docker_config(&self) -> DockerConfig {
        let path = self.registry_config.clone().or_else(places::docker_config);
        path.map(DockerConfig::at).unwrap_or_default()
    }

    fn tls(&self) -> Result<Option<Tls>, CommandError> {
        let pair = self.cert_file.as_ref().zip(self.key_file.as_ref());
        let identity = pair.map(|(certificate, key)| {
            Ok::<_, CommandError>(Identity {
                certificate: read(certificate)?,
                key: read(key)?.into(),
            })
        });
        let authorities = self.ca_file.iter().map(read).collect::<Result<_, _>>()?;
        let tls = Tls {
            authorities,
            identity: identity.transpose()?,
            skip_verification: self.insecure_skip_tls_verify,
        };
        Ok((tls != Tls::default()).then_some(tls))
    }
}

fn read(path: &Utf8PathBuf) -> Result<String, CommandError> {
    std::fs::read_to_string(path)
        .with_context(|| format!("cannot read `{path}`"))
        .map_err(CommandError::user)
}
