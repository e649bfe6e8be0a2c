//! Which Prometheus to ask for metrics in commands that a person runs.

use portolan_prometheus::Prometheus;

use crate::commands::prometheus_args::PrometheusLoginArgs;
use crate::error::CommandError;

/// Where metrics are asked for.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PrometheusArgs {
    /// The address of Prometheus, or of what speaks its API
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://prometheus.istio-system:9090",
        help_heading = "Prometheus"
    )]
    prometheus: String,

    #[command(flatten)]
    login: PrometheusLoginArgs,
}

impl PrometheusArgs {
    /// Sets the server up; nothing is sent.
    pub(super) fn server(&self) -> Result<Prometheus, CommandError> {
        let files = self.login.files(&self.prometheus)?;
        files.server().map_err(CommandError::user)
    }
}
