//! `portolan ship test` and `ship verify`: one result for each test of each artifact, and for each verification.

mod portolan;

use std::fs;
use std::process::Command;

use portolan::Answer;
use portolan::project::Project;
use portolan_testbed::{HttpServer, Reply};
use serde_json::Value;

const ARTIFACTS: &str = "  - {name: web, image: registry.example/web, oci: {context: web, user: \"65532\", entrypoint: [/run], copy: [{to: /srv, mode: \"0750\", owner: \"7:8\"}], env: {MODE: x}}}\n  - {name: api, image: registry.example/api, oci: {context: web}}\n  - {name: bad, image: registry.example/bad, command: {run: [sh, -c, exit 4]}}\n";

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.stdout).unwrap_or_else(|_| unreachable!("{answer}"))
}

/// Name, artifact and status of each test.
fn tests(value: &Value) -> Vec<String> {
    let tests = value["tests"].as_array().expect("a list").iter();
    let word = |test: &Value, key: &str| test[key].as_str().unwrap_or_default().to_owned();
    tests
        .map(|test| {
            format!(
                "{} {} {}",
                word(test, "name"),
                word(test, "artifact"),
                word(test, "status")
            )
        })
        .collect()
}

#[test]
fn each_test_of_each_artifact_has_one_result_and_is_run_again_only_when_something_changed() {
    let tests_of = "  tests:\n  - {name: unit, artifacts: [web, api, bad], command: {run: [sh, t/run.sh], inputs: [\"t/**\"], timeout: 20s}}\n  - {name: any, artifacts: [web], command: {run: [sh, -c, 'echo seen >> any.log']}}\n";
    let project = Project::new(&format!("{ARTIFACTS}{tests_of}"));
    // A layout with the digest of the image; inputs alone are there.
    project.write("t/run.sh", "case $PORTOLAN_IMAGE in */.portolan@sha256:*) ;; *) exit 9 ;; esac\ntest ! -e web || exit 8\nif [ $PORTOLAN_ARTIFACT = api ]; then echo no good; exit 3; fi\n");
    let first = project.run(&["ship", "test", "-o", "json"]);
    assert_eq!(first.code, 1, "{first}");
    let value = json(&first);
    assert_eq!(value["kind"], "TestResult");
    assert_eq!(
        tests(&value),
        [
            "unit web passed",
            "unit api failed",
            "unit bad skipped",
            "any web passed"
        ]
    );
    let error = value["tests"][1]["error"].as_str().expect("an error");
    assert!(
        error.contains("`sh` ended with 3; it printed last:\n  no good"),
        "{error}"
    );
    let second = project.run(&["ship", "test", "-o", "json"]);
    assert_eq!(
        tests(&json(&second)),
        [
            "unit web cached",
            "unit api failed",
            "unit bad skipped",
            "any web passed"
        ]
    );
    let any = fs::read_to_string(project.path("any.log")).expect("it ran in the project");
    assert_eq!(any, "seen\nseen\n");
    project.write("web/index.html", "another page");
    let third = project.run(&["ship", "test", "web", "-o", "json"]);
    assert_eq!(
        (third.code, tests(&json(&third))),
        (
            0,
            vec!["unit web passed".to_owned(), "any web passed".to_owned()]
        )
    );
    project.write("t/run.sh", "exit 0\n");
    let fourth = project.run(&["ship", "test", "--events", "events.jsonl"]);
    assert!(
        fourth.stdout.contains("✓ unit api  passed in ")
            && fourth.stdout.contains("3 of 4 tests passed"),
        "{fourth}"
    );
    let events = fs::read_to_string(project.path("events.jsonl")).expect("events");
    assert!(
        events.contains("\"key\":\"test/unit/api\",\"event\":\"done\""),
        "{events}"
    );
}

#[test]
fn an_image_is_tested_by_what_is_in_it() {
    let tests_of = "  tests:\n  - name: good\n    artifacts: [web]\n    image: {files: [{path: /srv/index.html, mode: \"0750\", owner: \"7:8\"}, {path: /root/.ssh, absent: true}], config: {user: \"65532\", entrypoint: [/run], env: {MODE: x}}, maxSize: 1Mi, secrets: {allow: [\"srv/testdata/**\"]}}\n  - name: wrong\n    artifacts: [web]\n    image: {files: [{path: /srv/index.html, mode: \"0700\"}, {path: /srv, absent: true}, {path: /none}], config: {user: root, cmd: [a]}, maxSize: 10, secrets: {}}\n";
    let project = Project::new(&format!("{ARTIFACTS}{tests_of}"));
    let key = format!("-----BEGIN RSA {} KEY-----\n", "PRIVATE");
    project.write("web/testdata/key.pem", &key);
    let answer = project.run(&["ship", "test", "-o", "json"]);
    let value = json(&answer);
    assert_eq!(
        tests(&value),
        ["good web passed", "wrong web failed"],
        "{answer}"
    );
    let error = value["tests"][1]["error"].as_str().expect("an error");
    for line in [
        "`/srv/index.html` has the mode 0750 and not 0700",
        "`/srv` is there",
        "`/none` is not there",
        "`user` is \"65532\" and not \"root\"",
        "`cmd` is null and not [\"a\"]",
        "bytes, more than 10",
        "`/srv/testdata/key.pem` holds a private key",
    ] {
        assert!(error.contains(line), "{line}: {error}");
    }
    project.write("web/key.pem", &key);
    let answer = project.run(&["ship", "test", "-o", "json"]);
    let value = json(&answer);
    assert_eq!(
        value["tests"][0]["error"], "`/srv/key.pem` holds a private key",
        "{answer}"
    );
}

#[test]
fn an_answer_over_http_is_waited_for_and_judged() {
    let server = HttpServer::start(|request| match request.path() {
        "/healthz" => Reply::ok("all ok\n"),
        _ => Reply::status(404),
    });
    let url = server.url();
    let free = portolan_testbed::free_port();
    let verify = format!(
        "  verify:\n  - {{name: up, http: {{url: \"{url}\", path: /healthz, contains: ok, for: 20s}}}}\n  - {{name: text, http: {{url: \"{url}\", path: /healthz, contains: wrong, for: 1s}}}}\n  - {{name: gone, http: {{url: \"{url}/none\", status: 404, for: 20s}}}}\n  - {{name: down, http: {{url: \"http://127.0.0.1:{free}\", for: 1s}}}}\n  - {{name: smoke, command: {{run: [sh, -c, 'test -z \"$SECRET\" && echo bad news && exit 2']}}}}\n"
    );
    let mut project = Project::new(&format!("{}{verify}", portolan::project::WEB));
    project.env = vec![("SECRET", "x".to_owned())];
    let answer = project.run(&["ship", "verify", "-o", "json"]);
    assert_eq!(answer.code, 1, "{answer}");
    let value = json(&answer);
    let results: Vec<_> = value["verifications"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["status"].as_str().expect("a status"))
        .collect();
    assert_eq!(
        results,
        ["passed", "failed", "passed", "failed", "failed"],
        "{answer}"
    );
    let error = |at: usize| {
        value["verifications"][at]["error"]
            .as_str()
            .expect("an error")
    };
    assert_eq!(
        error(1),
        format!(
            "`{url}/healthz` did not answer as it should within 1 s: its body does not contain `wrong`"
        )
    );
    assert!(error(3).contains("within 1 s: "), "{answer}");
    assert!(
        error(4).contains("`sh` ended with 2; it printed last:\n  bad news"),
        "its environment is empty: {answer}"
    );
    let text = project.run(&["ship", "verify"]);
    assert!(
        text.stdout.ends_with("2 of 5 verifications passed\n"),
        "{text}"
    );
}

#[test]
fn what_is_wrong_with_a_check_is_told_at_its_line() {
    let project = Project::new(&format!(
        "{}  tests:\n  - {{name: unit, artifacts: [wep], command: {{run: []}}}}\n  verify:\n  - {{name: a, needs: [none], cluster: {{apiVersion: v1, kind: Pod}}}}\n",
        portolan::project::WEB
    ));
    let answer = project.run(&["ship", "test"]);
    assert_eq!(answer.code, 2, "{answer}");
    for line in [
        "the test `unit` names the artifact `wep`, which is not there",
        "`spec.tests[0].command.run` needs a program",
        "`a` needs the deploy step `none`, which is not there",
        "`spec.verify[0].cluster` needs a `name` or a `selector`",
    ] {
        assert!(answer.stderr.contains(line), "{line}: {answer}");
    }
    let none = Project::new(portolan::project::WEB);
    assert!(
        none.run(&["ship", "test"])
            .stderr
            .contains("has no `spec.tests`")
    );
    assert!(
        none.run(&["ship", "verify"])
            .stderr
            .contains("has no `spec.verify`")
    );
}

/// Three artifacts, a chart and a canary: what the documentation shows.
#[test]
fn the_shop_of_the_examples_passes_its_tests_and_renders_every_step() {
    let project = Project::new("");
    let shop = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shop/.");
    let copied = Command::new("cp")
        .args(["-r", shop])
        .arg(project.path("."))
        .status();
    assert!(copied.expect("cp").success());
    let tested = project.run(&["ship", "test"]);
    assert!(
        tested.code == 0 && tested.stdout.ends_with("3 of 3 tests passed\n"),
        "{tested}"
    );
    let (built, _) = project.build(&[]);
    let rendered = project.run(&["ship", "render"]);
    assert_eq!(rendered.code, 0, "{rendered}");
    for artifact in built["artifacts"].as_array().expect("a list") {
        let image = artifact["image"].as_str().expect("an image");
        assert!(
            rendered.stdout.contains(&format!("image: {image}\n")),
            "{rendered}"
        );
    }
    for kind in ["Namespace", "Service", "IstioCanaryDeployment"] {
        assert!(
            rendered.stdout.contains(&format!("kind: {kind}\n")),
            "{rendered}"
        );
    }
}
