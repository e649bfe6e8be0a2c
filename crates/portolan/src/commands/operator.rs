//! `portolan operator`: carries rollouts out on a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portolan_client::EventPublisher;
use portolan_cluster::{Access, Cluster, LeaseOptions};
use portolan_operator::{Measure, NoServer, Operator, OperatorOptions, serve};
use portolan_prometheus::FileServer;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::CommandResult;
use super::events_args::{EventsArgs, deliver};
use super::prometheus_args::PrometheusLoginArgs;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::interrupt;
use crate::printer::Printer;

/// How long the lease holds without being renewed: what another operator waits for when this one dies.
const LEASE: Duration = Duration::from_secs(15);

/// Carry out the rollouts of a cluster
///
/// Watches every `IstioCanaryDeployment` and all that they are made of, moves traffic step by step, judges new revisions by what
/// Prometheus counted, and goes back when one is worse. Several operators may run at once: the one that holds the lease
/// acts, the others wait. `/healthz`, `/readyz` and `/metrics` are answered at --listen. SIGTERM ends it in good order: what
/// has begun is ended, and the lease is given back.
///
/// Files with credentials are read again before each question, so that a token or certificate may be replaced at any time.
///
/// Logs are written to stderr if `PORTOLAN_LOG` asks for them, such as `PORTOLAN_LOG=info`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan crds | kubectl apply --server-side -f -
  portolan operator --prometheus http://prometheus.monitoring:9090
  portolan operator --prometheus https://mimir.example.com/prometheus --prometheus-token-file /run/secrets/token
  portolan operator --namespace shop --context staging --listen 127.0.0.1:9181
  portolan operator --events-namespace shop --events-server https://fleet.example:7443 --events-token-file token")]
pub(crate) struct OperatorArgs {
    /// The Prometheus server that counts requests; without it nothing can be proven, and rollouts hold
    #[arg(long, value_name = "URL", help_heading = "Prometheus")]
    prometheus: Option<String>,

    #[command(flatten)]
    login: PrometheusLoginArgs,

    /// Only the rollouts of this namespace
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    namespace: Option<String>,

    /// Where `/metrics`, `/healthz` and `/readyz` are answered
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9181",
        help_heading = "Server"
    )]
    listen: SocketAddr,

    /// The Lease that decides which of several operators acts, as NAMESPACE/NAME or NAME
    #[arg(
        long,
        value_name = "NAME",
        default_value = "portolan-operator",
        help_heading = "Server"
    )]
    lease: String,

    /// The kubeconfig; without it `KUBECONFIG`, `~/.kube/config` and the pod's service account are tried
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    context: Option<String>,

    #[command(flatten)]
    events: EventsArgs,
}

pub(crate) fn operator(args: &OperatorArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    app.runtime()?.block_on(run(args, printer))
}

/// How long the end of the operator waits until a fleet server has all events.
const LAST_EVENTS: Duration = Duration::from_secs(3);

/// The port is open before the cluster is asked for anything: credentials may take their time.
async fn run(args: &OperatorArgs, printer: &Printer) -> CommandResult {
    // An address that is none is told before anything is opened.
    let measure = args.measure()?;
    let (publisher, delivery) = args.events.publisher(printer)?;
    let address = args.listen;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let error = anyhow::Error::new(error);
        CommandError::user(error.context(format!("cannot listen on `{address}`")))
    })?;
    printer.note(&format!("listening on http://{}", listener.local_addr()?));
    let operator = Operator::new(args.options(measure, publisher.clone()).await?);
    let cancelled = CancellationToken::new();
    let server = serve(listener, operator.listen_config(), cancelled.clone());
    let stop = wait_for_end(cancelled.clone());
    let work = async {
        let ended = tokio::join!(server, operator.run(cancelled.clone()), stop);
        publisher.flush(LAST_EVENTS).await;
        ended
    };
    let (served, (), stopped) = tokio::select! {
        ended = work => ended,
        () = deliver(&publisher, delivery, printer) => return Ok(ExitStatus::Clean),
    };
    stopped?;
    served.map_err(CommandError::user)?;
    Ok(ExitStatus::Clean)
}

async fn wait_for_end(cancelled: CancellationToken) -> std::io::Result<()> {
    tokio::select! {
        ended = interrupt::asked_to_end() => ended?,
        () = cancelled.cancelled() => {}
    }
    cancelled.cancel();
    Ok(())
}

impl OperatorArgs {
    async fn options(
        &self,
        measure: Arc<dyn Measure>,
        publisher: EventPublisher,
    ) -> Result<OperatorOptions, CommandError> {
        let access = Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            plugin_runner: std::env::current_exe().ok(),
        };
        let cluster = Cluster::connect(&access)
            .await
            .map_err(CommandError::user)?;
        let instance = instance();
        Ok(OperatorOptions {
            cluster,
            namespace: self.namespace.clone(),
            measure,
            publisher,
            lease: Some(self.lease(&instance)),
            instance,
            deadly: None,
        })
    }

    fn measure(&self) -> Result<Arc<dyn Measure>, CommandError> {
        let Some(address) = &self.prometheus else {
            return Ok(Arc::new(NoServer));
        };
        let files = self.login.files(address)?;
        let server = FileServer::new(files).map_err(CommandError::user)?;
        Ok(Arc::new(server))
    }

    /// Without a namespace of its own, the lease lives where the operator does.
    fn lease(&self, holder: &str) -> LeaseOptions {
        let (namespace, name) = match self.lease.split_once('/') {
            Some((namespace, name)) => (namespace.to_owned(), name),
            None => (self.own_namespace(), self.lease.as_str()),
        };
        LeaseOptions {
            namespace,
            name: name.to_owned(),
            holder: holder.to_owned(),
            duration: LEASE,
        }
    }

    fn own_namespace(&self) -> String {
        const FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
        let of_pod = std::fs::read_to_string(FILE).ok();
        let of_pod = of_pod.map(|text| text.trim().to_owned());
        let of_pod = of_pod.filter(|text| !text.is_empty());
        of_pod
            .or_else(|| self.namespace.clone())
            .unwrap_or_else(|| "default".to_owned())
    }
}

/// Tells this process from every other, also from one of the same number on another machine.
fn instance() -> String {
    let host = std::env::var("HOSTNAME").ok();
    let host = host.filter(|name| !name.is_empty());
    let host = host.unwrap_or_else(|| "portolan".to_owned());
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let started = started.map_or(0, |since| since.as_nanos());
    format!("{host}-{}-{started:x}", std::process::id())
}
