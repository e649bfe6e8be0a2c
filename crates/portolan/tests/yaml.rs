//! `portolan yaml`: what Go makes of a file, and what is wrong with it.

mod portolan;

use std::fs;
use std::process::{Command, Stdio};

use portolan::{portolan, portolan_with_input};

#[test]
fn helm_reads_yaml_1_1_and_kustomize_does_not() {
    let text = "b: 010\na: yes\n";
    assert_eq!(
        portolan_with_input(&["yaml", "to-json", "--dialect", "helm"], text).stdout,
        "{\"a\":true,\"b\":8}\n"
    );
    assert_eq!(
        portolan_with_input(&["yaml", "to-json", "--dialect", "kustomize"], text).stdout,
        "{\"a\":\"yes\",\"b\":8}\n"
    );
}

#[test]
fn fmt_prints_every_document_sorted_in_the_kustomize_dialect() {
    let answer = portolan_with_input(&["yaml", "fmt"], "b: 1\na: # gone\n  - x\n---\nc: yes\n");
    insta::assert_snapshot!(answer, @r#"
    exit 0
    --- stdout
    a:
    - x
    b: 1
    ---
    c: "yes"
    "#);
}

#[test]
fn every_error_of_a_file_is_drawn_at_its_place() {
    let answer = portolan_with_input(&["yaml", "check"], "a: [1\nb: 2\n---\nx: y\n---\nc: {\n");
    assert_eq!(answer.code, 1);
    assert_eq!(answer.stderr.matches("error:").count(), 2, "{answer}");
    assert!(answer.stderr.contains("<stdin>:2:2"), "{answer}");
}

#[test]
fn a_file_that_is_refused_is_exit_1_and_one_that_is_missing_is_exit_2() {
    assert_eq!(portolan_with_input(&["yaml", "to-json"], "a: b: c").code, 1);
    insta::assert_snapshot!(portolan(&["yaml", "to-json", "missing.yaml"]), @r"
    exit 2
    --- stderr
    error: cannot read `missing.yaml`
      because: No such file or directory (os error 2)
    hint: `-` reads standard input
    ");
}

#[test]
fn events_tell_of_every_file_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("a.yaml"), "a: 1").unwrap();
    fs::write(path("b.yaml"), "b: [").unwrap();
    let answer = portolan(&[
        "yaml",
        "check",
        &path("a.yaml"),
        &path("b.yaml"),
        "--events",
        &path("events"),
    ]);
    assert_eq!(answer.code, 1, "{answer}");
    let events = fs::read_to_string(path("events")).unwrap();
    let lines: Vec<&str> = events.lines().collect();
    assert_eq!(lines.len(), 8, "{events}");
    for (number, line) in lines.iter().enumerate() {
        assert!(
            line.starts_with(&format!(
                "{{\"apiVersion\":\"portolan.dev/v1alpha1\",\"kind\":\"Event\",\"seq\":{},",
                number + 1
            )),
            "{line}"
        );
    }
}

#[test]
fn verbose_tells_what_became_of_each_file() {
    let answer = portolan_with_input(&["yaml", "check", "-v", "-"], "a: 1\n");
    assert!(answer.stderr.starts_with("done - in "), "{answer}");
    let quiet = portolan_with_input(&["yaml", "check", "-q", "-"], "a: 1\n");
    assert_eq!(quiet.stderr, "");
}

/// The files are pipes that nobody writes to, one more than can be read at a time.
#[test]
fn ctrl_c_ends_the_run_with_130_and_says_what_was_left() {
    let dir = tempfile::tempdir().unwrap();
    let readers = std::thread::available_parallelism().unwrap().get();
    let pipes: Vec<_> = (0..=readers)
        .map(|number| dir.path().join(number.to_string()))
        .collect();
    assert!(
        Command::new("mkfifo")
            .args(&pipes)
            .status()
            .unwrap()
            .success()
    );
    let events = dir.path().join("events");
    let child = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["yaml", "check", "--events"])
        .arg(&events)
        .args(&pipes)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let seen =
        |word: &str| fs::read_to_string(&events).map_or(0, |text| text.matches(word).count());
    portolan::wait_until(|| seen("started") == readers);
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    portolan::wait_until(|| seen("cancelled") == 1);
    // Reading a file cannot be broken off; it ends when the writer goes away.
    for pipe in &pipes[..readers] {
        drop(fs::OpenOptions::new().write(true).open(pipe).unwrap());
    }
    let answer = portolan::wait_for(child);
    assert_eq!(answer.code, 130, "{answer}");
    let message = format!("interrupted with 1 of {} units left undone", readers + 1);
    assert!(answer.stderr.contains(&message), "{answer}");
}
