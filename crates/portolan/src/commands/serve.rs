//! `portolan serve`: the API server.

mod args;
mod print;

use portolan_listen::{ListenConfig, TlsSource};
use portolan_server::{
    ApiServer, DataDirectory, ServerHosts, ServerOptions, ServerStore, ServerStoreError,
    StartedServer,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::CommandResult;
use super::store::store_error;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::interrupt;
use crate::printer::Printer;
pub(crate) use args::ServeArgs;

pub(crate) fn serve(args: &ServeArgs, app: &App) -> CommandResult {
    portolan_agent::forbid_core_dumps();
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
    let store = open_store(args, &files)?;
    for warning in store.warnings().await {
        printer.warning(&warning);
    }
    let names = ServerHosts::new(&args.names, address);
    let options = ServerOptions {
        secret_keys: args.secret_keys()?,
        vault: args.vault(),
        backups: args.backups()?,
        address: names.url(),
        max_level: args.max_level,
        ..ServerOptions::new(&args.data)
    };
    let (server, first) = ApiServer::start(store.store(), options)
        .await
        .map_err(CommandError::user)?;
    let config = ListenConfig {
        limits: portolan_server::listen_limits(),
        tls: Some(tls(args, &server, &names)?),
        client_certificates: Some(portolan_identity::EXPORTER_LABEL),
        readiness: server.readiness(),
        metrics: server.metrics(),
        ..ListenConfig::default()
    };
    let router = server.router(names.all().to_vec());
    let cancelled = CancellationToken::new();
    let served = portolan_listen::serve(listener, router, config, cancelled.clone());
    print::welcome(&files, first.as_ref(), address, printer);
    let stop = wait_for_end(cancelled.clone(), &store);
    let (served, failure, stopped) = tokio::join!(served, server.run(cancelled.clone()), stop);
    served.map_err(CommandError::user)?;
    // Only a new start shows what is on the disk.
    let stopped = stopped?.map(|failure| format!("the store has stopped: {failure}"));
    match stopped.or(failure) {
        None => Ok(ExitStatus::Clean),
        Some(failure) => Err(CommandError::usage(failure)),
    }
}

fn open_store(args: &ServeArgs, files: &DataDirectory) -> Result<ServerStore, CommandError> {
    let etcd = (!args.etcd.etcd.is_empty()).then(|| args.etcd.engine());
    ServerStore::open(files, etcd.transpose()?).map_err(|error| match error {
        ServerStoreError::Store(error) => store_error(error),
        ServerStoreError::TwoStores(_) => {
            let error = format!(
                "`{}` has a store of its own, and --etcd names another one",
                args.data.display()
            );
            let hint = "`portolan store migrate --from embedded --to etcd` moves it; then remove `store.redb`";
            CommandError::usage(error).hint(hint)
        }
    })
}

/// The certificate of the files, or one of the fleet's own authority.
fn tls(
    args: &ServeArgs,
    server: &StartedServer,
    names: &ServerHosts,
) -> Result<TlsSource, CommandError> {
    match (&args.tls_certificate, &args.tls_key) {
        (Some(certificate), Some(key)) => server
            .tls_from_files(certificate, key)
            .map_err(CommandError::user),
        _ => server.tls(names.all().to_vec()).map_err(CommandError::user),
    }
}

/// Ends the server at a signal, or when the store cannot write any more; then it says why.
async fn wait_for_end(
    cancelled: CancellationToken,
    store: &ServerStore,
) -> std::io::Result<Option<String>> {
    let failure = tokio::select! {
        ended = interrupt::asked_to_end() => ended.map(|()| None)?,
        failure = store.failed() => Some(failure),
        () = cancelled.cancelled() => None,
    };
    cancelled.cancel();
    Ok(failure)
}
