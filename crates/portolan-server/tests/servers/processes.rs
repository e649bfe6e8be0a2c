//! Servers as processes of their own, each in a network of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_listen::{ListenConfig, TlsSource};
use portolan_server::{ApiServer, FleetClient, FleetError, FleetMethod, ServerOptions};
use portolan_store::Store;
use portolan_store::etcd::{Etcd, EtcdOptions};
use portolan_testbed::{EtcdCluster, Process};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Tells a process what it serves: its address, its directory and etcd's addresses.
pub(crate) const WORDS: &str = "PORTOLAN_TEST_SERVER";
/// How many servers there are.
pub(crate) const COUNT: usize = 3;
const PORT: u16 = 7443;
/// For everything to be well again on a machine that is busy with other things.
pub(crate) const SOON: Duration = Duration::from_mins(2);

/// Runs a server until the process is killed.
pub(crate) fn serve(words: &str) {
    let words: Vec<&str> = words.split(' ').collect();
    let [address, directory, urls] = words[..] else {
        panic!("{words:?}");
    };
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let etcd = EtcdOptions {
            read_deadline: Duration::from_secs(8),
            ..EtcdOptions::new(urls.split(','))
        };
        let store = Store::new(Arc::new(Etcd::new(etcd).expect("usable options")));
        let listener = TcpListener::bind((address, PORT)).await.expect("a port");
        let options = ServerOptions {
            address: format!("https://{address}:{PORT}"),
            ..ServerOptions::new(directory)
        };
        let (server, _) = loop {
            let options = ServerOptions {
                address: options.address.clone(),
                ..ServerOptions::new(directory)
            };
            // A server that starts while etcd cannot be reached is started again by whoever looks after it.
            match ApiServer::start(store.clone(), options).await {
                Ok(started) => break started,
                Err(error) => eprintln!("{error}"),
            }
        };
        let config = ListenConfig {
            tls: Some(TlsSource::OwnAuthority {
                directory: PathBuf::from(directory),
                names: vec![address.to_owned()],
            }),
            readiness: server.readiness(),
            ..ListenConfig::default()
        };
        let router = server.router(vec![address.to_owned()]);
        let cancelled = CancellationToken::new();
        let served = portolan_listen::serve(listener, router, config, cancelled.clone());
        let (served, why) = tokio::join!(served, server.run(cancelled));
        panic!("the server has ended: {why:?}, {:?}", served.err());
    });
}

/// Three etcd members and three servers.
pub(crate) struct Servers {
    // Before the cluster, so that the processes end first.
    processes: Vec<Option<Process>>,
    pub(crate) cluster: EtcdCluster,
    addresses: Vec<String>,
    directory: tempfile::TempDir,
}

impl Servers {
    /// Starts them; `None` where that cannot be done.
    pub(crate) fn start() -> Option<Self> {
        let mut cluster = EtcdCluster::start("3.7")?;
        let addresses = (0..COUNT).map(|_| cluster.add_guest()).collect();
        let mut servers = Self {
            processes: (0..COUNT).map(|_| None).collect(),
            cluster,
            addresses,
            directory: tempfile::tempdir().expect("a directory"),
        };
        servers.restart(0);
        // The others need the key of the first.
        let key = servers.data(0).join("secrets.key");
        let token = servers.data(0).join("admin.token");
        wait_for("the first server", || {
            key.exists() && token.exists() && servers.authority(0).exists()
        });
        for number in 1..COUNT {
            std::fs::create_dir(servers.data(number)).expect("a directory");
            std::fs::copy(&key, servers.data(number).join("secrets.key")).expect("a copy");
            servers.restart(number);
            wait_for("a server", || servers.authority(number).exists());
        }
        Some(servers)
    }

    pub(crate) fn data(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("server-{number}"))
    }

    fn authority(&self, number: usize) -> PathBuf {
        self.data(number).join("ca.pem")
    }

    /// Kills a server at once.
    pub(crate) fn kill(&mut self, number: usize) {
        self.processes[number] = None;
    }

    /// Starts a server on the data that it has, if it does not run.
    pub(crate) fn restart(&mut self, number: usize) {
        if self.processes[number]
            .as_ref()
            .is_some_and(|process| !process.has_ended())
        {
            return;
        }
        let directory = self.data(number);
        std::fs::create_dir_all(&directory).expect("a directory");
        let words = format!(
            "{WORDS}={} {} {}",
            self.addresses[number],
            directory.display(),
            self.cluster.urls().join(",")
        );
        let program = std::env::current_exe().expect("this program");
        let line = [
            "env".to_owned(),
            words,
            program.display().to_string(),
            "--exact".to_owned(),
            "server_process".to_owned(),
            "--nocapture".to_owned(),
        ];
        let started = self.cluster.start_in_guest(number, &line, &directory);
        self.processes[number] = Some(started);
    }

    /// Sends a signal to a server.
    pub(crate) fn signal(&self, number: usize, name: &str) {
        if let Some(process) = &self.processes[number] {
            process.signal(name);
        }
    }

    /// A client for each server, as the user admin.
    pub(crate) fn clients(&self) -> Vec<FleetClient> {
        let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
        let token = read(&self.data(0).join("admin.token"));
        (0..COUNT)
            .map(|number| {
                let url = format!("https://{}:{PORT}", self.addresses[number]);
                let token = portolan_http::Secret::from(token.trim());
                let authority = read(&self.authority(number));
                FleetClient::new(&url, token, vec![authority]).expect("a client")
            })
            .collect()
    }
}

/// The state of a server.
pub(crate) async fn status(client: &FleetClient) -> Result<Value, FleetError> {
    let asked = client.request(FleetMethod::Get, "/api/v1alpha/status", &[], None);
    tokio::time::timeout(Duration::from_secs(5), asked)
        .await
        .unwrap_or_else(|_| Err(FleetError::Foreign("nothing in time".to_owned())))
}

pub(crate) fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < SOON, "{what} does not come");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
