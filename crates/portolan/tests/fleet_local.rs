//! `portolan fleet lint` and `portolan fleet run --local`, as real processes, below a root directory of their own.

mod portolan;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::portolan::{Answer, portolan_in};

const HEAD: &str =
    "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: web, namespace: shop}\nspec:\n";

/// A directory with a book and a root directory beside it.
struct Place {
    _scratch: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new(body: &str) -> Self {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().to_owned();
        fs::create_dir_all(path.join("root/etc")).expect("made");
        fs::write(
            path.join("root/etc/os-release"),
            "ID=debian\nVERSION_ID=12\n",
        )
        .expect("written");
        let place = Self {
            _scratch: scratch,
            path,
        };
        place.write("book.yaml", &format!("{HEAD}{body}"));
        place
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path.join(name), text).expect("written");
    }

    fn name(&self) -> &str {
        self.path.to_str().expect("UTF-8")
    }

    fn run(&self, args: &[&str]) -> Answer {
        let mut all = vec![
            "fleet",
            "run",
            "-f",
            "book.yaml",
            "--local",
            "--root",
            "root",
        ];
        all.extend(args);
        portolan_in(self.name(), &all)
    }

    fn json(&self, args: &[&str]) -> (Value, i32) {
        let mut all = vec!["-o", "json"];
        all.extend(args);
        let answer = self.run(&all);
        let json = serde_json::from_str(&answer.stdout);
        (
            json.unwrap_or_else(|_| unreachable!("{}{}", answer.stdout, answer.stderr)),
            answer.code,
        )
    }

    fn lines(&self, file: &str) -> usize {
        let text = fs::read_to_string(self.path.join("root").join(file)).unwrap_or_default();
        text.lines().count()
    }
}

/// Each step of a run as `name state`.
fn states(run: &Value) -> Vec<String> {
    let steps = run["nodes"][0]["steps"].as_array().expect("steps");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    steps
        .iter()
        .map(|step| format!("{} {}", word(&step["name"]), word(&step["state"])))
        .collect()
}

/// Every path below a directory with its content.
fn tree(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.push((path.clone(), Vec::new()));
            found.extend(tree(&path));
        } else {
            let content = fs::read(&path).unwrap_or_default();
            found.push((path, content));
        }
    }
    found.sort();
    found
}

const COMMANDS: &str = "  steps:
  - {name: guarded, command: {shell: 'echo x > $PORTOLAN_ROOT/marker', creates: /marker}, notify: restart}
  - {name: free, command: {shell: 'echo run >> $PORTOLAN_ROOT/free'}}
  - {name: skipped, when: facts.os.family == 'redhat', command: {shell: 'false'}}
  handlers:
  - {name: restart, command: {shell: 'echo restart >> $PORTOLAN_ROOT/restarts'}}
";

#[test]
fn lint_tells_every_problem_with_its_line() {
    let place = Place::new(
        "  steps:\n  - {name: a, comand: {run: [ls]}}\n  - {name: b, command: {runn: [ls]}, when: facts.os.famly == 'x'}\n",
    );
    let answer = portolan_in(place.name(), &["fleet", "lint", "book.yaml"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    for part in [
        "book.yaml:6:15",
        "did you mean `command`?",
        "`runn` is no parameter of `command`",
        "did you mean `run`?",
        "there is no `famly`",
        "did you mean `family`?",
    ] {
        assert!(answer.stderr.contains(part), "{part}: {}", answer.stderr);
    }
    let answer = portolan_in(place.name(), &["fleet", "lint", "book.yaml", "-o", "json"]);
    let json: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(json["findings"][0]["line"], 6);
    let run = place.run(&[]);
    assert_eq!(run.code, 2, "nothing was begun");
}

#[test]
fn a_book_is_checked_and_carried_out_once() {
    let place = Place::new(COMMANDS);
    let before = tree(&place.path.join("root"));
    let (check, code) = place.json(&["--check", "--plan-out", "plan.json"]);
    assert_eq!(
        states(&check),
        [
            "guarded changed",
            "free unknown",
            "skipped skipped",
            "handlers/restart unknown"
        ]
    );
    assert_eq!((code, &check["state"]), (1, &Value::from("unknown")));
    assert_eq!(
        tree(&place.path.join("root")),
        before,
        "a check changes nothing"
    );
    let plan: Value =
        serde_json::from_slice(&fs::read(place.path.join("plan.json")).expect("a plan"))
            .expect("JSON");
    assert!(
        plan["bookDigest"]
            .as_str()
            .is_some_and(|digest| digest.len() > 20)
    );

    let (first, code) = place.json(&[]);
    assert_eq!(
        states(&first),
        [
            "guarded changed",
            "free changed",
            "skipped skipped",
            "handlers/restart changed"
        ]
    );
    assert_eq!(
        (code, place.lines("free"), place.lines("restarts")),
        (0, 1, 1)
    );
    let keys: Vec<&String> = first.as_object().expect("a map").keys().collect();
    assert_eq!(keys, ["nodes", "run", "state"]);

    let answer = place.run(&[]);
    assert_eq!(answer.code, 0);
    assert!(
        answer.stdout.contains("ok         guarded"),
        "{}",
        answer.stdout
    );
    assert_eq!(
        (place.lines("free"), place.lines("restarts")),
        (2, 1),
        "nobody notified the handler"
    );
}

#[test]
fn a_failure_is_told_last_with_its_line_and_the_end_of_its_output() {
    let place = Place::new(
        "  steps:\n  - {name: config, command: {shell: 'echo x > $PORTOLAN_ROOT/c', creates: /c}, notify: restart}\n  - {name: loud, command: {shell: 'for i in $(seq 1 50); do echo line $i; done; test -e $PORTOLAN_ROOT/fixed'}}\n  - {name: after, command: {shell: 'true'}}\n  handlers:\n  - {name: restart, command: {shell: 'echo r >> $PORTOLAN_ROOT/restarts'}}\n",
    );
    let answer = place.run(&[]);
    assert_eq!(answer.code, 1);
    let end = &answer.stderr;
    assert!(
        end.contains("book.yaml:7:5") && end.contains("line 50") && end.contains("line 31"),
        "{end}"
    );
    assert!(!end.contains("line 30\n"), "{end}");
    assert!(end.contains("owed: handlers/restart"), "{end}");
    place.write("root/fixed", "");
    let (second, code) = place.json(&[]);
    assert_eq!(
        states(&second),
        [
            "config ok",
            "loud changed",
            "after changed",
            "handlers/restart changed"
        ]
    );
    assert_eq!(
        (code, place.lines("restarts")),
        (0, 1),
        "what was owed is done, although nothing changed"
    );
}

#[test]
fn secrets_stay_out_of_arguments_output_and_journal() {
    let place = Place::new(
        "  inputs: {token: {secret: true}}\n  steps:\n  - {name: use, command: {shell: 'cat > $PORTOLAN_ROOT/got; cat $PORTOLAN_ROOT/got; cat /proc/[0-9]*/cmdline > $PORTOLAN_ROOT/args 2>/dev/null; exit 3', stdin: '{{ inputs.token }}'}, onError: ignore}\n  - {name: env, command: {shell: 'echo $TOKEN; echo $TOKEN | base64'}, env: {TOKEN: '{{ inputs.token }}'}}\n",
    );
    let secret = "correct-horse-battery";
    place.write("token", &format!("{secret}\n"));
    let refused = place.run(&["--input", &format!("token={secret}")]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("--input-file") && !refused.stderr.contains(secret));
    let answer = place.run(&["--input-file", "token=token", "-v"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(
        fs::read_to_string(place.path.join("root/got")).expect("written"),
        secret
    );
    let args = fs::read(place.path.join("root/args")).expect("written");
    let args = String::from_utf8_lossy(&args).into_owned();
    let journal =
        fs::read(place.path.join("root/var/lib/portolan/local/web.journal")).expect("a journal");
    let journal = String::from_utf8_lossy(&journal).into_owned();
    assert!(journal.contains("\"finished\""), "{journal}");
    let encoded = "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5";
    for text in [&answer.stdout, &answer.stderr, &journal, &args] {
        assert!(!text.contains(secret) && !text.contains(encoded), "{text}");
    }
}

#[test]
fn other_roots_are_refused_and_links_lead_nowhere() {
    let place = Place::new(COMMANDS);
    let answer = portolan_in(
        place.name(),
        &["fleet", "run", "-f", "book.yaml", "--local", "--root", "/"],
    );
    assert_eq!(answer.code, 2, "{}", answer.stdout);
    fs::create_dir(place.path.join("outside")).expect("made");
    std::os::unix::fs::symlink(place.path.join("outside"), place.path.join("root/var"))
        .expect("linked");
    let answer = place.run(&[]);
    assert_eq!(answer.code, 2, "{}", answer.stdout);
    assert!(tree(&place.path.join("outside")).is_empty());
}

/// Kills the process before and after every record of its journal, and gives the same command again: what must not be
/// done twice is done at most once, and nothing that was done is forgotten.
#[test]
fn a_run_that_is_killed_at_any_record_goes_on() {
    let mut killed = 0;
    for point in 0.. {
        let mut is_past_the_end = false;
        for when in ["before", "after"] {
            let place = Place::new(COMMANDS);
            let first = place.run(&["--kill-at", &format!("{point}:{when}")]);
            if first.code == 0 {
                is_past_the_end = true;
                break;
            }
            killed += 1;
            let (second, code) = place.json(&[]);
            let states = states(&second);
            let at = format!("{point}:{when}: {states:?}");
            assert!(
                place.lines("free") <= 1 && place.lines("restarts") <= 1,
                "{at}"
            );
            if code == 0 {
                assert_eq!(
                    (
                        place.lines("free"),
                        place.lines("restarts"),
                        place.lines("marker")
                    ),
                    (1, 1, 1),
                    "{at}"
                );
            } else {
                assert_eq!(second["state"], "unknown", "{at}");
                assert!(
                    states.iter().any(|state| state.ends_with("unknown")),
                    "{at}"
                );
            }
        }
        if is_past_the_end {
            break;
        }
    }
    assert_eq!(
        killed, 12,
        "three effects, two records each, before and after"
    );
}

#[test]
fn a_damaged_journal_stops_runs_until_somebody_looked() {
    let place = Place::new(COMMANDS);
    assert_eq!(place.run(&[]).code, 0);
    let path = place.path.join("root/var/lib/portolan/local/web.journal");
    let mut bytes = fs::read(&path).expect("a journal");
    bytes[30] ^= 1;
    fs::write(&path, &bytes).expect("written");
    let answer = place.run(&[]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("--acknowledge-damage"),
        "{}",
        answer.stderr
    );
    assert_eq!(place.run(&["--acknowledge-damage"]).code, 0);
    assert_eq!(place.run(&[]).code, 0);
}

/// Before and after each effect something is on the disk, and a run that finds nothing to do costs one sync, however long it
/// is.
#[test]
fn a_run_that_does_nothing_syncs_once() {
    let steps: Vec<String> = (0..30)
        .map(|number| {
            format!("  - {{name: f{number}, file: {{path: /srv/f{number}, content: x}}}}\n")
        })
        .collect();
    let steps = steps.concat();
    let body = format!(
        "  target: {{all: true}}\n  steps:\n  - {{name: d, directory: {{path: /srv}}}}\n{steps}"
    );
    let place = Place::new(&body);
    let syncs = |trace: &str| {
        let program = env!("CARGO_BIN_EXE_portolan");
        let traced = std::process::Command::new("strace")
            .args([
                "-f",
                "-e",
                "trace=fsync,fdatasync,sync,syncfs",
                "-o",
                trace,
                program,
            ])
            .args([
                "fleet",
                "run",
                "-f",
                "book.yaml",
                "--local",
                "--root",
                "root",
            ])
            .current_dir(place.name())
            .output()
            .expect("strace is installed");
        assert!(traced.status.success(), "{traced:?}");
        let trace = fs::read_to_string(place.path.join(trace)).expect("a trace");
        trace.lines().filter(|line| line.contains("sync(")).count()
    };
    assert!(syncs("first") >= 2 * 31, "two for each effect");
    assert!(syncs("second") <= 1);
    assert!(syncs("third") <= 1);
}

/// On a full disk no step is begun whose end could not be written down.
#[test]
fn a_full_disk_refuses_to_start_steps() {
    let body = "  target: {all: true}\n  steps:\n  - {name: f, file: {path: /f, content: x}}\n";
    let place = Place::new(body);
    let traced = std::process::Command::new("strace")
        .args([
            "-f",
            "-o",
            "trace",
            "-e",
            "trace=fallocate",
            "-e",
            "inject=fallocate:error=ENOSPC",
        ])
        .arg(env!("CARGO_BIN_EXE_portolan"))
        .args([
            "fleet",
            "run",
            "-f",
            "book.yaml",
            "--local",
            "--root",
            "root",
        ])
        .current_dir(place.name())
        .output()
        .expect("strace is installed");
    let said = String::from_utf8_lossy(&traced.stderr).into_owned();
    assert_eq!(traced.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(!place.path.join("root/f").exists(), "nothing was begun");
    assert_eq!(place.run(&[]).code, 0, "there is space again");
    assert!(place.path.join("root/f").exists());
}

/// The ref is resolved when the book is compiled; a repository that is gone is told at the line of the include.
#[test]
fn a_book_of_another_git_repository_is_included() {
    let place = Place::new("  steps: []\n");
    let books = place.path.join("books");
    fs::create_dir_all(books.join("web/templates")).expect("made");
    let common = format!(
        "{HEAD}  inputs: {{port: {{type: int}}}}\n  steps:\n  - {{name: conf, file: {{path: /etc/conf, template: templates/conf.j2}}}}\n"
    );
    fs::write(books.join("web/common.yaml"), common).expect("written");
    fs::write(
        books.join("web/templates/conf.j2"),
        "port {{ inputs.port }}\n",
    )
    .expect("written");
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "books"],
        &["tag", "v3"],
    ] {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
            .args(args)
            .current_dir(&books)
            .status();
        assert!(done.is_ok_and(|done| done.success()), "{args:?}");
    }
    let url = format!("file://{}", books.display());
    place.write(
        "book.yaml",
        &format!(
            "{HEAD}  steps:\n  - {{name: common, include: {{git: '{url}', ref: v3, path: web/common.yaml, inputs: {{port: 80}}}}}}\n"
        ),
    );
    let linted = portolan_in(place.name(), &["fleet", "lint", "book.yaml"]);
    assert_eq!(linted.code, 0, "{}", linted.stderr);
    let (report, code) = place.json(&[]);
    assert_eq!(code, 0, "{report}");
    let written = fs::read_to_string(place.path.join("root/etc/conf")).expect("a file");
    assert_eq!(written, "port 80\n");
    fs::remove_dir_all(&books).expect("removed");
    let linted = portolan_in(place.name(), &["fleet", "lint", "book.yaml"]);
    assert_eq!(linted.code, 1);
    assert!(
        linted.stderr.contains("cannot include from"),
        "{}",
        linted.stderr
    );
}
