//! Artifacts built for real: into a store on disk, by files and by commands.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_engine::{Journal, JournalOptions, Limits, ReadError, Run};
use portolan_http::{Client, HttpOptions};
use portolan_layout::Store;
use portolan_oci::{Registry, RegistryOptions};
use portolan_ship::{
    ArtifactResult, ArtifactStatus, BaseImages, BuildSetup, Ship, ShipRun, finish, plan,
};
use portolan_testbed::{HttpServer, Reply};
use tempfile::TempDir;

/// A project with a document, and a store beside it.
struct Project {
    directory: TempDir,
    store: TempDir,
    env: BTreeMap<String, String>,
    /// How registries are reached.
    http: HttpOptions,
}

/// Changes the document.
fn edit(project: &Project, from: &str, to: &str) {
    let text = fs::read_to_string(project.path("portolan.yaml")).expect("a document");
    assert!(text.contains(from), "{from}");
    project.write("portolan.yaml", &text.replace(from, to));
}

/// What a build said.
struct Answer {
    results: Vec<ArtifactResult>,
    /// Everything that was written to the journal.
    journal: String,
}

impl Project {
    fn new(artifacts: &str) -> Self {
        let path = std::env::var("PATH").expect("a PATH");
        let project = Self {
            directory: tempfile::tempdir().expect("a directory"),
            store: tempfile::tempdir().expect("a directory"),
            env: BTreeMap::from([("PATH".to_owned(), path)]),
            http: HttpOptions::default(),
        };
        let document = format!(
            "apiVersion: portolan.dev/v1alpha1\nkind: Ship\nmetadata: {{name: shop}}\nspec:\n  artifacts:\n{artifacts}"
        );
        project.write("portolan.yaml", &document);
        project
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    fn build(&self) -> Answer {
        self.build_into(self.store.path())
    }

    fn build_into(&self, store: &Path) -> Answer {
        let text = fs::read_to_string(self.path("portolan.yaml")).expect("a document");
        let ship = Ship::read(&text, &|_| None).expect("a document");
        let store = Utf8Path::from_path(store).expect("UTF-8");
        let run = ShipRun::begin(store, std::time::SystemTime::now()).expect("a run");
        let client = Client::new(&self.http).expect("a client");
        let registry = Arc::new(Registry::new(client, RegistryOptions::default()));
        let setup = BuildSetup {
            writes_sbom: false,
            git: Arc::default(),
            bases: Arc::new(BaseImages::new(registry, BTreeMap::new())),
            run: Arc::new(run),
            directory: Utf8PathBuf::from_path_buf(self.directory.path().to_owned()).expect("UTF-8"),
            store: Arc::new(Store::open(store).expect("a store")),
            threads: 2,
            // Files are younger than this: nothing of them is remembered wrongly.
            now: i64::MAX,
            env: Arc::new(self.env.clone()),
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let journal = Journal::in_memory(JournalOptions::default());
            let run = Run::new(Limits::default(), journal.clone());
            plan(&ship, &[], &setup, &run).expect("known names");
            let report = run.finish().await;
            journal.close();
            let mut reader = journal.after(0);
            let mut lines = String::new();
            loop {
                let batch = match reader.next().await {
                    // It keeps so many events and no more; a slow machine prints for longer.
                    Err(ReadError::Forgotten { oldest, .. }) => {
                        reader.seek(oldest - 1);
                        continue;
                    }
                    batch => batch.expect("a journal"),
                };
                let Some(batch) = batch else { break };
                for record in batch.iter() {
                    lines.push_str(&record.to_json());
                    lines.push('\n');
                }
            }
            Answer {
                results: finish(&ship, &report),
                journal: lines,
            }
        })
    }
}

impl Answer {
    fn statuses(&self) -> Vec<ArtifactStatus> {
        self.results.iter().map(|result| result.status).collect()
    }

    fn digest(&self) -> &str {
        let first = &self.results[0];
        assert!(first.is_good(), "{first:?}");
        first.digest.as_deref().expect("it is good")
    }
}

const WEB: &str =
    "  - {name: web, image: registry.example/web, oci: {context: web, env: {MODE: a}}}\n";

fn web() -> Project {
    let project = Project::new(WEB);
    project.write("web/bin/app", "a program");
    project.write("web/etc/app.conf", "a setting");
    symlink("app.conf", project.path("web/etc/link")).expect("a link");
    project
}

#[test]
fn files_become_an_image_once_and_the_same_one_everywhere() {
    let project = web();
    let first = project.build();
    assert_eq!(first.statuses(), [ArtifactStatus::Built]);
    assert_eq!(first.results[0].because, ["it was never built here"]);
    let image = first.results[0].image.as_deref().expect("an image");
    assert!(
        image.starts_with("registry.example/web:") && image.contains("@sha256:"),
        "{image}"
    );
    let second = project.build();
    assert_eq!(second.statuses(), [ArtifactStatus::Cached]);
    assert_eq!(second.digest(), first.digest());
    // Another directory, another store, other times.
    let elsewhere = web();
    assert_eq!(elsewhere.build().digest(), first.digest());
}

#[test]
fn every_change_of_an_input_is_seen_and_named_and_a_touch_is_none() {
    type Change = (&'static str, fn(&Project), &'static str);
    let changes: &[Change] = &[
        (
            "content",
            |p| p.write("web/bin/app", "another"),
            "/bin/app changed",
        ),
        (
            "execute bit",
            |p| {
                fs::set_permissions(p.path("web/bin/app"), fs::Permissions::from_mode(0o755))
                    .expect("a mode");
            },
            "/bin/app changed",
        ),
        (
            "rename",
            |p| fs::rename(p.path("web/bin/app"), p.path("web/bin/app2")).expect("renamed"),
            "/bin/app2 is new",
        ),
        (
            "link",
            |p| {
                fs::remove_file(p.path("web/etc/link")).expect("removed");
                symlink("other.conf", p.path("web/etc/link")).expect("a link");
            },
            "/etc/link changed",
        ),
        (
            "move",
            |p| {
                fs::create_dir(p.path("web/sbin")).expect("a directory");
                fs::rename(p.path("web/bin/app"), p.path("web/sbin/app")).expect("moved");
            },
            "/bin/app is gone",
        ),
        (
            "empty directory",
            |p| fs::create_dir(p.path("web/empty")).expect("a directory"),
            "/empty is new",
        ),
        ("new", |p| p.write("web/new", ""), "/new is new"),
        (
            "removed",
            |p| fs::remove_file(p.path("web/etc/link")).expect("removed"),
            "/etc/link is gone",
        ),
        (
            "env",
            |p| {
                let text = fs::read_to_string(p.path("portolan.yaml")).expect("a document");
                p.write("portolan.yaml", &text.replace("MODE: a", "MODE: b"));
            },
            "env MODE changed",
        ),
    ];
    for (what, change, because) in changes {
        let project = web();
        let first = project.build();
        change(&project);
        let second = project.build();
        assert_eq!(second.statuses(), [ArtifactStatus::Built], "{what}");
        assert_ne!(second.digest(), first.digest(), "{what}");
        assert!(
            second.results[0].because.iter().any(|line| line == because),
            "{what}: {:?}",
            second.results[0].because
        );
    }
    let project = web();
    project.build();
    let file = fs::File::options()
        .append(true)
        .open(project.path("web/bin/app"))
        .expect("a file");
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1))
        .expect("a time");
    assert_eq!(project.build().statuses(), [ArtifactStatus::Cached]);
}

#[test]
fn a_failure_skips_what_needs_it_and_nothing_else() {
    let mut artifacts = String::new();
    for number in 0..50 {
        let needs = if number % 10 == 9 {
            format!("[a{}]", number - 1)
        } else {
            "[]".to_owned()
        };
        let context = if number % 10 == 8 { "missing" } else { "web" };
        let artifact = format!(
            "  - {{name: a{number}, image: registry.example/a{number}, needs: {needs}, oci: {{context: {context}, labels: {{n: '{number}'}}}}}}\n"
        );
        artifacts.push_str(&artifact);
    }
    let project = Project::new(&artifacts);
    project.write("web/file", "a file");
    let answer = project.build();
    let count = |status| answer.statuses().iter().filter(|is| **is == status).count();
    assert_eq!(count(ArtifactStatus::Failed), 5);
    assert_eq!(count(ArtifactStatus::Skipped), 5);
    assert_eq!(count(ArtifactStatus::Built), 40);
    assert_eq!(answer.results[9].because, ["a8 failed"]);
    assert!(
        answer.results[8]
            .error
            .as_deref()
            .is_some_and(|error| error.contains("missing")),
        "{:?}",
        answer.results[8]
    );
    // A second run builds what failed and what was skipped, and nothing else.
    project.write("missing/file", "here now");
    let again = project.build();
    let count = |status| again.statuses().iter().filter(|is| **is == status).count();
    assert_eq!(
        (count(ArtifactStatus::Built), count(ArtifactStatus::Cached)),
        (10, 40)
    );
}

#[test]
fn a_command_makes_files_of_its_inputs_and_is_not_run_again_without_need() {
    let artifacts = "  - name: tool\n    image: registry.example/tool\n    command:\n      run: [sh, -c, 'cat src/a > \"$PORTOLAN_OUT/a\"; echo once >> \"$COUNT\"']\n      env: [COUNT]\n      inputs: ['src/**']\n      output: files\n";
    let mut project = Project::new(artifacts);
    let count = project.path("count");
    project.env.insert(
        "COUNT".to_owned(),
        count.to_str().expect("UTF-8").to_owned(),
    );
    project.write("src/a", "one");
    let first = project.build();
    assert_eq!(
        first.statuses(),
        [ArtifactStatus::Built],
        "{:?}",
        first.results
    );
    project.write("other", "no input of it");
    assert_eq!(project.build().statuses(), [ArtifactStatus::Cached]);
    project.write("src/a", "two");
    let second = project.build();
    assert_ne!(second.digest(), first.digest());
    assert_eq!(second.results[0].because, ["/src/a changed"]);
    assert_eq!(fs::read_to_string(count).expect("a file"), "once\nonce\n");
}

/// Whatever a command is given is an input of it; the value of a secret is not.
#[test]
fn every_input_of_a_command_counts() {
    type Change = (&'static str, fn(&mut Project), &'static str);
    let changes: &[Change] = &[
        (
            "argument",
            |p| edit(p, "tr a b", "tr a c"),
            "command changed",
        ),
        (
            "variable",
            |p| edit(p, "MODE: x", "MODE: y"),
            "variable MODE changed",
        ),
        (
            "passed variable",
            |p| {
                p.env.insert("CI".to_owned(), "other".to_owned());
            },
            "variable CI changed",
        ),
        (
            "version of a tool",
            |p| p.write("version", "2"),
            "version cat version changed",
        ),
        (
            "name of a secret",
            |p| edit(p, "TOKEN: {", "OTHER: {"),
            "secrets changed",
        ),
        (
            "hermetic",
            |p| edit(p, "hermetic: false", "hermetic: true"),
            "hermetic changed",
        ),
        (
            "layout",
            |p| edit(p, "buckets: 1", "buckets: 2"),
            "buckets changed",
        ),
    ];
    let artifacts = "  - name: tool\n    image: registry.example/tool\n    command: {run: [sh, -c, 'tr a b < src/a > $PORTOLAN_OUT/a'], inputs: ['src/**'], set: {MODE: x}, env: [CI], versions: [[cat, version]], secrets: {TOKEN: {env: TOKEN}}, hermetic: false, output: files, oci: {buckets: 1}}\n";
    for (what, change, because) in changes {
        let mut project = Project::new(artifacts);
        project.env.insert("CI".to_owned(), "true".to_owned());
        project
            .env
            .insert("TOKEN".to_owned(), "one-secret".to_owned());
        project.write("src/a", "a file");
        project.write("version", "1");
        assert_eq!(project.build().statuses(), [ArtifactStatus::Built]);
        project
            .env
            .insert("TOKEN".to_owned(), "another-secret".to_owned());
        assert_eq!(
            project.build().statuses(),
            [ArtifactStatus::Cached],
            "{what}"
        );
        change(&mut project);
        let second = project.build();
        assert_eq!(
            second.statuses(),
            [ArtifactStatus::Built],
            "{what}: {:?}",
            second.results
        );
        let told = &second.results[0].because;
        assert!(told.iter().any(|line| line == because), "{what}: {told:?}");
    }
}

#[test]
fn a_command_that_fails_is_told_with_its_last_lines_and_without_its_secrets() {
    let artifacts = "  - name: tool\n    image: registry.example/tool\n    command:\n      run: [sh, -c, 'echo the token is $(cat $PORTOLAN_SECRETS/TOKEN); echo no such module >&2; exit 3']\n      secrets: {TOKEN: {env: TOKEN}}\n";
    let mut project = Project::new(artifacts);
    project
        .env
        .insert("TOKEN".to_owned(), "planted-4711-value".to_owned());
    let answer = project.build();
    let error = answer.results[0].error.as_deref().expect("an error");
    assert!(error.contains("`sh` ended with 3"), "{error}");
    assert!(
        error.contains("no such module") && error.contains("the token is <hidden>"),
        "{error}"
    );
    assert!(!answer.journal.contains("planted"), "{}", answer.journal);
    assert!(!error.contains("planted"), "{error}");
}

#[test]
fn a_command_that_hangs_and_forks_is_ended_with_everything_it_started() {
    let artifacts = "  - name: tool\n    image: registry.example/tool\n    command:\n      run: [sh, -c, \"trap '' TERM; sleep 1000 & echo $! > $PIDS; sleep 1000 & echo $! >> $PIDS; wait\"]\n      env: [PIDS]\n      timeout: 1s\n";
    let mut project = Project::new(artifacts);
    let pids = project.path("pids");
    project
        .env
        .insert("PIDS".to_owned(), pids.to_str().expect("UTF-8").to_owned());
    let began = Instant::now();
    let answer = project.build();
    assert!(began.elapsed() < Duration::from_mins(1));
    let error = answer.results[0].error.as_deref().expect("an error");
    assert!(error.contains("was stopped after 1 s"), "{error}");
    for pid in fs::read_to_string(pids).expect("numbers").lines() {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
}

/// What leaves the group of its command ends with it as well when its time is up, and what that starts meanwhile.
#[test]
fn a_command_that_hangs_takes_along_what_left_its_group() {
    let artifacts = "  - name: tool\n    image: registry.example/tool\n    command:\n      run: [sh, -c, \"setsid sh -c 'trap \\\"\\\" TERM HUP; echo $$ >> $PIDS; while :; do sleep 1000 & echo $! >> $PIDS; wait; done' & sleep 1000\"]\n      env: [PIDS]\n      timeout: 1s\n";
    let mut project = Project::new(artifacts);
    let pids = project.path("pids");
    project
        .env
        .insert("PIDS".to_owned(), pids.to_str().expect("UTF-8").to_owned());
    let answer = project.build();
    let error = answer.results[0].error.as_deref().expect("an error");
    assert!(error.contains("was stopped after 1 s"), "{error}");
    let pids = fs::read_to_string(pids).expect("numbers");
    assert!(pids.lines().count() >= 2, "{pids}");
    for pid in pids.lines() {
        let is_gone = || {
            let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_gone() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(is_gone(), "{pid} goes on");
    }
}

#[test]
fn a_command_that_prints_without_end_of_line_costs_no_memory() {
    let bytes = printed_bytes();
    let artifacts = format!(
        "  - name: tool\n    image: registry.example/tool\n    command:\n      run: [sh, -c, 'head -c {bytes} /dev/zero; exit 1']\n"
    );
    let project = Project::new(&artifacts);
    let answer = project.build();
    assert_eq!(answer.statuses(), [ArtifactStatus::Failed]);
    let status = fs::read_to_string("/proc/self/status").expect("our state");
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("a peak");
    let peak: u64 = peak
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    assert!(peak < 200_000, "{peak} kB");
}

/// How much a program prints: 1 GB with `PORTOLAN_LONG`.
fn printed_bytes() -> usize {
    match std::env::var_os("PORTOLAN_LONG") {
        Some(_) => 1_000_000_000,
        None => 100_000_000,
    }
}

/// The last lines are found after however many others, and what is kept of them is bounded.
#[test]
fn a_command_that_prints_millions_of_lines_is_read_to_its_end() {
    let line = "a line that nobody reads\n";
    let lines = printed_bytes() / line.len();
    let artifacts = format!(
        "  - name: tool\n    image: registry.example/tool\n    command:\n      run: [sh, -c, 'yes a line that nobody reads | head -n {lines}; echo the reason; exit 1']\n"
    );
    let project = Project::new(&artifacts);
    let began = Instant::now();
    let answer = project.build();
    let error = answer.results[0].error.as_deref().expect("an error");
    assert!(error.ends_with("the reason"), "{error}");
    assert!(
        began.elapsed() < Duration::from_mins(5),
        "{:?}",
        began.elapsed()
    );
    let runs = fs::read_dir(project.store.path().join("portolan/runs")).expect("runs");
    let run = runs.flatten().next().expect("a run").path();
    let files = fs::read_dir(run.join("output")).expect("output").flatten();
    let bytes: u64 = files
        .map(|file| file.metadata().expect("a file").len())
        .sum();
    assert!(bytes < 4 << 20, "{bytes}");
    let store = Utf8Path::from_path(project.store.path()).expect("UTF-8");
    let run = ShipRun::newest(store).expect("runs");
    // The journal of the test is in memory: the run has not begun for others.
    assert_eq!(run, None);
    let run = ShipRun::list(store).expect("runs").remove(0);
    let kept = run.kept_output("tool").expect("read").expect("there");
    assert!(kept.first.starts_with(line) && kept.last.ends_with(&format!("{line}the reason\n")));
    let all = (lines * line.len()) as u64 + "the reason\n".len() as u64;
    let sum = kept.first.len() as u64 + kept.dropped + kept.last.len() as u64;
    assert_eq!(sum, all);
}

#[test]
fn an_image_is_built_on_another_artifact_and_anew_when_that_changes() {
    let artifacts = "  - {name: app, image: registry.example/app, oci: {context: app, base: {artifact: base}}}\n  - {name: base, image: registry.example/base, oci: {context: base}}\n";
    let project = Project::new(artifacts);
    project.write("app/app", "a program");
    project.write("base/lib", "a library");
    let first = project.build();
    assert_eq!(
        first.statuses(),
        [ArtifactStatus::Built, ArtifactStatus::Built],
        "{:?}",
        first.results
    );
    project.write("base/lib", "another");
    let second = project.build();
    assert_eq!(
        second.statuses(),
        [ArtifactStatus::Built, ArtifactStatus::Built]
    );
    assert_eq!(second.results[0].because, ["base changed"]);
}

#[test]
fn an_image_that_a_command_leaves_as_a_layout_is_taken_over_whole() {
    let made = web();
    let image = made.build();
    let artifacts = "  - name: tool\n    image: registry.example/tool\n    command: {run: [sh, -c, 'cp -r \"$LAYOUT\"/. \"$PORTOLAN_OUT\"/'], env: [LAYOUT]}\n";
    let mut project = Project::new(artifacts);
    let layout = made.store.path().to_str().expect("UTF-8");
    project.env.insert("LAYOUT".to_owned(), layout.to_owned());
    let taken = project.build();
    assert_eq!(taken.digest(), image.digest(), "{:?}", taken.results);
    // A part that is not what its name says is no image.
    let spoil = "for b in \\\"$PORTOLAN_OUT\\\"/blobs/sha256/*; do echo x >> $b; done";
    let command = format!(
        "  - name: tool\n    image: registry.example/tool\n    command:\n      run: [sh, -c, \"cp -r $LAYOUT/. $PORTOLAN_OUT/; {spoil}\"]\n      env: [LAYOUT]\n"
    );
    let mut broken = Project::new(&command);
    broken.env.clone_from(&project.env);
    let refused = broken.build();
    assert_eq!(
        refused.statuses(),
        [ArtifactStatus::Failed],
        "{:?}",
        refused.results
    );
}

#[test]
fn paths_that_lead_out_of_the_project_are_refused() {
    for context in ["../x", "/etc", "a/../../b"] {
        let project = Project::new(&format!(
            "  - {{name: web, image: x, oci: {{context: {context}}}}}\n"
        ));
        let answer = project.build();
        let error = answer.results[0].error.as_deref().expect("an error");
        assert!(error.contains("leads out of the directory"), "{error}");
    }
}

/// A link is copied as one, but never the way to the files: neither of a context nor of a directory that a command runs in.
#[test]
fn a_link_out_of_the_project_is_not_followed() {
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("planted"), "planted-4711").expect("a file");
    let sources = [
        "oci: {context: link}",
        "oci: {context: link/., copy: [{from: planted, to: /a}]}",
        "oci: {context: web/up/link}",
        "oci: {context: web, base: {layout: link}}",
        "command: {run: [cat, planted], dir: link}",
        "dockerfile: {context: link}",
        "dockerfile: {context: web, file: link/planted}",
        "dockerfile: {context: web, file: ../../planted}",
    ];
    for source in sources {
        let project = Project::new(&format!("  - {{name: web, image: x, {source}}}\n"));
        project.write("web/a", "a file");
        symlink(outside.path(), project.path("link")).expect("a link");
        symlink(outside.path(), project.path("web/link")).expect("a link");
        symlink("..", project.path("web/up")).expect("a link");
        let answer = project.build();
        let error = answer.results[0].error.as_deref().unwrap_or_default();
        assert!(error.contains("leads out of the"), "{source}: {error}");
        assert!(!answer.journal.contains("planted-4711"), "{source}");
    }
    // A link inside of the project is only another way to the same place.
    let project = Project::new("  - {name: web, image: x, oci: {context: web/up/web}}\n");
    project.write("web/a", "a file");
    symlink("..", project.path("web/up")).expect("a link");
    assert_eq!(project.build().statuses(), [ArtifactStatus::Built]);
}

#[test]
fn every_artifact_is_queued_started_and_ended_by_the_runner_alone() {
    let answer = web().build();
    let events: Vec<&str> = ["queued", "started", "done"]
        .into_iter()
        .filter(|event| {
            answer
                .journal
                .lines()
                .any(|line| line.contains(event) && line.contains("artifact/web"))
        })
        .collect();
    assert_eq!(events, ["queued", "started", "done"], "{}", answer.journal);
    assert!(
        answer.journal.contains("\"status\":\"built\""),
        "{}",
        answer.journal
    );
}

/// The store lies in the directory that a command reads: what one build writes there must not be an input of the next.
#[test]
fn a_store_inside_of_the_inputs_is_no_input() {
    let artifacts = "  - name: tool\n    image: registry.example/tool\n    command: {run: [sh, -c, 'echo a > \"$PORTOLAN_OUT/a\"'], dir: src, output: files}\n";
    let project = Project::new(artifacts);
    project.write("src/a", "a file");
    let store = project.path("src/store");
    assert_eq!(
        project.build_into(&store).statuses(),
        [ArtifactStatus::Built]
    );
    assert_eq!(
        project.build_into(&store).statuses(),
        [ArtifactStatus::Cached]
    );
}

#[test]
fn a_program_that_left_its_group_and_goes_on_printing_is_not_waited_for() {
    let artifacts = "  - name: tool\n    image: registry.example/tool\n    command: {run: [sh, -c, 'setsid timeout 60 sh -c \"while :; do echo on; sleep 0.1; done\" & sleep 0.2; exit 3']}\n";
    let began = Instant::now();
    let answer = Project::new(artifacts).build();
    assert_eq!(answer.statuses(), [ArtifactStatus::Failed]);
    assert!(began.elapsed() < Duration::from_secs(50));
}

/// A registry that sends a byte now and then, for ever, is given up as too slow; nothing else waits for it.
#[test]
fn a_registry_that_trickles_is_one_result_and_the_others_go_on() {
    let server = HttpServer::start(|_| Reply::ok(" ".repeat(100_000)).drip(Duration::from_secs(1)));
    let base = format!("{}/base@sha256:{}", server.host(), "0".repeat(64));
    let mut project = Project::new(&format!(
        "  - {{name: slow, image: x, oci: {{context: web, base: '{base}'}}}}\n{WEB}"
    ));
    project.http.slow_start = Duration::from_secs(2);
    project.write("web/a", "a file");
    let answer = project.build();
    assert_eq!(
        answer.statuses(),
        [ArtifactStatus::Failed, ArtifactStatus::Built]
    );
    let error = answer.results[0].error.as_deref().unwrap_or_default();
    assert!(error.contains("cannot pull the base image"), "{error}");
    assert!(error.contains("slow"), "{error}");
}

/// A directory that comes and goes while its files are looked for: an image of a whole state, or one clear reason.
#[test]
fn a_context_that_changes_meanwhile_is_built_whole_or_refused_by_name() {
    let project = Project::new(&format!(
        "  - {{name: busy, image: y, oci: {{context: busy}}}}\n{WEB}"
    ));
    project.write("web/a", "a file");
    project.write("busy/kept", "a file");
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let changer = std::thread::spawn({
        let (stop, path) = (Arc::clone(&stop), project.path("busy/sub"));
        move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = fs::create_dir_all(path.join("below"));
                let _ = fs::write(path.join("below/file"), "here now");
                let _ = fs::remove_dir_all(&path);
            }
        }
    });
    for _ in 0..30 {
        let answer = project.build();
        assert!(answer.results[1].is_good(), "{:?}", answer.results[1]);
        if let Some(error) = &answer.results[0].error {
            let words = [
                "vanished while",
                "changed while",
                "cannot be read",
                "cannot read `sub",
            ];
            assert!(words.iter().any(|word| error.contains(word)), "{error}");
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    changer.join().expect("no panic");
}
