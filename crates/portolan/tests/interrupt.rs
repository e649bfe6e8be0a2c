//! Ctrl-C while a chart is busy: the first one ends the command.

#![expect(clippy::unwrap_used, reason = "what a test sets up must work")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything here may take on a machine that is busy with other things.
const SOON: Duration = Duration::from_secs(20);

/// A repository with one release whose chart is busy for longer than anybody waits.
fn busy_repository(root: &Path) {
    let sync = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {url: 'https://example.com/r.git'}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {path: ./cluster, prune: true, interval: 1h, sourceRef: {kind: GitRepository, name: flux-system}}\n";
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: busy, namespace: flux-system}\nspec: {interval: 1h, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system}}}}\n";
    let loops = "{{ range until 100000 }}{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}{{ end }}";
    for (path, text) in [
        ("cluster/sync.yaml", sync),
        ("cluster/release.yaml", release),
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
        ),
        ("chart/templates/busy.yaml", loops),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn a_chart_that_is_busy_obeys_the_first_interrupt() {
    let directory = tempfile::tempdir().unwrap();
    busy_repository(directory.path());
    let events = directory.path().join("events.jsonl");
    let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args([
            "build",
            "hr",
            "--repo",
            ".",
            "--path",
            "cluster",
            "--offline",
        ])
        .args(["--limit", "steps=1000000000000000", "--limit", "time=86400"])
        .arg("--events")
        .arg(&events)
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the release is being rendered", || {
        let told = std::fs::read_to_string(&events).unwrap_or_default();
        told.lines()
            .any(|line| line.contains("busy") && line.contains("\"started\""))
    });
    interrupt(&child);
    until("the command ends", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
}
