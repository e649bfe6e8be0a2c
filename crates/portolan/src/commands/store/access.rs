//! How a command reaches a store.

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_store::etcd::{Etcd, EtcdLogin, EtcdOptions, EtcdTls};
use portolan_store::{Embedded, EmbeddedOptions, Engine, STORE_FILE, Store};

use super::store_error;
use crate::error::CommandError;
use crate::input::Input;

/// How long a command waits for etcd.
const DEADLINE: Duration = Duration::from_secs(8);

/// Which store.
#[derive(Debug, clap::Args)]
pub(super) struct AccessArgs {
    /// Data directory of a single server
    #[arg(long, value_name = "DIR", help_heading = "Store")]
    pub(super) data: Option<Utf8PathBuf>,

    #[command(flatten)]
    pub(super) etcd: EtcdArgs,
}

/// How etcd is reached.
#[derive(Debug, clap::Args)]
pub(crate) struct EtcdArgs {
    /// Addresses of etcd's members, separated by commas
    #[arg(
        long,
        value_name = "URL",
        value_delimiter = ',',
        help_heading = "Store"
    )]
    pub(crate) etcd: Vec<String>,

    /// Certificate of the authority that signed etcd's certificates, for `https` addresses
    #[arg(long, value_name = "FILE", help_heading = "Store")]
    etcd_ca_file: Option<Utf8PathBuf>,

    /// Own certificate, if etcd asks for one
    #[arg(
        long,
        value_name = "FILE",
        requires = "etcd_key_file",
        help_heading = "Store"
    )]
    etcd_cert_file: Option<Utf8PathBuf>,

    /// Key of the own certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "etcd_cert_file",
        help_heading = "Store"
    )]
    etcd_key_file: Option<Utf8PathBuf>,

    /// User, if etcd wants one
    #[arg(
        long,
        value_name = "NAME",
        requires = "etcd_password_file",
        help_heading = "Store"
    )]
    etcd_user: Option<String>,

    /// File with the user's password
    #[arg(
        long,
        value_name = "FILE",
        requires = "etcd_user",
        help_heading = "Store"
    )]
    etcd_password_file: Option<Utf8PathBuf>,
}

/// A store that was opened.
pub(super) enum Opened {
    Embedded(Arc<Embedded>),
    Etcd(Arc<Etcd>),
}

impl Opened {
    pub(super) fn store(&self) -> Store {
        let engine: Arc<dyn Engine> = match self {
            Self::Embedded(engine) => engine.clone(),
            Self::Etcd(engine) => engine.clone(),
        };
        Store::new(engine).with_deadline(DEADLINE)
    }
}

impl AccessArgs {
    /// Opens the store. A directory must hold one, unless it is to be filled.
    pub(super) fn open(&self, is_new: bool) -> Result<Opened, CommandError> {
        match (&self.data, self.etcd.etcd.is_empty()) {
            (Some(data), true) => open_directory(data, is_new),
            (None, false) => self.etcd.open(),
            _ => Err(CommandError::usage(
                "either `--data DIR` or `--etcd URL` says which store is meant",
            )),
        }
    }

    /// The store in words.
    pub(super) fn place(&self) -> String {
        self.data
            .as_ref()
            .map_or_else(|| self.etcd.etcd.join(","), ToString::to_string)
    }
}

/// Opens the store of a single server.
pub(super) fn open_directory(data: &Utf8Path, is_new: bool) -> Result<Opened, CommandError> {
    let path = data.join(STORE_FILE);
    if is_new {
        std::fs::create_dir_all(data)?;
    } else if !path.is_file() {
        return Err(
            CommandError::usage(format!("there is no store in `{data}`")).hint(format!(
                "a server keeps its store in `{STORE_FILE}` of its data directory"
            )),
        );
    }
    let engine = Embedded::open(path.as_std_path(), EmbeddedOptions::default());
    Ok(Opened::Embedded(Arc::new(engine.map_err(store_error)?)))
}

impl EtcdArgs {
    pub(super) fn open(&self) -> Result<Opened, CommandError> {
        Ok(Opened::Etcd(self.engine()?))
    }

    /// The engine that the options describe.
    pub(crate) fn engine(&self) -> Result<Arc<Etcd>, CommandError> {
        let options = EtcdOptions {
            tls: self.tls()?,
            login: self.login()?,
            read_deadline: DEADLINE,
            ..EtcdOptions::new(&self.etcd)
        };
        Ok(Arc::new(Etcd::new(options).map_err(store_error)?))
    }

    fn tls(&self) -> Result<Option<EtcdTls>, CommandError> {
        let Some(authority) = &self.etcd_ca_file else {
            return Ok(None);
        };
        let identity = match (&self.etcd_cert_file, &self.etcd_key_file) {
            (Some(certificate), Some(key)) => Some((text(certificate)?, text(key)?)),
            _ => None,
        };
        let authority = text(authority)?;
        Ok(Some(EtcdTls {
            authority,
            identity,
        }))
    }

    fn login(&self) -> Result<Option<EtcdLogin>, CommandError> {
        let (Some(user), Some(file)) = (&self.etcd_user, &self.etcd_password_file) else {
            return Ok(None);
        };
        let password = text(file)?.trim_end_matches(['\r', '\n']).to_owned();
        Ok(Some(EtcdLogin {
            user: user.clone(),
            password,
        }))
    }
}

fn text(path: &Utf8Path) -> Result<String, CommandError> {
    let input = Input::read(path)?;
    String::from_utf8(input.bytes)
        .map_err(|_| CommandError::usage(format!("`{}` is not text", input.name)))
}
