//! `portolan serve`: the API server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use portolan_identity::CaPin;
use portolan_listen::{ListenConfig, TlsSource};
use portolan_server::{
    ApiServer, DataDirectory, FirstStart, KeyEncryptionKey, ServerOptions, StartedServer,
    VaultOptions,
};
use portolan_store::etcd::Etcd;
use portolan_store::level::NEWEST_LEVEL;
use portolan_store::{Embedded, EmbeddedOptions, Engine, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::CommandResult;
use super::store::{EtcdArgs, store_error};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

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
    data: PathBuf,

    /// The address to listen on
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:7443",
        help_heading = "Server"
    )]
    listen: SocketAddr,

    /// A name or address that clients call the server by, besides localhost and the address of --listen
    #[arg(long = "name", value_name = "NAME", help_heading = "Server")]
    names: Vec<String>,

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
    max_level: u64,

    #[command(flatten)]
    etcd: EtcdArgs,

    /// The server's certificate chain in PEM; without it, one of the own authority
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        help_heading = "Certificates and keys"
    )]
    tls_certificate: Option<PathBuf>,

    /// The key of --tls-certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_certificate",
        help_heading = "Certificates and keys"
    )]
    tls_key: Option<PathBuf>,

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

pub(crate) fn serve(args: &ServeArgs, app: &App) -> CommandResult {
    app.runtime()?.block_on(run(args, &app.printer))
}

async fn run(args: &ServeArgs, printer: &Printer) -> CommandResult {
    let in_directory = |error: std::io::Error| {
        let context = format!("cannot use the data directory `{}`", args.data.display());
        CommandError::user(anyhow::Error::new(error).context(context))
    };
    let files = DataDirectory::open(&args.data).map_err(in_directory)?;
    let _lock = files.lock().map_err(in_directory)?;
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        let context = format!("cannot listen on `{}`", args.listen);
        CommandError::user(anyhow::Error::new(error).context(context))
    })?;
    let address = listener.local_addr()?;
    let engine = ServerEngine::open(args, &files)?;
    engine.warn(printer).await;
    let names = args.names(address);
    let options = ServerOptions {
        secret_keys: args.secret_keys()?,
        vault: args.vault(),
        address: format!("https://{}", host_and_port(&names, address)),
        max_level: args.max_level,
        ..ServerOptions::new(&args.data)
    };
    let (server, first) = ApiServer::start(engine.store(), options)
        .await
        .map_err(CommandError::user)?;
    let config = ListenConfig {
        limits: portolan_server::listen_limits(),
        tls: Some(args.tls(&server, names.clone())?),
        client_certificates: Some(portolan_identity::EXPORTER_LABEL),
        readiness: server.readiness(),
        ..ListenConfig::default()
    };
    let router = server.router(names);
    let cancelled = CancellationToken::new();
    let served = portolan_listen::serve(listener, router, config, cancelled.clone());
    welcome(&files, first.as_ref(), address, printer);
    let stop = wait_for_signal(cancelled.clone(), &engine);
    let (served, failure, stopped) = tokio::join!(served, server.run(cancelled.clone()), stop);
    served.map_err(CommandError::user)?;
    // Only a new start shows what is on the disk.
    let stopped = stopped?.map(|failure| format!("the store has stopped: {failure}"));
    match stopped.or(failure) {
        None => Ok(ExitStatus::Clean),
        Some(failure) => Err(CommandError::usage(failure)),
    }
}

/// Where the objects are.
enum ServerEngine {
    Embedded(Arc<Embedded>),
    Etcd(Arc<Etcd>),
}

impl ServerEngine {
    fn open(args: &ServeArgs, files: &DataDirectory) -> Result<Self, CommandError> {
        if args.etcd.etcd.is_empty() {
            let engine = Embedded::open(&files.store(), EmbeddedOptions::default());
            return Ok(Self::Embedded(Arc::new(engine.map_err(store_error)?)));
        }
        if files.store().exists() {
            let error = format!(
                "`{}` has a store of its own, and --etcd names another one",
                args.data.display()
            );
            let hint = "`portolan store migrate --from embedded --to etcd` moves it; then remove `store.redb`";
            return Err(CommandError::usage(error).hint(hint));
        }
        Ok(Self::Etcd(args.etcd.engine()?))
    }

    fn store(&self) -> Store {
        Store::new(match self {
            Self::Embedded(engine) => Arc::clone(engine) as Arc<dyn Engine>,
            Self::Etcd(engine) => Arc::clone(engine) as Arc<dyn Engine>,
        })
    }

    /// Names the bugs of etcd's releases that matter.
    async fn warn(&self, printer: &Printer) {
        let Self::Etcd(engine) = self else {
            return;
        };
        for member in engine.members().await {
            match &member.version {
                Ok(version) if !member.bugs.is_empty() => printer.warning(&format!(
                    "etcd {version} at {} has known bugs: {}",
                    member.endpoint,
                    member.bugs.join("; ")
                )),
                Ok(_) => {}
                Err(why) => {
                    printer.warning(&format!(
                        "etcd at {} does not answer: {why}",
                        member.endpoint
                    ));
                }
            }
        }
    }

    /// Why the store cannot write any more; never for etcd, which others look after.
    async fn failed(&self) -> String {
        match self {
            Self::Embedded(engine) => engine.failed().await,
            Self::Etcd(_) => std::future::pending().await,
        }
    }
}

/// How other servers call this one.
fn host_and_port(names: &[String], address: SocketAddr) -> String {
    let name = names.first().map_or("localhost", String::as_str);
    if name.contains(':') {
        format!("[{name}]:{}", address.port())
    } else {
        format!("{name}:{}", address.port())
    }
}

/// Ends the server at a signal, or when the store cannot write any more; then it says why.
async fn wait_for_signal(
    cancelled: CancellationToken,
    engine: &ServerEngine,
) -> std::io::Result<Option<String>> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let failure = tokio::select! {
        _ = terminated.recv() => None,
        _ = interrupted.recv() => None,
        failure = engine.failed() => Some(failure),
        () = cancelled.cancelled() => None,
    };
    cancelled.cancel();
    Ok(failure)
}

fn welcome(
    files: &DataDirectory,
    first: Option<&FirstStart>,
    address: SocketAddr,
    printer: &Printer,
) {
    printer.note(&format!("listening on https://{address}"));
    let Some(first) = first else {
        return;
    };
    let (token, authority) = (first.token_file.display(), files.authority());
    printer.note(&format!(
        "made an authority and a token for user admin, which works for {} hours; try:",
        first.token_life.as_secs() / 3600
    ));
    printer.note(&format!(
        "  portolan fleet login --server https://localhost:{} --token-file {token} --ca-file {}",
        address.port(),
        authority.display()
    ));
    printer.note("  portolan fleet get namespaces");
}

impl ServeArgs {
    /// The names that clients may use: those that were given, and the local ones.
    fn names(&self, address: SocketAddr) -> Vec<String> {
        let mut names = self.names.clone();
        names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        if !address.ip().is_unspecified() {
            names.push(address.ip().to_string());
        }
        names.sort();
        names.dedup();
        // The first one is the name in the certificate.
        if let Some(first) = self.names.first() {
            names.retain(|name| name != first);
            names.insert(0, first.clone());
        }
        names
    }

    fn vault(&self) -> Option<VaultOptions> {
        Some(VaultOptions {
            address: self.vault.clone()?,
            token_file: self.vault_token_file.clone()?,
            authorities: Vec::new(),
        })
    }

    /// The certificate of the files, or one of the fleet's own authority.
    fn tls(&self, server: &StartedServer, names: Vec<String>) -> Result<TlsSource, CommandError> {
        let (Some(certificate), Some(key)) = (&self.tls_certificate, &self.tls_key) else {
            return server.tls(names).map_err(CommandError::user);
        };
        // Agents know the server by the last certificate of its chain.
        let chain = std::fs::read_to_string(certificate).map_err(|error| {
            let context = format!("cannot read `{}`", certificate.display());
            CommandError::user(anyhow::Error::new(error).context(context))
        })?;
        let chain = portolan_identity::certificates_from_pem(&chain).map_err(CommandError::user)?;
        if let Some(last) = chain.last() {
            server.set_pin(CaPin::of_certificate(last).map_err(CommandError::user)?);
        }
        Ok(TlsSource::Files {
            certificate: certificate.clone(),
            key: key.clone(),
        })
    }

    fn secret_keys(&self) -> Result<Vec<KeyEncryptionKey>, CommandError> {
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
