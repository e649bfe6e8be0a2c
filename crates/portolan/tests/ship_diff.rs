//! `portolan diff artifacts`: the images that a build would make, before and after a change.

mod portolan;

use std::fs;
use std::process::Command;

use portolan::Answer;
use portolan::project::Project;
use serde_json::Value;

const ARTIFACTS: &str = "  - {name: web, image: registry.example/web, oci: {context: web}}
  - {name: same, image: registry.example/same, oci: {context: same}}
  - {name: dated, image: registry.example/dated, oci: {context: same, mtime: commit}}
  - {name: made, image: registry.example/made, command: {run: ['true'], output: files, inputs: [web/index.html]}}
  - {name: above, image: registry.example/above, oci: {context: same, base: {artifact: made}}}
";

fn git(project: &Project, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=Tester", "-c", "user.email=t@example.com"])
        .args(args)
        .current_dir(project.path("."))
        .output()
        .expect("git");
    assert!(output.status.success(), "{output:?}");
}

/// A project whose first state is committed on `main`.
fn project() -> Project {
    let project = Project::new(ARTIFACTS);
    project.write("same/a", "a file");
    git(&project, &["init", "--quiet", "--initial-branch", "main"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "--message", "first"]);
    project
}

fn diff(project: &Project, args: &[&str]) -> Answer {
    project.run(&[&["diff", "artifacts"], args].concat())
}

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.stdout).unwrap_or_else(|_| unreachable!("{answer}"))
}

/// Name and status of each artifact.
fn statuses(answer: &Answer) -> Vec<(String, String)> {
    let value = json(answer);
    let artifacts = value["artifacts"].as_array().expect("a list").clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pairs = artifacts.iter();
    pairs
        .map(|it| (text(&it["name"]), text(&it["status"])))
        .collect()
}

#[test]
fn images_are_told_by_digest_and_those_of_programs_are_unknown() {
    let project = project();
    let equal = diff(&project, &["web", "same", "dated"]);
    assert_eq!(equal.code, 0, "{equal}");
    assert!(
        equal.stdout.contains("a build would make the same images"),
        "{equal}"
    );

    project.write("web/index.html", "another page");
    let changed = diff(&project, &[]);
    assert_eq!(changed.code, 1, "{changed}");
    let lines: Vec<&str> = changed.stdout.lines().collect();
    assert!(lines[0].starts_with("main (") && lines[0].ends_with(") → work tree"));
    assert!(lines[1].starts_with("~ web    sha256:"), "{changed}");
    assert_eq!(lines[2], "? made   unknown until built");
    assert_eq!(lines[3], "? above  unknown until `made` is built");
    assert_eq!(lines.len(), 4, "{changed}");

    let answer = diff(&project, &["-o", "json"]);
    let pair = |name: &str, status: &str| (name.to_owned(), status.to_owned());
    assert_eq!(
        statuses(&answer),
        [
            pair("web", "changed"),
            pair("same", "unchanged"),
            pair("dated", "unchanged"),
            pair("made", "unknown"),
            pair("above", "unknown"),
        ]
    );
    let value = json(&answer);
    // A build makes exactly that image, and the names in the store are those of builds alone.
    let index = fs::read_to_string(project.path(".portolan/index.json")).expect("an index");
    assert!(!index.contains("web"), "{index}");
    let (built, code) = project.build(&["web"]);
    assert_eq!(code, 0, "{built:#}");
    assert_eq!(
        built["artifacts"][0]["digest"],
        value["artifacts"][0]["new"]
    );
    assert_ne!(value["artifacts"][0]["old"], value["artifacts"][0]["new"]);

    let markdown = diff(&project, &["web", "-o", "markdown"]);
    assert!(markdown.stdout.contains("| web | sha256:"), "{markdown}");
    let status = Command::new("git")
        .args(["status", "--porcelain"])
        .current_dir(project.path("."))
        .output()
        .expect("git");
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert_eq!(status, " M web/index.html\n", "nothing else is touched");
}

#[test]
fn artifacts_that_come_and_go_and_commits_are_compared_too() {
    let project = project();
    let document = fs::read_to_string(project.path("portolan.yaml")).expect("a document");
    let other = document.replace("name: same", "name: new");
    project.write("portolan.yaml", &other);
    git(
        &project,
        &["commit", "--quiet", "--all", "--message", "second"],
    );
    git(&project, &["branch", "second"]);
    git(&project, &["reset", "--quiet", "--hard", "HEAD~1"]);
    let names = [
        "same", "new", "--from", "main", "--to", "second", "-o", "json",
    ];
    let answer = diff(&project, &names);
    assert_eq!(answer.code, 1, "{answer}");
    let pair = |name: &str, status: &str| (name.to_owned(), status.to_owned());
    assert_eq!(
        statuses(&answer),
        [pair("new", "added"), pair("same", "removed")]
    );
    let unknown = diff(&project, &["sme"]);
    assert_eq!(unknown.code, 2, "{unknown}");
    assert!(unknown.stderr.contains("did you mean `same`?"), "{unknown}");

    // A file that no image can hold.
    let made = Command::new("mkfifo")
        .arg(project.path("web/pipe"))
        .status();
    assert!(made.expect("mkfifo").success());
    let failed = diff(&project, &["web", "same"]);
    assert_eq!(failed.code, 2, "{failed}");
    assert!(failed.stdout.contains("✗ web"), "{failed}");
    assert!(failed.stdout.contains("`pipe` is a FIFO"), "{failed}");
}

#[test]
fn another_directory_is_compared_without_git() {
    let (old, new) = (Project::new(ARTIFACTS), Project::new(ARTIFACTS));
    for project in [&old, &new] {
        project.write("same/a", "a file");
    }
    new.write("web/index.html", "another page");
    let path = old.path(".");
    let path = path.to_str().expect("UTF-8");
    let answer = diff(&new, &["web", "same", "--path-orig", path, "-o", "json"]);
    assert_eq!(answer.code, 1, "{answer}");
    let pair = |name: &str, status: &str| (name.to_owned(), status.to_owned());
    assert_eq!(
        statuses(&answer),
        [pair("web", "changed"), pair("same", "unchanged")]
    );
    let alone = diff(&new, &["web"]);
    assert_eq!(alone.code, 2, "{alone}");
    assert!(alone.stderr.contains("--path-orig"), "{alone}");
}
