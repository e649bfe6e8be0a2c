//! `portolan kustomize build`: files, charts, git repositories and web addresses.

mod portolan;

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use flate2::{Compression, write::GzEncoder};
use portolan::{Answer, portolan};
use portolan_testbed::{HttpServer, Reply, git_backend, has_program};
use tempfile::TempDir;

/// A directory of the test's own.
struct Desk(TempDir);

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        let desk = Self(tempfile::tempdir().expect("a temporary directory"));
        for (path, content) in files {
            let path = desk.path(path);
            std::fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
            std::fs::write(path, content).expect("a file");
        }
        desk
    }

    fn path(&self, below: &str) -> Utf8PathBuf {
        let root = Utf8Path::from_path(self.0.path()).expect("a UTF-8 path");
        root.join(below)
    }

    /// Builds as a user would, with the desk's own path taken out of the answer.
    fn build(&self, args: &[&str]) -> Answer {
        let mut all = vec!["kustomize", "build"];
        all.extend(args);
        let run = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args(&all)
            .current_dir(self.path(""))
            .env("PORTOLAN_CACHE", self.path("cache"))
            .env_remove("NO_COLOR")
            .output();
        let mut answer = Answer::of(&run.expect("the binary was built with this test"));
        let root = self.path("").canonicalize_utf8().expect("it exists");
        answer.stderr = answer.stderr.replace(root.as_str(), "[DESK]");
        answer
    }

    /// What the real kustomize prints, if it is installed along with helm.
    #[expect(clippy::print_stderr, reason = "a comparison that is left out says so")]
    fn kustomize(&self, args: &[&str]) -> Option<String> {
        if !has_program("kustomize", "version") || !has_program("helm", "version") {
            eprintln!("kustomize or helm is not installed: nothing to compare with");
            return None;
        }
        let run = Command::new("kustomize")
            .arg("build")
            .args(args)
            .current_dir(self.path(""))
            .output();
        let output = run.expect("kustomize starts");
        assert!(output.status.success(), "kustomize refuses: {output:?}");
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";

const CHART: [(&str, &str); 4] = [
    (
        "charts/web/Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 1.2.3\n",
    ),
    (
        "charts/web/values.yaml",
        "replicas: 1\nlabels: {tier: front, zone: a}\n",
    ),
    (
        "charts/web/templates/all.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-web\n  namespace: {{ .Release.Namespace }}\n  labels: {{- toYaml .Values.labels | nindent 4 }}\ndata:\n  replicas: {{ .Values.replicas | quote }}\n",
    ),
    (
        "charts/web/crds/thing.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n",
    ),
];

#[test]
fn an_overlay_is_printed_and_old_fields_are_told() {
    let desk = Desk::new(&[
        (
            "kustomization.yaml",
            "namePrefix: my-\ncommonLabels: {team: a}\nbases: [base]\n",
        ),
        ("base/kustomization.yaml", "resources: [service.yaml]\n"),
        ("base/service.yaml", SERVICE),
    ]);
    insta::assert_snapshot!(desk.build(&["."]), @r"
    exit 0
    --- stdout
    apiVersion: v1
    kind: Service
    metadata:
      labels:
        team: a
      name: my-web
    spec:
      selector:
        team: a

    --- stderr
    # Warning: 'bases' is deprecated. Please use 'resources' instead. Run 'kustomize edit fix' to update your Kustomization automatically.
    # Warning: 'commonLabels' is deprecated. Please use 'labels' instead. Run 'kustomize edit fix' to update your Kustomization automatically.
    ");
}

#[test]
fn a_file_outside_is_refused_by_its_path() {
    let desk = Desk::new(&[
        (
            "overlay/kustomization.yaml",
            "resources: [../service.yaml]\n",
        ),
        ("service.yaml", SERVICE),
    ]);
    let answer = desk.build(&["overlay"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stdout.is_empty());
    assert!(answer.stderr.contains("[DESK]/service.yaml"), "{answer}");
    let allowed = ["overlay", "--load-restrictor", "LoadRestrictionsNone"];
    assert_eq!(desk.build(&allowed).code, 0);
}

#[test]
fn output_goes_to_a_file_or_to_files() {
    let desk = Desk::new(&[
        ("kustomization.yaml", "resources: [service.yaml]\n"),
        ("service.yaml", SERVICE),
        ("objects/.keep", ""),
    ]);
    assert_eq!(desk.build(&[".", "-o", "all.yaml"]).code, 0);
    assert_eq!(desk.build(&[".", "-o", "objects"]).code, 0);
    let read = |path| std::fs::read_to_string(desk.path(path)).expect("it was written");
    assert_eq!(read("all.yaml"), read("objects/v1_service_web.yaml"));
}

#[test]
fn charts_of_the_chart_home_are_rendered_like_helm_does() {
    let mut files = CHART.to_vec();
    files.push((
        "kustomization.yaml",
        "namespace: shop\nhelmCharts:\n- name: web\n  releaseName: front\n  includeCRDs: true\n  valuesInline: {replicas: 3, labels: {zone: null}}\n",
    ));
    let desk = Desk::new(&files);
    let answer = desk.build(&[".", "--enable-helm"]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(answer.stdout.contains("replicas: \"3\""), "{answer}");
    if let Some(expected) = desk.kustomize(&[".", "--enable-helm"]) {
        assert_eq!(answer.stdout, expected);
    }
    let refused = desk.build(&["."]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("--enable-helm"), "{refused}");
}

#[test]
fn the_release_of_a_chart_is_named_once() {
    let named = |file| {
        let mut files = CHART.to_vec();
        files.push(("kustomization.yaml", file));
        Desk::new(&files)
    };
    let both = named("helmCharts: [{name: web, releaseName: front, nameTemplate: back}]\n");
    assert_eq!(both.build(&[".", "--enable-helm"]).code, 2);
    let template = named("helmCharts: [{name: web, nameTemplate: '{{ \"BACK\" | lower }}'}]\n");
    let answer = template.build(&[".", "--enable-helm"]);
    assert!(answer.stdout.contains("name: back-web"), "{answer}");
    if let Some(expected) = template.kustomize(&[".", "--enable-helm"]) {
        assert_eq!(answer.stdout, expected);
    }
}

/// A number stays one, also where the chart's own value is a quoted text.
#[test]
fn inline_values_keep_their_type() {
    let mut files = CHART.to_vec();
    files.push((
        "kustomization.yaml",
        "helmCharts: [{name: web, releaseName: front, valuesFile: values.yaml, valuesInline: {replicas: 8}}]\n",
    ));
    files.push(("values.yaml", "replicas: \"1\"\n"));
    files.push((
        "charts/web/templates/kind.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kind}\ndata: {of: {{ kindOf .Values.replicas }}}\n",
    ));
    let desk = Desk::new(&files);
    let answer = desk.build(&[".", "--enable-helm"]);
    assert!(answer.stdout.contains("of: float64"), "{answer}");
    if let Some(expected) = desk.kustomize(&[".", "--enable-helm"]) {
        assert_eq!(answer.stdout, expected);
    }
}

#[test]
fn a_chart_that_is_nowhere_is_refused() {
    let desk = Desk::new(&[("kustomization.yaml", "helmCharts: [{name: web}]\n")]);
    let answer = desk.build(&[".", "--enable-helm"]);
    assert_eq!(answer.code, 2);
    let told = "no repo specified for pull, no chart found at `[DESK]/charts/web`";
    assert!(answer.stderr.contains(told), "{answer}");
}

/// The chart of the tests as an archive.
fn chart_archive() -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, content) in CHART {
        let path = path.strip_prefix("charts/").expect("all of it is there");
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        let added = builder.append_data(&mut header, path, content.as_bytes());
        added.expect("memory takes everything");
    }
    let encoder = builder.into_inner().expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

#[test]
fn a_chart_that_is_not_at_home_is_pulled() {
    let server = HttpServer::start(|request| match request.path() {
        "/index.yaml" => Reply::ok(
            "apiVersion: v1\nentries:\n  web:\n  - {name: web, version: 1.2.3, urls: [web-1.2.3.tgz]}\n",
        ),
        "/web-1.2.3.tgz" => Reply::ok(chart_archive()),
        _ => Reply::status(404),
    });
    let url = server.url();
    let file = format!(
        "helmCharts:\n- {{name: web, repo: '{url}', version: 1.2.3, releaseName: far, valuesInline: {{replicas: 2}}}}\n"
    );
    let desk = Desk::new(&[("kustomization.yaml", &file)]);
    let answer = desk.build(&[".", "--enable-helm"]);
    assert_eq!(answer.code, 0, "{answer}");
    if let Some(expected) = desk.kustomize(&[".", "--enable-helm"]) {
        assert_eq!(answer.stdout, expected);
    }
    assert!(answer.stdout.contains("name: far-web"), "{answer}");
    assert!(answer.stdout.contains("replicas: \"2\""), "{answer}");
}

#[test]
fn help_names_the_flags_of_kustomize() {
    let desk = Desk::new(&[]);
    let answer = desk.build(&["--help"]);
    let flags = [
        "--load-restrictor <",
        "--reorder <",
        "--enable-helm",
        "--helm-command <",
        "--helm-kube-version <",
        "--helm-api-versions <",
        "--as-current-user",
        "-o, --output <PATH>",
    ];
    let missing = flags.iter().find(|flag| !answer.stdout.contains(**flag));
    assert_eq!((answer.code, missing), (0, None), "{answer}");
}

#[test]
fn a_remote_file_is_a_resource() {
    let server = HttpServer::start(|request| match request.path() {
        "/service.yaml" => Reply::ok(SERVICE),
        _ => Reply::status(404),
    });
    let url = server.url();
    let resources = format!("nameSuffix: -far\nresources: [{url}/service.yaml]\n");
    let desk = Desk::new(&[("kustomization.yaml", &resources)]);
    let answer = desk.build(&["."]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(answer.stdout.contains("name: web-far"), "{answer}");
    let missing = format!("resources: [{url}/none.yaml]\n");
    let desk = Desk::new(&[("kustomization.yaml", &missing)]);
    assert_eq!(desk.build(&["."]).code, 2);
}

#[test]
fn a_directory_of_a_git_repository_is_a_base() {
    let repository = Desk::new(&[
        (
            "apps.git/base/kustomization.yaml",
            "resources: [service.yaml]\n",
        ),
        ("apps.git/base/service.yaml", SERVICE),
    ]);
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let run = Command::new("git")
            .args(identity)
            .args(args)
            .current_dir(repository.path("apps.git"))
            .output();
        let output = run.expect("git starts");
        assert!(output.status.success(), "git {args:?}: {output:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    git(&["tag", "v1"]);
    let root = repository.path("").into_std_path_buf();
    let server = HttpServer::start(move |request| git_backend(&root, request));
    let url = server.url();
    for reference in ["v1", "main"] {
        let file =
            format!("namePrefix: far-\nresources: ['{url}/apps.git//base?ref={reference}']\n");
        let desk = Desk::new(&[("kustomization.yaml", &file)]);
        let answer = desk.build(&["."]);
        assert_eq!(answer.code, 0, "{answer}");
        assert!(answer.stdout.contains("name: far-web"), "{answer}");
    }
}

#[test]
fn what_was_fetched_before_is_built_offline_and_nothing_is_left_behind() {
    let server = HttpServer::start(|_| Reply::ok(SERVICE));
    let resources = format!("resources: [{}/service.yaml]\n", server.url());
    let desk = Desk::new(&[("kustomization.yaml", &resources)]);
    let refused = desk.build(&[".", "--offline"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(
        refused.stderr.contains("--offline fetches nothing"),
        "{refused}"
    );
    assert!(server.requests().is_empty());
    let fetched = desk.build(&["."]);
    let offline = desk.build(&[".", "--offline"]);
    assert_eq!(
        (fetched.code, &fetched.stdout),
        (0, &offline.stdout),
        "{offline}"
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_pinned_base_is_built_from_its_pin() {
    let server = HttpServer::start(|_| Reply::ok(SERVICE));
    let url = format!("{}/service.yaml", server.url());
    let lock = format!(
        "{{\"version\":1,\"sources\":{{\"file {url}\":{{\"kind\":\"file\",\"url\":\"{url}\",\"digest\":\"sha256:{}\"}}}}}}",
        "0".repeat(64)
    );
    let desk = Desk::new(&[
        ("kustomization.yaml", &format!("resources: [{url}]\n")),
        ("portolan.lock", &lock),
        (".git/HEAD", "ref: refs/heads/main\n"),
    ]);
    let answer = desk.build(&["."]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(answer.stderr.contains("has changed"), "{answer}");
}

#[test]
fn a_base_on_a_host_out_of_reach_is_told_without_gits_own_words() {
    let resources = "resources: ['https://nowhere.invalid/apps.git//base?ref=v1']\n";
    let desk = Desk::new(&[("kustomization.yaml", resources)]);
    let answer = desk.build(&["."]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer
            .stderr
            .contains("cannot reach `nowhere.invalid`: its name cannot be resolved"),
        "{answer}"
    );
}

/// Keys that are no texts: decoded, left out or refused as the real kustomize does it.
#[test]
fn keys_with_a_tag_are_as_kustomize_prints_them() {
    let object = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n";
    for key in [
        "!!binary aGVsbG8=: v",
        "!!binary /w==: v",
        "!!null : v",
        "!!null '': v",
        "x: {? : v}",
        "x: [!!str , {!!str : !!null }, {a: !!null }]",
        "1: v",
    ] {
        let desk = Desk::new(&[
            ("kustomization.yaml", "resources: [a.yaml]\n"),
            ("a.yaml", &format!("{object}{key}\n")),
        ]);
        let answer = desk.build(&["."]);
        if let Some(expected) = desk.kustomize(&["."]) {
            assert_eq!(answer.stdout, expected, "{key}: {answer}");
        }
    }
}

#[test]
fn a_build_that_needs_more_than_its_limit_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let resource =
        |n: u32| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{n}}}\n");
    let resources: Vec<String> = (0..200).map(resource).collect();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("a.yaml", &resources.concat());
    write(
        "kustomization.yaml",
        "resources: [a.yaml]\nnamePrefix: x-\n",
    );
    let root = directory.path().to_str().expect("UTF-8");
    let answer = portolan(&["kustomize", "build", root, "--limit", "steps=50"]);
    assert_eq!(answer.code, 2, "{answer}");
    for told in ["needs more than 50 steps", "--limit steps=N"] {
        assert!(answer.stderr.contains(told), "{answer}");
    }
    assert_eq!(portolan(&["kustomize", "build", root]).code, 0);
}
