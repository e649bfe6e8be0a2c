//! A real Kubernetes API: etcd, kube-apiserver and kube-controller-manager on free ports in a temporary directory.
//!
//! ```text
//! etcd ◀── kube-apiserver ◀── kube-controller-manager (only the controllers asked for)
//!                 ▲
//!                 ├── kubeconfig, kube client, fake kubelet
//!                 └──▶ kubelet-endpoint (only if asked for): logs, commands and ports of pods
//! ```
//!
//! There is no scheduler: pods stay pending until [`Kubelet`] makes them run, on nodes that are only names. A test
//! binary shares one cluster ([`Cluster::shared`]), and each test uses its own namespaces. Everything ends with the
//! test process, even when that is killed, because each part watches a pipe from it.

mod eventually;
mod follow;
mod kubelet;
mod node;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::KeyPair;
use tokio::sync::OnceCell;

use crate::Authority;
use crate::process::Process;
pub use eventually::eventually;
pub use follow::Follower;
pub use kubelet::{EXIT_CODE, Kubelet, KubeletSetup, PodFault};
pub use node::{NodeEndpoint, PORT_ANNOTATION, PodDirectory};
use program::Programs;
pub use program::definitions;

/// The token of the user that may do everything.
pub const ADMIN_TOKEN: &str = "admin-token";
/// The token of a user without any rights.
pub const NOBODY_TOKEN: &str = "nobody-token";

/// How long the parts may take to come up: they share the machine with a whole test run.
const START: Duration = Duration::from_mins(2);

/// How a cluster is set up.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClusterSetup<'a> {
    /// The controllers to run, as kube-controller-manager names them; none leaves it out.
    pub controllers: &'a [&'a str],
    /// Whether roles are looked at; otherwise everybody may do everything.
    pub rbac: bool,
}

/// The controllers that make Deployments roll and scale, Jobs run, and deletions complete.
pub const WORKLOADS: &[&str] = &[
    "deployment-controller",
    "replicaset-controller",
    "garbage-collector-controller",
    "horizontal-pod-autoscaler-controller",
    "endpointslice-controller",
    "namespace-controller",
    "job-controller",
];

/// A running cluster.
pub struct Cluster {
    directory: PathBuf,
    url: String,
    kubeconfig: String,
    endpoint: OnceLock<Option<NodeEndpoint>>,
    /// Held for their end; what needs another stops first.
    processes: Vec<Process>,
}

static SHARED: OnceCell<Option<Cluster>> = OnceCell::const_new();

impl Cluster {
    /// The cluster that all tests of this binary share: with roles and the [`WORKLOADS`] controllers.
    ///
    /// `None` when the programs are not installed; under `CI` that is a failure instead.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn shared() -> Option<&'static Self> {
        let setup = ClusterSetup {
            controllers: WORKLOADS,
            rbac: true,
        };
        SHARED.get_or_init(|| Self::start(setup)).await.as_ref()
    }

    /// Whether a cluster could be started; under `CI` it is a failure when not.
    ///
    /// # Panics
    /// Under `CI`, when the programs are missing.
    pub fn is_installed() -> bool {
        Programs::find().is_some()
    }

    /// Starts a cluster of a test's own.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start(setup: ClusterSetup<'_>) -> Option<Self> {
        let programs = Programs::find()?;
        // Kept: the part that stops last removes it.
        let directory = tempfile::tempdir().expect("a temporary directory").keep();
        let files = Files::write(&directory);
        let etcd_url = start_url("http");
        let etcd = start_etcd(&programs, &directory, &etcd_url);
        let port = crate::port::free_port();
        let apiserver = start_apiserver(&programs, &files, setup, &etcd_url, port);
        let url = format!("https://127.0.0.1:{port}");
        let kubeconfig = kubeconfig(&url, &files.authority, ADMIN_TOKEN);
        let path = directory.join("kubeconfig");
        fs::write(&path, &kubeconfig).expect("a kubeconfig");
        let mut cluster = Self {
            url,
            kubeconfig,
            directory,
            processes: vec![apiserver, etcd],
            endpoint: OnceLock::new(),
        };
        cluster.wait().await;
        if !setup.controllers.is_empty() {
            let controllers = start_controllers(&programs, &files, &path, setup.controllers);
            cluster.processes.insert(0, controllers);
        }
        Some(cluster)
    }

    /// The API server's address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A kubeconfig for the user that may do everything.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The same as a file.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// A kubeconfig for whoever has this token.
    pub fn kubeconfig_for(&self, token: &str) -> String {
        self.kubeconfig.replace(ADMIN_TOKEN, token)
    }

    /// A client for the user that may do everything.
    ///
    /// # Panics
    /// When the kubeconfig is not understood.
    pub async fn client(&self) -> kube::Client {
        client(&self.kubeconfig).await
    }

    /// The endpoint of this cluster's nodes, for a [`KubeletSetup`]: with it, pods have logs, commands and ports.
    ///
    /// `None` when the program is not installed; under `CI` that is a failure instead.
    pub fn node_endpoint(&self) -> Option<NodeEndpoint> {
        let start = || Some(NodeEndpoint::start(&program::endpoint()?, &self.directory));
        self.endpoint.get_or_init(start).clone()
    }

    /// What the API server wrote to its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("kube-apiserver.log")).unwrap_or_default()
    }

    async fn wait(&self) {
        let client = self.client().await;
        let started = Instant::now();
        loop {
            let request = http::Request::get("/readyz")
                .body(Vec::new())
                .expect("a request");
            if client
                .request_text(request)
                .await
                .is_ok_and(|text| text == "ok")
            {
                return;
            }
            assert!(
                started.elapsed() < START,
                "the API server does not come up:\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A client by a kubeconfig's text.
///
/// # Panics
/// When the kubeconfig is not understood.
pub async fn client(kubeconfig: &str) -> kube::Client {
    // Two crates in a tree may each bring a provider; a client asks for the chosen one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = Kubeconfig::from_yaml(kubeconfig).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await;
    kube::Client::try_from(config.expect("a configuration")).expect("a client")
}

/// The files that the parts read.
struct Files {
    directory: PathBuf,
    authority: Authority,
}

impl Files {
    fn write(directory: &Path) -> Self {
        let authority = Authority::new();
        let signer = KeyPair::generate().expect("a key");
        let tokens = format!("{ADMIN_TOKEN},admin,1,system:masters\n{NOBODY_TOKEN},nobody,2\n");
        for (name, text) in [
            ("ca.pem", &authority.certificate),
            ("server.pem", &authority.server_certificate),
            ("server.key", &authority.server_key),
            ("signer.pem", &signer.public_key_pem()),
            ("signer.key", &signer.serialize_pem()),
            ("tokens.csv", &tokens),
        ] {
            fs::write(directory.join(name), text).expect("a file in the temporary directory");
        }
        Self {
            directory: directory.to_owned(),
            authority,
        }
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

fn start_url(scheme: &str) -> String {
    format!("{scheme}://127.0.0.1:{}", crate::port::free_port())
}

fn start_etcd(programs: &Programs, directory: &Path, url: &str) -> Process {
    let peers = start_url("http");
    let data = directory.join("etcd").display().to_string();
    let args = [
        format!("--data-dir={data}"),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        // What is lost with the machine was a test's anyway.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=error".to_owned(),
        // Room for ten thousand large releases.
        "--quota-backend-bytes=8589934592".to_owned(),
    ];
    Process::start_last(&programs.etcd, &args, directory)
}

fn start_apiserver(
    programs: &Programs,
    files: &Files,
    setup: ClusterSetup<'_>,
    etcd: &str,
    port: u16,
) -> Process {
    let mode = if setup.rbac { "RBAC" } else { "AlwaysAllow" };
    let args = [
        format!("--etcd-servers={etcd}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", files.path("certificates")),
        format!("--tls-cert-file={}", files.path("server.pem")),
        format!("--tls-private-key-file={}", files.path("server.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", files.path("signer.pem")),
        format!(
            "--service-account-signing-key-file={}",
            files.path("signer.key")
        ),
        format!("--token-auth-file={}", files.path("tokens.csv")),
        format!("--authorization-mode={mode}"),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        // How nodes know this server, and this server nodes.
        format!("--kubelet-certificate-authority={}", files.path("ca.pem")),
        format!("--kubelet-client-certificate={}", files.path("server.pem")),
        format!("--kubelet-client-key={}", files.path("server.key")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        // An API that is deprecated and yet served, for tests of what finds such.
        "--runtime-config=resource.k8s.io/v1beta1=true".to_owned(),
    ];
    Process::start(&programs.apiserver, &args, &files.directory)
}

fn start_controllers(
    programs: &Programs,
    files: &Files,
    kubeconfig: &Path,
    controllers: &[&str],
) -> Process {
    let args = [
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        format!(
            "--service-account-private-key-file={}",
            files.path("signer.key")
        ),
        format!("--controllers={}", controllers.join(",")),
        // Hundreds of rollouts at once are not to wait for the client's own limit.
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
        // Without metrics, autoscalers keep pods between their least and most; tests do not wait 15 s for that.
        "--horizontal-pod-autoscaler-sync-period=1s".to_owned(),
    ];
    Process::start(&programs.controllers, &args, &files.directory)
}

fn kubeconfig(url: &str, authority: &Authority, token: &str) -> String {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(&authority.certificate);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters:\n- name: test\n  cluster: {{server: \"{url}\", certificate-authority-data: {encoded}}}\n\
         contexts:\n- name: test\n  context: {{cluster: test, user: admin}}\n\
         users:\n- name: admin\n  user: {{token: {token}}}\n"
    )
}
