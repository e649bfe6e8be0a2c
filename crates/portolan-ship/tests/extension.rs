//! Builders and deployers of other programs: those of the examples, and one that builds many artifacts at once.

#[path = "../../../examples/own_builder.rs"]
#[expect(dead_code, reason = "it is a program of its own")]
mod own_builder;
#[path = "../../../examples/own_deployer.rs"]
#[expect(dead_code, reason = "it is a program of its own")]
mod own_deployer;

use std::fs;
use std::sync::{Arc, Barrier};
use std::time::SystemTime;

use camino::Utf8PathBuf;
use portolan_engine::{Event, Journal, JournalOptions, Limits, Run};
use portolan_layout::Store;
use portolan_ship::{
    ArtifactResult, ArtifactStatus, Batch, BatchBuilder, BatchError, BuildSetup, CheckError,
    CheckStatus, OwnWork, Passed, ShipError, ShipRun, StepStatus, Task, Tester, Verifier,
    own_artifact, own_step, own_test, own_verification,
};
use tempfile::TempDir;

struct Place {
    _directory: TempDir,
    path: Utf8PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::from_path_buf(directory.path().to_owned()).expect("UTF-8");
        Self {
            _directory: directory,
            path,
        }
    }

    /// A run whose work `add` adds, with so many places; returns its results and everything that was told.
    fn run(
        &self,
        places: usize,
        add: impl FnOnce(&OwnWork<'_>, &BuildSetup),
    ) -> (portolan_engine::Report, Vec<(String, Event)>) {
        let now = SystemTime::now();
        let run = ShipRun::begin(&self.path, now).expect("a run");
        let store = Store::open(&self.path).expect("a store");
        let setup = BuildSetup::plain(&self.path, store, run.clone(), now).expect("a setup");
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let journal = Journal::in_memory(JournalOptions::default());
            let limits = Limits {
                process: places,
                ..Limits::default()
            };
            let units = Run::new(limits, journal.clone());
            add(&OwnWork::new(&run, &units), &setup);
            let report = units.finish().await;
            journal.close();
            let (mut reader, mut told) = (journal.after(0), Vec::new());
            while let Some(batch) = reader.next().await.expect("a whole journal") {
                let records = batch.iter();
                told.extend(records.map(|it| (it.key.as_str().to_owned(), it.event.clone())));
            }
            (report, told)
        })
    }
}

/// The lifecycle of a unit, as it was told.
fn lifecycle(told: &[(String, Event)], key: &str) -> Vec<&'static str> {
    let of_key = told.iter().filter(|(known, _)| known == key);
    let words = of_key.filter_map(|(_, event)| match event {
        Event::Queued => Some("queued"),
        Event::Started { .. } => Some("started"),
        Event::Done { .. } => Some("done"),
        Event::Failed { .. } => Some("failed"),
        Event::Skipped { .. } => Some("skipped"),
        Event::Cancelled { .. } => Some("cancelled"),
        _ => None,
    });
    words.collect()
}

/// The lines between the beginning of an implementation and its end.
fn implementation(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| !line.starts_with("impl "));
    let mut lines: Vec<&str> = lines.take_while(|line| *line != "}").collect();
    lines.push("}");
    lines
}

#[test]
fn a_builder_and_a_deployer_of_thirty_lines_have_no_word_on_events() {
    let files = [
        include_str!("../../../examples/own_builder.rs"),
        include_str!("../../../examples/own_deployer.rs"),
    ];
    for text in files {
        let lines = implementation(text);
        assert!((10..=30).contains(&lines.len()), "{lines:#?}");
        let words = [
            "event", "journal", "queued", "started", "Context", "publish",
        ];
        let code = lines.join("\n");
        assert!(!words.iter().any(|word| code.contains(word)), "{code}");
    }
}

#[test]
fn the_examples_are_told_of_from_queue_to_end() {
    let place = Place::new();
    let answer = own_builder::build(&place.path, &["apple", "pear"]).expect("an answer");
    assert!(answer.contains(r#""status": "built""#), "{answer}");
    for event in ["queued", "started", "log", "done"] {
        assert!(
            answer.contains(&format!(r#""event":"{event}""#)),
            "{answer}"
        );
    }
    let again = own_builder::build(&place.path, &["apple", "pear"]).expect("an answer");
    assert!(again.contains(r#""status": "cached""#), "{again}");

    let pods = place.path.join("pods");
    fs::create_dir(&pods).expect("a directory");
    let answer = own_deployer::deploy(&place.path, &pods, "kind: Pod\n").expect("an answer");
    assert!(answer.contains(r#""status": "deployed""#), "{answer}");
    assert_eq!(
        fs::read_to_string(pods.join("web.yaml")).expect("a manifest"),
        "kind: Pod\n"
    );
    let nowhere = place.path.join("nowhere");
    let answer = own_deployer::deploy(&place.path, &nowhere, "kind: Pod\n").expect("an answer");
    assert!(answer.contains(r#""status": "failed""#), "{answer}");
    assert!(answer.contains("No such file or directory"), "{answer}");
}

/// Settles some of its artifacts; how is told by their names.
struct Together {
    setup: BuildSetup,
    /// Waits until the first artifact was told of.
    gate: Option<Arc<Barrier>>,
    whole: Result<(), &'static str>,
}

impl BatchBuilder for Together {
    fn build_all(&self, batch: &Batch, task: &Task) -> Result<(), ShipError> {
        let path = task.scratch().join("a");
        fs::write(path, "a file").map_err(ShipError::other)?;
        for name in batch.artifacts() {
            match name.as_str() {
                "left" => {}
                "bad" => batch
                    .settle(name, Err(ShipError::other("it is bad")))
                    .map_err(ShipError::other)?,
                _ => {
                    let built = self.setup.image_of_files(name, "r", task.scratch(), task);
                    batch.settle(name, built).map_err(ShipError::other)?;
                }
            }
        }
        let twice = batch.settle("one", Err(ShipError::Cancelled));
        assert_eq!(twice, Err(BatchError::Twice("one".to_owned())));
        let unknown = batch.settle("nobody", Err(ShipError::Cancelled));
        assert_eq!(unknown, Err(BatchError::Unknown("nobody".to_owned())));
        if let Some(gate) = &self.gate {
            gate.wait();
        }
        self.whole.map_err(ShipError::other)
    }
}

fn results(names: &[&str], report: &portolan_engine::Report) -> Vec<ArtifactResult> {
    let found = names
        .iter()
        .filter_map(|name| own_artifact(name, "r", report));
    found.collect()
}

#[test]
fn a_builder_of_many_settles_each_and_what_it_leaves_out_fails() {
    let place = Place::new();
    let names = ["one", "bad", "left", "two"];
    // One place: the artifacts that wait take none from the builder that they wait for.
    let (report, told) = place.run(1, |work, setup| {
        let builder = Together {
            setup: setup.clone(),
            gate: None,
            whole: Ok(()),
        };
        work.build_all("all", &names, builder);
    });
    let found = results(&names, &report);
    let statuses: Vec<ArtifactStatus> = found.iter().map(|result| result.status).collect();
    let (built, failed) = (ArtifactStatus::Built, ArtifactStatus::Failed);
    assert_eq!(statuses, [built, failed, failed, ArtifactStatus::Cached]);
    assert_eq!(found[1].error.as_deref(), Some("it is bad"));
    let left = "the builder gave no result for `left`";
    assert_eq!(found[2].error.as_deref(), Some(left));
    for name in names {
        let words = lifecycle(&told, &format!("artifact/{name}"));
        assert_eq!(words[..2], ["queued", "started"]);
        assert_eq!(words.len(), 3, "{words:?}");
    }
}

#[test]
fn an_error_of_the_whole_fails_what_is_open_under_one_cause() {
    let place = Place::new();
    let names = ["one", "left", "bad"];
    let (report, _) = place.run(2, |work, setup| {
        let builder = Together {
            setup: setup.clone(),
            gate: None,
            whole: Err("the tool crashed"),
        };
        work.build_all("all", &names, builder);
    });
    let found = results(&names, &report);
    assert_eq!(found[0].status, ArtifactStatus::Built, "it stands");
    assert_eq!(found[1].error.as_deref(), Some("the tool crashed"));
    assert_eq!(found[2].error.as_deref(), Some("it is bad"));
}

/// The end of the first artifact is told while the builder still works.
#[test]
fn an_artifact_of_many_ends_when_it_is_settled() {
    let place = Place::new();
    let gate = Arc::new(Barrier::new(2));
    let now = SystemTime::now();
    let run = ShipRun::begin(&place.path, now).expect("a run");
    let store = Store::open(&place.path).expect("a store");
    let setup = BuildSetup::plain(&place.path, store, run.clone(), now).expect("a setup");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let journal = Journal::in_memory(JournalOptions::default());
        let units = Run::new(Limits::default(), journal.clone());
        let builder = Together {
            setup,
            gate: Some(Arc::clone(&gate)),
            whole: Ok(()),
        };
        OwnWork::new(&run, &units).build_all("all", &["one", "left"], builder);
        let mut reader = journal.after(0);
        let told = tokio::spawn(async move {
            while let Some(batch) = reader.next().await.expect("a whole journal") {
                let is_end = |it: &portolan_engine::Record| {
                    it.key.as_str() == "artifact/one" && matches!(it.event, Event::Done { .. })
                };
                if batch.iter().any(is_end) {
                    // Only now may the builder end.
                    tokio::task::spawn_blocking(move || gate.wait());
                    return true;
                }
            }
            false
        });
        units.finish().await;
        journal.close();
        assert!(told.await.expect("no panic"), "it ended before the builder");
    });
}

struct Checks(Result<(), &'static str>);

impl Tester for Checks {
    fn test(&self, _: &Task) -> Result<Passed, CheckError> {
        self.0.map_err(CheckError::other)?;
        Ok(Passed::default())
    }
}

impl Verifier for Checks {
    fn verify(&self, _: &Task) -> Result<Passed, CheckError> {
        self.0.map_err(CheckError::other)?;
        Ok(Passed::default())
    }
}

#[test]
fn tests_and_verifications_come_after_what_they_look_at() {
    let place = Place::new();
    let (report, told) = place.run(4, |work, setup| {
        let builder = Together {
            setup: setup.clone(),
            gate: None,
            whole: Ok(()),
        };
        work.build_all("all", &["one", "bad"], builder);
        work.test("unit", "one", Checks(Ok(())));
        work.test("unit", "bad", Checks(Ok(())));
        work.deploy("crashes", &["one"], &[], Crash);
        work.verify("after", &["crashes"], Checks(Ok(())));
        work.verify("wrong", &[], Checks(Err("the page is not there")));
    });
    let status = |result: Option<portolan_ship::CheckResult>| result.expect("it is in it").status;
    assert_eq!(
        status(own_test("unit", "one", &report)),
        CheckStatus::Passed
    );
    assert_eq!(
        status(own_test("unit", "bad", &report)),
        CheckStatus::Skipped
    );
    let after = own_verification("after", &report);
    assert_eq!(status(after), CheckStatus::Skipped);
    let wrong = own_verification("wrong", &report).expect("it is in it");
    assert_eq!(wrong.error.as_deref(), Some("the page is not there"));
    // A panic is the result of its own step, and of nothing else.
    let step = own_step("crashes", &report).expect("it is in it");
    assert_eq!(step.status, StepStatus::Failed);
    assert!(step.error.is_some_and(|error| error.contains("panicked")));
    assert_eq!(
        lifecycle(&told, "deploy/crashes"),
        ["queued", "started", "failed"]
    );
}

struct Crash;

impl portolan_ship::Deployer for Crash {
    fn deploy(&self, _: &Task) -> Result<portolan_ship::DeployedStep, portolan_ship::DeployError> {
        unreachable!("a mistake in a deployer")
    }
}
