//! How much memory `portolan build` takes: what has been printed is forgotten, and what waits is packed.

#![cfg(target_os = "linux")]

mod portolan;

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use portolan::repository::{kustomization, write};

/// How many releases a repository has.
const RELEASES: usize = 1000;

/// The most memory that building them may take. A development build takes 64 MB; with everything kept it took 132.
const MOST_MEGABYTES: u64 = 100;

/// So many charts are rendered one after the other, and what their releases give has to wait for its turn.
const MANY_CHARTS: usize = 40;

/// The most memory that each further release may take where everything waits. Each prints 17 kB of YAML.
const MOST_KILOBYTES_EACH: u64 = 20;

/// A chart that prints about as much as real ones do.
fn chart() -> String {
    let mut template = String::from(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n  labels: {app: {{ .Release.Name }}}\nspec:\n  selector: {matchLabels: {app: {{ .Release.Name }}}}\n  template:\n    metadata: {labels: {app: {{ .Release.Name }}}}\n    spec:\n      containers:\n",
    );
    for container in 0..12 {
        let _ = write!(
            template,
            "      - name: container-{container}\n        image: registry.example/{{{{ .Release.Name }}}}:{container}\n        env:\n        {{{{- range $name, $value := .Values.settings }}}}\n        - name: {{{{ $name }}}}\n          value: {{{{ $value | quote }}}}\n        {{{{- end }}}}\n"
        );
    }
    template.push_str("---\napiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}}\n");
    template
}

/// A chart that looks something up: it is rendered after all others, which have to wait for it to be printed.
const LOOKING_UP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: found}\ndata:\n  found: {{ (lookup \"v1\" \"Secret\" .Release.Namespace \"app-0500\") | len | quote }}\n";

fn release(name: &str, chart: &str) -> String {
    let mut text = format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: {name}, namespace: apps}}\nspec:\n  interval: 1h\n  chart: {{spec: {{chart: ./charts/{chart}, sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}}}}}\n  values:\n    settings:\n"
    );
    for setting in 0..20 {
        let _ = writeln!(text, "      SETTING_{setting}: {name}-{setting}");
    }
    text
}

/// A repository of so many releases, spread over so many charts that are the same but for their names.
fn repository(root: &Path, releases: usize, charts: usize) {
    let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {url: 'https://example.com/r.git'}\n";
    let sync = kustomization("flux-system", "./cluster");
    write(root, "cluster/sync.yaml", &format!("{source}---\n{sync}"));
    let web = |number: usize| format!("web-{}", number % charts);
    let looking_up = ("seeker".to_owned(), LOOKING_UP.to_owned());
    let others = (0..charts).map(|number| (web(number), chart()));
    for (name, template) in others.chain([looking_up]) {
        let metadata = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
        write(root, &format!("charts/{name}/Chart.yaml"), &metadata);
        write(
            root,
            &format!("charts/{name}/templates/all.yaml"),
            &template,
        );
    }
    write(root, "apps/first/app.yaml", &release("a-seeker", "seeker"));
    write(
        root,
        "cluster/first.yaml",
        &kustomization("first", "./apps/first"),
    );
    for number in 0..releases {
        let name = format!("app-{number:04}");
        write(
            root,
            &format!("apps/{name}/app.yaml"),
            &release(&name, &web(number)),
        );
        let path = format!("./apps/{name}");
        write(
            root,
            &format!("cluster/{name}.yaml"),
            &kustomization(&name, &path),
        );
    }
}

/// The most memory that a process has had so far; `None` when it has ended.
fn peak_kilobytes(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Builds a repository; gives what was printed, and the most memory that it took.
fn build(releases: usize, charts: usize) -> (String, u64) {
    let directory = tempfile::tempdir().expect("a directory can be made");
    repository(directory.path(), releases, charts);
    let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["build", "all", "--path", "cluster", "--offline"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary was built with this test");
    let mut stdout = child.stdout.take().expect("it was asked for");
    let mut printed = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    let mut peak = 0;
    // A pipe holds 64 KiB, so the process cannot get far ahead of these looks.
    loop {
        let count = stdout.read(&mut chunk).expect("a pipe can be read");
        peak = peak_kilobytes(&child).unwrap_or(peak);
        if count == 0 {
            break;
        }
        printed.extend_from_slice(&chunk[..count]);
    }
    let status = child.wait().expect("it was started");
    assert!(status.success());
    assert!(peak > 0, "the process ended before anybody looked");
    (String::from_utf8(printed).expect("YAML is UTF-8"), peak)
}

#[test]
fn a_thousand_releases_are_built_in_little_memory() {
    let (printed, peak) = build(RELEASES, 1);
    assert_eq!(printed.matches("\nkind: Deployment\n").count(), RELEASES);
    // The release that looked something up is printed first, and it found what is printed after it.
    let found = printed.find("  found: \"").expect("a ConfigMap is printed");
    let first = printed
        .find("\nkind: Deployment\n")
        .expect("they are printed");
    assert!(found < first && !printed.contains("  found: \"0\"\n"));
    let megabytes = peak / 1024;
    assert!(megabytes <= MOST_MEGABYTES, "{megabytes} MB");
}

#[test]
fn a_release_of_many_that_wait_takes_little_memory() {
    let few = RELEASES / 5;
    let (_, before) = build(few, MANY_CHARTS);
    let (printed, after) = build(RELEASES, MANY_CHARTS);
    assert_eq!(printed.matches("\nkind: Deployment\n").count(), RELEASES);
    let each = after.saturating_sub(before) / (RELEASES - few) as u64;
    assert!(
        each <= MOST_KILOBYTES_EACH,
        "{each} kB: {before} to {after}"
    );
}
