//! What the README shows a new user, run as it stands there in the example repository.

mod portolan;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use portolan::Answer;
use portolan::git::GitRepository;
use portolan::repository::HARBOR;

const README: &str = include_str!("../../../README.md");

/// The commands of the first look, without their comments.
fn commands() -> Vec<String> {
    let (_, section) = README.split_once("## A first look").expect("the section");
    let block = section.split("```").nth(1).expect("its block of commands");
    let lines = block.lines().filter(|line| !line.is_empty());
    let command = |line: &str| line.split("  #").next().unwrap_or(line).trim().to_owned();
    lines.map(command).collect()
}

/// A shell that finds the binary as `portolan`.
fn shell(line: &str, directory: &Path) -> Command {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_portolan"));
    let beside = binary.parent().expect("it lies in a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &format!("exec {line}")])
        .current_dir(directory)
        .env("PATH", format!("{}:{path}", beside.display()))
        .env("PORTOLAN_CACHE", directory.join("cache"))
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    shell
}

#[test]
fn every_command_of_the_readme_runs_as_printed() {
    let harbor = GitRepository::of(Path::new(HARBOR));
    let commands = commands();
    assert!(commands.len() > 10, "{commands:?}");
    for line in commands.iter().filter(|line| *line != "portolan watch") {
        let output = shell(line, harbor.path()).output().expect("bash is there");
        let answer = Answer::of(&output);
        assert!(answer.code <= 1, "{line}: {answer}");
        assert!(!answer.stderr.contains("error:"), "{line}: {answer}");
    }
}

#[test]
fn watch_of_the_readme_begins_to_watch() {
    let harbor = GitRepository::of(Path::new(HARBOR));
    assert!(commands().iter().any(|line| line == "portolan watch"));
    let mut watch = shell("portolan watch", harbor.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash is there");
    let told = watch.stderr.take().expect("it was asked for");
    let mut lines = BufReader::new(told).lines().map_while(Result::ok);
    let began = lines.find(|line| line.starts_with("watching "));
    watch.kill().expect("it still runs");
    watch.wait().expect("it was started");
    assert!(began.is_some_and(|line| line.contains("Kustomizations")));
}

/// The picture is drawn by `docs/terminal.py` from what the commands print; this says when it has to be drawn again.
#[test]
fn the_terminal_picture_shows_what_the_commands_print() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let drawn = Command::new("python3")
        .arg(top.join("docs/terminal.py"))
        .arg(env!("CARGO_BIN_EXE_portolan"))
        .env_remove("NO_COLOR")
        .output()
        .expect("python3 is there");
    assert!(drawn.status.success(), "{}", Answer::of(&drawn));
    let drawn = String::from_utf8(drawn.stdout).expect("SVG is text");
    let kept = std::fs::read_to_string(top.join("docs/terminal.svg")).expect("the picture");
    assert!(!drawn.contains(">…<"), "the picture is cut off");
    assert_eq!(
        drawn, kept,
        "docs/terminal.py PORTOLAN > docs/terminal.svg draws it again"
    );
}
