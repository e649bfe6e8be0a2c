//! Where the cluster's programs are: etcd from the system, the others built from `testbed/kubernetes` into a cache.

use std::env;
use std::path::PathBuf;

use crate::has_program;
use crate::tools::{is_built, tools};

/// The release is written once, where Go reads it.
const MODULE: &str = include_str!("../../../../testbed/kubernetes/go.mod");

/// The paths of the programs.
pub(super) struct Programs {
    pub(super) etcd: PathBuf,
    pub(super) apiserver: PathBuf,
    pub(super) controllers: PathBuf,
}

impl Programs {
    /// Finds them; says so and gives `None` when they are not there, fails under `CI`.
    pub(super) fn find() -> Option<Self> {
        if !has_program("etcd", "--version") {
            return None;
        }
        let directory = tools().join(format!("kubernetes-{}", release()));
        let programs = Self {
            etcd: PathBuf::from("etcd"),
            apiserver: directory.join("kube-apiserver"),
            controllers: directory.join("kube-controller-manager"),
        };
        let hint = "`testbed/kubernetes/build` makes it, and `./test` calls that; it needs Go";
        let built = is_built(&programs.apiserver, hint) && is_built(&programs.controllers, hint);
        built.then_some(programs)
    }
}

/// The program that answers for nodes; says so and gives `None` when it is not there, fails under `CI`.
pub(super) fn endpoint() -> Option<PathBuf> {
    let path = tools().join("bin/kubelet-endpoint");
    let hint = "`./test` builds it from `testbed/kubelet-endpoint`; it needs Go";
    is_built(&path, hint).then_some(path)
}

/// The definitions of kinds that are not Kubernetes' own, as YAML: `istio` or `gateway-api`.
///
/// `None` when they are not there; under `CI` that is a failure instead.
///
/// # Panics
/// Under `CI`, when they are missing.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub fn definitions(name: &str) -> Option<String> {
    let path = tools().join("definitions").join(format!("{name}.yaml"));
    if let Ok(text) = std::fs::read_to_string(&path) {
        return Some(text);
    }
    let hint = "`testbed/definitions/build` brings it, and `./test` calls that; it needs Go";
    let message = format!("`{}` is not there: {hint}", path.display());
    assert!(env::var_os("CI").is_none(), "{message}");
    eprintln!("SKIPPED: {message}");
    None
}

/// The release that `go.mod` requires, without its `v`.
fn release() -> &'static str {
    let required = MODULE
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("k8s.io/kubernetes v"));
    let release = required.and_then(|line| line.split_whitespace().next());
    release.expect("the module requires Kubernetes")
}
