//! A single etcd of a test's own: Debian's `etcd`, with or without TLS.

use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::{Authority, has_program};

/// How long it may take to come up on a machine that is busy with other things.
const SOON: Duration = Duration::from_mins(1);

/// What an etcd is started with.
#[derive(Default)]
pub struct EtcdSetup<'a> {
    /// With an authority it speaks TLS and asks clients for a certificate of that authority.
    pub tls: Option<&'a Authority>,
    /// How many bytes it takes; its own default when `None`.
    pub quota_bytes: Option<u64>,
}

/// A running etcd. Its directory goes with it.
pub struct Etcd {
    /// Where clients reach it.
    pub url: String,
    _process: Process,
}

impl Etcd {
    /// Starts one; `None` when the program is not installed (see [`has_program`]).
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start(setup: &EtcdSetup<'_>) -> Option<Self> {
        if !has_program("etcd", "--version") {
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory").keep();
        let port = crate::port::free_port();
        let scheme = if setup.tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://127.0.0.1:{port}");
        let peers = format!("http://127.0.0.1:{}", crate::port::free_port());
        let mut args = vec![
            format!("--data-dir={}", directory.join("etcd").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            // What is lost with the machine was a test's anyway.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=error".to_owned(),
        ];
        if let Some(authority) = setup.tls {
            args.extend(tls_args(authority, &directory));
        }
        if let Some(bytes) = setup.quota_bytes {
            args.push(format!("--quota-backend-bytes={bytes}"));
        }
        let process = Process::start_last(Path::new("etcd"), &args, &directory);
        wait(port);
        Some(Self {
            url,
            _process: process,
        })
    }
}

fn tls_args(authority: &Authority, directory: &Path) -> Vec<String> {
    let parts = [
        ("trusted-ca-file", &authority.certificate),
        ("cert-file", &authority.server_certificate),
        ("key-file", &authority.server_key),
    ];
    let files = parts.map(|(option, text)| {
        let path = directory.join(option);
        std::fs::write(&path, text).expect("a file");
        format!("--{option}={}", path.display())
    });
    let asks = ["--client-cert-auth".to_owned()];
    files.into_iter().chain(asks).collect()
}

fn wait(port: u16) {
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(start.elapsed() < SOON, "etcd does not come up");
        std::thread::sleep(Duration::from_millis(20));
    }
}
