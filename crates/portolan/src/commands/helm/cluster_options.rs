//! Flags that every command of Helm takes to reach a cluster or to find its own files.

/// The flags, all hidden from the help: no cluster is asked here, and there is no list of repositories.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterOptions {
    #[arg(long, hide = true)]
    burst_limit: Option<i64>,
    #[arg(long, hide = true)]
    kube_apiserver: Option<String>,
    #[arg(long, hide = true)]
    kube_as_group: Vec<String>,
    #[arg(long, hide = true)]
    kube_as_user: Option<String>,
    #[arg(long, hide = true)]
    kube_ca_file: Option<String>,
    #[arg(long, hide = true)]
    kube_context: Option<String>,
    #[arg(long, hide = true)]
    kube_insecure_skip_tls_verify: bool,
    #[arg(long, hide = true)]
    kube_tls_server_name: Option<String>,
    #[arg(long, hide = true)]
    kube_token: Option<String>,
    #[arg(long, hide = true)]
    kubeconfig: Option<String>,
    #[arg(long, hide = true)]
    qps: Option<f32>,
    #[arg(long, hide = true)]
    repository_cache: Option<String>,
    #[arg(long, hide = true)]
    repository_config: Option<String>,
}
