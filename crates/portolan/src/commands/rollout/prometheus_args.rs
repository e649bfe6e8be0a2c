//! Which Prometheus, and as whom.

use std::time::Duration;

use camino::Utf8PathBuf;
use portolan_http::{Credentials, Identity, Secret, Tls};
use portolan_prometheus::{Authorization, Prometheus, ServerSettings};

use crate::error::CommandError;
use crate::input::Input;

/// Where metrics are asked for. Secrets come from files, never from the command line.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Prometheus")]
pub(super) struct PrometheusArgs {
    /// The address of Prometheus, or of what speaks its API
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://prometheus.istio-system:9090"
    )]
    prometheus: String,

    /// A file with the certificate authority of the server
    #[arg(long, value_name = "FILE")]
    prometheus_ca: Option<Utf8PathBuf>,

    /// A file with a client certificate
    #[arg(long, value_name = "FILE", requires = "prometheus_key")]
    prometheus_cert: Option<Utf8PathBuf>,

    /// A file with the key of the client certificate
    #[arg(long, value_name = "FILE", requires = "prometheus_cert")]
    prometheus_key: Option<Utf8PathBuf>,

    /// A file with a bearer token
    #[arg(long, value_name = "FILE", conflicts_with = "prometheus_user")]
    prometheus_token_file: Option<Utf8PathBuf>,

    /// The user name for basic authentication
    #[arg(long, value_name = "NAME", requires = "prometheus_password_file")]
    prometheus_user: Option<String>,

    /// A file with the password of that user
    #[arg(long, value_name = "FILE", requires = "prometheus_user")]
    prometheus_password_file: Option<Utf8PathBuf>,

    /// A header by its name and a file with its value, as in X-Scope-OrgID=FILE
    #[arg(long, value_name = "NAME=FILE")]
    prometheus_header: Vec<String>,

    /// How long a query may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    prometheus_timeout: u64,
}

impl PrometheusArgs {
    /// Sets the server up; nothing is sent.
    pub(super) fn server(&self) -> Result<Prometheus, CommandError> {
        let authorization = match (
            &self.prometheus_token_file,
            &self.prometheus_user,
            &self.prometheus_password_file,
        ) {
            (Some(token), _, _) => Authorization::Bearer(secret(token)?),
            (None, Some(user), Some(password)) => {
                Authorization::Basic(Credentials::new(user, secret(password)?.expose()))
            }
            _ => Authorization::None,
        };
        let mut headers = Vec::new();
        for header in &self.prometheus_header {
            let Some((name, file)) = header.split_once('=') else {
                return Err(CommandError::usage(format!("`{header}` is not NAME=FILE")));
            };
            headers.push((name.to_owned(), secret(&Utf8PathBuf::from(file))?));
        }
        let settings = ServerSettings {
            tls: self.tls()?,
            authorization,
            headers,
            deadline: Duration::from_secs(self.prometheus_timeout),
            ..ServerSettings::new(&self.prometheus)
        };
        Prometheus::new(settings).map_err(CommandError::user)
    }

    fn tls(&self) -> Result<Tls, CommandError> {
        let authorities = match &self.prometheus_ca {
            Some(file) => vec![text(file)?],
            None => Vec::new(),
        };
        let identity = match (&self.prometheus_cert, &self.prometheus_key) {
            (Some(certificate), Some(key)) => Some(Identity {
                certificate: text(certificate)?,
                key: secret(key)?,
            }),
            _ => None,
        };
        Ok(Tls {
            authorities,
            identity,
            skip_verification: false,
        })
    }
}

fn text(file: &Utf8PathBuf) -> Result<String, CommandError> {
    let input = Input::read(file)?;
    String::from_utf8(input.bytes)
        .map_err(|_| CommandError::usage(format!("`{}` is not UTF-8", input.name)))
}

/// A secret without the line end that editors leave.
fn secret(file: &Utf8PathBuf) -> Result<Secret, CommandError> {
    Ok(Secret::from(text(file)?.trim_end_matches(['\r', '\n'])))
}
