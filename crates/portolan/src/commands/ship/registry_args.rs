//! How registries are reached, and which base images are pinned.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use portolan_http::{Client, HttpOptions, Tls};
use portolan_oci::{DockerConfig, Registry, RegistryOptions, Transport};
use portolan_ship::BaseImages;
use portolan_sources::{Lock, Pin, PinKind};

use crate::commands::fetch::BASE_PIN;
use crate::error::CommandError;
use crate::places;

/// How registries are reached.
#[derive(Debug, Default, clap::Args)]
pub(super) struct RegistryArgs {
    /// Trust the certificate authorities in this file
    #[arg(long, value_name = "FILE", help_heading = "Registries")]
    ca_file: Option<Utf8PathBuf>,

    /// Trust any certificate
    #[arg(long, help_heading = "Registries")]
    insecure_skip_tls_verify: bool,

    /// Speak plain HTTP with registries; with those on this machine that is the default
    #[arg(long, help_heading = "Registries")]
    plain_http: bool,

    /// Read logins of registries from this file instead of Docker's
    #[arg(long, value_name = "FILE", help_heading = "Registries")]
    registry_config: Option<Utf8PathBuf>,
}

impl RegistryArgs {
    /// A client for all registries; logins are read when one asks.
    pub(super) fn registry(&self) -> Result<Arc<Registry>, CommandError> {
        let authorities = self.ca_file.iter().map(|path| {
            let text = std::fs::read_to_string(path);
            text.with_context(|| format!("cannot read `{path}`"))
                .map_err(CommandError::user)
        });
        let http = HttpOptions {
            tls: Tls {
                authorities: authorities.collect::<Result<_, _>>()?,
                skip_verification: self.insecure_skip_tls_verify,
                ..Tls::default()
            },
            ..HttpOptions::default()
        };
        let client = Client::new(&http).map_err(CommandError::user)?;
        let logins = self.registry_config.clone().or_else(places::docker_config);
        let options = RegistryOptions {
            transport: if self.plain_http {
                Transport::Plain
            } else {
                Transport::Auto
            },
            logins: Arc::new(logins.map(DockerConfig::at).unwrap_or_default()),
            ..RegistryOptions::default()
        };
        Ok(Arc::new(Registry::new(client, options)))
    }
}

/// The base images that the lock file of a project pins.
pub(super) struct BasePins {
    path: Utf8PathBuf,
    lock: Lock,
}

impl BasePins {
    pub(super) fn load(directory: &Utf8Path) -> Result<Self, CommandError> {
        let path = directory.join("portolan.lock");
        let lock = Lock::load(&path).map_err(CommandError::user)?;
        Ok(Self { path, lock })
    }

    /// Base images under these pins, or under none if they are to be looked up anew.
    pub(super) fn images(&self, registry: &Arc<Registry>, is_update: bool) -> BaseImages {
        let pins = self.lock.iter().filter_map(|(key, pin)| {
            let name = key.strip_prefix(BASE_PIN)?;
            Some((name.to_owned(), pin.digest.parse().ok()?))
        });
        let pins: BTreeMap<_, _> = if is_update {
            BTreeMap::new()
        } else {
            pins.collect()
        };
        BaseImages::new(Arc::clone(registry), pins)
    }

    /// Writes what is new into the lock file; returns the names whose pin is new or changed.
    pub(super) fn save(&mut self, images: &BaseImages) -> Result<Vec<String>, CommandError> {
        let mut changed = Vec::new();
        for (name, digest) in images.pins() {
            // A name that says its digest needs no pin.
            if name.contains('@') {
                continue;
            }
            let key = format!("{BASE_PIN}{name}");
            let pin = Pin {
                kind: PinKind::Oci,
                url: name.clone(),
                version: String::new(),
                digest: digest.to_string(),
            };
            if self.lock.get(&key) != Some(&pin) {
                self.lock.insert(key, pin);
                changed.push(name);
            }
        }
        if !changed.is_empty() {
            self.lock.save(&self.path).map_err(CommandError::user)?;
        }
        Ok(changed)
    }
}
