//! Real servers started for a test, each on a free port and stopped when it is dropped.
//!
//! If a needed program is missing, this is printed on stderr and the test passes without it. Under `CI` the test
//! fails instead, so nothing is skipped there.

mod authority;
#[cfg(feature = "cluster")]
pub mod cluster;
mod corpus;
mod dripping_server;
mod etcd;
mod etcd_cluster;
mod git_backend;
mod http_call;
mod http_server;
mod machine;
mod mesh;
mod mutation;
mod namespace;
mod port;
mod process;
mod prometheus;
mod registry;
mod tools;

pub use authority::Authority;
pub use corpus::corpus;
pub use dripping_server::DrippingServer;
pub use etcd::{Etcd, EtcdSetup};
pub use etcd_cluster::{EtcdCluster, Place};
pub use git_backend::git_backend;
pub use http_server::{HttpServer, Reply, Request};
pub use machine::Machine;
pub use mesh::{Behaviour, Mesh, MeshPod, MeshRoute, MeshSetup};
pub use mutation::mutate;
pub use port::free_port;
pub use process::Process;
pub use prometheus::{Prometheus, PrometheusSetup};
pub use registry::{PASSWORD, Registry, RegistrySetup, USER};

use std::process::{Command, Stdio};

/// Whether a program can be started; when not, the test is to be skipped.
///
/// # Panics
/// Under `CI`, when the program is missing.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub fn has_program(name: &str, probe: &str) -> bool {
    let started = Command::new(name)
        .arg(probe)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if started.is_ok() {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "`{name}` is not installed: tests that need it cannot run"
    );
    eprintln!("SKIPPED: `{name}` is not installed");
    false
}
