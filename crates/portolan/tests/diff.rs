//! `portolan diff` on git repositories in every state, and on directories.

mod portolan;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use portolan::Answer;
use portolan::git::{GitRepository, copy, git};
use portolan::portolan_in;
use portolan::repository::{HARBOR, kustomization, repository};
use portolan_yaml::{Node, from_json};

/// A repository with one Kustomization and one ConfigMap.
fn small() -> GitRepository {
    let repository = GitRepository::new();
    repository.write(
        "clusters/a/root.yaml",
        &kustomization("root", "./clusters/a"),
    );
    repository.write("clusters/a/config.yaml", CONFIG);
    repository.commit("first");
    repository
}

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: apps}\ndata:\n  colour: red\n";

fn diff(repository: &GitRepository, args: &[&str]) -> Answer {
    repository.portolan(&[&["diff"], args].concat())
}

#[test]
fn a_removed_api_that_comes_in_is_told() {
    let repository = small();
    let budget = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: apps}\n";
    repository.write("clusters/a/budget.yaml", budget);
    let answer = diff(&repository, &["--from", "HEAD", "--kube-version", "1.25.0"]);
    assert!(answer.stdout.contains("removed-api"), "{answer}");
    assert!(answer.stdout.contains("use policy/v1"), "{answer}");
}

#[test]
fn a_pull_request_on_the_example() {
    let repository = GitRepository::of(Path::new(HARBOR));
    repository.git(&["checkout", "-q", "-b", "change"]);
    repository.edit("apps/base/quay/deployment.yaml", "quay:2.3.0", "quay:2.4.0");
    repository.write("apps/base/quay/log.conf", "level = debug\n");
    repository.commit("change");
    let answer = diff(&repository, &["--path", "clusters/production"]);
    insta::assert_snapshot!(answer, @r#"
    exit 1
    --- stdout
    2 objects change · 1 image · 1 restart

    ConfigMap quay/quay-log                                       changed
      data."log.conf"
    -   level = info
    -   greeting = ahoy from north
    +   level = debug
      because apps/base/quay/log.conf:1

    Deployment quay/quay                                          changed, rolls 3 pods
      spec.template.spec.containers[quay].image
    -   registry.example/quay:2.3.0
    +   registry.example/quay:2.4.0
      follows: ConfigMap quay/quay-log changed
      because apps/base/quay/deployment.yaml:10

    images  quay 2.3.0 → 2.4.0 (quay/quay)
    "#);
}

#[test]
fn the_commit_in_common_counts_not_the_tip() {
    let repository = small();
    repository.git(&["checkout", "-q", "-b", "change"]);
    repository.write(
        "clusters/a/mine.yaml",
        &CONFIG.replace("name: config", "name: mine"),
    );
    repository.commit("mine");
    repository.git(&["checkout", "-q", "main"]);
    repository.write(
        "clusters/a/theirs.yaml",
        &CONFIG.replace("name: config", "name: theirs"),
    );
    repository.commit("theirs");
    repository.git(&["checkout", "-q", "change"]);
    let own = diff(&repository, &["--from", "main", "-o", "json"]);
    assert!(
        own.stdout.contains("\"mine\"") && !own.stdout.contains("\"theirs\""),
        "{own}"
    );
    let exact = diff(&repository, &["--from", "main", "--exact", "-o", "json"]);
    assert!(exact.stdout.contains("\"theirs\""), "{exact}");
}

#[test]
fn files_that_are_not_committed_yet_count() {
    let repository = small();
    assert_eq!(
        diff(&repository, &[]).to_string(),
        "exit 0\n--- stdout\nno differences\n"
    );
    repository.edit("clusters/a/config.yaml", "red", "green");
    insta::assert_snapshot!(diff(&repository, &[]), @r"
    exit 1
    --- stdout
    1 object changes

    ConfigMap apps/config                                         changed
      data.colour
    -   red
    +   green
      because clusters/a/config.yaml:5
    ");
    assert_eq!(
        repository.git(&["status", "--porcelain"]),
        " M clusters/a/config.yaml\n"
    );
}

#[test]
fn what_is_not_git_is_said_with_a_way_out() {
    let files = [(
        "clusters/a/root.yaml",
        kustomization("root", "./clusters/a"),
    )];
    let plain = repository(&[(files[0].0, files[0].1.as_str())]);
    let answer = portolan_in(plain.path().to_str().unwrap(), &["diff"]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("is not in a git repository"),
        "{answer}"
    );
    assert!(
        answer.stderr.contains("hint: `--path-orig DIR`"),
        "{answer}"
    );
}

#[test]
fn an_unknown_ref_offers_the_nearest() {
    insta::assert_snapshot!(diff(&small(), &["--from", "mian"]), @r"
    exit 2
    --- stderr
    error: `mian` is neither a branch, tag nor commit of this repository
    hint: did you mean `main`?
    ");
}

#[test]
fn a_shallow_clone_without_the_common_commit_says_what_to_fetch() {
    let origin = small();
    origin.git(&["checkout", "-q", "-b", "change"]);
    for colour in ["green", "blue"] {
        origin.edit(
            "clusters/a/config.yaml",
            if colour == "green" { "red" } else { "green" },
            colour,
        );
        origin.commit(colour);
    }
    let clones = tempfile::tempdir().unwrap();
    let url = format!("file://{}", origin.path().display());
    git(
        clones.path(),
        &[
            "clone",
            "-q",
            "--depth",
            "1",
            "--no-single-branch",
            "-b",
            "change",
            &url,
            "clone",
        ],
    );
    let clone = clones.path().join("clone");
    let answer = portolan_in(clone.to_str().unwrap(), &["diff", "--from", "main"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer.stderr.contains("shallow") && answer.stderr.contains("git fetch --unshallow"),
        "{answer}"
    );
    let exact = portolan_in(
        clone.to_str().unwrap(),
        &["diff", "--from", "main", "--exact"],
    );
    assert_eq!(exact.code, 1, "{exact}");
}

#[test]
fn conflict_markers_are_named_and_nothing_is_shown_as_removed() {
    let repository = small();
    repository.write(
        "clusters/a/config.yaml",
        "<<<<<<< HEAD\na: b\n=======\na: c\n>>>>>>> other\n",
    );
    let answer = diff(&repository, &["-o", "json"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer
            .stderr
            .contains("clusters/a/config.yaml` holds the marks of an unfinished merge"),
        "{answer}"
    );
    assert!(!answer.stdout.contains("removed"), "{answer}");
}

#[test]
fn a_kustomization_that_breaks_hides_nothing_else_and_what_it_made_is_not_removed() {
    let repository = small();
    repository.write("clusters/a/apps.yaml", &kustomization("apps", "./apps"));
    repository.write("apps/child.yaml", &kustomization("child", "./child"));
    repository.write(
        "child/config.yaml",
        &CONFIG.replace("name: config", "name: child"),
    );
    repository.commit("second");
    repository.write("apps/broken.yaml", "a: [");
    repository.edit("clusters/a/config.yaml", "red", "green");
    let answer = diff(&repository, &["-o", "json"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer.stdout.contains("\"config\"") && !answer.stdout.contains("\"child\""),
        "{answer}"
    );
    let report = from_json(&answer.stdout).unwrap();
    let failures = report.get("failures").and_then(Node::as_list).unwrap();
    let failure = failures.iter().next().expect("a failure");
    let text = |key: &str| failure.get(key).and_then(Node::as_str).unwrap_or_default();
    assert_eq!(text("owner"), "Kustomization flux-system/apps");
    assert_eq!((text("change"), text("side")), ("changed", "after"));
}

#[test]
fn submodules_and_other_line_ends_are_no_difference() {
    let inner = small();
    let repository = small();
    repository.git(&[
        "submodule",
        "--quiet",
        "add",
        &inner.path().display().to_string(),
        "clusters/a/vendored",
    ]);
    repository.commit("submodule");
    repository.edit("clusters/a/config.yaml", "\n", "\r\n");
    let answer = diff(&repository, &["--from", "HEAD"]);
    assert_eq!(answer.to_string(), "exit 0\n--- stdout\nno differences\n");
}

#[test]
fn symbolic_links_are_as_little_part_of_it_as_in_flux() {
    let repository = small();
    symlink(
        "/etc/passwd",
        repository.path().join("clusters/a/passwd.yaml"),
    )
    .unwrap();
    symlink(
        "config.yaml",
        repository.path().join("clusters/a/link.yaml"),
    )
    .unwrap();
    assert_eq!(diff(&repository, &[]).code, 0);
    repository.commit("links");
    assert_eq!(
        diff(
            &repository,
            &["--from", "HEAD~1", "--to", "HEAD", "--exact"]
        )
        .code,
        0
    );
}

/// Each object names those values, variables and lines without which it would not have changed, and no other.
#[test]
fn a_change_names_the_values_and_variables_it_comes_from() {
    let repository = GitRepository::new();
    let apps = kustomization("apps", "./apps").replace(
        "prune: true",
        "prune: true, postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}",
    );
    for (file, text) in [
        (
            "clusters/a/root.yaml",
            kustomization("root", "./clusters/a").as_str(),
        ),
        ("clusters/a/apps.yaml", apps.as_str()),
        (
            "clusters/a/settings.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: flux-system}\ndata:\n  TAG: \"1.0\"\n",
        ),
        (
            "apps/kustomization.yaml",
            "namespace: apps\nresources: [release.yaml, note.yaml]\nconfigMapGenerator:\n- name: web-values\n  files: [values.yaml]\n  options: {disableNameSuffixHash: true}\n",
        ),
        ("apps/values.yaml", "# what people see\ncolour: red\n"),
        (
            "apps/release.yaml",
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web}\nspec:\n  chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n  valuesFrom: [{kind: ConfigMap, name: web-values}]\n  values:\n    image:\n      tag: v${TAG}\n    replicas: 1\n",
        ),
        (
            "apps/note.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata:\n  tag: ${TAG}\n  text: one\n",
        ),
        (
            "charts/web/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        ),
        (
            "charts/web/templates/web.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: looks}\ndata:\n  tag: {{ .Values.image.tag | upper }}\n  colour: {{ .Values.colour }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: size}\ndata:\n  size: {{ mul .Values.replicas 2 | quote }}\n",
        ),
    ] {
        repository.write(file, text);
    }
    repository.commit("first");
    repository.edit("clusters/a/settings.yaml", "1.0", "1.1");
    repository.edit("apps/values.yaml", "red", "blue");
    repository.edit("apps/release.yaml", "replicas: 1", "replicas: 2");
    repository.edit("apps/note.yaml", "text: one", "text: two");
    let answer = diff(&repository, &["-o", "unified"]);
    let causes = |line: &&str| {
        let starts = ["  because", "  in "]
            .iter()
            .any(|lead| line.starts_with(lead));
        starts || line.contains(" → ") || line.contains("  changed")
    };
    let told: Vec<&str> = answer.stdout.lines().filter(causes).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    ConfigMap apps/note                                           changed
      because apps/note.yaml:6, clusters/a/settings.yaml:5 (TAG)
    ConfigMap apps/web-values                                     changed
      because apps/values.yaml:2
    HelmRelease apps/web                                          changed
      because apps/release.yaml:10, clusters/a/settings.yaml:5 (TAG)
    ConfigMap flux-system/settings                                changed
      because clusters/a/settings.yaml:5
    HelmRelease apps/web → ConfigMap apps/looks                   changed
      because apps/values.yaml:2 (colour), clusters/a/settings.yaml:5 (TAG)
    HelmRelease apps/web → ConfigMap apps/size                    changed
      because apps/release.yaml:10 (replicas)
    ");
}

/// A file that Flux applies cannot be had and is named; one that it does not apply is nobody's business.
#[test]
fn a_name_that_is_not_utf8_matters_only_where_it_is_applied() {
    let repository = small();
    let odd = |name: &[u8]| {
        let path = repository.path().join(std::ffi::OsStr::from_bytes(name));
        fs::write(path, "a: b\n").unwrap();
    };
    odd(b"clusters/a/\xff.md");
    repository.edit("clusters/a/config.yaml", "red", "blue");
    let harmless = diff(&repository, &[]);
    assert_eq!(harmless.code, 1, "{harmless}");
    repository.commit("odd");
    let in_git = ["--from", "HEAD~1", "--to", "HEAD", "--exact"];
    assert_eq!(diff(&repository, &in_git).code, 1);

    odd(b"clusters/a/\xff.yaml");
    insta::assert_snapshot!(diff(&repository, &[]), @r"
    exit 2
    --- stdout
    1 change not rendered

    Kustomization flux-system/root                                changed, not rendered: the name of `clusters/a/�.yaml` is not UTF-8
      files

    --- stderr
    error: Kustomization flux-system/root: the name of `clusters/a/�.yaml` is not UTF-8
    hint: give it a name in UTF-8, or leave it out in `.sourceignore` by a pattern
    ");
    repository.commit("applied");
    let in_git = diff(&repository, &in_git);
    assert_eq!(in_git.code, 2, "{in_git}");
    assert!(in_git.stderr.contains("is not UTF-8"), "{in_git}");
}

#[test]
fn a_repository_that_was_empty_has_everything_added() {
    let repository = GitRepository::new();
    repository.write("README.md", "");
    repository.commit("first");
    repository.write(
        "clusters/a/root.yaml",
        &kustomization("root", "./clusters/a"),
    );
    let answer = diff(&repository, &["-o", "json"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.contains("\"added\""), "{answer}");
}

#[test]
fn two_directories_are_compared_without_git() {
    let before = tempfile::tempdir().unwrap();
    copy(Path::new(HARBOR), before.path());
    let after = tempfile::tempdir().unwrap();
    copy(Path::new(HARBOR), after.path());
    let file = after.path().join("apps/base/beacon/values.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("64Mi", "96Mi")).unwrap();
    let orig = before.path().join("clusters/production");
    let args = [
        "diff",
        "hr",
        "--path",
        "clusters/production",
        "--path-orig",
        orig.to_str().unwrap(),
    ];
    insta::assert_snapshot!(portolan_in(after.path().to_str().unwrap(), &args), @r"
    exit 1
    --- stdout
    1 object changes · 1 restart

    HelmRelease beacon/beacon → Deployment beacon/beacon          changed, rolls 3 pods
      spec.template.spec.containers[beacon].resources.limits.memory
    -   64Mi
    +   96Mi
      because apps/base/beacon/values.yaml:12 (resources.limits.memory)
    ");
}

#[test]
fn names_choose_what_is_compared() {
    let repository = GitRepository::of(Path::new(HARBOR));
    repository.edit("apps/base/quay/deployment.yaml", "quay:2.3.0", "quay:2.4.0");
    repository.edit("apps/base/beacon/values.yaml", "64Mi", "96Mi");
    let release = diff(
        &repository,
        &[
            "hr",
            "beacon",
            "--path",
            "clusters/production",
            "-o",
            "json",
        ],
    );
    assert!(
        release.stdout.contains("HelmRelease beacon/beacon") && !release.stdout.contains("quay"),
        "{release}"
    );
    let images = diff(&repository, &["images", "--path", "clusters/production"]);
    assert_eq!(
        images.to_string(),
        "exit 1\n--- stdout\nquay 2.3.0 → 2.4.0 (quay/quay)\n"
    );
}

/// A repository of ten releases of one chart.
fn ten_releases() -> GitRepository {
    let repository = small();
    repository.write(
        "charts/web/Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    );
    repository.write(
        "charts/web/templates/config.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  colour: {{ .Values.colour }}\n",
    );
    for number in 0..10 {
        repository.write(
            &format!("clusters/a/app-{number}.yaml"),
            &format!(
                "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: app-{number}, namespace: apps}}\nspec:\n  interval: 1h\n  chart: {{spec: {{chart: ./charts/web, sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}}}}}\n  values: {{colour: red}}\n"
            ),
        );
    }
    repository.commit("releases");
    repository
}

#[test]
fn only_releases_that_differ_are_rendered() {
    let repository = ten_releases();
    repository.edit("clusters/a/app-3.yaml", "colour: red", "colour: blue");
    let events = tempfile::NamedTempFile::new().unwrap();
    let path = events.path().to_str().unwrap();
    let answer = diff(&repository, &["-o", "json", "--events", path]);
    assert_eq!(answer.code, 1, "{answer}");
    assert_eq!(
        answer
            .stdout
            .matches("\"change\": \"changed\",\n      \"owner\"")
            .count(),
        2,
        "{answer}"
    );
    let journal = fs::read_to_string(path).unwrap();
    let ended = |kind: &str| {
        let lines = journal.lines();
        lines
            .filter(|line| line.contains(kind) && line.contains("\"event\":\"done\""))
            .count()
    };
    assert_eq!(ended("HelmRelease/"), 2, "one on each side:\n{journal}");
}

#[test]
fn planted_secrets_are_in_no_form_of_the_answer() {
    let repository = ten_releases();
    let secret = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: planted, namespace: apps}}\nstringData:\n  values.yaml: |\n    colour: {value}\n"
        )
    };
    repository.write("clusters/a/secret.yaml", &secret("planted-4711"));
    let with_secret = "valuesFrom: [{kind: Secret, name: planted}]";
    repository.edit(
        "clusters/a/app-1.yaml",
        "values: {colour: red}",
        with_secret,
    );
    repository.commit("secret");
    repository.write("clusters/a/secret.yaml", &secret("planted-0815"));
    for form in [
        "unified",
        "side-by-side",
        "json",
        "markdown",
        "html",
        "github",
    ] {
        let answer = diff(&repository, &["-o", form, "--full"]);
        assert_eq!(answer.code, 1, "{answer}");
        assert!(
            answer.stdout.contains("planted"),
            "the Secret is named: {answer}"
        );
        for planted in [
            "planted-4711",
            "planted-0815",
            "cGxhbnRlZC00",
            "cGxhbnRlZC0w",
        ] {
            assert!(!answer.to_string().contains(planted), "{form}: {answer}");
        }
    }
}
