//! The real helm, with a chart whose values choose what it brings.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use portolan_testbed::cluster::Cluster;

/// A chart, and the cluster it goes to.
pub(crate) struct Helm {
    chart: tempfile::TempDir,
    kubeconfig: PathBuf,
    namespace: String,
}

const CHART: &str = "apiVersion: v2\nname: small\nversion: 1.0.0\n";
const VALUES: &str = "old: true\nbroken: false\nnote: first\n";
const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-config\ndata:\n  note: {{ .Values.note }}\n";
const OLD: &str = "{{ if .Values.old }}\napiVersion: v1\nkind: Endpoints\nmetadata:\n  name: {{ .Release.Name }}-old\n{{ end }}\n";
const HOOK: &str = "{{ if .Values.old }}\napiVersion: v1\nkind: Endpoints\nmetadata:\n  name: {{ .Release.Name }}-hook\n  annotations:\n    helm.sh/hook: pre-install,pre-upgrade\n{{ end }}\n";
/// The API server refuses the name, so the upgrade fails half-way.
const BROKEN: &str = "{{ if .Values.broken }}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NOT_A_NAME\n{{ end }}\n";

impl Helm {
    pub(crate) fn new(cluster: &Cluster, namespace: &str) -> Self {
        let chart = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(chart.path().join("templates")).expect("a directory");
        for (name, text) in [
            ("Chart.yaml", CHART),
            ("values.yaml", VALUES),
            ("templates/config.yaml", CONFIG),
            ("templates/old.yaml", OLD),
            ("templates/hook.yaml", HOOK),
            ("templates/broken.yaml", BROKEN),
        ] {
            std::fs::write(chart.path().join(name), text).expect("a file");
        }
        Self {
            chart,
            kubeconfig: cluster.kubeconfig_path(),
            namespace: namespace.to_owned(),
        }
    }

    /// Runs `helm ACT RELEASE` and expects it to go well.
    pub(crate) fn run(&self, driver: &str, act: &str, release: &str, args: &[&str]) {
        assert!(
            self.succeeds(driver, act, release, args),
            "helm {act} {release}"
        );
    }

    pub(crate) fn succeeds(&self, driver: &str, act: &str, release: &str, args: &[&str]) -> bool {
        let status = Command::new("helm")
            .args([act, release])
            .arg(self.chart.path())
            .args(args)
            .arg("--namespace")
            .arg(&self.namespace)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .env("HELM_DRIVER", driver)
            .stdout(Stdio::null())
            .status();
        status.expect("helm can be started").success()
    }
}
