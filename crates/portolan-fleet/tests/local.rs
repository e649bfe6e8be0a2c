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
