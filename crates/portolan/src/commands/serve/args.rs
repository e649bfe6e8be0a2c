//! The arguments of `portolan serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use portolan_server::{BackupOptions, KeyEncryptionKey, VaultOptions};
use portolan_store::level::NEWEST_LEVEL;

use crate::commands::store::EtcdArgs;
use crate::error::CommandError;
use crate::units::age;

/// The variable that can hold the keys for secrets.
const KEY_VARIABLE: &str = "PORTOLAN_SECRET_KEY";

/// Serve the objects of the control plane
///
/// The first start makes a certificate authority (`ca.pem`), the keys and a token of the user `admin` (`admin.token`, which works
/// for 24 hours) in the data directory, and says how to use them. Everything that was answered is on the disk.
///
/// Secrets are encrypted with the key in `secrets.key` of the data directory, in --secret-key-file or in `PORTOLAN_SECRET_KEY`: 32
/// bytes in base64. To rotate it, put a new key on a line before the old one; the server encrypts everything again, and then
/// the old line can be removed.
///
/// Several servers share one store in etcd (--etcd): each has a data directory of its own, for its keys and its audit log, and
/// the same `secrets.key`. Any of them answers; when one ends, another does its work between requests.
///
/// `/healthz`, `/readyz`, `/metrics` and `/openapi.json` need no token. SIGTERM ends it in good order.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan serve --data /var/lib/portolan
  portolan serve --data ./data --listen 127.0.0.1:7443
  portolan serve --data /var/lib/portolan --listen 0.0.0.0:7443 --name fleet.example.com
  portolan serve --data /var/lib/portolan --etcd http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379")]
pub(crate) struct ServeArgs {
    /// The directory of the keys and the audit log, and of the store unless that is in etcd
    #[arg(long, value_name = "DIRECTORY", help_heading = "Server")]
    pub(super) data: PathBuf,

    /// The address to listen on
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:7443",
        help_heading = "Server"
    )]
    pub(super) listen: SocketAddr,

    /// A name or address that clients call the server by, besides localhost and the address of --listen
    #[arg(long = "name", value_name = "NAME", help_heading = "Server")]
    pub(super) names: Vec<String>,

    /// The highest level of the stored format to use, while servers of an older release run
    ///
    /// The level rises when every running server can read the new one. Default: the newest that this release knows.
    #[arg(
        long,
        value_name = "LEVEL",
        default_value_t = NEWEST_LEVEL,
        hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(1..=NEWEST_LEVEL),
        help_heading = "Store"
    )]
    pub(super) max_level: u64,

    #[command(flatten)]
    pub(super) etcd: EtcdArgs,

    /// A directory in which the running server makes backups of the store
    ///
    /// Each is restored to a scratch store and compared before it counts. `fleet status` says how old the newest is.
    #[arg(long, value_name = "DIRECTORY", help_heading = "Backups")]
    backup_dir: Option<PathBuf>,

    /// How often a backup is made, such as `15m` or `1h`; the first one at the start
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1h",
        value_parser = age,
        requires = "backup_dir",
        help_heading = "Backups"
    )]
    backup_every: Duration,

    /// How many backups are kept; the oldest are removed
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 24,
        requires = "backup_dir",
        help_heading = "Backups"
    )]
    backup_keep: usize,

    /// The server's certificate chain in PEM; without it, one of the own authority
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        help_heading = "Certificates and keys"
    )]
    pub(super) tls_certificate: Option<PathBuf>,

    /// The key of --tls-certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_certificate",
        help_heading = "Certificates and keys"
    )]
    pub(super) tls_key: Option<PathBuf>,

    /// Keys that encrypt secrets, one in base64 per line, the current one first
    #[arg(long, value_name = "FILE", help_heading = "Certificates and keys")]
    secret_key_file: Option<PathBuf>,

    /// The address of the Vault that secrets with a `vault` are read from
    #[arg(
        long,
        value_name = "URL",
        requires = "vault_token_file",
        help_heading = "Vault"
    )]
    vault: Option<String>,

    /// The file with the token for Vault, read before every request
    #[arg(long, value_name = "FILE", requires = "vault", help_heading = "Vault")]
    vault_token_file: Option<PathBuf>,
}

impl ServeArgs {
    /// Where and when backups are made.
    pub(super) fn backups(&self) -> Result<Option<BackupOptions>, CommandError> {
        let Some(directory) = self.backup_dir.clone() else {
            return Ok(None);
        };
        if self.backup_every.is_zero() || self.backup_keep == 0 {
            let error = "`--backup-every` and `--backup-keep` must be more than nothing";
            return Err(CommandError::usage(error));
        }
        Ok(Some(BackupOptions {
            directory,
            every: self.backup_every,
            keep: self.backup_keep,
        }))
    }

    pub(super) fn vault(&self) -> Option<VaultOptions> {
        Some(VaultOptions {
            address: self.vault.clone()?,
            token_file: self.vault_token_file.clone()?,
            authorities: Vec::new(),
        })
    }

    /// The keys of the file or of the variable; none when the server has its own.
    pub(super) fn secret_keys(&self) -> Result<Vec<KeyEncryptionKey>, CommandError> {
        let text = match (&self.secret_key_file, std::env::var(KEY_VARIABLE)) {
            (Some(path), _) => std::fs::read_to_string(path).map_err(|error| {
                let context = format!("cannot read `{}`", path.display());
                CommandError::user(anyhow::Error::new(error).context(context))
            })?,
            (None, Ok(text)) if !text.is_empty() => text,
            _ => return Ok(Vec::new()),
        };
        KeyEncryptionKey::read_all(&text).map_err(CommandError::user)
    }
}
