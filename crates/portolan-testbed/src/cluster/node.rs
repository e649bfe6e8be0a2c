//! The endpoint of the cluster's nodes: logs, commands and port forwards of pods, which are directories.
//!
//! ```text
//! client ──▶ kube-apiserver ──▶ kubelet-endpoint ──▶ the pod's directory
//! ```
//!
//! The program `kubelet-endpoint` is built from `testbed/kubelet-endpoint`, which says what a pod's directory holds.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;

use crate::process::Process;

/// Annotations of a pod that begin so say which local address a port leads to: `…/port-80: "127.0.0.1:34567"`.
pub const PORT_ANNOTATION: &str = "testbed.portolan.dev/port-";

/// A running endpoint; clones are the same one.
#[derive(Clone)]
pub struct NodeEndpoint(Arc<Running>);

struct Running {
    port: u16,
    pods: PathBuf,
    /// Held for its end.
    _process: Process,
}

/// What a pod's containers would have: a file system, logs and ports.
pub struct PodDirectory(PathBuf);

// === impl NodeEndpoint ===

impl NodeEndpoint {
    /// Starts the program with the certificates of a cluster's directory.
    pub(super) fn start(program: &Path, directory: &Path) -> Self {
        let pods = directory.join("pods");
        fs::create_dir_all(&pods).expect("a directory for pods");
        let port = crate::port::free_port();
        let file = |name: &str| directory.join(name).display().to_string();
        let args = [
            format!("--address=127.0.0.1:{port}"),
            format!("--pods={}", pods.display()),
            format!("--authority={}", file("ca.pem")),
            format!("--certificate={}", file("server.pem")),
            format!("--key={}", file("server.key")),
        ];
        Self(Arc::new(Running {
            port,
            pods,
            _process: Process::start(program, &args, directory),
        }))
    }

    pub(super) fn port(&self) -> u16 {
        self.0.port
    }

    /// A pod's directory; it exists once the fake kubelet has seen the pod.
    pub fn pod(&self, namespace: &str, name: &str) -> PodDirectory {
        PodDirectory(self.0.pods.join(namespace).join(name))
    }

    /// Makes the directory of a pod, with empty logs and the ports that its annotations name.
    pub(super) fn make_pod(&self, pod: &Pod) -> io::Result<()> {
        let directory = self.directory_of(pod);
        for part in ["root", "logs", "stopped", "ports"] {
            fs::create_dir_all(directory.0.join(part))?;
        }
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        for container in containers {
            let path = directory.0.join("logs").join(&container.name);
            OpenOptions::new().create(true).append(true).open(path)?;
        }
        for (name, address) in pod.metadata.annotations.iter().flatten() {
            if let Some(port) = name.strip_prefix(PORT_ANNOTATION) {
                fs::write(directory.0.join("ports").join(port), address)?;
            }
        }
        Ok(())
    }

    /// Removes the directory of a pod, which ends its streams.
    pub(super) fn remove_pod(&self, pod: &Pod) {
        let _ = fs::remove_dir_all(self.directory_of(pod).0);
    }

    fn directory_of(&self, pod: &Pod) -> PodDirectory {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        self.pod(&text(&pod.metadata.namespace), &text(&pod.metadata.name))
    }
}

// === impl PodDirectory ===

impl PodDirectory {
    /// Whether the pod is there.
    pub fn exists(&self) -> bool {
        self.0.join("ports").is_dir()
    }

    /// The pod's file system.
    pub fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    /// Has a container print a line.
    ///
    /// # Panics
    /// When the pod is not there.
    pub fn print(&self, container: &str, line: &str) {
        let path = self.0.join("logs").join(container);
        let log = OpenOptions::new().append(true).open(path);
        write_line(&mut log.expect("a log"), line);
    }

    /// Ends a container and starts it again: its log becomes the previous one.
    ///
    /// # Panics
    /// When the pod is not there.
    pub fn restart(&self, container: &str) {
        let path = self.0.join("logs").join(container);
        let previous = path.with_file_name(format!("{container}.previous"));
        fs::rename(&path, previous).expect("a log");
        File::create(path).expect("a log");
    }

    /// Ends a container: a log that is followed ends.
    ///
    /// # Panics
    /// When the pod is not there.
    pub fn stop(&self, container: &str) {
        File::create(self.0.join("stopped").join(container)).expect("a pod");
    }

    /// Makes a port of the pod lead to a local address.
    ///
    /// # Panics
    /// When the pod is not there.
    pub fn listen(&self, port: u16, address: &str) {
        fs::write(self.0.join("ports").join(port.to_string()), address).expect("a pod");
    }
}

/// A line as container runtimes write it.
fn write_line(log: &mut File, line: &str) {
    let line = format!("{:.9} stdout F {line}\n", Timestamp::now());
    log.write_all(line.as_bytes()).expect("a line in a log");
}
