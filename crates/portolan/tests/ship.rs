//! `portolan ship`: artifacts built by the program as a user calls it.

mod portolan;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use portolan::project::{HEAD, Project, WEB, statuses};
use portolan::{Answer, wait_until};
use serde_json::Value;

#[test]
fn a_build_answers_with_one_result_for_each_artifact() {
    let project = Project::new(&format!(
        "{WEB}  - {{name: front, image: registry.example/shop/front, needs: [broken], oci: {{context: web}}}}\n  - name: broken\n    image: registry.example/shop/broken\n    command: {{run: [sh, -c, 'echo cannot find module >&2; exit 3']}}\n"
    ));
    let (result, code) = project.build(&[]);
    assert_eq!(code, 1, "{result:#}");
    assert_eq!(result["apiVersion"], "portolan.dev/v1alpha1");
    assert_eq!(result["kind"], "BuildResult");
    assert_eq!(
        statuses(&result),
        [("web", "built"), ("front", "skipped"), ("broken", "failed")]
    );
    let [web, front, broken] = [0, 1, 2].map(|at| &result["artifacts"][at]);
    for artifact in [web, front, broken] {
        let keys: Vec<&str> = artifact
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        let mut wanted = [
            "name",
            "status",
            "image",
            "digest",
            "durationMs",
            "error",
            "because",
        ];
        wanted.sort_unstable();
        let mut keys = keys;
        keys.sort_unstable();
        assert_eq!(keys, wanted);
    }
    let digest = web["digest"].as_str().expect("a digest");
    let image = web["image"].as_str().expect("an image");
    assert!(
        image.starts_with("registry.example/shop/web:") && image.ends_with(digest),
        "{image}"
    );
    assert_eq!(
        web["because"],
        serde_json::json!(["it was never built here"])
    );
    assert_eq!(front["because"], serde_json::json!(["broken failed"]));
    let error = broken["error"].as_str().expect("an error");
    assert!(
        error.contains("`sh` ended with 3") && error.contains("cannot find module"),
        "{error}"
    );
    // What was built is there, and a second run builds what is missing only.
    let (again, _) = project.build(&[]);
    assert_eq!(statuses(&again)[0], ("web", "cached"));
    let (one, code) = project.build(&["web"]);
    assert_eq!((statuses(&one), code), (vec![("web", "cached")], 0));
    assert!(project.path(".portolan/oci-layout").is_file());
    assert_eq!(
        fs::read_to_string(project.path(".portolan/.gitignore")).expect("a file"),
        "*\n"
    );
}

#[test]
fn people_see_failures_last_with_what_to_do() {
    let project = Project::new(&format!(
        "  - name: broken\n    image: registry.example/shop/broken\n    command: {{run: [sh, -c, 'echo no such module >&2; exit 3']}}\n{WEB}"
    ));
    let answer = project.run(&["ship", "build"]);
    assert_eq!(answer.code, 1, "{answer}");
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert!(
        lines[0].starts_with("✓ web     built   registry.example/shop/web:"),
        "{answer}"
    );
    assert_eq!(lines[1].trim(), "because it was never built here");
    assert!(lines[2].starts_with("✗ broken  failed after "), "{answer}");
    assert!(
        answer
            .stdout
            .contains("  `sh` ended with 3; it printed last:\n    no such module\n"),
        "{answer}"
    );
    assert!(
        answer
            .stdout
            .lines()
            .last()
            .expect("a summary")
            .starts_with("1 built, 1 failed in "),
        "{answer}"
    );
    assert!(
        answer
            .stderr
            .contains("hint: the next `portolan ship build` builds what is missing"),
        "{answer}"
    );
    // The output is where the hint says.
    let runs = fs::read_dir(project.path(".portolan/portolan/runs")).expect("runs");
    let run = runs.flatten().next().expect("a run").path();
    let kept = fs::read_to_string(run.join("output/broken.first")).expect("its output");
    assert_eq!(kept, "no such module\n");
}

#[test]
fn fail_fast_cancels_the_rest() {
    let mut artifacts = "  - name: broken\n    image: x\n    command: {run: [sh, -c, 'test -e started || exit 3; exit 4']}\n".to_owned();
    artifacts.push_str("  - name: slow\n    image: x\n    command: {run: [sh, -c, 'touch started; sleep 1000'], timeout: 20m}\n");
    let project = Project::new(&artifacts);
    let (result, code) = project.build(&["--fail-fast", "--jobs", "2"]);
    assert_eq!(code, 1, "{result:#}");
    assert_eq!(
        statuses(&result),
        [("broken", "failed"), ("slow", "cancelled")]
    );
}

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

/// The schema takes what is read and refuses what is not, by a validator that others wrote.
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
        "`build.artifacts[0].sync` (line 10) is not converted",
        "`deploy` (line 14) is not converted",
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

/// Blobs of the documents that refer to an image, as text.
fn referrers(project: &Project, digest: &str) -> Vec<String> {
    let blob = |digest: &str| {
        let path = format!(
            ".portolan/blobs/sha256/{}",
            digest.trim_start_matches("sha256:")
        );
        fs::read_to_string(project.path(&path)).expect("a blob")
    };
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let index = json(&fs::read_to_string(project.path(".portolan/index.json")).expect("an index"));
    let tag = digest.replace(':', "-");
    let named = index["manifests"].as_array().into_iter().flatten();
    let mut lists =
        named.filter(|entry| entry["annotations"]["org.opencontainers.image.ref.name"] == tag);
    let list = json(&blob(
        lists.next().expect("a list")["digest"]
            .as_str()
            .expect("a digest"),
    ));
    let manifests = list["manifests"].as_array().expect("manifests").iter();
    let documents = manifests.map(|manifest| {
        let manifest = json(&blob(manifest["digest"].as_str().expect("a digest")));
        assert_eq!(manifest["subject"]["digest"], digest);
        blob(manifest["layers"][0]["digest"].as_str().expect("a digest"))
    });
    documents.collect()
}

#[test]
fn an_image_has_its_provenance_beside_it_and_a_bill_of_materials_on_request() {
    let project = Project::new(&format!(
        "{WEB}  - {{name: tool, image: registry.example/tool, command: {{run: [sh, -c, 'echo a > $PORTOLAN_OUT/a'], output: files, inputs: [web/index.html]}}}}\n"
    ));
    let (plain, code) = project.build(&[]);
    assert_eq!(code, 0, "{plain:#}");
    let digest = |result: &Value, at: usize| {
        result["artifacts"][at]["digest"]
            .as_str()
            .expect("a digest")
            .to_owned()
    };
    let [web] = &referrers(&project, &digest(&plain, 0))[..] else {
        unreachable!("one document");
    };
    assert!(
        web.contains("\"name\":\"registry.example/shop/web\"")
            && web.contains("https://slsa.dev/provenance/v1"),
        "{web}"
    );
    assert!(!web.contains("gitCommit"), "it is in no repository: {web}");
    assert_eq!(referrers(&project, &digest(&plain, 1)).len(), 1);
    let (with, _) = project.build(&["--sbom"]);
    assert_eq!(statuses(&with), [("web", "cached"), ("tool", "cached")]);
    assert_eq!(digest(&with, 0), digest(&plain, 0), "the image is the same");
    let documents = referrers(&project, &digest(&with, 0));
    assert_eq!(documents.len(), 2);
    assert!(
        documents[1].contains("\"fileName\":\"/index.html\""),
        "{}",
        documents[1]
    );
    // What refers to an image stays as long as the image.
    project.run(&["ship", "gc", "--max-age", "0s"]);
    assert_eq!(referrers(&project, &digest(&with, 0)).len(), 2);
    // The revision of a clean repository is part of it, without the password in its address.
    let git = |args: &[&str]| {
        let done = Command::new("git")
            .args(args)
            .current_dir(project.directory.path())
            .output();
        assert!(done.expect("git").status.success(), "{args:?}");
    };
    for args in [
        &["init", "-q"][..],
        &["config", "user.email", "a@b"],
        &["config", "user.name", "a"],
        &[
            "remote",
            "add",
            "origin",
            "https://user:planted-4711@git.example/shop.git",
        ],
        &["add", "."],
        &["commit", "-qm", "a"],
    ] {
        git(args);
    }
    let elsewhere = Project {
        directory: tempfile::tempdir().expect("a directory"),
        env: Vec::new(),
    };
    let copied = Command::new("cp")
        .arg("-r")
        .arg(project.path("."))
        .arg(elsewhere.path("."))
        .status();
    assert!(copied.expect("cp").success());
    fs::remove_dir_all(elsewhere.path(".portolan")).expect("removed");
    let (committed, _) = elsewhere.build(&["web"]);
    let [known] = &referrers(&elsewhere, &digest(&committed, 0))[..] else {
        unreachable!("one document");
    };
    assert!(
        known.contains("gitCommit") && known.contains("git.example/shop.git"),
        "{known}"
    );
    assert!(!known.contains("planted"), "{known}");
}

#[test]
fn gc_keeps_what_is_named_and_removes_the_rest() {
    let project = Project::new(WEB);
    project.build(&[]);
    project.write("web/index.html", "another page");
    project.build(&[]);
    let answer = project.run(&["ship", "gc", "--max-age", "0s", "-o", "json"]);
    let json: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{answer}"));
    assert!(json["blobs"].as_u64() >= Some(3), "{json}");
    assert_eq!(json["runs"], 1);
    let (again, _) = project.build(&[]);
    assert_eq!(statuses(&again), [("web", "built")], "its record is gone");
    let elsewhere = project.run(&["ship", "gc", "--store", "web"]);
    assert!(
        elsewhere.code == 2 && elsewhere.stderr.contains("is no store"),
        "{elsewhere}"
    );
}

#[test]
fn events_are_the_same_from_the_option_and_from_the_files() {
    let project = Project::new(WEB);
    let built = project.run(&["ship", "build", "--event-log-file", "log.jsonl"]);
    assert_eq!(built.code, 0, "{built}");
    let log = fs::read_to_string(project.path("log.jsonl")).expect("events");
    let events = project.run(&["events"]);
    assert_eq!(events.stdout, log, "{events}");
    let rest = project.run(&["events", "--after", "3"]);
    let wanted: String = log.lines().skip(3).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(rest.stdout, wanted);
    let unknown = project.run(&["events", "--run", "nothing"]);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("hint: the newest is `"),
        "{unknown}"
    );
}

/// A reader follows a run of another process, from its middle to its end.
#[test]
fn events_are_followed_while_a_build_runs() {
    let project = Project::new(
        "  - name: slow\n    image: x\n    command: {run: [sh, -c, 'echo begun; while ! test -e go; do sleep 0.05; done; echo a > $PORTOLAN_OUT/a'], output: files, inputs: [web/index.html]}\n",
    );
    let build = project
        .command(&["ship", "build"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut build = build.expect("the binary was built with this test");
    wait_until(|| project.run(&["events"]).stdout.contains("begun"));
    let follow = project
        .command(&["events", "--follow"])
        .stdout(Stdio::piped())
        .spawn();
    let follow = follow.expect("the binary was built with this test");
    project.write("go", "");
    assert!(build.wait().expect("it was started").success());
    let answer = portolan::wait_for(follow);
    assert_eq!(answer.code, 0, "{answer}");
    let numbers: Vec<u64> = answer
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("JSON")["seq"]
                .as_u64()
                .expect("a number")
        })
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(
        answer
            .stdout
            .lines()
            .last()
            .expect("an end")
            .contains("\"event\":\"ended\""),
        "{answer}"
    );
}

/// Secrets by variable and by file, as a file and as a variable, that a command prints in every way.
#[test]
fn no_secret_is_in_events_output_store_or_answer() {
    let leak = "for f in $PORTOLAN_SECRETS/*; do cat $f; cat $f >&2; done; echo x$TOKEN | tr x y; head -c 65530 /dev/zero | tr '\\\\0' a; cat $PORTOLAN_SECRETS/FILED; echo; echo a > $PORTOLAN_OUT/a; exit $CODE";
    for code in ["0", "5"] {
        let mut project = Project::new(&format!(
            "  - name: tool\n    image: x\n    command:\n      run: [sh, -c, \"{leak}\"]\n      set: {{CODE: '{code}'}}\n      secrets: {{TOKEN: {{env: NPM_TOKEN, as: env}}, FILED: {{file: secret.txt}}, GIVEN: {{env: NPM_TOKEN}}}}\n      inputs: [web/index.html]\n      output: files\n"
        ));
        project
            .env
            .push(("NPM_TOKEN", "planted-4711-variable".to_owned()));
        project.write("secret.txt", "planted-4712-file\n");
        let answer = project.run(&["ship", "build", "-vv", "--events", "events.jsonl"]);
        assert_eq!(answer.code, i32::from(code == "5"), "{answer}");
        assert!(!answer.to_string().contains("planted"), "{answer}");
        assert!(answer.stderr.contains("<hidden>"), "{answer}");
        fs::remove_file(project.path("secret.txt")).expect("removed");
        let mut left = vec![project.directory.path().to_owned()];
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(
                    fs::read_dir(&path)
                        .expect("a directory")
                        .flatten()
                        .map(|entry| entry.path()),
                );
                continue;
            }
            let bytes = fs::read(&path).expect("a file");
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("planted"), "{}", path.display());
        }
        // Another value is no other input.
        if code == "0" {
            project.env = vec![("NPM_TOKEN", "planted-4713-variable".to_owned())];
            project.write("secret.txt", "planted-4714-file\n");
            let (again, _) = project.build(&[]);
            assert_eq!(statuses(&again), [("tool", "cached")]);
        }
    }
}

/// Ctrl-C: what runs is ended with all that it started, and there is a result for each artifact.
#[test]
fn an_interrupted_build_says_what_is_left_undone_and_leaves_nothing() {
    let project = Project::new(&format!(
        "{WEB}  - name: slow\n    image: x\n    command: {{run: [sh, -c, 'sleep 300 & echo $! > pid; echo begun; wait'], inputs: [web/index.html]}}\n  - {{name: after, image: x, needs: [slow], oci: {{context: web}}}}\n"
    ));
    let build = project
        .command(&["ship", "build", "-o", "json", "--jobs", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    let said = || project.run(&["events"]).stdout;
    wait_until(|| said().contains("begun") && said().contains("\"status\":\"built\""));
    let sent = Command::new("kill")
        .args(["-INT", &build.id().to_string()])
        .status();
    assert!(sent.expect("kill").success());
    let answer = portolan::wait_for(build);
    assert_eq!(answer.code, 130, "{answer}");
    let result: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{answer}"));
    assert_eq!(
        statuses(&result),
        [
            ("web", "built"),
            ("slow", "cancelled"),
            ("after", "cancelled")
        ]
    );
    let pid = fs::read_to_string(project.path("pid")).expect("a number");
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    let runs = fs::read_dir(project.path(".portolan/portolan/runs")).expect("runs");
    for run in runs.flatten() {
        assert!(!run.path().join("scratch").exists());
    }
}

/// Killed in the middle of a build: secrets and scratch files go with the next run, and it goes on.
#[test]
fn a_killed_build_leaves_nothing_that_the_next_one_does_not_clear() {
    let mut project = Project::new(&format!(
        "{WEB}  - name: slow\n    image: x\n    command: {{run: [sh, -c, 'test -e go || {{ setsid sleep 300 & echo $! > escaped; }}; echo $$ > pid; echo begun; test -e go || exec sleep 300; echo a > $PORTOLAN_OUT/a'], output: files, inputs: [web/index.html], secrets: {{TOKEN: {{env: TOKEN}}}}}}\n"
    ));
    project.env.push(("TOKEN", "planted-4711".to_owned()));
    let mut build = project
        .command(&["ship", "build", "--jobs", "2"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary was built with this test");
    let said = || project.run(&["events"]).stdout;
    wait_until(|| said().contains("begun") && said().contains("\"status\":\"built\""));
    build.kill().expect("it runs");
    build.wait().expect("it was started");
    let is_running = |file: &str| {
        let pid = fs::read_to_string(project.path(file)).expect("a number");
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    // One of them has left the group of the command.
    let were = ["pid", "escaped"]
        .map(|file| fs::copy(project.path(file), project.path(&format!("{file}-was"))));
    assert!(were.iter().all(Result::is_ok));
    assert!(
        is_running("pid-was") && is_running("escaped-was"),
        "they outlived the build"
    );
    project.write("go", "");
    let (result, code) = project.build(&[]);
    assert_eq!(code, 0, "{result:#}");
    assert_eq!(statuses(&result), [("web", "cached"), ("slow", "built")]);
    wait_until(|| !is_running("pid-was") && !is_running("escaped-was"));
    let runs = fs::read_dir(project.path(".portolan/portolan/runs")).expect("runs");
    for run in runs.flatten() {
        assert!(
            !run.path().join("scratch").exists(),
            "{}",
            run.path().display()
        );
    }
}

#[test]
fn another_directory_umask_and_order_give_the_same_image() {
    let digest = |project: &Project| {
        let (result, code) = project.build(&[]);
        assert_eq!(code, 0, "{result:#}");
        result["artifacts"][0]["digest"]
            .as_str()
            .expect("a digest")
            .to_owned()
    };
    let first = Project::new(WEB);
    for name in ["a", "b", "c/d", "c/e"] {
        first.write(&format!("web/{name}"), name);
    }
    let wanted = digest(&first);
    let second = Project::new(WEB);
    for name in ["c/e", "c/d", "b", "a"] {
        second.write(&format!("web/{name}"), name);
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(second.path(&format!("web/{name}")), mode).expect("a mode");
    }
    fs::set_permissions(second.path("web/c"), fs::Permissions::from_mode(0o700)).expect("a mode");
    assert_eq!(digest(&second), wanted);
}

/// A repository with one commit at a known time.
fn commit(project: &Project) {
    for args in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["add", "web", "portolan.yaml"],
        &["commit", "--quiet", "--message", "first"],
    ] {
        let done = Command::new("git")
            .args([
                "-c",
                "user.name=Tester",
                "-c",
                "user.email=tester@example.com",
            ])
            .args(args)
            .env("GIT_COMMITTER_DATE", "2026-01-31T00:00:00Z")
            .current_dir(project.path("."))
            .status();
        assert!(done.expect("git").success(), "{args:?}");
    }
}

#[test]
fn files_have_the_time_of_a_date_or_of_the_commit() {
    let artifact = |name: &str, mtime: &str| {
        format!(
            "  - {{name: {name}, image: registry.example/{name}, oci: {{context: web, mtime: {mtime}}}}}\n"
        )
    };
    let document = artifact("commit", "commit")
        + &artifact("date", "2026-01-31")
        + &artifact("seconds", "1769817600")
        + &artifact("epoch", "epoch");
    let project = Project::new(&document);
    let (none, code) = project.build(&[]);
    assert_eq!(
        (code, &none["artifacts"][0]["status"]),
        (1, &"failed".into())
    );
    assert_eq!(
        none["artifacts"][0]["error"],
        "`mtime: commit` needs a git repository with a commit, and `git`"
    );
    commit(&project);
    let (all, code) = project.build(&[]);
    assert_eq!(code, 0, "{all:#}");
    let digest = |at: usize| all["artifacts"][at]["digest"].as_str().expect("a digest");
    assert_eq!((digest(0), digest(1)), (digest(1), digest(2)));
    assert_ne!(digest(2), digest(3));
}

#[test]
fn an_artifact_that_failed_is_tried_again() {
    let artifact = |retries: u32| {
        format!(
            "  - {{name: a, image: registry.example/a, retries: {retries}, command: {{run: [sh, -c, 'echo x >> count; test $(wc -l < count) -ge 3 && echo hi > $PORTOLAN_OUT/f'], output: files, oci: {{}}}}}}\n"
        )
    };
    let project = Project::new(&artifact(1));
    assert_eq!(project.build(&[]).1, 1, "twice is not enough");
    fs::remove_file(project.path("count")).expect("it ran");
    project.write("portolan.yaml", &format!("{HEAD}{}", artifact(2)));
    let (result, code) = project.build(&["--events", "events.jsonl"]);
    assert_eq!(code, 0, "{result:#}");
    let events = fs::read_to_string(project.path("events.jsonl")).expect("events");
    assert_eq!(
        events.matches("\"event\":\"retrying\"").count(),
        2,
        "{events}"
    );
}
