//! The steps of `action.yml`, run as a runner would run them: expressions filled in, files to write to, no runner.

mod portolan;

use std::fs;
use std::path::Path;
use std::process::Command;

use portolan::git::GitRepository;
use portolan::repository::HARBOR;
use portolan_yaml::{Dialect, Node, parse};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The values of expressions in the action.
type Expressions<'a> = &'a [(&'a str, &'a str)];

/// A step of the action by its name.
fn step(name: &str) -> Node {
    let text = fs::read_to_string(format!("{TOP}/action.yml")).expect("it is there");
    let documents = parse(text, Dialect::Kustomize).expect("YAML");
    let steps = documents[0].at_path(&["runs", "steps"]);
    let steps = steps.and_then(Node::as_list).expect("a list");
    let is_it = |step: &&Node| step.get("name").and_then(Node::as_str) == Some(name);
    steps.iter().find(is_it).expect("such a step").clone()
}

/// A text of the action with its expressions filled in.
fn filled(text: &str, expressions: Expressions<'_>) -> String {
    let mut filled = text.to_owned();
    for (expression, value) in expressions {
        filled = filled.replace(&format!("${{{{ {expression} }}}}"), value);
    }
    assert!(!filled.contains("${{"), "nobody says what is in `{filled}`");
    filled
}

/// Runs a step in a directory; its files lie in `temp`.
fn run(step: &Node, directory: &Path, temp: &Path, expressions: Expressions<'_>) -> bool {
    let script = step.get("run").and_then(Node::as_str).expect("a script");
    let mut command = Command::new("bash");
    command
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c"])
        .arg(filled(script, expressions))
        .current_dir(directory)
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_ACTION_PATH", TOP)
        .env("GITHUB_OUTPUT", temp.join("output"))
        .env("GITHUB_STEP_SUMMARY", temp.join("summary"))
        .env("RUNNER_TEMP", temp);
    let variables = step.get("env").and_then(Node::as_map).expect("a map");
    for entry in variables {
        let text = entry.value.as_str().expect("a text");
        command.env(entry.key.as_str(), filled(text, expressions));
    }
    let output = command.output().expect("bash is installed");
    fs::write(temp.join("log"), &output.stdout).expect("it can be written");
    output.status.success()
}

#[test]
fn the_report_of_a_pull_request_is_written_and_told() {
    let repository = GitRepository::of(Path::new(HARBOR));
    repository.git(&["switch", "-q", "-c", "change"]);
    repository.edit("apps/base/quay/deployment.yaml", "quay:2.3.0", "quay:2.4.0");
    repository.commit("bump");
    let temp = tempfile::tempdir().expect("a directory can be made");
    let binary = temp.path().join("portolan");
    fs::create_dir(&binary).expect("it can be made");
    fs::copy(env!("CARGO_BIN_EXE_portolan"), binary.join("portolan")).expect("it can be copied");
    let place = temp.path().to_str().expect("UTF-8");
    let expressions = |from: &'static str| {
        [
            ("runner.temp", place),
            ("inputs.path", "clusters/production"),
            ("inputs.repo", ""),
            (
                "inputs.from || (github.base_ref && format('origin/{0}', github.base_ref)) || ''",
                from,
            ),
            ("inputs.strip-attrs", "common"),
            ("inputs.args", "--full"),
        ]
    };
    let compare = step("Compare");
    let read = |name: &str| fs::read_to_string(temp.path().join(name)).unwrap_or_default();
    assert!(run(
        &compare,
        repository.path(),
        temp.path(),
        &expressions("main")
    ));
    assert!(
        read("summary").contains("quay:2.4.0"),
        "{}",
        read("summary")
    );
    assert!(
        read("output").contains("differs=true"),
        "{}",
        read("output")
    );
    assert!(read("log").contains("::"), "annotations: {}", read("log"));

    let is_done = run(
        &compare,
        repository.path(),
        temp.path(),
        &expressions("nowhere"),
    );
    assert!(!is_done, "a comparison that cannot be made fails the job");
    assert!(read("portolan/report.md").contains("portolan diff"));
}
