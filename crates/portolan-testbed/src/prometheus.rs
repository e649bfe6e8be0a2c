//! A real Prometheus from Debian, which scrapes every second.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::http_call::call;
use crate::process::Process;
use crate::registry::HTPASSWD_HASH;
use crate::{Authority, USER, has_program};

/// How Prometheus is set up.
#[derive(Default)]
pub struct PrometheusSetup<'a> {
    /// Addresses that list targets, as `http_sd_configs` reads them; a [`Mesh`](crate::Mesh) has one.
    pub targets_urls: Vec<String>,
    /// Whether it wants [`USER`] and [`PASSWORD`](crate::PASSWORD).
    pub login: bool,
    /// Speaks TLS with the authority's server certificate.
    pub tls: Option<&'a Authority>,
}

/// A running Prometheus.
pub struct Prometheus {
    port: u16,
    scheme: &'static str,
    directory: TempDir,
    process: Option<Process>,
}

/// How long it may take to come up: it shares the machine with a whole test run.
const START: Duration = Duration::from_mins(1);

impl Prometheus {
    /// Starts one, `None` when the program is not installed (see [`has_program`]).
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start(setup: &PrometheusSetup<'_>) -> Option<Self> {
        if !has_program("prometheus", "--version") {
            return None;
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        write_files(directory.path(), setup).expect("a configuration");
        let mut prometheus = Self {
            port: crate::port::free_port(),
            scheme: if setup.tls.is_some() { "https" } else { "http" },
            directory,
            process: None,
        };
        prometheus.start_again();
        Some(prometheus)
    }

    /// The address without a slash at its end.
    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    /// Stops it. What it has scraped stays.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Starts it on the same port with what it had scraped.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start_again(&mut self) {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let args = [
            format!("--config.file={}", path("prometheus.yml")),
            format!("--web.config.file={}", path("web.yml")),
            format!("--storage.tsdb.path={}", path("data")),
            format!("--web.listen-address=127.0.0.1:{}", self.port),
            "--log.level=warn".to_owned(),
        ];
        let program = PathBuf::from("prometheus");
        self.process = Some(Process::start(&program, &args, self.directory.path()));
        self.wait();
    }

    /// What it wrote to its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("prometheus.log")).unwrap_or_default()
    }

    /// With TLS nothing can be asked by hand: then a connection must be enough.
    fn wait(&self) {
        let deadline = Instant::now() + START;
        let is_up = || match self.scheme {
            "http" => {
                let answer = call(self.port, "GET", "/-/ready", &[], b"");
                answer.is_ok_and(|answer| matches!(answer.status, 200 | 401))
            }
            _ => std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok(),
        };
        while !is_up() {
            assert!(
                Instant::now() < deadline,
                "Prometheus does not come up:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn write_files(directory: &Path, setup: &PrometheusSetup<'_>) -> std::io::Result<()> {
    let mut config = "global: {scrape_interval: 1s, scrape_timeout: 1s}\n".to_owned();
    if !setup.targets_urls.is_empty() {
        config.push_str("scrape_configs:\n");
    }
    // Each mesh has callers of the same names: its job tells them apart.
    for (number, url) in setup.targets_urls.iter().enumerate() {
        let _ = write!(
            config,
            "- job_name: mesh-{number}\n  http_sd_configs: [{{url: \"{url}\", refresh_interval: 1s}}]\n"
        );
    }
    fs::write(directory.join("prometheus.yml"), config)?;
    let mut web = String::new();
    if setup.login {
        let _ = writeln!(web, "basic_auth_users: {{{USER}: \"{HTPASSWD_HASH}\"}}");
    }
    if let Some(authority) = setup.tls {
        fs::write(directory.join("server.pem"), &authority.server_certificate)?;
        fs::write(directory.join("server.key"), &authority.server_key)?;
        web.push_str("tls_server_config: {cert_file: server.pem, key_file: server.key}\n");
    }
    fs::write(directory.join("web.yml"), web)
}
