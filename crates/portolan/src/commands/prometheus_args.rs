//! Which Prometheus to use, and with which credentials.

use std::path::PathBuf;
use std::time::Duration;

use portolan_prometheus::ServerFiles;

use crate::error::CommandError;

/// Who asks Prometheus. Secrets come from files, never from the command line.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Prometheus")]
#[expect(
    clippy::struct_field_names,
    reason = "options are named after their fields"
)]
pub(crate) struct PrometheusLoginArgs {
    /// A file with the certificate authority of the server
    #[arg(long, value_name = "FILE")]
    prometheus_ca: Option<PathBuf>,

    /// A file with a client certificate
    #[arg(long, value_name = "FILE", requires = "prometheus_key")]
    prometheus_cert: Option<PathBuf>,

    /// A file with the key of the client certificate
    #[arg(long, value_name = "FILE", requires = "prometheus_cert")]
    prometheus_key: Option<PathBuf>,

    /// A file with a bearer token
    #[arg(long, value_name = "FILE", conflicts_with = "prometheus_user")]
    prometheus_token_file: Option<PathBuf>,

    /// The user name for basic authentication
    #[arg(long, value_name = "NAME", requires = "prometheus_password_file")]
    prometheus_user: Option<String>,

    /// A file with the password of that user
    #[arg(long, value_name = "FILE", requires = "prometheus_user")]
    prometheus_password_file: Option<PathBuf>,

    /// A header by its name and a file with its value, as in X-Scope-OrgID=FILE
    #[arg(long, value_name = "NAME=FILE")]
    prometheus_header: Vec<String>,

    /// How long a query may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    prometheus_timeout: u64,
}

impl PrometheusLoginArgs {
    /// A server at an address; nothing is read or sent.
    pub(crate) fn files(&self, address: &str) -> Result<ServerFiles, CommandError> {
        let mut headers = Vec::new();
        for header in &self.prometheus_header {
            let Some((name, file)) = header.split_once('=') else {
                return Err(CommandError::usage(format!("`{header}` is not NAME=FILE")));
            };
            headers.push((name.to_owned(), PathBuf::from(file)));
        }
        Ok(ServerFiles {
            address: address.to_owned(),
            ca: self.prometheus_ca.clone(),
            identity: self
                .prometheus_cert
                .clone()
                .zip(self.prometheus_key.clone()),
            token: self.prometheus_token_file.clone(),
            user: self
                .prometheus_user
                .clone()
                .zip(self.prometheus_password_file.clone()),
            headers,
            deadline: Duration::from_secs(self.prometheus_timeout),
        })
    }
}
