//! `portolan ship build --push` and base images: against a real registry, and against servers that misbehave.

mod portolan;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portolan::project::{Project, statuses};
use portolan::{wait_for, wait_until};
use portolan_testbed::{
    HttpServer, PASSWORD, Registry, RegistrySetup, Reply, Request, USER, has_program,
};
use serde_json::Value;

fn project(host: &str) -> Project {
    let project = Project::new(&format!(
        "  - {{name: web, image: {host}/shop/web, oci: {{context: web}}}}\n  - {{name: copy, image: {host}/shop/copy, oci: {{context: web, labels: {{a: b}}}}}}\n"
    ));
    project.write("web/a/file", "a file");
    project
}

fn pushed<'a>(result: &'a Value, name: &str) -> &'a Value {
    let all = result["pushed"].as_array().expect("a list");
    all.iter()
        .find(|pushed| pushed["name"] == name)
        .unwrap_or(&Value::Null)
}

#[test]
fn images_are_pushed_once_and_layers_are_mounted() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    let project = project(&registry.host());
    // One after the other, so that the second finds what the first has pushed.
    let (result, code) = project.build(&["web", "--push", "--tag", "v1"]);
    assert_eq!(code, 0, "{result:#}");
    let first = pushed(&result, "web");
    assert!(
        first["sent"].as_u64() > Some(1) && first["bytes"].as_u64() > Some(0),
        "{result:#}"
    );
    let (again, code) = project.build(&["web", "--push", "--tag", "v1"]);
    assert_eq!(code, 0, "{again:#}");
    assert_eq!(
        (
            &pushed(&again, "web")["sent"],
            &pushed(&again, "web")["bytes"]
        ),
        (&0.into(), &0.into())
    );
    let (both, code) = project.build(&["--push", "--jobs", "1"]);
    assert_eq!(code, 0, "{both:#}");
    let copy = pushed(&both, "copy");
    assert!(copy["mounted"].as_u64() > Some(0), "{both:#}");
    assert_eq!(copy["sent"], 1, "the config alone: {both:#}");
    if has_program("skopeo", "--version") {
        for (name, tag) in [("web", "v1"), ("copy", "")] {
            let digest = both["artifacts"]
                .as_array()
                .expect("a list")
                .iter()
                .find(|artifact| artifact["name"] == name);
            let digest = digest.expect("it is there")["digest"]
                .as_str()
                .expect("a digest");
            let reference = if tag.is_empty() {
                format!("@{digest}")
            } else {
                format!(":{tag}")
            };
            let seen = Command::new("skopeo")
                .args([
                    "inspect",
                    "--tls-verify=false",
                    &format!("docker://{}/shop/{name}{reference}", registry.host()),
                ])
                .output()
                .expect("skopeo");
            let seen = String::from_utf8_lossy(&seen.stdout).into_owned()
                + &String::from_utf8_lossy(&seen.stderr);
            assert!(seen.contains(digest), "{seen}");
            let list = format!(
                "docker://{}/shop/{name}:{}",
                registry.host(),
                digest.replace(':', "-")
            );
            let list = Command::new("skopeo")
                .args(["inspect", "--raw", "--tls-verify=false", &list])
                .output();
            let list = String::from_utf8_lossy(&list.expect("skopeo").stdout).into_owned();
            assert!(list.contains("application/vnd.in-toto+json"), "{list}");
        }
    }
}

#[test]
fn a_login_of_docker_is_used_and_a_missing_one_told() {
    let setup = RegistrySetup {
        login: true,
        ..RegistrySetup::default()
    };
    let Some(registry) = Registry::start(&setup) else {
        return;
    };
    let mut project = project(&registry.host());
    project.env.push((
        "DOCKER_CONFIG",
        project.path("docker").to_str().expect("UTF-8").to_owned(),
    ));
    let (refused, code) = project.build(&["web", "--push"]);
    assert_eq!(code, 1);
    assert_eq!(statuses(&refused), [("web", "failed")]);
    let error = refused["artifacts"][0]["error"].as_str().expect("an error");
    assert!(error.contains("no login is stored for it"), "{error}");
    let auth = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        format!("{USER}:{PASSWORD}"),
    );
    project.write(
        "docker/config.json",
        &format!(
            "{{\"auths\":{{\"{}\":{{\"auth\":\"{auth}\"}}}}}}",
            registry.host()
        ),
    );
    let answer = project.run(&[
        "ship",
        "build",
        "web",
        "--push",
        "-vv",
        "--events",
        "events.jsonl",
    ]);
    assert_eq!(answer.code, 0, "{answer}");
    let events = fs::read_to_string(project.path("events.jsonl")).expect("events");
    for text in [answer.to_string(), events] {
        assert!(!text.contains(PASSWORD) && !text.contains(&auth), "{text}");
    }
}

#[test]
fn a_base_image_of_a_registry_is_pulled_once_pinned_and_moved_on_request() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    let host = registry.host();
    let maker = Project::new(&format!(
        "  - {{name: base, image: {host}/base, oci: {{context: web}}}}\n"
    ));
    let (made, code) = maker.build(&["--push", "--tag", "1"]);
    assert_eq!(code, 0, "{made:#}");
    let user = Project::new(&format!(
        "  - {{name: app, image: {host}/app, oci: {{context: app, base: '{host}/base:1'}}}}\n"
    ));
    user.write("app/program", "a program");
    let answer = user.run(&["ship", "build"]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(
        answer
            .stderr
            .contains("`portolan.lock` pins the base image"),
        "{answer}"
    );
    let lock = fs::read_to_string(user.path("portolan.lock")).expect("a lock file");
    assert!(
        lock.contains(made["artifacts"][0]["digest"].as_str().expect("a digest")),
        "{lock}"
    );
    // The tag moves: nobody looks.
    maker.write("web/index.html", "another page");
    maker.build(&["--push", "--tag", "1"]);
    assert_eq!(statuses(&user.build(&[]).0), [("app", "cached")]);
    let updated = user.run(&["ship", "update"]);
    assert!(updated.stdout.starts_with("moved "), "{updated}");
    let (moved, _) = user.build(&[]);
    assert_eq!(statuses(&moved), [("app", "built")]);
    assert_eq!(
        moved["artifacts"][0]["because"],
        serde_json::json!(["base changed"])
    );
    // Nothing to do needs no registry.
    drop(registry);
    assert_eq!(statuses(&user.build(&[]).0), [("app", "cached")]);
    let gone = user.run(&["ship", "update"]);
    assert!(
        gone.code == 2 && gone.stderr.contains("cannot pull the base image"),
        "{gone}"
    );
}

/// Directories always go into the same of eight layers: a changed file sends one of these, an eighth on average.
#[test]
fn one_changed_file_sends_a_small_part_of_the_image() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    let project = Project::new(&format!(
        "  - {{name: web, image: {}/shop/web, oci: {{context: many}}}}\n",
        registry.host()
    ));
    let mut state = 1_u64;
    for number in 0..1000 {
        // Bytes that cannot be compressed, of the same length for each file.
        let mut text = String::new();
        while text.len() < 1000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let _ = write!(text, "{state:016x}");
        }
        project.write(&format!("many/d{}/f{number}", number / 10), &text);
    }
    let bytes = |args: &[&str]| {
        let (result, code) = project.build(args);
        assert_eq!(code, 0, "{result:#}");
        pushed(&result, "web")["bytes"].as_u64().expect("a number")
    };
    let whole = bytes(&["--push"]);
    let mut sent = 0;
    for directory in (0..100).step_by(10) {
        let file = format!("many/d{directory}/f{}", directory * 10);
        project.write(&file, &format!("changed {directory}"));
        sent += bytes(&["--push"]);
    }
    assert_eq!(bytes(&["--push"]), 0, "all of it is there");
    let part = sent as f64 / 10.0 / whole as f64;
    eprintln!(
        "a changed file of 1000 sent {:.1} % of the image",
        part * 100.0
    );
    assert!(part <= 0.15, "{part}");
}

/// A registry that takes what is sent and keeps nothing, unless it is told otherwise.
fn server(answer: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> HttpServer {
    HttpServer::start(move |request| {
        if let Some(reply) = answer(request) {
            return reply;
        }
        match request.method.as_str() {
            "HEAD" => Reply::status(404),
            "POST" => Reply::status(202).header("location", format!("{}upload", request.path())),
            _ => Reply::status(201),
        }
    })
}

/// The error of `web` when its push is answered so; the other artifact, which is not pushed there, is built.
fn push_error(answer: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> String {
    let server = server(answer);
    let project = project(&server.host());
    let began = Instant::now();
    let (result, code) = project.build(&["--push"]);
    assert!(began.elapsed() < Duration::from_mins(1));
    assert_eq!(code, 1, "{result:#}");
    let web = &result["artifacts"][0];
    assert_eq!(web["status"], "failed", "{result:#}");
    assert_eq!(result["artifacts"].as_array().map(Vec::len), Some(2));
    assert!(web["digest"].is_string(), "it is in the store: {result:#}");
    web["error"].as_str().expect("an error").to_owned()
}

#[test]
fn a_registry_that_misbehaves_is_one_clear_result_for_each_artifact() {
    let put = |request: &Request| request.method == "PUT";
    let busy = push_error(|_| Some(Reply::status(429).header("retry-after", "0")));
    assert!(
        busy.contains("cannot push to `") && busy.contains("429"),
        "{busy}"
    );
    let forbidden = push_error(move |request| put(request).then(|| Reply::status(403)));
    assert!(forbidden.contains("refuses access"), "{forbidden}");
    let broken = push_error(move |request| put(request).then(|| Reply::status(500)));
    assert!(broken.contains("500"), "{broken}");
    let half = push_error(move |request| put(request).then(|| Reply::status(202)));
    assert!(half.contains("it is not stored"), "{half}");
    let cut =
        push_error(move |request| put(request).then(|| Reply::ok("x".repeat(1000)).cut_after(0)));
    assert!(
        cut.contains("cannot push") || cut.contains("not stored"),
        "{cut}"
    );
    let elsewhere = push_error(|request| {
        (request.method == "POST")
            .then(|| Reply::status(202).header("location", "http://127.0.0.1:1/evil"))
    });
    assert!(
        elsewhere.contains("to be sent to another host"),
        "{elsewhere}"
    );
    let project = project("127.0.0.1:1");
    let (down, code) = project.build(&["--push"]);
    assert_eq!(
        (code, statuses(&down)),
        (1, vec![("web", "failed"), ("copy", "failed")])
    );
    let error = down["artifacts"][0]["error"].as_str().expect("an error");
    assert!(error.contains("127.0.0.1:1"), "{error}");
    // What was built is there: the next build needs no registry.
    assert_eq!(
        statuses(&project.build(&[]).0),
        [("web", "cached"), ("copy", "cached")]
    );
}

/// A tag that names a commit is pushed only if the commit says what was built.
#[test]
fn a_tag_may_name_commit_artifact_and_digest() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    let project = project(&registry.host());
    let tags = [
        "web",
        "--push",
        "--tag",
        "main-{commit}",
        "--tag",
        "{artifact}-{digest}",
    ];
    let (none, code) = project.build(&tags);
    assert_eq!(code, 1, "{none:#}");
    let error = none["artifacts"][0]["error"].as_str().expect("an error");
    assert_eq!(
        error,
        "the tag `main-{commit}` asks for a commit: the document is in no git repository with a commit"
    );
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=Tester",
                "-c",
                "user.email=tester@example.com",
            ])
            .args(args)
            .current_dir(project.path("."))
            .output()
            .expect("git");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["add", "web", "portolan.yaml"]);
    git(&["commit", "--quiet", "--message", "first"]);
    let (good, code) = project.build(&tags);
    assert_eq!(code, 0, "{good:#}");
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let digest = good["artifacts"][0]["digest"].as_str().expect("a digest");
    let own = &digest["sha256:".len()..][..12];
    if has_program("skopeo", "--version") {
        for tag in [
            format!("main-{commit}"),
            format!("web-{own}"),
            own.to_owned(),
        ] {
            let image = format!("docker://{}/shop/web:{tag}", registry.host());
            let found = Command::new("skopeo")
                .args(["inspect", "--tls-verify=false", "--raw", &image])
                .output();
            assert!(found.expect("skopeo").status.success(), "{tag}");
        }
    }
    project.write("web/index.html", "changed");
    let (dirty, _) = project.build(&tags);
    let error = dirty["artifacts"][0]["error"].as_str().expect("an error");
    assert!(
        error.ends_with("the work tree has changes that were not committed"),
        "{error}"
    );
}

/// A registry that answers some requests with 429 and goes on is waited for.
#[test]
fn a_busy_registry_is_asked_again() {
    let seen: Mutex<BTreeMap<String, usize>> = Mutex::default();
    let server = server(move |request| {
        let mut seen = seen.lock().expect("no panic");
        let count = seen
            .entry(format!("{} {}", request.method, request.target))
            .or_default();
        *count += 1;
        (*count == 1).then(|| Reply::status(429).header("retry-after", "0"))
    });
    let project = project(&server.host());
    let (result, code) = project.build(&["web", "--push"]);
    assert_eq!(code, 0, "{result:#}");
}

/// A registry that takes its time with every answer holds up its own pushes and nothing else.
#[test]
fn a_slow_registry_is_waited_for_and_holds_up_nothing_else() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let opened = Arc::clone(&gate);
    let server = server(move |_| {
        let (is_open, news) = &*opened;
        let mut is_open = is_open.lock().expect("no panic");
        while !*is_open {
            is_open = news.wait(is_open).expect("no panic");
        }
        None
    });
    let project = Project::new(&format!(
        "  - {{name: web, image: {0}/shop/web, oci: {{context: web}}}}\n  - {{name: late, image: {0}/shop/late, command: {{run: [sh, -c, 'echo a > $PORTOLAN_OUT/a; touch built'], output: files, inputs: [web/index.html], hermetic: false}}}}\n",
        server.host()
    ));
    let build = project
        .command(&["ship", "build", "--push", "--jobs", "3", "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    // The push of `web` is under way and is not answered; the other artifact is built meanwhile.
    wait_until(|| !server.requests().is_empty() && project.path("built").exists());
    let (is_open, news) = &*gate;
    *is_open.lock().expect("no panic") = true;
    news.notify_all();
    let answer = wait_for(build);
    assert_eq!(answer.code, 0, "{answer}");
    let result: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(statuses(&result), [("web", "built"), ("late", "built")]);
}
