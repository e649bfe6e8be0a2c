//! Local runs below a root directory, with the real modules.

use std::fs;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_fleet::{
    Book, BookSource, DirectoryFiles, LocalError, LocalOutcome, LocalRun, NodeState, RunMode,
    compile,
};
use portolan_modules::Root;
use portolan_secret::KnownSecrets;
use serde_json::Map;
use tokio_util::sync::CancellationToken;

struct Place {
    _scratch: tempfile::TempDir,
    path: Utf8PathBuf,
}

impl Place {
    fn new() -> Self {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(scratch.path())
            .expect("UTF-8")
            .to_owned();
        fs::create_dir_all(path.join("root/etc")).expect("made");
        fs::write(path.join("root/etc/os-release"), "ID=debian\n").expect("written");
        fs::create_dir_all(path.join("book/templates")).expect("made");
        fs::write(
            path.join("book/templates/a.j2"),
            "family={{ facts.os.family }}\n",
        )
        .expect("written");
        Self {
            _scratch: scratch,
            path,
        }
    }

    fn files(&self) -> Arc<DirectoryFiles> {
        Arc::new(DirectoryFiles::beside(&self.path.join("book/book.yaml")).expect("files"))
    }

    fn book(&self, body: &str) -> Book {
        let text =
            format!("apiVersion: v1alpha\nkind: TaskBook\nmetadata: {{name: web}}\nspec:\n{body}");
        let file = self.path.join("book/book.yaml");
        let compiled = compile(&BookSource::new(file.as_str(), &text, self.files()));
        compiled.unwrap_or_else(|faults| unreachable!("{faults:#?}"))
    }

    fn run(&self, book: &Book, mode: RunMode) -> Result<LocalOutcome, LocalError> {
        let root = Root::other(&self.path.join("root")).expect("a root");
        let run = LocalRun {
            root: Arc::new(root),
            is_confined: false,
            files: self.files(),
            mode,
            inputs: Map::new(),
            variables: Map::new(),
            about: None,
            id: "r".to_owned(),
            secrets: Arc::new(KnownSecrets::default()),
            stop: CancellationToken::new(),
            acknowledges_damage: false,
            kill_at: None,
        };
        run.run(book, &mut |_| {})
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path.join("root").join(file)).unwrap_or_default()
    }
}

fn states(outcome: &LocalOutcome) -> Vec<String> {
    let steps = outcome.outcome.steps.iter();
    steps
        .map(|step| format!("{} {}", step.name, step.state.word()))
        .collect()
}

const BOOK: &str = "  steps:
  - {name: place, directory: {path: /etc/web, mode: '0750'}}
  - {name: config, file: {path: /etc/web/a.conf, template: templates/a.j2, mode: '0640'}, notify: restart}
  - {name: same, file: {path: /etc/web/a.conf, template: templates/a.j2, mode: '0640'}}
  - {name: run, command: {shell: 'echo x >> $PORTOLAN_ROOT/log', creates: /log}}
  handlers:
  - {name: restart, command: {shell: 'echo $WHO >> $PORTOLAN_ROOT/restarts'}, env: {WHO: restarted}}
";

#[test]
fn a_check_predicts_what_a_run_does_and_a_second_run_does_nothing() {
    let place = Place::new();
    let book = place.book(BOOK);
    let check = place.run(&book, RunMode::Check).expect("a check");
    assert_eq!(
        states(&check),
        [
            "place changed",
            "config changed",
            "same ok",
            "run changed",
            "handlers/restart unknown"
        ]
    );
    assert!(!place.path.join("root/var").exists() && !place.path.join("root/etc/web").exists());
    let first = place.run(&book, RunMode::Apply).expect("a run");
    assert_eq!(
        states(&first),
        [
            "place changed",
            "config changed",
            "same ok",
            "run changed",
            "handlers/restart changed"
        ],
        "{:?}",
        first.outcome.steps
    );
    assert_eq!(first.outcome.steps[1].diff, check.outcome.steps[1].diff);
    assert_eq!(place.text("etc/web/a.conf"), "family=debian\n");
    assert_eq!(place.text("restarts"), "restarted\n");
    let second = place.run(&book, RunMode::Apply).expect("a run");
    assert_eq!(
        states(&second),
        ["place ok", "config ok", "same ok", "run ok"]
    );
    assert_eq!(second.outcome.state, NodeState::Ok);
}

#[test]
fn a_program_that_fails_says_what_it_printed() {
    let place = Place::new();
    let book = place.book("  steps:\n  - {name: loud, command: {shell: 'seq 1 50; exit 3'}}\n");
    let run = place.run(&book, RunMode::Apply).expect("a run");
    let error = run.outcome.steps[0].error.as_ref().expect("an error");
    let output = error.output.as_deref().expect("its output");
    assert_eq!(
        (output.lines().next(), output.lines().last()),
        (Some("31"), Some("50"))
    );
    let book = place.book("  steps:\n  - {name: code, command: {shell: 'exit 3'}, success: result.code == 3, changed: 'false'}\n");
    let run = place.run(&book, RunMode::Apply).expect("a run");
    assert_eq!(states(&run), ["code ok"], "{:?}", run.outcome.steps);
}

#[test]
fn a_step_that_takes_too_long_is_ended() {
    let place = Place::new();
    let book =
        place.book("  steps:\n  - {name: slow, command: {shell: 'sleep 600'}, timeout: 1s}\n");
    let run = place.run(&book, RunMode::Apply).expect("a run");
    assert_eq!(states(&run), ["slow failed"]);
    let error = run.outcome.steps[0].error.as_ref().expect("an error");
    assert!(error.message.contains("time-out of 1s"), "{error:?}");
}

#[test]
fn what_a_local_run_cannot_do_is_refused_before_it_begins() {
    let place = Place::new();
    let book =
        place.book("  steps:\n  - {name: other, command: {shell: 'true'}, runOn: {group: lb}}\n");
    assert!(matches!(
        place.run(&book, RunMode::Apply),
        Err(LocalError::OtherNodes { .. })
    ));
    let book = place.book("  suspend: true\n  steps:\n  - {name: x, command: {shell: 'true'}}\n");
    assert!(matches!(
        place.run(&book, RunMode::Apply),
        Err(LocalError::Suspended(_))
    ));
    fs::create_dir(place.path.join("outside")).expect("made");
    std::os::unix::fs::symlink(place.path.join("outside"), place.path.join("root/var"))
        .expect("linked");
    let book = place.book(BOOK);
    assert!(matches!(
        place.run(&book, RunMode::Apply),
        Err(LocalError::Data { .. })
    ));
    assert_eq!(
        fs::read_dir(place.path.join("outside"))
            .expect("a directory")
            .count(),
        0
    );
}

/// The book of `examples/fleet`, which `docs/fleet.md` begins with.
#[test]
fn the_example_runs_and_then_finds_nothing_to_do() {
    let place = Place::new();
    let file = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fleet/web.yaml");
    let text = fs::read_to_string(&file).expect("the example");
    let files = Arc::new(DirectoryFiles::beside(&file).expect("files"));
    let book = compile(&BookSource::new(file.as_str(), &text, files.clone()));
    let book = book.unwrap_or_else(|faults| unreachable!("{faults:#?}"));
    let inputs = portolan_fleet::bind_inputs(&book.inputs, &Map::new()).expect("defaults");
    let root = Root::other(&place.path.join("root")).expect("a root");
    let run = LocalRun {
        root: Arc::new(root),
        is_confined: false,
        files,
        mode: RunMode::Apply,
        inputs,
        variables: Map::new(),
        about: None,
        id: "r".to_owned(),
        secrets: Arc::new(KnownSecrets::default()),
        stop: CancellationToken::new(),
        acknowledges_damage: false,
        kill_at: None,
    };
    let first = run.run(&book, &mut |_| {}).expect("a run");
    assert_eq!(
        first.outcome.state,
        NodeState::Changed,
        "{:#?}",
        first.outcome.steps
    );
    assert!(
        place
            .text("etc/web/web.conf")
            .contains("listen = 8080\nuser = web\nsystem = debian\n")
    );
    let second = run.run(&book, &mut |_| {}).expect("a run");
    assert_eq!(
        second.outcome.state,
        NodeState::Ok,
        "{:#?}",
        second.outcome.steps
    );
}

#[test]
fn values_are_read_kept_asserted_and_printed_also_in_a_check() {
    let place = Place::new();
    fs::write(
        place.path.join("root/etc/release.json"),
        r#"{"version": "1.4.2", "ports": [80, 443]}"#,
    )
    .expect("written");
    let book = place.book(
        "  steps:
  - {name: motd, file: {path: /etc/motd, content: 'hello'}}
  - {name: said, read: {path: /etc/motd}}
  - {name: release, read: {path: /etc/release.json, format: json}}
  - {name: missing, read: {path: /etc/nothing, optional: true}}
  - {name: limits, set: {values: {files: 1024, first: \"{{ steps['release'].value.ports[0] }}\"}}, register: kept}
  - name: sure
    assert:
      that:
      - steps['release'].value.version.startsWith('1.')
      - steps['limits'].files >= 1024 && steps['kept'].first == 80
      - \"!steps['missing'].exists && steps['said'].content == 'hello'\"
  - {name: told, print: {message: \"{{ steps['release'].value.version }} with {{ steps['limits'].files }} files\"}}
",
    );
    for mode in [RunMode::Check, RunMode::Apply] {
        let run = place.run(&book, mode).expect("a run");
        let expected = [
            "motd changed",
            "said ok",
            "release ok",
            "missing ok",
            "limits ok",
            "sure ok",
            "told ok",
        ];
        assert_eq!(states(&run), expected, "{:#?}", run.outcome.steps);
        let told = run.outcome.steps.last().expect("a step");
        assert_eq!(told.notes, ["1.4.2 with 1024 files"]);
    }
}

#[test]
fn what_does_not_hold_ends_the_run_with_its_words() {
    let place = Place::new();
    let book = place.book(
        "  steps:
  - name: sure
    assert:
      that: [facts.os.family == 'debian', facts.os.family == 'redhat']
      message: this book is for {{ 'Red Hat' }}
  - {name: never, command: {shell: 'touch $PORTOLAN_ROOT/never'}}
",
    );
    let run = place.run(&book, RunMode::Apply).expect("a run");
    assert_eq!(states(&run), ["sure failed"]);
    let error = run.outcome.steps[0].error.as_ref().expect("an error");
    assert_eq!(
        error.message,
        "this book is for Red Hat (`facts.os.family == 'redhat'` does not hold)"
    );
    assert!(!place.path.join("root/never").exists());
    for (steps, wanted) in [
        ("{read: {path: /etc/nothing}}", "it does not exist"),
        (
            "{read: {path: /etc/os-release, format: json}}",
            "it is not JSON",
        ),
        ("{read: {path: /etc}}", "it is not a regular file"),
    ] {
        let book = place.book(&format!(
            "  steps:\n  - {}\n",
            steps.replacen('{', "{name: a, ", 1)
        ));
        let run = place.run(&book, RunMode::Apply).expect("a run");
        let error = run.outcome.steps[0].error.as_ref().expect("an error");
        assert!(error.message.contains(wanted), "{}", error.message);
    }
}

#[test]
fn wrong_assertions_and_values_are_found_before_the_run() {
    let place = Place::new();
    let problems = |steps: &str| -> Vec<String> {
        let text = format!(
            "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {{name: web}}\nspec:\n  steps:\n  - {steps}\n"
        );
        let file = place.path.join("book/book.yaml");
        let compiled = compile(&BookSource::new(file.as_str(), &text, place.files()));
        let faults = compiled.expect_err("a wrong book").into_iter();
        faults.map(|fault| fault.message).collect()
    };
    for (steps, wanted) in [
        ("{name: a, assert: {that: facts.os.famly == 'x'}}", "famly"),
        ("{name: a, assert: {that: 1 + 1}}", "must be true or false"),
        ("{name: a, assert: {that: '{{ x }}'}}", "decisions are CEL"),
        ("{name: a, assert: {message: no}}", "needs `that`"),
        (
            "{name: a, set: {values: {changed: 1}}}",
            "every result has one",
        ),
        ("{name: a, set: {values: 3}}", "must be a map"),
        ("{name: a, print: {text: x}}", "no parameter of `print`"),
    ] {
        let found = problems(steps);
        assert!(
            found.iter().any(|message| message.contains(wanted)),
            "{steps}: {found:?}"
        );
    }
}
