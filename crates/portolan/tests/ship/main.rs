//! `portolan ship`: artifacts built by the program as a user calls it.

#[path = "../portolan/mod.rs"]
mod portolan;

mod documents;
mod images;

use std::fs;
use std::process::{Command, Stdio};

use portolan::project::{HEAD, Project, WEB, statuses};
use portolan::wait_until;
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
