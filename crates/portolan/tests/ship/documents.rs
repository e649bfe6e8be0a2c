//! The document of a project: read, refused, shown, explained, written and converted.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::portolan::project::{HEAD, Project, WEB, statuses};
use crate::portolan::{self, Answer};

#[test]
fn a_document_is_refused_with_every_mistake_at_its_line() {
    let project =
        Project::new("  - name: web\n    image: registry.example/web:1\n    oci: {contxt: web}\n");
    let answer = project.run(&["ship", "build"]);
    assert_eq!(answer.code, 2, "{answer}");
    for part in [
        "portolan.yaml:7:12",
        "is a repository without tag and digest",
        "portolan.yaml:8:11",
        "has no field `contxt`",
        "hint: did you mean `context`?",
        "error: cannot use `portolan.yaml`: 2 mistakes in it",
    ] {
        assert!(answer.stderr.contains(part), "{part}\n{answer}");
    }
    let unknown = Project::new(WEB).run(&["ship", "build", "wbe"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("hint: did you mean `web`?"),
        "{unknown}"
    );
    let empty = tempfile::tempdir().expect("a directory");
    let none = portolan::portolan_in(empty.path().to_str().expect("UTF-8"), &["ship", "build"]);
    assert!(
        none.stderr
            .contains("hint: `portolan ship init` writes one"),
        "{none}"
    );
}

#[test]
fn a_project_is_found_from_a_directory_below() {
    let project = Project::new(WEB);
    project.write("web/deep/file", "");
    let below = project.path("web/deep");
    let answer = portolan::portolan_in(
        below.to_str().expect("UTF-8"),
        &["ship", "build", "-o", "json"],
    );
    assert_eq!(answer.code, 0, "{answer}");
    assert!(project.path(".portolan/index.json").is_file());
}

#[test]
fn explain_names_the_input_that_changed() {
    let project = Project::new(&format!(
        "{WEB}  - {{name: front, image: x, oci: {{context: web, base: {{artifact: web}}}}}}\n"
    ));
    let never = project.run(&["ship", "explain", "web"]);
    assert!(
        never
            .stdout
            .starts_with("web would be built:\n  it was never built here\n"),
        "{never}"
    );
    assert!(
        project
            .path(".portolan/blobs/sha256")
            .read_dir()
            .expect("a store")
            .next()
            .is_none()
    );
    project.build(&[]);
    let good = project.run(&["ship", "explain", "front"]);
    assert!(
        good.stdout.starts_with("front is up to date: sha256:"),
        "{good}"
    );
    fs::rename(
        project.path("web/index.html"),
        project.path("web/home.html"),
    )
    .expect("renamed");
    let moved = project.run(&["ship", "explain", "web", "-o", "json"]);
    let json: Value = serde_json::from_str(&moved.stdout).expect("JSON");
    assert_eq!(
        json["because"],
        serde_json::json!(["/home.html is new", "/index.html is gone"])
    );
    assert_eq!(json["digest"], Value::Null);
    let runs = fs::read_dir(project.path(".portolan/portolan/runs")).expect("runs");
    assert_eq!(runs.count(), 1, "the build alone");
    let above = project.run(&["ship", "explain", "front"]);
    assert!(above.stdout.contains("web would be built first"), "{above}");
    let unknown = project.run(&["ship", "explain", "frnt"]);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("did you mean `front`?"),
        "{unknown}"
    );
}

#[test]
fn config_says_where_each_value_comes_from_and_can_be_read_again() {
    let mut project = Project::new(
        "  - name: web\n    image: 'registry.example/${TEAM}/web'\n    oci: {context: web, user: \"0\", labels: {a: 'yes', b: \"# no\"}}\n  - name: tool\n    image: x\n    command: {run: [sh, -c, 'echo \"a: b\"'], output: files}\n",
    );
    project.env.push(("TEAM", "red".to_owned()));
    let answer = project.run(&["ship", "config"]);
    assert_eq!(answer.code, 0, "{answer}");
    for line in [
        "    image: registry.example/red/web # portolan.yaml:7 `registry.example/${TEAM}/web`\n",
        "      context: web # portolan.yaml:8\n",
        "      buckets: 8 # default\n",
        "      - linux/amd64 # default\n",
        "      timeout: \"30m\" # default\n",
    ] {
        assert!(answer.stdout.contains(line), "{line}\n{answer}");
    }
    let copy = Project::new("");
    copy.write("portolan.yaml", &answer.stdout);
    let again = copy.run(&["ship", "config", "-o", "json"]);
    let values = |answer: &Answer| {
        let json: Value = serde_json::from_str(&answer.stdout).expect("JSON");
        let values = json["values"].as_array().expect("a list").clone();
        let values = values
            .into_iter()
            .map(|value| (value["path"].clone(), value["value"].clone()));
        values.collect::<Vec<_>>()
    };
    let before = project.run(&["ship", "config", "-o", "json"]);
    assert_eq!(values(&before), values(&again), "{again}");
}

/// What a profile and the command line say is told with where it stands.
#[test]
fn profiles_and_single_values_are_laid_over_the_document() {
    let project = Project::new(&format!(
        "{WEB}  profiles:\n  - name: fast\n    spec:\n      artifacts:\n      - {{name: web, oci: {{compression: zstd}}}}\n  - {{name: never, when: {{command: [dev]}}, spec: {{artifacts: [{{name: web, image: 1}}]}}}}\n"
    ));
    let set = ["-p", "fast", "--set", "artifacts.web.oci.user=1000"];
    let shown = project.run(&[&["ship", "config"], &set[..]].concat());
    assert_eq!(shown.code, 0, "{shown}");
    assert!(
        shown
            .stdout
            .contains("compression: zstd # portolan.yaml:11"),
        "{shown}"
    );
    let user = "user: 1000 # --set artifacts.web.oci.user";
    assert!(shown.stdout.contains(user), "{shown}");
    assert!(!shown.stdout.contains("profiles"), "{shown}");
    let digest = |args: &[&str]| project.build(args).0["artifacts"][0]["digest"].clone();
    let plain = digest(&[]);
    assert_ne!(digest(&set), plain);
    assert_eq!(digest(&[]), plain);
    let wrong = project.run(&["ship", "build", "-p", "fsat"]);
    assert_eq!(wrong.code, 2, "{wrong}");
    assert!(wrong.stderr.contains("did you mean `fast`?"), "{wrong}");
    let wrong = project.run(&["ship", "build", "--set", "artifacts.wbe.image=x"]);
    assert_eq!(wrong.code, 2, "{wrong}");
    assert!(
        wrong
            .stderr
            .contains("`--set artifacts.wbe.image=x`: there is no entry `wbe`"),
        "{wrong}"
    );
}

/// The schema takes what is read and refuses what is not, by a validator that others wrote.
#[test]
fn the_schema_takes_what_is_read() {
    const CHECK: &str = "
import json, sys, yaml, jsonschema
schema, documents = json.load(open(sys.argv[1])), sys.argv[2:]
jsonschema.Draft7Validator.check_schema(schema)
for path in documents:
    for document in yaml.safe_load_all(open(path)):
        if document and document.get('kind') == 'Ship':
            errors = [e.message for e in jsonschema.Draft7Validator(schema).iter_errors(document)]
            print(path.split('/')[-1], 'refused' if errors else 'taken', errors[:1])
";
    let probe = Command::new("python3")
        .args(["-c", "import jsonschema, yaml"])
        .output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        assert!(
            std::env::var_os("CI").is_none(),
            "jsonschema and yaml are not installed"
        );
        return;
    }
    let project = Project::new(WEB);
    let schema = project.run(&["ship", "schema"]);
    project.write("schema.json", &schema.stdout);
    let bad = format!("{HEAD}  - {{name: web, image: x, oci: {{contxt: web}}}}\n");
    let two = format!("{HEAD}  - {{name: web, image: x, oci: {{}}, command: {{run: [a]}}}}\n");
    project.write("bad.yaml", &bad);
    project.write("two.yaml", &two);
    let shop = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/shop/portolan.yaml"
    );
    let effective = portolan::portolan(&["ship", "config", "-f", shop]);
    project.write("effective.yaml", &effective.stdout);
    let path = |name: &str| project.path(name).to_str().expect("UTF-8").to_owned();
    let checked = Command::new("python3")
        .args(["-c", CHECK, &path("schema.json"), shop])
        .args(["portolan.yaml", "effective.yaml", "bad.yaml", "two.yaml"].map(path))
        .output()
        .expect("Python");
    let said = String::from_utf8_lossy(&checked.stdout);
    let words: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(
        words,
        ["taken", "taken", "taken", "refused", "refused"],
        "{said}{}",
        String::from_utf8_lossy(&checked.stderr)
    );
}

#[test]
fn init_writes_a_document_for_what_it_finds() {
    let project = Project::new("");
    fs::remove_file(project.path("portolan.yaml")).expect("removed");
    project.write("api/Dockerfile", "FROM scratch\nCOPY a /a\n");
    project.write("api/worker.Dockerfile", "FROM scratch\n");
    project.write("tool/go.mod", "module tool\n");
    project.write("tool/main.go", "package main\n");
    project.write("cli/Cargo.toml", "[package]\nname = \"cli\"\n");
    project.write("cli/src/main.rs", "fn main() {}\n");
    let dry = project.run(&["ship", "init", "--dry-run", "--registry", "r.example/team"]);
    assert_eq!(dry.code, 0, "{dry}");
    assert!(!project.path("portolan.yaml").exists());
    let answer = project.run(&["ship", "init", "--registry", "r.example/team"]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(answer.stderr.contains("wrote 5 artifacts"), "{answer}");
    assert_eq!(
        fs::read_to_string(project.path("portolan.yaml")).expect("a file"),
        dry.stdout
    );
    let config = project.run(&["ship", "config", "-o", "json"]);
    assert_eq!(config.code, 0, "{config}");
    for name in ["api", "api-worker", "cli", "tool", "web"] {
        assert!(
            config.stdout.contains(&format!("/{name}\"")),
            "{name}\n{config}"
        );
    }
    let (web, code) = project.build(&["web"]);
    assert_eq!((statuses(&web), code), (vec![("web", "built")], 0));
    let second = project.run(&["ship", "init"]);
    assert!(
        second.code == 2
            && second
                .stderr
                .contains("has a document of `kind: Ship` already"),
        "{second}"
    );
    // Settings that are there stay.
    let settings = Project::new("");
    settings.write("portolan.yaml", "test: {disable: []}\n");
    settings.run(&["ship", "init"]);
    let text = fs::read_to_string(settings.path("portolan.yaml")).expect("a file");
    assert!(
        text.starts_with("test: {disable: []}\n---\napiVersion: portolan.dev"),
        "{text}"
    );
    let nothing = tempfile::tempdir().expect("a directory");
    let nothing = portolan::portolan_in(nothing.path().to_str().expect("UTF-8"), &["ship", "init"]);
    assert!(
        nothing.code == 2 && nothing.stderr.contains("nothing is found"),
        "{nothing}"
    );
}

#[test]
fn a_skaffold_configuration_is_converted_and_what_is_lost_is_named() {
    let project = Project::new("");
    fs::remove_file(project.path("portolan.yaml")).expect("removed");
    project.write(
        "skaffold.yaml",
        "apiVersion: skaffold/v4beta11\nkind: Config\nmetadata: {name: shop}\nbuild:\n  tagPolicy: {gitCommit: {}}\n  artifacts:\n  - image: r.example/shop/web\n    context: web\n    docker: {dockerfile: web.Dockerfile, target: run, buildArgs: {MODE: '1'}, secrets: [{id: npm, env: NPM_TOKEN}]}\n    sync: {infer: ['**']}\n  - image: r.example/shop/tool\n    requires: [{image: r.example/shop/web, alias: BASE}]\n    custom: {buildCommand: ./build.sh, dependencies: {paths: ['src/**']}}\ndeploy: {kubectl: {}}\n",
    );
    let answer = project.run(&["ship", "init", "--from", "skaffold.yaml"]);
    assert_eq!(answer.code, 1, "{answer}");
    for part in [
        "`build.artifacts[0].sync.infer` (line 10) is not converted",
        "`k8s/*.yaml` is deployed",
        "$PORTOLAN_OUT",
        "by their digest",
    ] {
        assert!(answer.stderr.contains(part), "{part}\n{answer}");
    }
    let config = project.run(&["ship", "config"]);
    assert_eq!(config.code, 0, "{config}");
    for line in [
        "file: web.Dockerfile #",
        "MODE: 1 #",
        "env: NPM_TOKEN #",
        "- web #",
        "- ./build.sh #",
    ] {
        assert!(
            config.stdout.contains(line)
                || config
                    .stdout
                    .contains(&line.replace("./build.sh", "\"./build.sh\"")),
            "{line}\n{config}"
        );
    }
}
